/* A B-tree in several units: insertions, removals, lookups and scans of ranges in turn. */
#include "btree.h"

struct totals {
    uint64_t sum;
    uint64_t previous;
};

static void add_up(void *context, uint64_t key, uint64_t value)
{
    struct totals *totals = context;
    REQUIRE(key > totals->previous || !totals->previous);
    totals->previous = key;
    totals->sum = mix(totals->sum, key ^ value);
}

WORKLOAD(btree)
{
    enum { KEYS = AMOUNT(1 << 20, 1 << 12), FIRST = AMOUNT(1 << 17, 1 << 9) };
    uint64_t random = 89;
    struct tree tree = {NULL, 0, 0};
    struct totals totals = {1, 0};
    pool_reset();
    for (uint64_t i = 0; i < part(FIRST, permille); i++)
        tree_insert(&tree, next_random(&random) % KEYS, i);
    for (uint64_t i = 0; i < part(AMOUNT(900000, 6000), permille); i++) {
        uint64_t r = next_random(&random), key = (r >> 24) % KEYS;
        const uint64_t *value;
        switch (r >> 20 & 7) {
        case 0:
        case 1:
            tree_insert(&tree, key, i);
            break;
        case 2:
            totals.sum = mix(totals.sum, (uint64_t)tree_remove(&tree, key));
            break;
        case 3: /* so that the tree keeps its size: one of the keys that are there */
            totals.previous = 0;
            if (tree_scan(&tree, key, key + 8, add_up, &totals))
                tree_remove(&tree, totals.previous);
            break;
        case 4:
            totals.previous = 0;
            totals.sum += tree_scan(&tree, key, key + 200, add_up, &totals);
            break;
        default:
            value = tree_get(&tree, key);
            totals.sum = mix(totals.sum, value ? *value : key);
        }
    }
    REQUIRE(tree_check(&tree));
    totals.previous = 0;
    REQUIRE(tree_scan(&tree, 0, UINT64_MAX, add_up, &totals) == tree.size);
    while (tree.root)
        REQUIRE(tree_remove(&tree, tree.root->keys[tree.root->count / 2]));
    REQUIRE(!tree.size && !nodes_in_use);
    return mix(mix(totals.sum, splits), merges);
}
