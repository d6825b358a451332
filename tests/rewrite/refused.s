# Each of these is an error with its line; the functions around them are looked at all the same.
	.file	"refused.c"
	.text
	.file 1 "refused.c"
	.type	a, @function
a:
	.cfi_startproc
	.loc 1 3 2
	syscall
	ret
	.cfi_endproc
	.size	a, .-a
	.type	b, @function
b:
	.cfi_startproc
	movq	%r11, %rax
	ret
	.cfi_endproc
	.size	b, .-b
	.type	c, @function
c:
	.cfi_startproc
	.loc 1 12 2
	movq	(%rsp), %rax
	ret
	.cfi_endproc
	.size	c, .-c
	.type	d, @function
d:
	.cfi_startproc
	jmp	*%rax	# 7 *indirect_jump
	.cfi_endproc
	.size	d, .-d
	.type	e, @function
e:
	.cfi_startproc
	fldcw	-4(%rsp)
	.byte	0x0f, 0x05
	vpgatherdd	%ymm1, (%rax,%ymm2,4), %ymm0
	jmp	.Lelsewhere
	.cfi_endproc
	.size	e, .-e
	.type	g, @gnu_indirect_function
	.type	h, @function
h:
	.cfi_startproc
	subq	$8, %rsp
	.cfi_def_cfa_offset 16
	ret
	.cfi_endproc
	.size	h, .-h
	.type	k, @function
k:
	.cfi_startproc
	je	maybe
	ret
	.cfi_endproc
	.size	k, .-k
	.weak	maybe
	.section	.note.GNU-stack,"x",@progbits
	.text
	.intel_syntax noprefix
	.macro	m
