/* Balanced trees (AVL). */
#include "generic.h"

static void *element_of(const struct twig *twig)
{
    return (void *)(twig + 1);
}

static int height(const struct twig *twig)
{
    return twig ? twig->height : 0;
}

static void update(struct twig *twig)
{
    int a = height(twig->child[0]), b = height(twig->child[1]);
    twig->height = (a > b ? a : b) + 1;
}

/* Lifts the child of one side above its parent. */
static struct twig *rotate(struct twig *twig, int side)
{
    struct twig *up = twig->child[side];
    twig->child[side] = up->child[!side];
    up->child[!side] = twig;
    update(twig);
    update(up);
    return up;
}

static struct twig *balance(struct twig *twig)
{
    update(twig);
    int lean = height(twig->child[1]) - height(twig->child[0]);
    if (lean > -2 && lean < 2)
        return twig;
    int side = lean > 0;
    struct twig *heavy = twig->child[side];
    if (height(heavy->child[!side]) > height(heavy->child[side]))
        twig->child[side] = rotate(heavy, !side);
    return rotate(twig, side);
}

void avl_init(struct avl *tree, const struct element_type *type, struct arena *arena)
{
    *tree = (struct avl){type, arena, NULL, NULL, 0};
}

static struct twig *insert(struct avl *tree, struct twig *twig, const void *element, void **found)
{
    if (!twig) {
        twig = tree->spare;
        if (twig)
            tree->spare = twig->child[0];
        else
            twig = arena_take(tree->arena, sizeof *twig + tree->type->size);
        *twig = (struct twig){{NULL, NULL}, 1};
        tree->type->copy(element_of(twig), element);
        tree->size++;
        *found = element_of(twig);
        return twig;
    }
    int order = tree->type->compare(element, element_of(twig));
    if (order == 0) {
        *found = element_of(twig);
        return twig;
    }
    twig->child[order > 0] = insert(tree, twig->child[order > 0], element, found);
    return balance(twig);
}

/* The element of the tree that equals it, which is a copy of it if there was none. */
void *avl_insert(struct avl *tree, const void *element)
{
    void *found = NULL;
    tree->root = insert(tree, tree->root, element, &found);
    return found;
}

void *avl_find(const struct avl *tree, const void *element)
{
    const struct twig *twig = tree->root;
    while (twig) {
        int order = tree->type->compare(element, element_of(twig));
        if (order == 0)
            return element_of(twig);
        twig = twig->child[order > 0];
    }
    return NULL;
}

static struct twig *take_first(struct twig *twig, struct twig **first)
{
    if (!twig->child[0]) {
        *first = twig;
        return twig->child[1];
    }
    twig->child[0] = take_first(twig->child[0], first);
    return balance(twig);
}

static struct twig *remove_below(struct avl *tree, struct twig *twig, const void *element)
{
    if (!twig)
        return NULL;
    int order = tree->type->compare(element, element_of(twig));
    if (order != 0) {
        twig->child[order > 0] = remove_below(tree, twig->child[order > 0], element);
        return balance(twig);
    }
    struct twig *left = twig->child[0], *right = twig->child[1], *first;
    twig->child[0] = tree->spare;
    tree->spare = twig;
    tree->size--;
    if (!left || !right)
        return left ? left : right;
    right = take_first(right, &first);
    first->child[0] = left;
    first->child[1] = right;
    return balance(first);
}

int avl_remove(struct avl *tree, const void *element)
{
    size_t before = tree->size;
    tree->root = remove_below(tree, tree->root, element);
    return tree->size != before;
}

static void each(const struct twig *twig, list_visit *visit, void *context)
{
    for (; twig; twig = twig->child[1]) {
        each(twig->child[0], visit, context);
        visit(element_of(twig), context);
    }
}

void avl_each(const struct avl *tree, list_visit *visit, void *context)
{
    each(tree->root, visit, context);
}
