// Two modules of one layout, DEEP or not, whose function at the same place has another frame when an exception passes it.
#define NOPS9 "nop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\n"
#ifdef DEEP
#define ENTER "pushq %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3, -16\nmovl $7, %ebx\n"
#define LEAVE "popq %rbx\n.cfi_def_cfa_offset 8\n"
#else
// As long as what becomes of the other.
#define ENTER NOPS9 "nop\nnop\nnop\nnop\nnop\n"
#define LEAVE NOPS9
#endif

__asm__(".text\n.globl passes\n.type passes, @function\npasses:\n.cfi_startproc\nendbr64\n" ENTER "call thrower@PLT\n" LEAVE
	"ret\n.cfi_endproc\n.size passes, .-passes\n");
extern "C" long passes(long kind);

extern "C" __attribute__((visibility("default"))) long catch_passing(long kind)
{
	register long kept __asm__("rbx") = kind * 100;
	__asm__ volatile("" : "+r"(kept));
	try {
		return passes(kind);
	} catch (int i) {
		return i + kept;
	}
}
