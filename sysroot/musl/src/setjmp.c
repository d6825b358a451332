/* A jmp_buf is the record that __rf_resume reads; the rewriter puts the code that fills it in where setjmp is called. Its third word is
 * what setjmp returns this time. */
__asm__(".text\n\t.p2align 4\n\t.globl longjmp, _longjmp, siglongjmp\n\t.type longjmp,@function\n"
	"\t.type _longjmp,@function\n\t.type siglongjmp,@function\nlongjmp:\n\t.cfi_startproc\n"
	"\tendbr64\n\tmovl %esi, %eax\n\tcmpl $1, %eax\n\tadcl $0, %eax\n\tmovq %rax, 16(%rdi)\n\tjmp __rf_resume\n"
	"\t.cfi_endproc\n\t.size longjmp,.-longjmp\n\t.set _longjmp, longjmp\n\t.set siglongjmp, longjmp\n");
