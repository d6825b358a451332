/* Nodes: their pool, search, and what moves keys between neighbours. */
#include "btree.h"

uint64_t nodes_in_use, splits, merges;

static struct node pool[POOL];
static struct node *unused;
static size_t untouched;

void pool_reset(void)
{
    unused = NULL;
    untouched = 0;
    nodes_in_use = splits = merges = 0;
}

struct node *node_new(int leaf)
{
    struct node *node = unused;
    if (node) {
        unused = node->children[0];
    } else {
        REQUIRE(untouched < POOL);
        node = &pool[untouched++];
    }
    nodes_in_use++;
    node->count = 0;
    node->leaf = leaf;
    return node;
}

void node_free(struct node *node)
{
    nodes_in_use--;
    node->children[0] = unused;
    unused = node;
}

/* The first place whose key is not less. */
int node_find(const struct node *node, uint64_t key)
{
    int low = 0, high = node->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (node->keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Makes room for a key at a place, and for the child after it. */
void node_open(struct node *node, int at)
{
    size_t after = (size_t)(node->count - at);
    memmove(&node->keys[at + 1], &node->keys[at], after * sizeof *node->keys);
    memmove(&node->values[at + 1], &node->values[at], after * sizeof *node->values);
    if (!node->leaf)
        memmove(&node->children[at + 2], &node->children[at + 1], after * sizeof *node->children);
    node->count++;
}

/* Takes a key out, and the child after it. */
void node_close(struct node *node, int at)
{
    size_t after = (size_t)(node->count - at - 1);
    memmove(&node->keys[at], &node->keys[at + 1], after * sizeof *node->keys);
    memmove(&node->values[at], &node->values[at + 1], after * sizeof *node->values);
    if (!node->leaf)
        memmove(&node->children[at + 1], &node->children[at + 2], after * sizeof *node->children);
    node->count--;
}

static void append(struct node *to, const struct node *from, int first, int count)
{
    memcpy(&to->keys[to->count], &from->keys[first], (size_t)count * sizeof *to->keys);
    memcpy(&to->values[to->count], &from->values[first], (size_t)count * sizeof *to->values);
    if (!to->leaf)
        memcpy(&to->children[to->count], &from->children[first], (size_t)(count + 1) * sizeof *to->children);
    to->count += count;
}

/* Splits a full child in two, its middle key goes up. */
void node_split_child(struct node *parent, int at)
{
    struct node *left = parent->children[at], *right = node_new(left->leaf);
    append(right, left, HALF, HALF - 1);
    left->count = HALF - 1;
    node_open(parent, at);
    parent->keys[at] = left->keys[HALF - 1];
    parent->values[at] = left->values[HALF - 1];
    parent->children[at + 1] = right;
    splits++;
}

/* Joins two children of the fewest keys with the key between them. */
void node_merge_children(struct node *parent, int at)
{
    struct node *left = parent->children[at], *right = parent->children[at + 1];
    left->keys[left->count] = parent->keys[at];
    left->values[left->count++] = parent->values[at];
    append(left, right, 0, right->count);
    node_close(parent, at);
    node_free(right);
    merges++;
}
