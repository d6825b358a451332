/* Pairs, and the collector that finds those which nothing reaches: it marks from the stack and sweeps. */
#include "script.h"

enum { CELLS = AMOUNT(20000, 2000) };

uint64_t collections, cells_freed;

static struct cell heap[CELLS];
static uint8_t marks[CELLS];
static struct cell *unused;

int is_cell(value v)
{
    return v != NIL && !(v & 1);
}

struct cell *cell_of(value v)
{
    REQUIRE(is_cell(v));
    return (struct cell *)(uintptr_t)v;
}

static void release(struct cell *cell)
{
    cell->tail = (value)(uintptr_t)unused;
    unused = cell;
}

void heap_reset(void)
{
    collections = cells_freed = 0;
    unused = NULL;
    for (size_t i = CELLS; i--;)
        release(&heap[i]);
}

static void mark(value v)
{
    for (; is_cell(v); v = cell_of(v)->tail) {
        size_t which = (size_t)(cell_of(v) - heap);
        if (marks[which])
            return;
        marks[which] = 1;
        mark(cell_of(v)->head);
    }
}

static void collect(value head, value tail)
{
    collections++;
    memset(marks, 0, sizeof marks);
    mark(head);
    mark(tail);
    for (int i = 0; i < stack_top; i++)
        mark(stack[i]);
    for (size_t i = CELLS; i--;)
        if (!marks[i]) {
            release(&heap[i]);
            cells_freed++;
        }
}

value cell_new(value head, value tail)
{
    if (!unused)
        collect(head, tail);
    struct cell *cell = unused;
    REQUIRE(cell);
    unused = (struct cell *)(uintptr_t)cell->tail;
    *cell = (struct cell){head, tail};
    return (value)(uintptr_t)cell;
}
