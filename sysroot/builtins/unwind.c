/* libgcc's unwinder, where return addresses and saved registers are out of reach: the runtime hands out copies of the words
 * on the control stack, and resumes at a landing pad (crates/isa/src/frames.rs). The build puts three things into
 * unwind-dw2.c: a pointer to the words known so far into the context, rf_word() where a register saved in the frame is read,
 * and the include of rf_frames.h, which has the ends of the walk. */
#include <stddef.h>

enum { RF_WORDS = 64 };

struct rf_view {
	unsigned long saved[5]; /* rbx rbp r12 r13 r15 */
	unsigned long distance; /* of the first word */
	unsigned long count;
	unsigned long words[RF_WORDS];
};

struct _Unwind_Context;
static unsigned long rf_word(struct _Unwind_Context *context, void *address);

void __rf_unwind(struct rf_view *view, unsigned long distance);
_Noreturn void __rf_resume(const unsigned long *record);

/* Registers are kept by value: no code can point to the words. */
#define ASSUME_EXTENDED_UNWIND_CONTEXT 1
#include "rf-unwind-dw2.c"
