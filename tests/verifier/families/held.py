"""Rule 1, third form: operands through r14, D(%r14,%r11), where r11 holds a lower half."""

from .common import MARK, RET, case, checked, label
from .memory import MANDATORY, MEMORY

D = "rule-1"
DEF = "movl %eax, %r11d"
USE = "movq 8(%r14,%r11), %rax"
PAD = ("0f 1f 84 09 00 00 d0 7a", "pad at depth 0")
NOT_HELD = "1 NotHeld"
INTO = "4 IntoHeld"


def extended(code):
    """The bytes of an instruction on (%rdi) with (%r14,%r11) instead."""
    b = bytes.fromhex(code)
    if b[0] == 0xC5:
        b = bytes([0xC4, b[1] & 0x80 | 0x61, b[1] & 0x7F]) + b[2:]
    if b[0] == 0xC4:
        head, b = bytes([0xC4, b[1] & ~0x60, b[2]]), b[3:]
    elif b[0] & 0xF0 == 0x40:
        head, b = bytes([b[0] | 3]), b[1:]
    else:
        head = b"\x43"
    # The ModRM byte is the one with rm 7 and mode 0 behind the opcode.
    at = 1
    if not code.startswith(("c4", "c5")) and b[0] == 0x0F:
        at = 3 if b[1] in (0x38, 0x3A) else 2
    assert b[at] & 0xC7 == 7, code
    return (head + b[:at] + bytes([b[at] & 0x38 | 4, 0x1E]) + b[at + 1:]).hex(" ")


def every_instruction():
    place = "(%r14,%r11)"
    for name, code, what, size, kind in MEMORY:
        line = (extended(code), what.replace("M", place))
        body = {"push-mem": [line, ("58", "pop %rax"), RET], "pop-mem": [line, RET]}.get(name, [line, RET])
        before = [("50", "push %rax")] if name == "pop-mem" else []
        case(D, f"held-{name}", f"{what} through r14", [DEF] + before + body)
        at = 0x1000 + len(before)
        case(D, f"held-{name}-not", f"{what} through r14, r11 not held", before + body, NOT_HELD, at)
        case(D, f"held-{name}-integrity", f"{what} through r14, integrity mode", [DEF] + before + body, isolation="integrity")
        free = kind == "r"
        case(D, f"held-{name}-integrity-not", f"{what} through r14, r11 not held, integrity mode: loads are free", before + body,
             None if free else NOT_HELD, None if free else at, isolation="integrity")
        for prefix, which in ("65", "gs"), ("67", "addr32"):
            case(D, f"held-{name}-{which}", f"{what} through r14 with {which}", [DEF] + before + [(f"{prefix} {line[0]}", line[1])] + body[1:], "1 Unconfined")
    for name, pre, code, what, size, kind in MANDATORY:
        line = (f"{pre} {extended(code)}", what.replace("M", place))
        case(D, f"held-{name}", f"{what} through r14", [DEF, line, RET])
        case(D, f"held-{name}-not", f"{what} through r14, r11 not held", [line, RET], NOT_HELD, 0x1000)
    case(D, "held-lock", "lock on an operand through r14", [DEF, "lock incl (%r14,%r11)", RET])
    case(D, "held-lock-load", "lock on a load through r14", [DEF, ("f0 43 8b 04 1e", "lock movl (%r14,%r11), %eax"), RET], "8 Lock")
    case(D, "held-bt", "bit string through r14", [DEF, "btl %ecx, (%r14,%r11)", RET], "9 BitString")
    case(D, "held-jmp", "jump through memory through r14", [DEF, "jmp *(%r14,%r11)"], "5 BareIndirect")
    case(D, "held-call", "call through memory through r14", [DEF, "call *(%r14,%r11)", RET], "5 BareIndirect")
    case(D, "held-ldmxcsr", "ldmxcsr through r14", [DEF, "ldmxcsr (%r14,%r11)", RET], "8 ControlState")
    case(D, "held-gather", "gather through r14", [DEF, "vpgatherdd %ymm1, (%r14,%ymm11), %ymm0", RET], "9 Gather")
    case(D, "held-string", "string instruction straight behind the move", [DEF, "stosb", RET], "7 BareString")
    for lea in "leaq 8(%r14,%r11), %rax", "leal 8(%r14,%r11), %eax", "leaq -8(%r14,%r11,8), %rax", "nopl 8(%r14,%r11)":
        case(D, f"held-free {lea}", f"{lea} accesses nothing", [lea, RET])


def forms():
    for name, form, fine in (
        ("none", "(%r14,%r11)", True), ("disp8 0", ("43 8b 44 1e 00", "movl 0(%r14,%r11), %eax"), True), ("disp8 7f", "0x7f(%r14,%r11)", True),
        ("disp8 minus 1", "-1(%r14,%r11)", False), ("disp8 minus 128", "-128(%r14,%r11)", False), ("disp32 80", "0x80(%r14,%r11)", True),
        ("disp32 0", ("43 8b 84 1e 00 00 00 00", "movl 0(%r14,%r11), %eax"), True),
        ("disp32 minus 1", ("43 8b 84 1e ff ff ff ff", "movl -1(%r14,%r11), %eax"), False),
        ("7fff", "0x7fff(%r14,%r11)", True), ("8000", "0x8000(%r14,%r11)", False), ("8080", "0x8080(%r14,%r11)", False), ("ffff", "0xffff(%r14,%r11)", False),
        ("10000", "0x10000(%r14,%r11)", False), ("17fff", "0x17fff(%r14,%r11)", False), ("1000008", "0x1000008(%r14,%r11)", False),
        ("7fffffff", "0x7fffffff(%r14,%r11)", False), ("minus 2g", "-0x80000000(%r14,%r11)", False), ("minus 8000", "-0x8000(%r14,%r11)", False),
        ("scale 2", "8(%r14,%r11,2)", False), ("scale 4", "8(%r14,%r11,4)", False), ("scale 8", "8(%r14,%r11,8)", False),
        ("exchanged", "8(%r11,%r14)", False), ("r14 alone", "8(%r14)", False), ("r11 alone", "8(%r11)", False), ("r11 as index alone", "8(,%r11)", False),
        ("rsi base", "8(%rsi,%r11)", False), ("rbx index", "8(%r14,%rbx)", False), ("r14 twice", "8(%r14,%r14)", False), ("r11 twice", "8(%r11,%r11)", False),
        ("r15 base", "8(%r15,%r11)", False), ("r13 base", "8(%r13,%r11)", False), ("r10 index", "8(%r14,%r10)", False), ("r14 no index", ("43 8b 44 26 08", "movl 8(%r14,%r12), %eax"), False),
        ("rsi rbx", "8(%rsi,%rbx)", False),
    ):
        lines = {"load": form if isinstance(form, tuple) else f"movl {form}, %eax"}
        if not isinstance(form, tuple):
            lines.update(store=f"movl %eax, {form}", rex=f"movq {form}, %r9", wide=f"vmovups {form}, %ymm0", imm=f"movl $0x11223344, {form}", movsd=f"movsd %xmm8, {form}",
                         movzwl=f"movzwl {form}, %eax")
        for how, line in lines.items():
            shown = line if isinstance(line, str) else line[1]
            case(D, f"held-form {name} {how}", f"operand through r14: {shown}", [DEF, line, RET], None if fine else "1 Unconfined", None if fine else 0x1003)
    case(D, "held-gs-and-67", "with both prefixes it is the first form, and needs nothing", [("65 67 43 8b 84 1e 00 00 00 80", "movl %gs:-0x80000000(%r14d,%r11d), %eax"), RET])
    case(D, "held-fs", "an operand through r14 with fs", [DEF, ("64 43 8b 04 1e", "movl %fs:(%r14,%r11), %eax"), RET], "8 Prefix")
    case(D, "held-scale integrity", "a store with scale 2, integrity mode", [DEF, "movl %eax, (%r14,%r11,2)", RET], "1 Unconfined", isolation="integrity")
    case(D, "held-reach integrity", "a store beyond the reach, integrity mode", [DEF, "movl %eax, 0x8000(%r14,%r11)", RET], "1 Unconfined", isolation="integrity")


def moves():
    """What makes r11 hold a lower half, and what does not."""
    for line in ("movl %eax, %r11d", "movl %r9d, %r11d", "movl %r11d, %r11d", "movl %r14d, %r11d", ("44 8b d8", "movl %eax, %r11d"), ("45 8b d9", "movl %r9d, %r11d"),
                 "movl %gs:8(%edi), %r11d", ("65 67 47 8b 5c 9e 08", "movl %gs:8(%r14d,%r11d,4), %r11d"), "movl TEXT+0x1000(%rip), %r11d", "leal 8(%rdi,%rcx,8), %r11d", "leal (%r11), %r11d",
                 ("67 44 8d 5c cf 08", "leal 8(%edi,%ecx,8), %r11d"), "leal TEXT(%rip), %r11d", "leal 8(%r14,%r11), %r11d"):
        shown = line[1] if isinstance(line, tuple) else line
        raw = line[0] if isinstance(line, tuple) else ""
        case(D, f"held-by {shown.replace('%', '').replace('TEXT', 'text')} {raw}", f"behind {shown}", [line, USE, RET])
    for line in ("movq %rax, %r11", ("4c 8b d8", "movq %rax, %r11"), "movw %ax, %r11w", ("66 44 8b d8", "movw %ax, %r11w"), "movb %al, %r11b", ("44 8a d8", "movb %al, %r11b"), "leaq (%rax), %r11", "leaq (%r14,%r11), %r11", "leaq TEXT(%rip), %r11",
                 ("66 44 8d 18", "leaw (%rax), %r11w"), ("67 4c 8d 18", "leaq (%eax), %r11"), ("67 66 44 8d 18", "leaw (%eax), %r11w"),
                 "movq %gs:(%edi), %r11", "movw %gs:(%edi), %r11w", "movq TEXT+0x1000(%rip), %r11", "movslq %eax, %r11", "movabsq $0x123456789ab, %r11", "movq $-1, %r11",
                 "movl %r11d, %eax", "movl %eax, %r10d", "movl %eax, %r12d", "movl %eax, %ebx", "leal (%rax), %r10d", "movl %r11d, %gs:(%edi)",
                 # These clear the upper half as well. They are not needed, so they are not in the list.
                 "xorl %r11d, %r11d", "movl $5, %r11d", "movzbl %al, %r11d", "addl %eax, %r11d", "andl $-8, %r11d", "popcntl %eax, %r11d"):
        shown = line[1] if isinstance(line, tuple) else line
        raw = line[0] if isinstance(line, tuple) else ""
        case(D, f"held-not-by {shown.replace('%', '').replace('TEXT', 'text')} {raw}", f"behind {shown} r11 holds nothing that is known", [line, USE, RET], NOT_HELD)
    case(D, "held-by held", "an operand through r14 that makes r11 hold again", [DEF, "movl 8(%r14,%r11), %r11d", "movl 8(%r14,%r11), %r11d", USE, RET])
    case(D, "held-by held 64", "an operand through r14 whose result is all of r11", [DEF, "movq 8(%r14,%r11), %r11", USE, RET], NOT_HELD, 0x1008)
    case(D, "held-by held 64 alone", "the same without a further operand", [DEF, "movq 8(%r14,%r11), %r11", RET])
    case(D, "held-by held not", "the first of a chain", ["movl 8(%r14,%r11), %r11d", RET], NOT_HELD)
    case(D, "held-by integrity load", "a free load makes r11 hold, integrity mode", ["movl (%rdi), %r11d", "movl %eax, (%r14,%r11)", RET], isolation="integrity")
    case(D, "held-by load not", "a load that is not confined", ["movl (%rdi), %r11d", USE, RET], "1 Unconfined")


def between():
    """What stands between the move and the operand."""
    for line in ("xchgl %eax, %r11d", "xchgq %rax, %r11", ("4d 87 d8", "xchgq %r11, %r8"), ("49 93", "xchg %rax, %r11"), "movb %al, %r11b", "movw %ax, %r11w", "sete %r11b", "popq %r11", "andnl %eax, %eax, %r11d",
                 "bsrq %rax, %r11", "bsfl %eax, %r11d", "cmovel %eax, %r11d", "cmoveq %rax, %r11", "addq $8, %r11", "incq %r11", "negq %r11", "notq %r11", "shlq $1, %r11", "xaddq %r11, %rax", "xaddq %rax, %r11",
                 "cmpxchgq %rax, %r11", "cmpxchgb %al, %r11b", "bswapq %r11", "btsq $40, %r11", "imulq $3, %rax, %r11", "movq %xmm0, %r11", "vmovq %xmm0, %r11", "pextrq $1, %xmm0, %r11", "pextrw $1, %xmm0, %r11d",
                 "movmskpd %xmm0, %r11d", "pmovmskb %xmm0, %r11d", "cvttsd2siq %xmm0, %r11", "crc32q %rax, %r11", "mulxq %rax, %r11, %rax", "mulxq %rax, %rax, %r11", "rorxq $1, %rax, %r11", "blsrq %rax, %r11",
                 "pdepq %rax, %rax, %r11", "lzcntq %rax, %r11", "movsbq %al, %r11", "movzwl %ax, %r11d", "leaq 1(%r11), %r11", "movq %rax, %r11", "rcrq %r11", "movbe %gs:(%edi), %r11", "adcxq %rax, %r11", "movabsq $0x123456789ab, %r11",
                 "movq %gs:(%edi), %r11", "addl $8, %r11d", "shldq $3, %rax, %r11", "orl %eax, %r11d"):
        shown = line[1] if isinstance(line, tuple) else line
        before = ["push %rax"] if shown.startswith("popq") else []
        case(D, f"held-lost {shown.replace('%', '')}", f"{shown} between the move and the operand", before + [DEF, line, USE, RET], NOT_HELD)
    for line in ("movq %r11, %rax", "cmpq %r11, %rax", "testl %r11d, %r11d", "pushq %r11", "movl %eax, %ebx", "movl %r11d, %r10d", "nop", "nopl 8(%r11)", "pause", "movq %r11, %gs:(%edi)", "movups %gs:(%edi), %xmm0", "vaddps %ymm0, %ymm1, %ymm2",
                 "lfence", "addb $1, %al", "imulq %r11", "divl %ecx", "mulq %r11", "cmpxchgl %ecx, %gs:(%edi)", "cltd", "sahf", "movq %xmm0, %r10", "je TEXT+0x60", "endbr64"):
        after = ["popq %rcx"] if line == "pushq %r11" else []
        case(D, f"held-kept {line.replace('%', '').replace('TEXT', 'text')}", f"{line} between the move and the operand", [DEF, line, USE] + after + [RET, "@ 0x60", RET])
    case(D, "held-push-pop", "pushes and pops between", ["push %rbx", DEF, "push %rax", USE, "pop %rcx", USE, "pop %rbx", USE, RET])
    case(D, "held-string-between", "a string instruction between", [DEF, "movl %edi, %edi", "leaq (%r14,%rdi), %rdi", ("f3 aa", "rep stosb"), USE, RET])
    case(D, "held-rebuild-is-no-move", "leaq (%r14,%rdi), %rdi is no operand, and makes nothing hold", ["movl %edi, %edi", "leaq (%r14,%rdi), %rdi", USE, RET], NOT_HELD)
    case(D, "held-jcc", "falling through conditional jumps", [DEF, "je TEXT+0x40", USE, "jne TEXT+0x40", USE, RET, "@ 0x40", RET])
    case(D, "held-jcc-taken", "the way of the conditional jump that is taken", [DEF, "je TEXT+0x40", RET, "@ 0x40", USE, RET], NOT_HELD, 0x1040)
    case(D, "held-jmp-between", "a jump to the operand itself", [DEF, "jmp TEXT+5", USE, RET], NOT_HELD)
    case(D, "held-jmp-over", "a jump between", [DEF, "jmp TEXT+0x40", USE, RET, "@ 0x40", RET], NOT_HELD)
    case(D, "held-ret-between", "a return between", [DEF, RET, USE, RET], NOT_HELD)
    case(D, "held-ud2-between", "ud2 between", [DEF, "ud2", USE, RET], NOT_HELD)
    case(D, "held-int3-between", "int3 between", [DEF, "int3", USE, RET], NOT_HELD)
    case(D, "held-call-between", "a direct call between", [DEF, "call TEXT+0x40", USE, RET, "@ 0x40", RET], NOT_HELD)
    case(D, "held-stub-between", "a call of a stub between", [DEF, "call TEXT-0x101000+0x20000", USE, RET], NOT_HELD)
    case(D, "held-indirect-between", "an indirect call between", [DEF, *checked("call"), USE, RET], NOT_HELD)
    case(D, "held-behind-indirect-jump", "behind an indirect jump", [DEF, *checked("jmp"), USE, RET], NOT_HELD)
    case(D, "held-function-between", "the marker of a function between", ["@ 0x5", DEF, MARK, USE, RET], NOT_HELD, entries="0x1005")
    case(D, "held-label-between", "the marker of a label between", ["@ 0x5", DEF, label(5), USE, RET], NOT_HELD, entries="0x1005")
    case(D, "held-filler-between", "a long no-op that is no marker", ["@ 0x5", DEF, ("0f 1f 84 00 00 00 00 00", "nopl 0(%rax,%rax)"), USE, RET], entries="0x1005")
    case(D, "held-marker-elsewhere", "what is no marker, as it stands elsewhere", ["@ 0x2", DEF, MARK, USE, RET], entries="0x1002")
    case(D, "held-pad-between", "a landing pad between", [DEF, PAD, USE, RET], NOT_HELD)
    case(D, "held-pad-first", "a landing pad in front of the move", [PAD, DEF, USE, RET])
    case(D, "held-entry-def", "the move itself is an entry, and a target", ["je TEXT+0x10", "@ 0x10", DEF, USE, "jne TEXT+0x10", RET], entries="0x1000 0x1010")
    case(D, "held-not-at-all", "no move anywhere", [USE, RET], NOT_HELD, 0x1000)
    case(D, "held-block-before", "the move in the block before, which falls through", [DEF, "je TEXT+0x10", "jmp TEXT+0x10", "@ 0x10", USE, RET], NOT_HELD, 0x1010)
    case(D, "held-loop-behind", "the move behind the operand in a loop", [USE, DEF, "jne TEXT", RET], NOT_HELD, 0x1000)
    case(D, "held-loop-before", "the move in front of a loop", [DEF, USE, "jne TEXT+3", RET], INTO, 0x1008)
    case(D, "held-loop", "the move in the loop", ["nop", DEF, USE, "jne TEXT+1", RET])
    case(D, "held-unreachable", "unreachable operands are checked as well", [RET, USE, RET], NOT_HELD)


def targets():
    """Nothing enters between the move and the last operand."""
    # 0 move, 3 nop, 4 operand (5 bytes), 9 nop, 10 operand, 15 nop, 16 ret
    body = [DEF, "nop", USE, "nop", USE, "nop", RET, "@ 0x40"]
    for at, fine in ((0, True), (3, False), (4, False), (9, False), (10, False), (15, True), (16, True)):
        bad = None if fine else INTO
        for how, line in ("jump", f"jmp TEXT+{at}"), ("jcc", f"je TEXT+{at}"):
            case(D, f"held-into {how} {at}", f"a {how} to offset {at} of a straight line", body + [line, RET], bad, None if fine else 0x1040)
        case(D, f"held-into forward {at}", f"a jump forward to offset {at} of a straight line", [f"je TEXT+{0x10 + at}", RET, "@ 0x10"] + body[:-1], bad, None if fine else 0x1000)
        case(D, f"held-into call {at}", f"a call of offset {at} of a straight line", [RET, "@ 0x10"] + body[:-1] + ["@ 0x40", f"call TEXT+{0x10 + at}", RET], bad, None if fine else 0x1010 + at, entries="0x1000 0x1040")
        case(D, f"held-into entry {at}", f"an entry at offset {at} of a straight line", body, bad, None if fine else 0x1000 + at, entries=f"{0x1000 + at:#x}")
        distance = ((0x80 + at - 0x44) % 2**32).to_bytes(4, "little").hex(" ")
        case(D, f"held-into slot {at}", f"a slot of a table leads to offset {at} of a straight line",
             ["andl $0, %eax", "leaq TEXT+0x44(%rip), %r11", "addl %gs:(%r11d,%eax,8), %r11d", "addq %r14, %r11", "jmp *%r11", "@ 0x40",
              ("0f 1f 84 40 " + distance, "nopl DISTANCE(%rax,%rax,2)"), "@ 0x80"] + body[:-1], bad)
    case(D, "held-into inside", "a jump into an operand through r14", body + ["jmp TEXT+5", RET], "4 JumpTarget")
    case(D, "held-into vector", "a jump to an operand that the other decoder takes", [DEF, "vmovups (%r14,%r11), %ymm0", RET, "@ 0x40", "jmp TEXT+3"], INTO)
    case(D, "held-into integrity store", "a jump to a store, integrity mode", [DEF, "movl %eax, (%r14,%r11)", RET, "@ 0x40", "jmp TEXT+3"], INTO, isolation="integrity")
    case(D, "held-into integrity load", "a jump to a load, which is free in integrity mode", [DEF, USE, RET, "@ 0x40", "jmp TEXT+3"], isolation="integrity")
    case(D, "held-into unused", "behind a move that no operand relies on, nothing is forbidden", [DEF, "nop", RET, "@ 0x40", "jmp TEXT+3"])
    case(D, "held-into lost", "behind the last operand and behind the move's end", [DEF, USE, "movq %rax, %r11", RET, "@ 0x40", "jmp TEXT+8"])
    case(D, "held-into second move", "a jump to a second move, which is in no other's line", [DEF, USE, DEF, USE, RET, "@ 0x40", "jmp TEXT+8"])
    case(D, "held-into chain", "a jump to a move that is an operand itself", [DEF, "movl (%r14,%r11), %r11d", USE, RET, "@ 0x40", "jmp TEXT+3"], INTO)
    case(D, "held-into sequence", "a jump into a string sequence in a straight line", [DEF, "movl %edi, %edi", "leaq (%r14,%rdi), %rdi", "stosb", USE, RET, "@ 0x40", "jmp TEXT+3"], INTO)


def refused():
    """Where only gs is accepted."""
    only = {"addressing": "segment"}
    for name, body in (
        ("load", [DEF, USE, RET]), ("store", [DEF, "movl %eax, (%r14,%r11)", RET]), ("vector", [DEF, "vmovups (%r14,%r11), %ymm0", RET]),
        ("unreached", [RET, DEF, USE, RET]), ("late", ["nop"] * 70 + [DEF, "movq %gs:(%edi), %rax", USE, RET]),
    ):
        case(D, f"held-segment {name}", f"{name} through r14 where only gs is accepted", body, "1 HeldRefused", **only)
        case(D, f"held-segment-any {name}", f"{name} through r14 where any form is accepted", body)
    case(D, "held-segment move", "a move to r11d that no operand relies on", [DEF, "movq %gs:(%edi), %rax", RET], **only)
    case(D, "held-segment gs", "r14 and r11 in an operand through gs", [("65 67 43 8b 44 1e 08", "movl %gs:8(%r14d,%r11d), %eax"), RET], **only)
    case(D, "held-segment lea", "r14 and r11 where nothing is accessed", [DEF, "leaq 8(%r14,%r11), %rax", RET], **only)
    case(D, "held-segment string", "a string instruction, whose registers are lower halves and r14", ["movl %edi, %edi", "leaq (%r14,%rdi), %rdi", "stosb", RET], **only)
    case(D, "held-segment integrity store", "a store through r14 where only gs is accepted, integrity mode", [DEF, "movl %eax, (%r14,%r11)", RET], "1 HeldRefused", isolation="integrity", **only)
    case(D, "held-segment integrity load", "a free load through r14 where only gs is accepted, integrity mode", [USE, RET], isolation="integrity", **only)


def write():
    """All of them."""
    refused()
    every_instruction()
    forms()
    moves()
    between()
    targets()
