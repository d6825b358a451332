"""Rules 2 and 3: rsp, and the depth of the control stack."""

from families.common import MARK, RET, case, checked, label


def rule2():
    d = "rule-2"
    for i, ins in enumerate("""movq %rsp, %rax|movq %rax, %rsp|movl %esp, %eax|movl %eax, %esp|movw %sp, %ax|movb %spl, %al|movb %al, %spl|addq $8, %rsp|subq $8, %rsp|andq $-16, %rsp|
addl $8, %esp|leaq 8(%rdi), %rsp|leaq 8(%rsp), %rax|leaq (%rsp,%rdi), %rax|leal (%esp,%ecx), %eax|xchgq %rax, %rsp|xchgq %rsp, %rcx|cmovzq %rax, %rsp|cmovzq %rsp, %rax|movzbl %spl, %eax|movzbq %al, %rsp|
movslq %esp, %rax|movslq %eax, %rsp|movq %rsp, %xmm0|movq %xmm0, %rsp|movd %xmm0, %esp|cvtsi2sdq %rsp, %xmm0|cvttsd2si %xmm0, %rsp|pmovmskb %xmm0, %esp|pextrw $1, %xmm0, %esp|pinsrd $1, %esp, %xmm0|
pextrq $1, %xmm0, %rsp|imulq %rsp, %rax|imulq $3, %rax, %rsp|incq %rsp|notq %rsp|negl %esp|shlq $3, %rsp|bswapq %rsp|sete %spl|xaddq %rsp, %rax|xaddq %rax, %rsp|cmpxchgq %rax, %rsp|
cmpq %rsp, %rax|testq %rsp, %rsp|movq $0, %rsp|movl $0, %esp|movb $0, %spl|btq %rax, %rsp|btsq $3, %rsp|bsfq %rax, %rsp|popcntq %rsp, %rax|lzcntq %rax, %rsp|tzcntq %rax, %rsp|crc32q %rax, %rsp|shldq $3, %rsp, %rax|
adcxq %rax, %rsp|andnq %rax, %rsp, %rcx|andnq %rax, %rcx, %rsp|blsrq %rax, %rsp|pextq %rax, %rcx, %rsp|mulxq %rax, %rsp, %rcx|mulxq %rax, %rcx, %rsp|rorxq $3, %rax, %rsp|shlxq %rsp, %rax, %rcx|bextrq %rsp, %rax, %rcx|
movl %gs:(%esp), %eax|movl %eax, %gs:(%esp)|movl %gs:8(%esp,%ecx), %eax|movl %gs:(%edi), %esp|movq %rsp, %gs:(%edi)|lock addq %rsp, %gs:(%edi)|mulq %rsp|divq %rsp|movnti %rsp, %gs:(%edi)|movbe %gs:(%edi), %rsp""".replace("\n", "").split("|")):
        case(d, f"explicit-{ins}", f"names the stack pointer: {ins}", [ins, RET], "2 StackPointer", 0x1000)
    for ins in ["movl (%rsp), %eax", "movq 16(%rsp), %rax", "movsd (%rsp,%rdi), %xmm0"]:
        case(d, f"integrity-{ins}", f"free loads may not name the stack pointer either: {ins}", [ins, RET], "2 StackPointer", 0x1000, isolation="integrity")
    case(d, "nop-names-rsp", "a no-op whose operand names the stack pointer", [("0f 1f 04 24", "nopl (%rsp)"), RET], "2 StackPointer", 0x1000)
    case(d, "nop-register-rsp", "a no-op with the register esp", [("0f 1f c4", "nopl %esp"), RET], "2 StackPointer", 0x1000)
    for code, what, rule in [("54", "push %rsp", "2 StackPointer"), ("5c", "pop %rsp", "2 StackPointer"), ("c9", "leave", "2 StackInstruction"), ("c8 10 00 00", "enter $16, $0", "2 StackInstruction"),
                             ("66 50", "push %ax", "8 Prefix"), ("66 58", "pop %ax", "8 Prefix"), ("66 68 01 00", "pushw $1", "8 Prefix"), ("66 6a 01", "pushw $1", "8 Prefix"), ("66 65 67 ff 37", "pushw %gs:(%edi)", "8 Prefix"), ("66 65 67 8f 07", "popw %gs:(%edi)", "8 Prefix"),
                             ("ff f0", "push %rax in the form with ModRM", "0 NotAccepted"), ("8f c0", "pop %rax in the form with ModRM", "0 NotAccepted"), ("48 50", "push %rax with REX.W", "8 RexUse"), ("48 58", "pop %rax with REX.W", "8 RexUse"),
                             ("65 67 8f 04 24", "popq %gs:(%esp)", "2 StackPointer"), ("65 67 ff 34 24", "pushq %gs:(%esp)", "2 StackPointer"), ("9c", "pushf", "8 OutlivingFlags"), ("9d", "popf", "8 OutlivingFlags"),
                             ("0f a0", "push %fs", "8 SegmentRegister"), ("0f a8", "push %gs", "8 SegmentRegister"), ("0f a1", "pop %fs", "8 SegmentRegister"), ("0f a9", "pop %gs", "8 SegmentRegister"), ("60", "pusha of other modes", "0 NotAccepted"), ("61", "popa of other modes", "0 NotAccepted"), ("0e", "push %cs of other modes", "0 NotAccepted"),
                             ("c4 e2 d8 f3 c8", "blsr %rax, %rsp", "2 StackPointer")]:
        case(d, f"stack-{what}-{code}", f"stack instruction that is not 64-bit push, pop, call, ret: {what}", [(code, what), RET], rule, 0x1000)
    case(d, "ah-is-not-spl", "register 4 of a byte instruction without REX is ah", [("88 e0", "movb %ah, %al"), ("8a e0", "movb %al, %ah"), ("0f b6 c4", "movzbl %ah, %eax"), ("f6 c4 01", "testb $1, %ah"), ("b4 01", "movb $1, %ah"), ("0f 94 c4", "sete %ah"), RET])
    case(d, "index-4-is-none", "index 4 in SIB means no index, not rsp", [("65 67 8b 04 27", "movl %gs:(%edi), %eax"), ("8d 04 25 00 00 00 00", "leal 0, %eax"), RET])
    case(d, "r12-is-not-rsp", "with REX.B and REX.X number 4 is r12", [("65 67 41 8b 04 24", "movl %gs:(%r12d), %eax"), ("65 67 42 8b 04 27", "movl %gs:(%edi,%r12d), %eax"), ("41 54", "push %r12"), ("41 5c", "pop %r12"), RET])
    case(d, "xmm4-is-not-rsp", "vector register 4 is not rsp", ["movaps %xmm4, %xmm0", "vaddps %ymm4, %ymm4, %ymm4", "movl %eax, %eax", RET])
    case(d, "group-digit-4-is-not-rsp", "4 in ModRM.reg as an opcode extension is not rsp", ["shll $3, %eax", "mull %ecx", "andl $1, %eax", "btl $3, %eax", RET])


def rule3():
    d = "rule-3"
    ok = lambda name, what, code, **h: case(d, name, what, code, **h)
    bad = lambda name, what, code, rule, at=None, **h: case(d, name, what, code, f"3 {rule}", at, **h)
    ok("plain-return", "nothing pushed", [RET], report="depth=0 functions=1 no-marked")
    ok("push-pop", "pushed and popped", ["push %rbx", "push %rbp", "pop %rbp", "pop %rbx", RET], report="depth=16")
    ok("push-pop-other-register", "popped into other registers than pushed from: no rule against it", ["push %rbx", "push %rbp", "pop %rax", "pop %rcx", RET], report="depth=16")
    ok("push-imm", "immediates pushed", [("6a 01", "push $1"), ("68 00 00 00 01", "push $0x1000000"), "pop %rax", "pop %rax", RET], report="depth=16")
    ok("push-mem-pop-mem", "memory pushed and popped", ["pushq %gs:(%edi)", "popq %gs:8(%edi)", RET], report="depth=8")
    ok("diamond", "both arms at the same depth", ["push %rbx", "je 1f", "push %rbp", "pop %rbp", "1: pop %rbx", RET], report="depth=16")
    ok("diamond-own-epilogues", "each arm pops for itself", ["push %rbx", "je 1f", "pop %rbx", RET, "1: pop %rbx", RET])
    ok("loop", "loop at a constant depth", ["push %rbx", "1: decl %ebx", "jne 1b", "pop %rbx", RET])
    ok("loop-to-entry", "jump back to the function's own first instruction at depth 0", ["decl %edi", ("75 fc", "jne to the start"), RET])
    ok("shrink-wrapped", "pushed on one path only, popped before the paths meet", ["je 1f", "push %rbx", "pop %rbx", "1: ret"], report="depth=8")
    ok("trap-ends", "after ud2 nothing follows, whatever the depth", ["push %rbx", "je 1f", "pop %rbx", RET, "1: ud2"])
    ok("int3-ends", "the same with int3", ["push %rbx", "je 1f", "pop %rbx", RET, "1: int3"])
    ok("unreachable-any-depth", "code that nothing reaches has no depth", [RET, "pop %rax", "pop %rax", RET])
    ok("unreachable-push-ret", "the same with a push before ret", [RET, "push %rax", RET])
    ok("call-keeps-depth", "a call leaves the depth as it is", ["push %rbx", "call 1f", "pop %rbx", RET, "@ 0x20", "1: ret"], report="functions=2 depth=8")
    ok("deepest", "as deep as allowed", ["push %rax"] * 512 + ["pop %rax"] * 512 + [RET], report="depth=4096")
    bad("too-deep", "one deeper than allowed", ["push %rax"] * 513 + ["pop %rax"] * 513 + [RET], "DepthOverflow", 0x1200)
    bad("ret-after-push", "ret with a pushed register on the stack: returns to what the domain chose", ["push %rax", RET], "ReturnDepth", 0x1001)
    bad("ret-after-push-imm", "ret to an immediate", [("68 00 00 00 01", "push $0x1000000"), RET], "ReturnDepth", 0x1005)
    bad("ret-after-push-mem", "ret to a value from memory", ["pushq %gs:(%edi)", RET], "ReturnDepth", 0x1004)
    bad("pop-return-address", "pop of the return address", ["pop %rax", "push %rax", RET], "DepthUnderflow", 0x1000)
    bad("pop-return-address-to-memory", "pop of the return address to memory", ["popq %gs:(%edi)", "pushq %gs:(%edi)", RET], "DepthUnderflow", 0x1000)
    bad("pop-one-too-many", "one pop more than pushes", ["push %rbx", "pop %rbx", "pop %rbx", RET], "DepthUnderflow", 0x1002)
    bad("join-mismatch", "two paths meet at different depths", ["je 1f", "push %rax", "1: ret"], "DepthMismatch", 0x1003)
    bad("join-mismatch-2", "two paths meet at different depths, the deeper one by a jump", ["push %rax", "je 1f", "pop %rax", "nop", "1: ud2"], "DepthMismatch")
    bad("loop-pushes", "a loop that pushes", ["1: push %rax", ("eb fd", "jmp to the push")], "DepthMismatch", 0x1000)
    bad("loop-pops", "a loop that pops what a loop pushed", ["push %rax", "push %rax", "1: pop %rax", ("75 fd", "jne to the pop"), RET], "DepthMismatch")
    bad("backward-mismatch", "backward jump at another depth", ["nop", "1: nop", "push %rax", "jne 1b", "pop %rax", RET], "DepthMismatch", 0x1001)
    bad("jcc-tail-call-deep", "conditional tail call with a pushed register", ["push %rax", "je 2f", "pop %rax", RET, "@ 0x20", "2: " + MARK, RET], "TailCallDepth", 0x1001)
    bad("jmp-tail-call-deep", "tail call with a pushed register", ["push %rax", "jmp 2f", "@ 0x20", "2: " + MARK, RET], "TailCallDepth", 0x1001)
    bad("indirect-tail-call-deep", "checked jump to functions with a pushed register", ["push %rax"] + checked("jmp"), "TailCallDepth", 0x1000 + 22)
    bad("to-own-entry-deep", "jump back to the function's first instruction with a pushed register", ["nop", "push %rax", ("75 fc", "jne to the start"), "pop %rax", RET], "DepthMismatch", 0x1000)
    bad("label-two-depths", "one label identifier jumped to from two depths", ["nop", "je 1f"] + checked("jmp", 0x629A0001) + ["1: push %rax"] + checked("jmp", 0x629A0001) + ["@ 0x40", label(1), RET], "DepthMismatch")
    bad("label-reached-at-other-depth", "label reached by falling through at another depth than by the jump", ["nop", "je 1f"] + checked("jmp", 0x629A0001) + ["1: push %rax", "jmp 2f", "@ 0x40", "2: " + label(1), "pop %rax", RET], "DepthUnderflow")
    ok("label-depth-8", "labels at the depth of their jump", ["push %rbx"] + checked("jmp", 0x629A0001) + ["@ 0x20", label(1), "pop %rbx", RET, "@ 0x30", label(1), "pop %rbx", RET], report="depth=8 labels=1")
    bad("label-pops-too-much", "code behind a label pops more than there is at the jump", ["push %rbx"] + checked("jmp", 0x629A0001) + ["@ 0x20", label(1), "pop %rbx", "pop %rbx", RET], "DepthUnderflow")
    bad("label-returns-deep", "code behind a label returns with the jump's pushed bytes", ["push %rbx"] + checked("jmp", 0x629A0001) + ["@ 0x20", label(1), RET], "ReturnDepth", 0x1028)
    ok("two-classes", "two label identifiers at two depths in one function", ["nop", "je 1f"] + checked("jmp", 0x629A0001) + ["1: push %rbx"] + checked("jmp", 0x629A0002) + ["@ 0x40", label(1), RET, "@ 0x50", label(2), "pop %rbx", RET], report="labels=2")
    ok("unused-label", "a label that no jump names and nothing reaches", [RET, "@ 0x8", label(1), "pop %rax", RET])
    bad("unused-label-reached", "a label that no jump names, reached by falling through, has the depth of the path", ["push %rax", "jmp 1f", "@ 0x8", "1: " + label(1), RET], "ReturnDepth", 0x1010)
    bad("second-function", "each function starts at depth 0", ["push %rbx", "call 1f", "pop %rbx", RET, "@ 0x20", "1: pop %rbx", "jmp 1b"], "DepthUnderflow", 0x1020)
    bad("call-then-pop-return-address", "the caller's own return address after a call", ["call 1f", "pop %rax", RET, "@ 0x20", "1: ret"], "DepthUnderflow", 0x1005)
    bad("entry-list-depth", "entries from the list start at depth 0 as well", [RET, "@ 0x10", "pop %rax", "jmp .-1"], "DepthUnderflow", 0x1010, entries="0x1000 0x1010")


def pads():
    """Landing pads: places where the runtime resumes, with the depth that their no-op claims."""
    d = "rule-3"
    tag = 0x7AD0

    def claim(depth, tag=tag):
        return f".byte 0x0f, 0x1f, 0x84, 0x09; .word {depth:#x}, {tag:#x}"

    def body(at):
        return ["push %rbx", "call 1f", "pop %rbx", RET, "@ 0x10", at, "pop %rbx", RET, "@ 0x20", "1: " + MARK, RET]
    case(d, "pad", "a landing pad at the depth of its frame", body(claim(8)), report="functions=2 depth=8 pads=1")
    case(d, "pad-none", "without the claim the pad is unreachable", body("nop"), report="pads=0")
    case(d, "pad-other-tag", "another displacement is a no-op and no claim", body(claim(0, tag ^ 1)), report="pads=0")
    case(d, "pad-deeper", "pads may have any depth that their code goes with", [RET, "@ 0x10", claim(16), "pop %rbx", "pop %rbx", RET], report="functions=1 pads=1")
    case(d, "pad-at-entry", "an entry may be a pad at depth 0", [claim(0), RET], report="pads=1")
    case(d, "pad-too-shallow", "the claim says less than the pad pops", body(claim(0)), "3 DepthUnderflow", 0x1018)
    case(d, "pad-too-deep", "the claim says more than the pad pops", body(claim(16)), "3 ReturnDepth", 0x1019)
    case(d, "pad-reached-otherwise", "the claim contradicts the depth by which control gets there", ["push %rbx", claim(0), "pop %rbx", RET], "any")
    case(d, "pad-odd-depth", "a depth that is no multiple of 8", body(claim(9)), "4 PadClaim", 0x1010)
    case(d, "pad-huge-depth", "a depth above the limit", [RET, "@ 0x10", claim(4104), "ud2"], "4 PadClaim", 0x1010)
    case(d, "pad-no-function", "a pad before the first entry", [claim(0), RET, "@ 0x10", RET], "4 PadClaim", 0x1000, entries="0x1010")
    case(d, "pad-falls-off", "control from a pad runs into the next function", [RET, "@ 0x8", claim(0), MARK, RET], "4 FallsOff", 0x1008)


def write():
    """All of them."""
    rule2()
    rule3()
    pads()
