/* Builds and walks binary trees from an arena: pointers everywhere. */
#include "kernel.h"

struct node {
    struct node *left, *right;
    uint64_t key;
};
static struct node arena[1 << 18];
static size_t used;

static struct node *insert(struct node *root, uint64_t key)
{
    struct node **at = &root;
    while (*at)
        at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    struct node *n = &arena[used++];
    n->left = n->right = NULL;
    n->key = key;
    *at = n;
    return root;
}

static uint64_t walk(const struct node *n, uint64_t sum)
{
    if (!n)
        return sum;
    return walk(n->right, mix(walk(n->left, sum), n->key));
}

WORKLOAD(tree)
{
    uint64_t state = 43, sum = 0;
    for (int round = 0; round < (int)part(120, permille); round++) {
        struct node *root = NULL;
        used = 0;
        for (int i = 0; i < AMOUNT(30000, 200); i++)
            root = insert(root, next_random(&state));
        for (int i = 0; i < 8; i++)
            sum = walk(root, sum);
    }
    return sum;
}
