/* A B-tree of 64-bit keys and values, its nodes in a pool. */
#ifndef BTREE_H
#define BTREE_H

#include "kernel.h"

enum { HALF = 16, MOST = 2 * HALF - 1, POOL = 1 << 15 };

struct node {
    int count;
    int leaf;
    uint64_t keys[MOST];
    uint64_t values[MOST];
    struct node *children[MOST + 1];
};

struct tree {
    struct node *root;
    uint64_t size;
    int height;
};

/* node.c */
extern uint64_t nodes_in_use, splits, merges;
void pool_reset(void);
struct node *node_new(int leaf);
void node_free(struct node *node);
int node_find(const struct node *node, uint64_t key);
void node_open(struct node *node, int at);
void node_close(struct node *node, int at);
void node_split_child(struct node *parent, int at);
void node_merge_children(struct node *parent, int at);

/* insert.c, remove.c, scan.c */
int tree_insert(struct tree *tree, uint64_t key, uint64_t value);
int tree_remove(struct tree *tree, uint64_t key);
typedef void visitor(void *context, uint64_t key, uint64_t value);
uint64_t tree_scan(const struct tree *tree, uint64_t from, uint64_t to, visitor *visit, void *context);
int tree_check(const struct tree *tree);
const uint64_t *tree_get(const struct tree *tree, uint64_t key);

#endif
