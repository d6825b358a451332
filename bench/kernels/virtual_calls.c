/* Calls through tables of function pointers, as a compiler makes of virtual functions. */
#include "kernel.h"

struct shape;
struct methods {
    uint64_t (*area)(const struct shape *);
    uint64_t (*perimeter)(const struct shape *);
};
struct shape {
    const struct methods *methods;
    uint32_t a, b;
};

static uint64_t rect_area(const struct shape *s) { return (uint64_t)s->a * s->b; }
static uint64_t rect_perimeter(const struct shape *s) { return 2 * ((uint64_t)s->a + s->b); }
static uint64_t square_area(const struct shape *s) { return (uint64_t)s->a * s->a; }
static uint64_t square_perimeter(const struct shape *s) { return 4 * (uint64_t)s->a; }
static uint64_t triangle_area(const struct shape *s) { return (uint64_t)s->a * s->b / 2; }
static uint64_t triangle_perimeter(const struct shape *s) { return (uint64_t)s->a + 2 * (uint64_t)s->b; }

static const struct methods kinds[3] = {
    {rect_area, rect_perimeter},
    {square_area, square_perimeter},
    {triangle_area, triangle_perimeter},
};

static struct shape shapes[1024];

WORKLOAD(virtual_calls)
{
    uint64_t state = 7, sum = 0;
    for (int i = 0; i < 1024; i++) {
        uint64_t r = next_random(&state);
        /* long runs of one kind with exceptions: what a scene graph looks like to a predictor */
        shapes[i].methods = &kinds[r % 16 == 0 ? (r >> 8) % 3 : (unsigned)(i >> 5) % 3];
        shapes[i].a = (uint32_t)(r >> 16) & 0xFFFF;
        shapes[i].b = (uint32_t)(r >> 40) & 0xFFFF;
    }
    for (int round = 0; round < (int)part(AMOUNT(200000, 5000), permille); round++)
        for (int i = 0; i < 1024; i++) {
            const struct shape *s = &shapes[i];
            sum += (round & 1) ? s->methods->area(s) : s->methods->perimeter(s);
        }
    return sum;
}
