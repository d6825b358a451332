/* The runtime keeps the record. It hooks the return address of whoever called: these pass the call on without a
 * frame of their own. <setjmp.h> names the stubs directly; this is for code that declares the functions itself. */
#define PASS_ON(name, to)                                                                                     \
	__asm__(".text\n\t.p2align 4\n\t.globl " #name "\n\t.type " #name ",@function\n" #name ":\n\t.cfi_startproc\n"      \
		"\tendbr64\n\tjmp " #to "\n\t.cfi_endproc\n\t.size " #name ",.-" #name "\n")

PASS_ON(setjmp, __rf_setjmp);
PASS_ON(_setjmp, __rf_setjmp);
PASS_ON(__setjmp, __rf_setjmp);
PASS_ON(sigsetjmp, __rf_setjmp);
PASS_ON(__sigsetjmp, __rf_setjmp);
PASS_ON(longjmp, __rf_longjmp);
PASS_ON(_longjmp, __rf_longjmp);
PASS_ON(siglongjmp, __rf_longjmp);
