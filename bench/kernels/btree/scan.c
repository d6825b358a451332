/* Looking things up: one key, all keys of a range, and whether the tree is whole. */
#include "btree.h"

const uint64_t *tree_get(const struct tree *tree, uint64_t key)
{
    const struct node *node = tree->root;
    while (node) {
        int at = node_find(node, key);
        if (at < node->count && node->keys[at] == key)
            return &node->values[at];
        node = node->leaf ? NULL : node->children[at];
    }
    return NULL;
}

static uint64_t scan(const struct node *node, uint64_t from, uint64_t to, visitor *visit, void *context)
{
    uint64_t found = 0;
    int at = node_find(node, from);
    for (;; at++) {
        if (!node->leaf)
            found += scan(node->children[at], from, to, visit, context);
        if (at == node->count || node->keys[at] >= to)
            return found;
        visit(context, node->keys[at], node->values[at]);
        found++;
    }
}

/* Visits the keys from `from` to below `to` in order; gives how many there are. */
uint64_t tree_scan(const struct tree *tree, uint64_t from, uint64_t to, visitor *visit, void *context)
{
    return tree->root ? scan(tree->root, from, to, visit, context) : 0;
}

static int64_t check(const struct node *node, int depth, uint64_t low, uint64_t high)
{
    int64_t keys = node->count;
    if (node->leaf != (depth == 1))
        return -1;
    for (int i = 0; i < node->count; i++)
        if (node->keys[i] < low || node->keys[i] >= high || (i && node->keys[i] <= node->keys[i - 1]))
            return -1;
    for (int i = 0; !node->leaf && i <= node->count; i++) {
        if (node->children[i]->count < HALF - 1)
            return -1;
        int64_t below = check(node->children[i], depth - 1, i ? node->keys[i - 1] : low,
                              i < node->count ? node->keys[i] : high);
        if (below < 0)
            return -1;
        keys += below;
    }
    return keys;
}

int tree_check(const struct tree *tree)
{
    return (tree->root ? check(tree->root, tree->height, 0, UINT64_MAX) : 0) == (int64_t)tree->size;
}
