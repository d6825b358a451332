/* Memory that is taken bit by bit and given back at once. */
#include "generic.h"

void arena_init(struct arena *arena, void *memory, size_t size)
{
    arena->memory = memory;
    arena->size = size;
    arena->used = arena->most = 0;
}

void *arena_take(struct arena *arena, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    REQUIRE(size <= arena->size - arena->used);
    void *memory = arena->memory + arena->used;
    arena->used += size;
    return memory;
}

void arena_reset(struct arena *arena)
{
    if (arena->used > arena->most)
        arena->most = arena->used;
    arena->used = 0;
}
