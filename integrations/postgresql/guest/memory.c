/* Memory contexts.
 *
 * The context of a call takes its memory from the call area, by raising its top; what does not fit there, and all other
 * contexts, take each chunk from malloc and keep it on a list. Before each chunk stands its size and, as the server's
 * headers want it, its context. */
#include "guest.h"

#include "nodes/memnodes.h"

#include <stdlib.h>
#include <string.h>

struct chunk {
	Size size;
	MemoryContext context;
};

/* A chunk of malloc's. */
struct heap_chunk {
	struct heap_chunk *previous, *next;
	struct chunk chunk;
};

struct context {
	MemoryContextData head;
	struct heap_chunk *chunks;
};

#define HEADER sizeof(struct chunk)
#define CHUNK(pointer) ((struct chunk *) ((char *) (pointer) - HEADER))
#define HEAP_CHUNK(pointer) ((struct heap_chunk *) ((char *) (pointer) - sizeof(struct heap_chunk)))

static struct context top_context = {.head = {.type = T_AllocSetContext, .isReset = true, .name = "TopMemoryContext"}};
static struct context transaction_context = {
	.head = {.type = T_AllocSetContext, .isReset = true, .name = "TopTransactionContext"}};
static struct context error_context = {.head = {.type = T_AllocSetContext, .isReset = true, .name = "ErrorContext"}};

/* A MemoryContextData, so that palloc compares with an address; the list of its chunks from the heap stands apart. */
RF_EXPORT MemoryContextData plf_call_context = {.type = T_AllocSetContext, .isReset = true, .name = "ExprContext"};
static struct heap_chunk *call_chunks;

MemoryContext CurrentMemoryContext = &plf_call_context;
MemoryContext TopMemoryContext = &top_context.head;
MemoryContext CacheMemoryContext = &top_context.head;
MemoryContext PostmasterContext = &top_context.head;
MemoryContext ErrorContext = &error_context.head;
MemoryContext TopTransactionContext = &transaction_context.head;
MemoryContext CurTransactionContext = &transaction_context.head;
MemoryContext MessageContext = &transaction_context.head;
MemoryContext PortalContext = &transaction_context.head;

static uint64 transaction;

static struct heap_chunk **chunks_of(MemoryContext context)
{
	return context == &plf_call_context ? &call_chunks : &((struct context *) context)->chunks;
}

static bool in_area(const void *pointer)
{
	return (uintptr_t) pointer - (uintptr_t) plf_area < plf_area->size;
}

static void refuse_size(Size size)
{
	elog(ERROR, "invalid memory alloc request size %zu", size);
}

static void *refuse_memory(MemoryContext context, Size size, int flags)
{
	if ((flags & MCXT_ALLOC_NO_OOM) == 0)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
		                errdetail("Failed on request of size %zu in memory context \"%s\".", size, context->name)));
	return NULL;
}

/* The memory of an earlier transaction goes when somebody asks for more. */
static void renew_transaction(void)
{
	if (plf_area != NULL && transaction != plf_area->transaction) {
		transaction = plf_area->transaction;
		MemoryContextReset(&transaction_context.head);
	}
}

static void link_chunk(struct heap_chunk *chunk, MemoryContext context)
{
	struct heap_chunk **list = chunks_of(context);

	chunk->previous = NULL;
	chunk->next = *list;
	if (*list != NULL)
		(*list)->previous = chunk;
	*list = chunk;
}

static void unlink_chunk(struct heap_chunk *chunk)
{
	if (chunk->next != NULL)
		chunk->next->previous = chunk->previous;
	if (chunk->previous != NULL)
		chunk->previous->next = chunk->next;
	else
		*chunks_of(chunk->chunk.context) = chunk->next;
}

static void *allocate_heap(MemoryContext context, Size size, int flags)
{
	struct heap_chunk *chunk;

	if (context == &transaction_context.head)
		renew_transaction();
	chunk = size > MaxAllocHugeSize - sizeof *chunk ? NULL : malloc(size + sizeof *chunk);
	if (chunk == NULL)
		return refuse_memory(context, size, flags);
	chunk->chunk.size = size;
	chunk->chunk.context = context;
	link_chunk(chunk, context);
	context->isReset = false;
	context->mem_allocated += size;
	if (context == &plf_call_context)
		plf_area->spilled = 1;
	return chunk + 1;
}

/* From the call area, or NULL. */
static inline void *allocate_area(Size size)
{
	struct plf_area *area = plf_area;
	uint64 at = MAXALIGN(area->top);
	Size rounded = MAXALIGN(size);
	struct chunk *chunk = (struct chunk *) ((char *) area + at);

	if (unlikely(area->size < at || area->size - at < HEADER || area->size - at - HEADER < rounded))
		return NULL;
	area->top = at + HEADER + rounded;
	chunk->size = rounded;
	chunk->context = &plf_call_context;
	return chunk + 1;
}

static void *allocate(MemoryContext context, Size size, int flags)
{
	void *pointer = NULL;

	if (unlikely((flags & MCXT_ALLOC_HUGE) != 0 ? !AllocHugeSizeIsValid(size) : !AllocSizeIsValid(size)))
		refuse_size(size);
	if (context == &plf_call_context)
		pointer = allocate_area(size);
	if (pointer == NULL)
		pointer = allocate_heap(context, size, flags);
	if (pointer != NULL && (flags & MCXT_ALLOC_ZERO) != 0)
		memset(pointer, 0, size);
	return pointer;
}

void *palloc(Size size)
{
	if (likely(CurrentMemoryContext == &plf_call_context && AllocSizeIsValid(size))) {
		void *pointer = allocate_area(size);

		if (likely(pointer != NULL))
			return pointer;
	}
	return allocate(CurrentMemoryContext, size, 0);
}

void *palloc0(Size size)
{
	return allocate(CurrentMemoryContext, size, MCXT_ALLOC_ZERO);
}

void *palloc_extended(Size size, int flags)
{
	return allocate(CurrentMemoryContext, size, flags);
}

void *MemoryContextAlloc(MemoryContext context, Size size)
{
	return allocate(context, size, 0);
}

void *MemoryContextAllocZero(MemoryContext context, Size size)
{
	return allocate(context, size, MCXT_ALLOC_ZERO);
}

void *MemoryContextAllocZeroAligned(MemoryContext context, Size size)
{
	return allocate(context, size, MCXT_ALLOC_ZERO);
}

void *MemoryContextAllocExtended(MemoryContext context, Size size, int flags)
{
	return allocate(context, size, flags);
}

void *MemoryContextAllocHuge(MemoryContext context, Size size)
{
	return allocate(context, size, MCXT_ALLOC_HUGE);
}

void pfree(void *pointer)
{
	struct chunk *chunk = CHUNK(pointer);
	struct heap_chunk *heap;

	if (chunk->context == &plf_call_context && in_area(pointer)) {
		/* The last one given out makes room; others wait for the end of the call. */
		if ((char *) pointer + chunk->size == (char *) plf_area + plf_area->top)
			plf_area->top = (uint64) ((char *) chunk - (char *) plf_area);
		return;
	}
	/* The server's, which takes it back behind the call. */
	if (chunk->context == NULL)
		return;
	heap = HEAP_CHUNK(pointer);
	chunk->context->mem_allocated -= chunk->size;
	unlink_chunk(heap);
	free(heap);
}

void *repalloc_extended(void *pointer, Size size, int flags)
{
	struct chunk *chunk = CHUNK(pointer);
	Size old = chunk->size;
	void *moved;

	if (unlikely((flags & MCXT_ALLOC_HUGE) != 0 ? !AllocHugeSizeIsValid(size) : !AllocSizeIsValid(size)))
		refuse_size(size);
	if (chunk->context == &plf_call_context && in_area(pointer)) {
		uint64 at = (uint64) ((char *) pointer - (char *) plf_area);

		if (size <= old)
			return pointer;
		if (at + old == plf_area->top && plf_area->size - at >= MAXALIGN(size)) {
			chunk->size = MAXALIGN(size);
			plf_area->top = at + chunk->size;
			return pointer;
		}
		moved = allocate(&plf_call_context, size, flags & ~MCXT_ALLOC_ZERO);
		if (moved != NULL)
			memcpy(moved, pointer, old);
	} else if (chunk->context == NULL) {
		moved = allocate(&plf_call_context, size, flags & ~MCXT_ALLOC_ZERO);
		if (moved != NULL)
			memcpy(moved, pointer, Min(old, size));
	} else {
		struct heap_chunk *heap = HEAP_CHUNK(pointer);

		unlink_chunk(heap);
		moved = realloc(heap, size + sizeof *heap);
		if (moved == NULL) {
			link_chunk(heap, chunk->context);
			return refuse_memory(chunk->context, size, flags);
		}
		heap = moved;
		heap->chunk.size = size;
		heap->chunk.context->mem_allocated += size - old;
		link_chunk(heap, heap->chunk.context);
		moved = heap + 1;
	}
	if (moved != NULL && (flags & MCXT_ALLOC_ZERO) != 0 && size > old)
		memset((char *) moved + old, 0, size - old);
	return moved;
}

void *repalloc(void *pointer, Size size)
{
	return repalloc_extended(pointer, size, 0);
}

void *repalloc_huge(void *pointer, Size size)
{
	return repalloc_extended(pointer, size, MCXT_ALLOC_HUGE);
}

Size add_size(Size a, Size b)
{
	Size sum;

	if (pg_add_size_overflow(a, b, &sum))
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
		                errmsg("invalid memory allocation request size %zu + %zu", a, b)));
	return sum;
}

Size mul_size(Size a, Size b)
{
	Size product;

	if (pg_mul_size_overflow(a, b, &product))
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
		                errmsg("invalid memory allocation request size %zu * %zu", a, b)));
	return product;
}

void *palloc_mul(Size a, Size b)
{
	return palloc(mul_size(a, b));
}

void *palloc0_mul(Size a, Size b)
{
	return palloc0(mul_size(a, b));
}

void *palloc_mul_extended(Size a, Size b, int flags)
{
	return palloc_extended(mul_size(a, b), flags);
}

void *repalloc_mul(void *pointer, Size a, Size b)
{
	return repalloc(pointer, mul_size(a, b));
}

void *repalloc_mul_extended(void *pointer, Size a, Size b, int flags)
{
	return repalloc_extended(pointer, mul_size(a, b), flags);
}

/* ------------------------------------------------------------------------------------------------------- contexts */

static void adopt(MemoryContext context, MemoryContext parent)
{
	context->parent = parent;
	context->prevchild = NULL;
	context->nextchild = NULL;
	if (parent == NULL)
		return;
	if (parent == &plf_call_context)
		plf_area->spilled = 1;
	context->nextchild = parent->firstchild;
	if (parent->firstchild != NULL)
		parent->firstchild->prevchild = context;
	parent->firstchild = context;
}

static void orphan(MemoryContext context)
{
	if (context->parent == NULL)
		return;
	if (context->prevchild != NULL)
		context->prevchild->nextchild = context->nextchild;
	else
		context->parent->firstchild = context->nextchild;
	if (context->nextchild != NULL)
		context->nextchild->prevchild = context->prevchild;
	context->parent = NULL;
}

static MemoryContext create(MemoryContext parent, const char *name, NodeTag type)
{
	struct context *context = calloc(1, sizeof *context);

	if (context == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
		                errdetail("Failed while creating memory context \"%s\".", name)));
	if (parent == &transaction_context.head)
		renew_transaction();
	context->head.type = type;
	context->head.isReset = true;
	context->head.name = name;
	adopt(&context->head, parent);
	return &context->head;
}

MemoryContext AllocSetContextCreateInternal(MemoryContext parent, const char *name, Size minimum, Size initial, Size maximum)
{
	return create(parent, name, T_AllocSetContext);
}

MemoryContext SlabContextCreate(MemoryContext parent, const char *name, Size block_size, Size chunk_size)
{
	return create(parent, name, T_SlabContext);
}

MemoryContext GenerationContextCreate(MemoryContext parent, const char *name, Size minimum, Size initial, Size maximum)
{
	return create(parent, name, T_GenerationContext);
}

static void run_callbacks(MemoryContext context)
{
	MemoryContextCallback *callback;

	while ((callback = context->reset_cbs) != NULL) {
		context->reset_cbs = callback->next;
		callback->func(callback->arg);
	}
}

static void free_chunks(MemoryContext context)
{
	struct heap_chunk **list = chunks_of(context);

	while (*list != NULL) {
		struct heap_chunk *chunk = *list;

		*list = chunk->next;
		free(chunk);
	}
	context->mem_allocated = 0;
	context->isReset = true;
}

void MemoryContextResetOnly(MemoryContext context)
{
	run_callbacks(context);
	free_chunks(context);
}

void MemoryContextDelete(MemoryContext context)
{
	MemoryContextDeleteChildren(context);
	run_callbacks(context);
	orphan(context);
	free_chunks(context);
	free(context);
}

void MemoryContextDeleteChildren(MemoryContext context)
{
	while (context->firstchild != NULL)
		MemoryContextDelete(context->firstchild);
}

void MemoryContextResetChildren(MemoryContext context)
{
	for (MemoryContext child = context->firstchild; child != NULL; child = child->nextchild) {
		MemoryContextResetChildren(child);
		MemoryContextResetOnly(child);
	}
}

void MemoryContextReset(MemoryContext context)
{
	MemoryContextDeleteChildren(context);
	MemoryContextResetOnly(context);
}

void MemoryContextSetParent(MemoryContext context, MemoryContext parent)
{
	if (context->parent != parent) {
		orphan(context);
		adopt(context, parent);
	}
}

void MemoryContextRegisterResetCallback(MemoryContext context, MemoryContextCallback *callback)
{
	callback->next = context->reset_cbs;
	context->reset_cbs = callback;
	context->isReset = false;
	if (context == &plf_call_context)
		plf_area->spilled = 1;
}

void MemoryContextSetIdentifier(MemoryContext context, const char *identifier)
{
	context->ident = identifier;
}

MemoryContext MemoryContextGetParent(MemoryContext context)
{
	return context->parent;
}

bool MemoryContextIsEmpty(MemoryContext context)
{
	return context->firstchild == NULL && *chunks_of(context) == NULL;
}

Size MemoryContextMemAllocated(MemoryContext context, bool recurse)
{
	Size total = context->mem_allocated;

	for (MemoryContext child = context->firstchild; recurse && child != NULL; child = child->nextchild)
		total += MemoryContextMemAllocated(child, true);
	return total;
}

bool MemoryContextContains(MemoryContext context, void *pointer)
{
	return pointer != NULL && pointer == (void *) MAXALIGN(pointer) && CHUNK(pointer)->context == context;
}

void MemoryContextAllowInCriticalSection(MemoryContext context, bool allow)
{
	context->allowInCritSection = allow;
}

Size GetMemoryChunkSpace(void *pointer)
{
	return CHUNK(pointer)->size + HEADER;
}

/* --------------------------------------------------------------------------------------------- strings in contexts */

char *MemoryContextStrdup(MemoryContext context, const char *string)
{
	Size length = strlen(string) + 1;

	return memcpy(allocate(context, length, 0), string, length);
}

char *pstrdup(const char *string)
{
	return MemoryContextStrdup(CurrentMemoryContext, string);
}

char *pnstrdup(const char *string, Size length)
{
	char *copy;

	length = strnlen(string, length);
	copy = palloc(length + 1);
	memcpy(copy, string, length);
	copy[length] = '\0';
	return copy;
}

char *pchomp(const char *string)
{
	Size length = strlen(string);

	while (length > 0 && string[length - 1] == '\n')
		length--;
	return pnstrdup(string, length);
}

/* ------------------------------------------------------------------------------------------------ the server's values */

void *plf_adopt(void *pointer)
{
	Size size;

	if (CurrentMemoryContext == &plf_call_context || pointer == NULL || !in_area(pointer))
		return pointer;
	size = CHUNK(pointer)->size;
	return memcpy(palloc(size), pointer, size);
}

/* -------------------------------------------------------------------------------------------------- the call's end */

void plf_memory_release(void)
{
	CurrentMemoryContext = &plf_call_context;
	MemoryContextReset(&plf_call_context);
	plf_area->spilled = 0;
}
