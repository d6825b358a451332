# Instructions written as bytes, and those for which a function answers.
	.text
	.type	f, @function
f:
	.cfi_startproc
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
	xorl	%eax, %eax
	xorl	%ecx, %ecx
#APP
	cpuid
	.byte 0x0f, 0x01, 0xd0
	.byte 0x66,0x0f,0x38,0xdc,0x07
	.byte 102,15,56,220,209
#NO_APP
	popq	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	f, .-f
