/* Doubly linked lists: append, sort by merging, reverse, remove what a test tells. */
#include "generic.h"

static void *element_of(struct link *link)
{
    return link + 1;
}

static void tie(struct link *a, struct link *b)
{
    a->next = b;
    b->previous = a;
}

void list_init(struct list *list, const struct element_type *type, struct arena *arena)
{
    list->type = type;
    list->arena = arena;
    list->spare = NULL;
    list->length = 0;
    tie(&list->ends, &list->ends);
}

void *list_append(struct list *list, const void *element)
{
    struct link *link = list->spare;
    if (link)
        list->spare = link->next;
    else
        link = arena_take(list->arena, sizeof *link + list->type->size);
    list->type->copy(element_of(link), element);
    tie(list->ends.previous, link);
    tie(link, &list->ends);
    list->length++;
    return element_of(link);
}

static struct link *merge(const struct element_type *type, struct link *a, struct link *b)
{
    struct link head, *last = &head;
    while (a && b) {
        struct link **least = type->compare(element_of(b), element_of(a)) < 0 ? &b : &a;
        last->next = *least;
        last = *least;
        *least = last->next;
    }
    last->next = a ? a : b;
    return head.next;
}

void list_sort(struct list *list)
{
    struct link *runs[40] = {NULL}, *all = NULL;
    list->ends.previous->next = NULL;
    for (struct link *link = list->ends.next, *next; list->length && link; link = next) {
        int i = 0;
        next = link->next;
        link->next = NULL;
        for (; runs[i]; i++) {
            link = merge(list->type, runs[i], link);
            runs[i] = NULL;
        }
        runs[i] = link;
    }
    for (int i = 0; i < 40; i++)
        all = merge(list->type, runs[i], all);
    struct link *last = &list->ends;
    for (; all; all = all->next) {
        tie(last, all);
        last = all;
    }
    tie(last, &list->ends);
}

void list_reverse(struct list *list)
{
    struct link *link = &list->ends;
    do {
        struct link *next = link->next;
        link->next = link->previous;
        link->previous = next;
        link = next;
    } while (link != &list->ends);
}

size_t list_remove_if(struct list *list, list_test *test, const void *context)
{
    size_t removed = 0;
    for (struct link *link = list->ends.next, *next; link != &list->ends; link = next) {
        next = link->next;
        if (!test(element_of(link), context))
            continue;
        tie(link->previous, next);
        link->next = list->spare;
        list->spare = link;
        removed++;
    }
    list->length -= removed;
    return removed;
}

void list_each(struct list *list, list_visit *visit, void *context)
{
    for (struct link *link = list->ends.next; link != &list->ends; link = link->next)
        visit(element_of(link), context);
}
