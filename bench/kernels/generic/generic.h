/* Containers of any elements, in C: what they know of an element is a table of functions, their memory an arena's. */
#ifndef GENERIC_H
#define GENERIC_H

#include "kernel.h"

/* arena.c */
struct arena {
    char *memory;
    size_t size, used, most;
};
void arena_init(struct arena *arena, void *memory, size_t size);
void *arena_take(struct arena *arena, size_t size);
void arena_reset(struct arena *arena);

struct element_type {
    size_t size;
    int (*compare)(const void *a, const void *b);
    uint64_t (*hash)(const void *element);
    void (*copy)(void *to, const void *from);
};
extern const struct element_type number_type, text_type, point_type;

/* list.c */
struct link {
    struct link *next, *previous;
};
struct list {
    const struct element_type *type;
    struct arena *arena;
    struct link ends, *spare;
    size_t length;
};
typedef void list_visit(void *element, void *context);
typedef int list_test(const void *element, const void *context);
void list_init(struct list *list, const struct element_type *type, struct arena *arena);
void *list_append(struct list *list, const void *element);
void list_sort(struct list *list);
void list_reverse(struct list *list);
size_t list_remove_if(struct list *list, list_test *test, const void *context);
void list_each(struct list *list, list_visit *visit, void *context);

/* tree.c */
struct twig {
    struct twig *child[2];
    int height;
};
struct avl {
    const struct element_type *type;
    struct arena *arena;
    struct twig *root, *spare;
    size_t size;
};
void avl_init(struct avl *tree, const struct element_type *type, struct arena *arena);
void *avl_insert(struct avl *tree, const void *element);
void *avl_find(const struct avl *tree, const void *element);
int avl_remove(struct avl *tree, const void *element);
void avl_each(const struct avl *tree, list_visit *visit, void *context);

#endif
