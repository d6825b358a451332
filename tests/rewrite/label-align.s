# A jump leads to a label in front of an alignment, and runs through it: no int3 there.
	.text
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	endbr64
	testl	%edi, %edi
	jne	.L3
	ret
.L3:
	.p2align 4
.L4:
	subl	$1, %edi
	jne	.L4
	ret
	.p2align 4
.L5:
	jmp	.L5
	.cfi_endproc
	.size	f, .-f
