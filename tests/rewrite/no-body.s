	.text
	.globl	f
	.type	f, @function
# What gcc makes of a function that returns nothing although it should: control runs off its end.
f:
.LFB0:
	.cfi_startproc
	endbr64
	.cfi_endproc
.LFE0:
	.size	f, .-f
	.globl	g
	.type	g, @function
g:
.LFB1:
	.cfi_startproc
	endbr64
	ret
	.cfi_endproc
.LFE1:
	.size	g, .-g
	.section	.note.GNU-stack,"",@progbits
