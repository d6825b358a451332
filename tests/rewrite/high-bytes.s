	.text
	.globl	f
	.type	f, @function
# The second bytes of registers cannot be named beside r15, which takes the place of rsp.
f:
.LFB0:
	.cfi_startproc
	endbr64
	subq	$40, %rsp
	.cfi_def_cfa_offset 48
	movl	%edi, %eax
	movl	%edi, %ebx
	movb	%ah, 5(%rsp)
	movb	%bh, 6(%rsp)
	movb	%ch, 7(%rsp,%rdx)
	movb	8(%rsp), %dh
	cmpb	%ah, 5(%rsp)
	movb	%ah, 5(%rsp,%rax)
	movb	%bh, %fs:counter@tpoff(%rbx)
	movb	%ah, (%rdi)
	movzbl	%ah, %eax
	addq	$40, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
.LFE0:
	.size	f, .-f
	.section	.note.GNU-stack,"",@progbits
