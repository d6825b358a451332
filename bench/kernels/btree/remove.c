/* Removal in one way down: a node is entered with a key more than the fewest. */
#include "btree.h"

/* Gives a child a key of its left neighbour, through the parent. */
static void borrow_left(struct node *parent, int at)
{
    struct node *child = parent->children[at], *left = parent->children[at - 1];
    node_open(child, 0);
    if (!child->leaf) {
        child->children[1] = child->children[0];
        child->children[0] = left->children[left->count];
    }
    child->keys[0] = parent->keys[at - 1];
    child->values[0] = parent->values[at - 1];
    left->count--;
    parent->keys[at - 1] = left->keys[left->count];
    parent->values[at - 1] = left->values[left->count];
}

static void borrow_right(struct node *parent, int at)
{
    struct node *child = parent->children[at], *right = parent->children[at + 1];
    child->keys[child->count] = parent->keys[at];
    child->values[child->count++] = parent->values[at];
    parent->keys[at] = right->keys[0];
    parent->values[at] = right->values[0];
    if (!child->leaf) {
        child->children[child->count] = right->children[0];
        right->children[0] = right->children[1];
    }
    node_close(right, 0);
}

/* Makes a child fit to lose a key; gives the child to go on with. */
static struct node *fill(struct node *parent, int at)
{
    if (parent->children[at]->count >= HALF)
        return parent->children[at];
    if (at > 0 && parent->children[at - 1]->count >= HALF)
        borrow_left(parent, at);
    else if (at < parent->count && parent->children[at + 1]->count >= HALF)
        borrow_right(parent, at);
    else
        node_merge_children(parent, at -= at == parent->count);
    return parent->children[at];
}

static int remove_below(struct node *node, uint64_t key)
{
    for (;;) {
        int at = node_find(node, key);
        int here = at < node->count && node->keys[at] == key;
        if (node->leaf) {
            if (here)
                node_close(node, at);
            return here;
        }
        if (!here) {
            node = fill(node, at);
            continue;
        }
        struct node *left = node->children[at], *right = node->children[at + 1];
        if (left->count < HALF && right->count < HALF) {
            node_merge_children(node, at);
            node = left;
            continue;
        }
        /* The next key below takes its place. */
        int before = left->count >= HALF;
        const struct node *leaf = before ? left : right;
        while (!leaf->leaf)
            leaf = leaf->children[before ? leaf->count : 0];
        int which = before ? leaf->count - 1 : 0;
        key = node->keys[at] = leaf->keys[which];
        node->values[at] = leaf->values[which];
        node = before ? left : right;
    }
}

int tree_remove(struct tree *tree, uint64_t key)
{
    if (!tree->root)
        return 0;
    int removed = remove_below(tree->root, key);
    tree->size -= (uint64_t)removed;
    if (tree->root->count == 0) {
        struct node *old = tree->root;
        tree->root = old->leaf ? NULL : old->children[0];
        tree->height--;
        node_free(old);
    }
    return removed;
}
