# A landing pad: reached from the calls of its region, marked, its arguments unwound.
	.text
	.globl	f
	.type	f, @function
f:
.LFB1:
	.cfi_startproc
	.cfi_personality 0x9b,DW.ref.__gxx_personality_v0
	.cfi_lsda 0x1b,.LLSDA1
	endbr64
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
	pushq	$7
	.cfi_def_cfa_offset 24
	.cfi_escape 0x2e,0x8
.LEHB0:
	call	g@PLT
.LEHE0:
	popq	%rax
	.cfi_def_cfa_offset 16
	popq	%rbx
	.cfi_remember_state
	.cfi_def_cfa_offset 8
	ret
.L3:
	.cfi_restore_state
	endbr64
	movq	%rax, %rdi
.LEHB1:
	.cfi_escape 0x2e,0
	call	_Unwind_Resume@PLT
.LEHE1:
	.cfi_endproc
	.section	.gcc_except_table,"a",@progbits
.LLSDA1:
	.byte	0xff
	.byte	0xff
	.byte	0x1
	.uleb128 .LLSDACSE1-.LLSDACSB1
.LLSDACSB1:
	.uleb128 .LEHB0-.LFB1
	.uleb128 .LEHE0-.LEHB0
	.uleb128 .L3-.LFB1
	.uleb128 0
	.uleb128 .LEHB1-.LFB1
	.uleb128 .LEHE1-.LEHB1
	.uleb128 0
	.uleb128 0
.LLSDACSE1:
	.text
	.size	f, .-f
