/* Insertion in one way down: full nodes are split before they are entered. */
#include "btree.h"

int tree_insert(struct tree *tree, uint64_t key, uint64_t value)
{
    if (!tree->root) {
        tree->root = node_new(1);
        tree->height = 1;
    }
    if (tree->root->count == MOST) {
        struct node *root = node_new(0);
        root->children[0] = tree->root;
        node_split_child(root, 0);
        tree->root = root;
        tree->height++;
    }
    struct node *node = tree->root;
    for (;;) {
        int at = node_find(node, key);
        if (at < node->count && node->keys[at] == key) {
            node->values[at] = value;
            return 0;
        }
        if (node->leaf) {
            node_open(node, at);
            node->keys[at] = key;
            node->values[at] = value;
            tree->size++;
            return 1;
        }
        if (node->children[at]->count == MOST) {
            node_split_child(node, at);
            continue;
        }
        node = node->children[at];
    }
}
