"""Rule 11: operands behind the window, in the words mode."""

from families.common import MARK, RET, case

VIEW = "0x7fff0000(%r14,%r11)"
MOVE = "cmovel %r14d, %r11d"


def test(bit, displacement=0x20000000):
    return f"testb ${bit}, %gs:{displacement:#x}(%r11d)"


# Instruction with the operand {}, its size, whether it writes.
OPERATIONS = [("movb {}, %al", 1, False), ("movb %al, {}", 1, True), ("movzbl {}, %eax", 1, False), ("sete {}", 1, True), ("cmpb $1, {}", 1, False),
              ("movw {}, %ax", 2, False), ("movw %ax, {}", 2, True), ("filds {}", 2, False), ("movl {}, %eax", 4, False), ("movl %eax, {}", 4, True),
              ("addl %eax, {}", 4, True), ("lock xaddl %eax, {}", 4, True), ("movss {}, %xmm0", 4, False), ("movq {}, %r11", 8, False), ("movq %rax, {}", 8, True), ("movsd %xmm0, {}", 8, True), ("movq $1, {}", 8, True),
              ("fldt {}", 10, False), ("fstpt {}", 10, True), ("movups {}, %xmm0", 16, False), ("movaps %xmm0, {}", 16, True), ("lock cmpxchg16b {}", 16, True),
              ("vmovdqu {}, %ymm0", 32, False), ("vmovdqu %ymm0, {}", 32, True)]
CLASS = {1: (0, 0), 2: (0, 1), 4: (1, 0), 8: (2, 0), 10: (2, 2), 16: (3, 0), 32: (3, 16)}


def tests(size, write):
    """The tests in front of an access, and where it stands."""
    number, second = CLASS[size]
    bit = (16 if write else 1) << number
    code = [test(bit), MOVE] + ([test(bit, 0x20000000 + second), MOVE] if second else [])
    return code, 0x1000 + 7 * len(code)


def write():
    """All of them."""
    d = "rule-11"
    bare, other = "11 BareView", "11 ViewOperation"
    words = {"isolation": "words"}
    for text, size, writes in OPERATIONS:
        name, op = text.replace("{}", "view"), text.replace("{}", VIEW)
        code, at = tests(size, writes)
        case(d, f"{name}-good", f"{name} behind its tests", code + [op, RET], **words)
        case(d, f"{name}-full", f"{name} behind its tests, without the mode", code + [op, RET], "1 Unconfined", at)
        if writes:
            case(d, f"{name}-integrity", f"{name} behind its tests, integrity mode", code + [op, RET], "1 Unconfined", at, isolation="integrity")
        case(d, f"{name}-bare", f"{name} without tests", [op, RET], bare, 0x1000, **words)
        case(d, f"{name}-without-move", f"{name} behind tests without the last move", code[:-1] + [op, RET], bare, at - 4, **words)
        case(d, f"{name}-gap", f"{name} with an instruction between", code + [("90", "nop"), op, RET], bare, at + 1, **words)
        case(d, f"{name}-r11-written", f"{name} behind a write of r11", code + ["movl %eax, %r11d", op, RET], bare, at + 3, **words)
        case(d, f"{name}-twice", f"{name} twice behind one test: r11 may be another", code + [op, op, RET], bare, **words)
        case(d, f"{name}-other-right", f"{name} behind tests of the other right", tests(size, not writes)[0] + [op, RET], bare, at, **words)
        for less in CLASS:
            if less != size:
                shorter, where = tests(less, writes)
                case(d, f"{name}-as-{less}", f"{name} behind the tests for {less} bytes", shorter + [op, RET], bare, where, **words)
        # Into the middle of the sequence, from a jump in front of it: to the move, to a second test, to the access.
        starts = [10, 14, 24, 28] if len(code) == 4 else [10, 14]
        for start in starts:
            case(d, f"{name}-into-{start}", f"a jump to byte {start} of the tests", [f"jne TEXT+2+{start}"] + code + [op, RET], "4 IntoSequence", 0x1000, **words)
        case(d, f"{name}-to-start", "a jump to the first test", ["jne TEXT+2"] + code + [op, RET], **words)
        case(d, f"{name}-entry", "the access is called", code + [op, RET, f"call TEXT+{at - 0x1000}", RET], "4 IntoSequence", **words)
    load = f"movl {VIEW}, %eax"
    good = [test(2), MOVE]
    bad = lambda name, what, code, at=None, rule=bare: case(d, name, what, code, rule, at, **words)
    bad("move-when-granted", "the move for the other case", [test(2), "cmovnel %r14d, %r11d", load, RET], 0x100e)
    bad("move-64", "the move of 64 bits", [test(2), "cmoveq %r14, %r11", load, RET], 0x100e)
    bad("move-from-r13", "the move from another register", [test(2), "cmovel %r13d, %r11d", load, RET], 0x100e)
    bad("branch", "a branch in place of the move: it can be predicted wrongly", [test(2), ("74 09", "je"), load, RET, "ud2"], 0x100c)
    bad("test-of-r10", "the byte of another register's place", [("65 67 41 f6 82 00 00 00 20 02", "testb $2, %gs:0x20000000(%r10d)"), MOVE, load, RET], 0x100e)
    bad("test-without-gs", "the byte outside the window", [("67 41 f6 83 00 00 00 20 02", "testb $2, 0x20000000(%r11d)"), MOVE, load, RET], 0x1000, "1 Unconfined")
    bad("test-elsewhere", "the byte of another place", [test(2, 0x20000001), MOVE, load, RET], 0x100e)
    bad("test-in-heap", "the byte in the heap", [test(2, 0x40000000), MOVE, load, RET], 0x100e)
    bad("test-of-two-rights", "one of two rights", [test(3), MOVE, load, RET], 0x100e)
    bad("test-hidden", "the test is the end of another instruction", [("48 b8 90 90 90 90 90 90 65 67", "movabsq"), ("41 f6 83 00 00 00 20 02", "testb $2, 0x20000000(%r11)"), MOVE, load, RET], 0x100a, "1 Unconfined")
    for name, op in [("push", f"pushq {VIEW}"), ("pop", f"popq {VIEW}")]:
        case(d, f"{name}-view", f"{name} of an operand behind the window", [test(4 if name == "push" else 64), MOVE, op, RET], other, 0x100e, **words)
    bad("other-displacement", "another displacement: the view begins lower", [test(2), MOVE, "movl 0x7ffe0000(%r14,%r11), %eax", RET], 0x100e, "1 Unconfined")
    bad("other-base", "another base", [test(2), MOVE, "movl 0x7fff0000(%r13,%r11), %eax", RET], 0x100e, "1 Unconfined")
    bad("other-index", "another index", [test(2), MOVE, "movl 0x7fff0000(%r14,%r10), %eax", RET], 0x100e, "1 Unconfined")
    bad("scale", "a scale", [test(2), MOVE, "movl 0x7fff0000(%r14,%r11,2), %eax", RET], 0x100e, "1 Unconfined")
    bad("swapped", "base and index exchanged", [test(2), MOVE, "movl 0x7fff0000(%r11,%r14), %eax", RET], 0x100e, "1 Unconfined")
    bad("marker-between", "a function begins between the move and the access", [test(2), MOVE, ("66 90", "nop"), MARK, load, RET], 0x1018)
    bad("address-size", "with the address-size prefix", [test(2), MOVE, ("67 " + "43 8b 84 1e 00 00 ff 7f", "movl 0x7fff0000(%r14d,%r11d), %eax"), RET], 0x100e, "1 Unconfined")
    case(d, "held-behind-view", "r11 is no lower half to rely on behind the move", good + [load, "movl (%r14,%r11), %eax", RET], "1 NotHeld", 0x1016, **words)
    case(d, "held", "operands through r14 as ever", ["movl %edi, %r11d", "movl 8(%r14,%r11), %eax", RET], **words)
    case(d, "confined", "confined operands as ever", ["movl %gs:0x7fff0000(%edi), %eax", RET], **words)
    case(d, "lea-view", "an address is no access", [f"leaq {VIEW}, %rax", RET], **words)
    case(d, "load-bare-integrity", "loads are free in integrity mode, this one, too", [load, RET], isolation="integrity")
    bad("free", "an operand without prefix", ["movl (%rdi), %eax", RET], 0x1000, "1 Unconfined")
