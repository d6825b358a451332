# Operands through r14 with the displacement and the size that reach farthest.
	.text

	.macro function name
	.p2align 3
	.globl \name
	.type \name, @function
\name:
	nopl 0x629AFFFF(%rax,%rax,1)
	.endm

	# rdi: any number, of which the lower half counts.
	function load_far
	movl %edi, %r11d
	movq 0x7ff8(%r14,%r11), %rax
	ret

	function store_far
	movl %edi, %r11d
	movq %rsi, 0x7ff8(%r14,%r11)
	ret

	function store_farthest
	movl %edi, %r11d
	vmovups %ymm0, 0x7fff(%r14,%r11)
	ret

	# The elements with the highest bit of rsi are stored, of four from the lowest address on.
	function store_masked
	vmovq %rsi, %xmm1
	vpbroadcastq %xmm1, %ymm1
	movl %edi, %r11d
	vpmaskmovq %ymm1, %ymm1, 0x7fff(%r14,%r11)
	ret

	function load
	movl %edi, %r11d
	movq (%r14,%r11), %rax
	ret

	function store
	movl %edi, %r11d
	movq %rsi, (%r14,%r11)
	ret

	.data
	.globl word
	.type word, @object
	.p2align 3
word:
	.quad 0x1122334455667788
	.size word, 8
