/* A library of lists and trees that works through function pointers, on elements of three types. */
#include "generic.h"

struct sums {
    const struct element_type *type;
    uint64_t sum;
    struct avl *tree;
};

static void add_up(void *element, void *context)
{
    struct sums *sums = context;
    sums->sum = mix(sums->sum, sums->type->hash(element));
}

static void remember(void *element, void *context)
{
    struct sums *sums = context;
    avl_insert(sums->tree, element);
}

static int is_odd(const void *element, const void *context)
{
    const struct sums *sums = context;
    return (int)(sums->type->hash(element) & 1);
}

static void make(const struct element_type *type, void *element, uint64_t *random)
{
    uint64_t r = next_random(random) >> 24;
    char *text = element;
    int32_t point[2];
    if (type == &number_type) {
        memcpy(element, &r, sizeof r);
    } else if (type == &point_type) {
        point[0] = (int32_t)(r & 1023) - 512;
        point[1] = (int32_t)(r >> 12 & 1023) - 512;
        memcpy(element, point, sizeof point);
    } else {
        memset(text, 0, 16);
        memcpy(text, "key-", 4);
        for (int i = 4; i < 10; i++, r >>= 5)
            text[i] = (char)('a' + (r & 15));
    }
}

static char memory[AMOUNT(1 << 20, 1 << 15)];

static uint64_t work(const struct element_type *type, struct arena *arena, uint64_t *random)
{
    enum { COUNT = AMOUNT(5000, 100) };
    uint64_t element[2];
    struct list list;
    struct avl tree;
    struct sums sums = {type, 1, &tree};
    arena_reset(arena);
    list_init(&list, type, arena);
    avl_init(&tree, type, arena);
    for (int i = 0; i < COUNT; i++) {
        make(type, element, random);
        list_append(&list, element);
    }
    list_sort(&list);
    list_each(&list, add_up, &sums);
    list_reverse(&list);
    sums.sum = mix(sums.sum, list_remove_if(&list, is_odd, &sums));
    list_each(&list, add_up, &sums);
    list_each(&list, remember, &sums);
    for (int i = 0; i < COUNT; i++) {
        make(type, element, random);
        if (avl_find(&tree, element))
            sums.sum = mix(sums.sum, (uint64_t)avl_remove(&tree, element));
        else if (i % 4)
            avl_insert(&tree, element);
    }
    for (; tree.size > list.length; sums.sum++)
        avl_remove(&tree, tree.root + 1);
    avl_each(&tree, add_up, &sums);
    return mix(sums.sum, tree.size + (uint64_t)tree.root->height);
}

WORKLOAD(generic)
{
    const struct element_type *const types[] = {&number_type, &text_type, &point_type};
    uint64_t random = 97, sum = 1;
    struct arena arena;
    arena_init(&arena, memory, sizeof memory);
    for (uint64_t round = 0; round < part(120, permille); round++)
        sum = mix(sum, work(types[round % 3], &arena, &random));
    return mix(sum, arena.most);
}
