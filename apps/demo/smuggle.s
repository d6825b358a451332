# A module whose author skipped the rewriter: a system call in plain sight, behind a lawful entry.
        .text
        .globl  smuggle
        .type   smuggle, @function
        .p2align 3
smuggle:
        nopl    0x629affff(%rax,%rax,1)
        movl    $39, %eax               # getpid, to begin with
        syscall
        ret
        .size   smuggle, .-smuggle
        .section .note.GNU-stack, "", @progbits
