/* Included by unwind-dw2.c in front of what uses these: where the walk begins, what it reads, and how it ends.
 *
 * Addresses on the control stack are made up: RF_STACK less the distance that the runtime tells. */
#define RF_STACK 0x100000000UL

static unsigned long rf_word(struct _Unwind_Context *context, void *address)
{
	struct rf_view *view = context->view;
	unsigned long distance = RF_STACK - (unsigned long)address;

	if (distance == 0)
		return 0; /* where the call came in: the walk ends */
	unsigned long index = (view->distance - distance) / 8;
	if (distance > view->distance || index >= view->count) {
		__rf_unwind(view, distance);
		index = 0;
	}
	return view->words[index];
}

/* The state at the return address of the call that filled the view, then one frame up. */
static void rf_begin(struct _Unwind_Context *context, struct rf_view *view)
{
	static const unsigned char saved[5] = {3, 6, 12, 13, 15}; /* rbx rbp r12 r13 r15, as DWARF numbers them */
	_Unwind_FrameState fs;

	if (dwarf_reg_size_table[0] == 0)
		init_dwarf_reg_size_table();
	memset(context, 0, sizeof *context);
	context->view = view;
	for (int i = 0; i < 5; i++)
		_Unwind_SetGRValue(context, saved[i], view->saved[i]);
	_Unwind_SetGRValue(context, 0, 0); /* what a personality passes to its landing pad */
	_Unwind_SetGRValue(context, 1, 0);
	context->ra = (void *)view->words[0];
	context->cfa = (void *)(RF_STACK - view->distance + 8);
	_Unwind_Reason_Code code = uw_frame_state_for(context, &fs);
	gcc_assert(code == _URC_NO_REASON);
	uw_update_context(context, &fs);
}

static _Noreturn __attribute__((noinline)) void rf_resume(struct _Unwind_Context *target)
{
	const unsigned long record[9] = {
		RF_STACK - (unsigned long)target->cfa,
		(unsigned long)target->ra,
		_Unwind_GetGR(target, 0),
		_Unwind_GetGR(target, 1),
		_Unwind_GetGR(target, 3),
		_Unwind_GetGR(target, 6),
		_Unwind_GetGR(target, 12),
		_Unwind_GetGR(target, 13),
		_Unwind_GetGR(target, 15) + target->args_size, /* stack arguments are on the data stack */
	};
	_Unwind_DebugHook(target->cfa, target->ra);
	__rf_resume(record);
}

#undef uw_init_context
#define uw_init_context(context)                                                                              \
	do {                                                                                                  \
		struct rf_view *rf_view = __builtin_alloca(sizeof *rf_view);                                  \
		__rf_unwind(rf_view, 0);                                                                      \
		rf_begin(context, rf_view);                                                                   \
	} while (0)

#undef uw_install_context
#define uw_install_context(current, target, frames)                                                           \
	do {                                                                                                  \
		(void)(frames);                                                                               \
		rf_resume(target);                                                                            \
	} while (0)

/* A module's tables: found through the lists in the window's header page, then by binary search in the header of .eh_frame
 * that the linker sorts. */
struct rf_image {
	unsigned offset, length;
};
struct rf_hdr {
	unsigned char version, eh_frame_encoding, count_encoding, table_encoding;
	int eh_frame;
	unsigned count;
	struct {
		int start, fde;
	} table[];
};

static bool rf_is_usable(const struct rf_hdr *h)
{
	return h->version == 1 && h->eh_frame_encoding == (DW_EH_PE_pcrel | DW_EH_PE_sdata4) &&
	       h->count_encoding == DW_EH_PE_udata4 && h->table_encoding == (DW_EH_PE_datarel | DW_EH_PE_sdata4);
}

/* What was found last, by place: an exception looks each of its frames up twice, and programs throw from the same places. Of no
 * use once the list of images has changed: another module may be at the place of one that was removed. A thread's own, so that no
 * entry is read half written. */
static _Thread_local struct rf_found {
	void *pc, *func;
	const fde *fde;
} rf_found[32];
static _Thread_local unsigned rf_found_changes;

static const fde *rf_find(void *pc, void **func)
{
	unsigned count = *(const volatile unsigned *)0x10014; /* isa::window::HEADER_IMAGE_COUNT */
	const struct rf_image *images = (const void *)0x10040; /* isa::window::HEADER_IMAGES */
	const unsigned *frames = (const void *)0x10a40;        /* isa::window::HEADER_FRAMES */
	unsigned at = (unsigned)(unsigned long)pc;

	__asm__("" : "+r"(images), "+r"(frames));
	for (unsigned i = 0; i < count; i++) {
		if (at - images[i].offset >= images[i].length)
			continue;
		if (frames[i] == 0)
			return NULL;
		const struct rf_hdr *h = (const void *)((char *)pc - at + frames[i]);
		if (!rf_is_usable(h) || h->count == 0)
			return NULL;
		long wanted = (char *)pc - (const char *)h;
		/* No branch depends on what is read: half of them would be mispredicted. */
		unsigned low = 0;
		for (unsigned n = h->count; n > 1; n -= n / 2)
			low += h->table[low + n / 2].start <= wanted ? n / 2 : 0;
		const fde *f = (const void *)((const char *)h + h->table[low].fde);
		const struct dwarf_cie *cie = get_cie(f);
		if (cie->augmentation[0] != 'z')
			return NULL;
		/* A start relative to itself and a length, four bytes each: what gas writes. */
		char *start = (char *)h + h->table[low].start;
		unsigned length = read_4u(f->pc_begin + 4);
		if ((char *)f->pc_begin + read_4s(f->pc_begin) != start || (unsigned long)((char *)pc - start) >= length)
			return NULL;
		*func = start;
		return f;
	}
	return NULL;
}

const fde *_Unwind_Find_FDE(void *pc, struct dwarf_eh_bases *bases)
{
	unsigned long at = (unsigned long)pc;
	struct rf_found *found = &rf_found[(at ^ at >> 5 ^ at >> 10) % 32];
	unsigned changes = *(const volatile unsigned *)0x10018; /* isa::window::HEADER_IMAGE_CHANGES */

	if (rf_found_changes != changes) {
		memset(rf_found, 0, sizeof rf_found);
		rf_found_changes = changes;
	}
	if (found->pc != pc) {
		void *func;
		const fde *f = rf_find(pc, &func);
		if (!f)
			return NULL;
		*found = (struct rf_found){pc, func, f};
	}
	bases->tbase = NULL;
	bases->dbase = NULL;
	bases->func = found->func;
	return found->fde;
}

#include "unwind.inc"
