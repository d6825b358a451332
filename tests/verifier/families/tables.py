"""Rule 5, second form: jumps through tables among the code."""

from .common import MARK, RET, case, checked, label

D = "rule-5"


def jump(table=0x44, mask="andl $3, %eax", register="eax", end="jmp *%r11"):
    """The sequence, with the table's first distance at `table`."""
    return [mask, f"leaq TEXT+{table:#x}(%rip), %r11", f"addl %gs:(%r11d,%{register},8), %r11d", "addq %r14, %r11", end]


def table(targets, at=0x44):
    """The table: each distance in a no-op of its own."""
    lines = [f"@ {at - 4:#x}"]
    for t in targets:
        distance = ((t - at) % 2**32).to_bytes(4, "little").hex(" ")
        lines.append(("0f 1f 84 40 " + distance, f"nopl TEXT{t:+#x}-TABLE(%rax,%rax,2)"))
    return lines


def slots(*targets, rest=None):
    """A table that leads to these places, and code at 0x100."""
    return table(targets) + (rest or ["@ 0x100", RET, RET, RET, RET])


def write():
    four = slots(0x100, 0x101, 0x102, 0x103)
    case(D, "table", "jump through a table of four slots", jump() + four, report="labels=0 depth=0")
    case(D, "table same", "all slots lead to one place", jump() + slots(*[0x100] * 4))
    case(D, "table below", "a table in front of its jump", ["jmp TEXT+0x80", "@ 0x10", RET] + table([0x10] * 4, 0x24) + ["@ 0x80"] + jump(0x24))
    case(D, "table to itself", "slots lead back to the clamp", jump() + slots(0, 0, 0, 0))
    case(D, "table unaligned", "a table need not be at a multiple of 4", jump(0x47) + table([0x100] * 4, 0x47) + ["@ 0x100", RET])
    case(D, "table of one", "a mask of 0 leaves one slot", jump(mask="andl $0, %eax") + slots(0x100, 0x7777))
    case(D, "table of 128", "the largest mask", jump(mask="andl $127, %eax") + slots(*[0x600] * 128, rest=["@ 0x600", RET]))
    case(D, "table of 256", "a byte as index", jump(mask="movzbl %cl, %eax") + slots(*[0x900] * 256, rest=["@ 0x900", RET]))
    case(D, "table in code", "distances are read wherever they stand, here in another instruction", jump(0x46, "andl $0, %eax") + ["@ 0x45", ("b8 ba 00 00 00", "movl $0xba, %eax"), RET, "@ 0x100", RET])
    for byte, dword in (("cl", "ecx"), ("dl", "edx"), ("bl", "ebx"), ("bpl", "ebp"), ("sil", "esi"), ("dil", "edi"), ("r8b", "r8d"), ("r9b", "r9d"),
                        ("r10b", "r10d"), ("r12b", "r12d"), ("r13b", "r13d"), ("r15b", "r15d")):
        case(D, f"table and {dword}", f"index in {dword}, masked", jump(mask=f"andl $3, %{dword}", register=dword) + four)
        case(D, f"table movzbl {dword}", f"index in {dword}, a byte", jump(mask=f"movzbl %{byte}, %{dword}", register=dword) + slots(*[0x900] * 256, rest=["@ 0x900", RET]))
    pops = ["@ 0x100", "pop %rax", RET]
    case(D, "table pushed", "slots lead to code at the jump's depth", ["push %rax"] + jump() + slots(*[0x100] * 4, rest=pops))
    case(D, "table twice", "two jumps through one table", ["je TEXT+0x20"] + jump() + ["@ 0x20"] + jump() + four)
    case(D, "table overlap", "tables that share slots", ["je TEXT+0x20"] + jump(mask="andl $1, %eax") + ["@ 0x20"] + jump(0x4c, "andl $1, %eax") + table([0x100, 0x100, 0x108]) + ["@ 0x100", RET, "@ 0x108", RET, "@ 0x110", RET])
    case(D, "table entered", "a jump to the start of the sequence", ["je TEXT+0x10", "@ 0x10"] + jump() + four)
    case(D, "table integrity", "the same in integrity mode", jump() + four, isolation="integrity")
    case(D, "table movzbl rex", "movzbl with a 64-bit destination", jump(mask="movzbq %cl, %rax") + slots(*[0x900] * 256, rest=["@ 0x900", RET]))
    case(D, "table address order", "the prefixes in the other order are another instruction", jump()[:2] + [("67 65 45 03 1c c3", "addl %gs:(%r11d,%eax,8), %r11d")] + jump()[3:] + four, rule="5 BareIndirect")

    # the clamp
    bare = "5 BareIndirect"
    many = slots(*[0x900] * 256, rest=["@ 0x900", RET])
    for name, mask, register in (
        ("no clamp", "movl %ecx, %eax", "eax"),
        ("nop clamp", "nopl (%rax)", "eax"),
        ("mask minus eight", "andl $-8, %eax", "eax"),
        ("mask 128", "andl $128, %eax", "eax"),
        ("mask imm32", ("25 03 00 00 00", "andl $3, %eax"), "eax"),
        ("mask long", ("81 e0 03 00 00 00", "andl $3, %eax"), "eax"),
        ("mask 16", "andw $3, %ax", "eax"),
        ("mask 8", ("80 e0 03", "andb $3, %al"), "eax"),
        ("mask 64", ("48 83 e0 03", "andq $3, %rax"), "eax"),
        ("or", "orl $3, %eax", "eax"),
        ("xor", "xorl $3, %eax", "eax"),
        ("cmp", "cmpl $3, %eax", "eax"),
        ("sub", "subl $3, %eax", "eax"),
        ("masked memory", ("65 67 83 20 03", "andl $3, %gs:(%eax)"), "eax"),
        ("movsbl", "movsbl %cl, %eax", "eax"),
        ("movzwl", "movzwl %cx, %eax", "eax"),
        ("movzbw", "movzbw %cl, %ax", "eax"),
        ("movzbl memory", "movzbl %gs:(%ecx), %eax", "eax"),
        ("movzbl rip", ("0f b6 05 f9 0f 00 00", "movzbl text+0x1000(%rip), %eax"), "eax"),
        ("other register", "andl $3, %ecx", "eax"),
        ("other high register", "andl $3, %r8d", "eax"),
        ("other low register", "andl $3, %eax", "r8d"),
        ("other register movzbl", "movzbl %al, %ecx", "eax"),
        ("other register movzbl high", "movzbl %al, %r8d", "eax"),
    ):
        case(D, f"table clamp {name}", f"table jump, clamp: {name}", jump(mask=mask, register=register) + many, rule=bare)
    case(D, "table r11", "the index in r11, where the table's address is by then", jump(mask="andl $3, %r11d", register="r11d") + four, rule=bare)
    case(D, "table r11 byte", "the same with movzbl", jump(mask="movzbl %al, %r11d", register="r11d") + many, rule=bare)
    case(D, "table r14", "the index in r14", jump(mask="andl $3, %r14d", register="r14d") + four, rule="5 WindowBase")
    case(D, "table no index", "rsp's number as index is no index", ["andl $3, %esp", jump()[1], ("65 67 45 03 1c e3", "addl %gs:(%r11d), %r11d")] + jump()[3:] + four,
         rule="2 StackPointer")
    case(D, "table at start", "the sequence without its clamp at the very start", jump()[1:] + four, rule=bare, padding="none")
    case(D, "table clamp hidden", "the clamp's bytes inside another instruction", ["movl $0x03e08390, %ebx"] + jump()[1:] + many, rule=bare)
    for n, where in enumerate(("clamp", "address of the table", "addl", "addq")):
        case(D, f"table apart after {where}", f"an instruction behind the {where}", jump()[:n + 1] + ["nop"] + jump()[n + 1:] + four, rule=bare)
        case(D, f"table without {where}", f"the sequence without its {where}", ["nop"] + jump()[:n] + jump()[n + 1:] + four, rule=bare)

    # the addresses
    for name, line in (
        ("scale 4", "addl %gs:(%r11d,%eax,4), %r11d"),
        ("scale 1", "addl %gs:(%r11d,%eax,1), %r11d"),
        ("displacement", "addl %gs:8(%r11d,%eax,8), %r11d"),
        ("other base", "addl %gs:(%r10d,%eax,8), %r11d"),
        ("r14 base", "addl %gs:(%r14d,%eax,8), %r11d"),
        ("base is index", "addl %gs:(%eax,%eax,8), %r11d"),
        ("other destination", "addl %gs:(%r11d,%eax,8), %r10d"),
        ("64 bits", "addq %gs:(%r11d,%eax,8), %r11"),
        ("other index", "addl %gs:(%r11d,%ecx,8), %r11d"),
        ("other high index", "addl %gs:(%r11d,%r8d,8), %r11d"),
        ("load", "movl %gs:(%r11d,%eax,8), %r11d"),
        ("sub", "subl %gs:(%r11d,%eax,8), %r11d"),
        ("register", "addl %eax, %r11d"),
    ):
        case(D, f"table slot {name}", f"table jump, the sum: {name}", jump()[:2] + [line] + jump()[3:] + many, rule=bare)
    case(D, "table slot unconfined", "table jump, the sum without prefixes", jump()[:2] + ["addl (%r11,%rax,8), %r11d"] + jump()[3:] + four, rule="1 Unconfined")
    for name, line in (
        ("other register", "leaq TEXT+0x44(%rip), %r10"),
        ("rax", "leaq TEXT+0x44(%rip), %rax"),
        ("not relative", ("4c 8d 1c 25 44 00 00 00", "leaq 0x44, %r11")),
        ("32 bits", "leal TEXT+0x44(%rip), %r11d"),
        ("load", "movq TEXT+0x1000(%rip), %r11"),
    ):
        case(D, f"table base {name}", f"table jump, address of the table: {name}", [jump()[0], line] + jump()[2:] + many, rule=bare)
    for name, line in (("other register", "addq %r15, %r11"), ("32 bits", "addl %r14d, %r11d"), ("or", "orq %r14, %r11"), ("lea", "leaq (%r11,%r14), %r11")):
        case(D, f"table window {name}", f"table jump, the window's base: {name}", jump()[:3] + [line] + jump()[4:] + four, rule=bare)
    case(D, "table call", "a call through a table", jump(end="call *%r11") + four + [RET], rule=bare)
    case(D, "table jmp r10", "jump through another register", jump(end="jmp *%r10") + four, rule=bare)
    case(D, "table jmp memory", "jump through memory at the slot", jump(end=("41 ff 23", "jmp *(%r11)")) + four, rule=bare)

    # where the slots lead
    slot = "5 TableSlot"
    long = ["@ 0x100", "movl $0, %eax", RET]
    case(D, "table slot inside", "a slot that leads into the middle of an instruction", jump() + slots(0x100, 0x101, 0x100, 0x100, rest=long), rule=slot)
    case(D, "table last slot inside", "the last slot leads into the middle of an instruction", jump() + slots(0x100, 0x100, 0x100, 0x101, rest=long), rule=slot)
    case(D, "table first slot inside", "the first slot leads into the middle of an instruction", jump() + slots(0x101, 0x100, 0x100, 0x100, rest=long), rule=slot)
    case(D, "table last of 256 inside", "the last of 256 slots leads into the middle of an instruction", jump(mask="movzbl %cl, %eax") + slots(*[0x900] * 255, 0x901, rest=["@ 0x900", "movl $0, %eax", RET]),
         rule=slot)
    case(D, "table other function", "the last slot leads to the next function", jump() + slots(0x100, 0x100, 0x100, 0x109, rest=["@ 0x100", RET, "@ 0x108", MARK, RET, RET]), rule=slot)
    case(D, "table entries", "slots that lead to functions", jump() + slots(*[0x108] * 4, rest=["@ 0x108", MARK, RET]), rule=slot)
    case(D, "table called slot", "a slot leads to what is called, and so is an entry of its own", ["call TEXT+0x110"] + jump() + slots(0x100, 0x110, 0x100, 0x100, rest=["@ 0x100", RET, "@ 0x110", RET]), rule=slot)
    case(D, "table leads outside", "a slot leads behind the text", jump() + slots(0x100, 0x100, 0x1000, 0x100), rule=slot)
    case(D, "table leads before", "a slot leads in front of the text", jump() + slots(0x100, 0x100, -1, 0x100), rule=slot)
    case(D, "table leads far", "a slot leads to the other end of the window", jump() + slots(0x100, 0x100, 2**31, 0x100), rule=slot)
    case(D, "table unreachable", "slots of a jump that nothing reaches are checked as well", [RET] + jump() + slots(0x100, 0x101, 0x100, 0x100, rest=long), rule=slot)
    case(D, "table into sequence", "a slot leads into a checked call", jump() + slots(0x100, 0x100, 0x100, 0x104, rest=["@ 0x100"] + checked("call") + [RET]), rule="4 IntoSequence")
    case(D, "table into itself", "a slot leads behind the clamp", jump() + slots(0x100, 3, 0x100, 0x100), rule="4 IntoSequence")
    case(D, "table depth", "slots lead to code at another depth", ["push %rax"] + jump() + four, rule="3 ReturnDepth")
    case(D, "table depths", "a slot leads to what is also reached at another depth", ["je TEXT+0x100", "push %rax"] + jump() + slots(0x108, 0x108, 0x108, 0x100, rest=["@ 0x100", "ud2", "@ 0x108", "pop %rax", RET]),
         rule="3 DepthMismatch")
    case(D, "table pops", "slots lead to a pop of what nobody pushed", jump() + slots(*[0x100] * 4, rest=pops), rule="3 DepthUnderflow")
    case(D, "table last pops", "the last slot leads to a pop of what nobody pushed", jump() + slots(0x101, 0x101, 0x101, 0x100, rest=pops), rule="3 DepthUnderflow")
    case(D, "table falls off", "the last slot leads to what falls off the function", jump() + slots(0x100, 0x100, 0x100, 0x107, rest=["@ 0x100", RET, "@ 0x107", "nop", MARK, RET]), rule="4 FallsOff")

    # where the table is
    place = "5 TablePlace"
    case(D, "table outside", "a table behind the text", jump(0x2004) + four, rule=place)
    case(D, "table half outside", "a table that ends behind the text", jump(0xff4) + ["@ 0x100", RET] + table([0x100, 0x100], 0xff4), rule=place)
    case(D, "table in data", "a table in the data page", jump(0x1004) + four, rule=place)
    case(D, "table before text", "a table in front of the text", jump(-0x100) + four, rule=place)
    case(D, "table half before text", "a table that begins in front of the text", jump(-8) + four, rule=place)
    case(D, "table next function", "a table in the next function", jump(0x10c) + ["@ 0x20", RET, "@ 0x100", MARK] + table([0x20] * 4, 0x10c) + [RET], rule=place)
    case(D, "table half next function", "a table whose end is in the next function", jump(mask="andl $1, %eax") + ["@ 0x20", RET] + table([0x20], 0x44) + [MARK, RET], rule=place)
    case(D, "table function before", "a table in the function before", [RET] + table([0x140] * 4) + ["@ 0x100", MARK] + jump() + ["@ 0x140", RET], rule=place)
    # Identifiers are written after the rest when code is added to a living domain: what is read there is another number until then.
    over = [("05 00 00 00 00", "addl $0, %eax")]
    case(D, "table over identifier", "a distance with bytes of the function's own identifier", [RET, "@ 0x100", MARK] + over + jump(0x107, "andl $0, %eax") + ["@ 0x669", RET], rule=place)
    case(D, "table over label", "a distance with bytes of a label's identifier", jump(0x107, "andl $0, %eax") + ["@ 0x100", label(7)] + over + [RET, "@ 0x669", RET], rule=place)
    case(D, "table before identifier", "a distance that ends where a label's marker begins", jump(0xfc, "andl $0, %eax") + ["@ 0xfb", ("b8 0c 00 00 00", "movl $0xc, %eax"), label(7), RET])
    case(D, "table behind identifier", "a distance that begins where a label's marker ends", jump(0x108, "andl $0, %eax") + ["@ 0x100", label(7)] + over[:1] + [RET])

    # into the sequence
    into = "4 IntoSequence"
    for name, at in (("table", 9), ("sum", 16), ("addq", 22), ("jump", 25)):
        case(D, f"table into {name}", f"a jump to the {name} of the sequence", ["jmp TEXT+6", "@ 0x6"] + jump() + four + ["@ 0x180", f"jmp TEXT+{at}"], rule=into)
        case(D, f"table entry {name}", f"an entry inside the sequence, at its {name}", ["jmp TEXT+6", "@ 0x6"] + jump() + four, rule=into, entries=f"0x1000 {0x1000 + at:#x}")
    case("rule-6", "hidden in table", "a distance that looks like an identifier", jump(mask="andl $0, %eax") + ["@ 0x40", ("0f 1f 84 40 01 00 9a 62", "nopl 0x629a0001(%rax,%rax,2)"), RET], rule="6 HiddenIdentifier")
