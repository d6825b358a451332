/* Types that C++ has under other names than C: those that are defined in a struct. */
#ifndef NESTED_H
#define NESTED_H
#include <stdbool.h>

struct nested {
    struct nested_inner {
        struct nested_innermost {
            int values[2];
        } rows[3], *more;
        unsigned whole : 3;
    } *inner;
    enum nested_color { NESTED_RED } color;
    int (*check)(struct nested_inner *inner, enum nested_color color);
    struct {
        int x;
    } unnamed;
    bool flag;
    volatile enum nested_color seen;
};
struct nested_bits {
    int a : 3, b : 4;
};
int nested_sum(struct nested *all, struct nested_bits *bits);
#endif
