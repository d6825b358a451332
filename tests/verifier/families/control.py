"""Rules 4 to 6: jumps, the checked sequence, identifiers."""

from families.common import MARK, RDI, RET, RSI, case, cases, checked, label


def rule4():
    d = "rule-4"
    bad = lambda name, what, code, rule, at=None, **h: case(d, name, what, code, f"4 {rule}", at, **h)
    ok = lambda name, what, code, **h: case(d, name, what, code, **h)
    bad("jmp-into-immediate", "jump into the middle of an instruction, which hides a syscall", ["jmp 1f+1", "1: movl $0xc3050f, %eax", RET], "JumpTarget", 0x1000)
    bad("jcc-into-immediate", "conditional jump into the middle of an instruction", ["je 1f+1", "1: movl $0xc3050f, %eax", RET], "JumpTarget", 0x1000)
    bad("call-into-immediate", "call into the middle of an instruction", ["call 1f+1", "1: movl $0xc3050f, %eax", RET], "EntryTarget", 0x1006)
    bad("jmp-behind-prefix", "jump behind the gs prefix of a load", ["jmp 1f+1", "1: movl %gs:(%edi), %eax", RET], "JumpTarget", 0x1000)
    bad("jmp-behind-lock", "jump behind a lock prefix", ["jmp 1f+1", "1: lock incl %gs:(%edi)", RET], "JumpTarget", 0x1000)
    bad("jmp-into-itself", "jump into its own displacement", [("eb ff", "jmp to its own second byte"), RET], "JumpTarget", 0x1000)
    bad("jcc32-into-itself", "long conditional jump into its own displacement", [("0f 84 fc ff ff ff", "je to its own third byte"), RET], "JumpTarget", 0x1000)
    for name, target in [("before-text", "TEXT-1"), ("far-before", "TEXT-0x1000000"), ("behind-text", "TEXT+0x1000"), ("data", "TEXT+0x1800"), ("far-behind", "TEXT+0x1000000"), ("most-negative", "TEXT-0x7ffffff0")]:
        bad(f"jmp-{name}", f"jump {name}", [f"jmp {target}"], "JumpTarget", 0x1000)
        bad(f"jcc-{name}", f"conditional jump {name}", [f"jne {target}", RET], "JumpTarget", 0x1000)
        bad(f"call-{name}", f"call {name}", [f"call {target}", RET], "CallTarget", 0x1000)
    bad("unreachable-jmp-outside", "jumps that nothing reaches must land properly too", [RET, "jmp TEXT+0x100000"], "JumpTarget", 0x1001)
    bad("unreachable-jmp-into-immediate", "the same into an instruction", [RET, "jmp 1f+1", "1: movl $0xc3050f, %eax"], "JumpTarget", 0x1001)
    bad("before-first-entry", "jumps before the first entry must land properly too", ["jmp 1f+1", "1: movl $0xc3050f, %eax", "@ 0x20", RET], "JumpTarget", 0x1000, entries="0x1020")
    bad("jmp-into-other-function", "jump into the middle of another function", ["jmp 1f", "@ 0x20", MARK, "nop", "1: ret"], "JumpTarget", 0x1000)
    bad("jmp-back-into-other-function", "jump back into the middle of another function", ["nop", "1: ret", "@ 0x20", MARK, "jmp 1b"], "JumpTarget", 0x1028)
    bad("jmp-to-unmarked-behind-function", "jump over another function's entry to code behind it", ["jmp 1f", "@ 0x10", MARK, RET, "1: ret"], "JumpTarget", 0x1000)
    ok("tail-call-marked", "tail call to a marked function", ["jmp 1f", "@ 0x20", "1: " + MARK, RET], report="functions=2")
    ok("tail-call-conditional", "conditional tail call", ["je 1f", RET, "@ 0x20", "1: " + MARK, RET])
    ok("tail-call-called", "tail call to a function that is known by a direct call only", ["je 1f", "call 1f", RET, "@ 0x20", "1: ret"], report="functions=2")
    ok("tail-call-listed", "tail call to an entry from the list", ["jmp 1f", "@ 0x20", "1: ret"], entries="0x1000 0x1020", report="functions=2")
    bad("tail-call-behind-marker", "tail call just behind a marker", ["jmp 1f+8", "@ 0x20", "1: " + MARK, RET], "JumpTarget", 0x1000)
    ok("jmp-own-label", "jumps inside one function, forward and backward, near and short", ["jmp 1f", "2: ret", "@ 0x200", "1: jmp 2b"])
    ok("call-itself", "recursion", ["call TEXT", RET])
    ok("call-forward", "call of an unmarked function", ["call 1f", RET, "@ 0x20", "1: ret"], report="functions=2")
    bad("call-next-instruction", "call of the next instruction, which would fall into it", ["call 1f", "1: ret"], "FallsOff", 0x1000)
    bad("call-splits-function", "a call into the middle of a function makes it an entry, and what precedes it falls off", ["nop", "1: nop", "call 1b", RET], "FallsOff", 0x1000)
    for n in [0, 1, 15, 16, 4095]:
        ok(f"stub-{n}", f"call of gate stub {n}", [f"call TEXT-0x101000+0x20000+{32 * n}", RET])
    for n, off in [("middle", 1), ("behind-marker", 8), ("before-first", -32), ("behind-last", 32 * 4096), ("last-byte", 32 * 4096 - 1), ("jump-of-stub", 13)]:
        bad(f"stub-{n}", f"call of a wrong place in or around the stubs: {n}", [f"call TEXT-0x101000+0x20000+{off}", RET], "CallTarget", 0x1000)
    bad("stub-jmp", "jump to a stub: stubs are called, not jumped to", ["jmp TEXT-0x101000+0x20000"], "JumpTarget", 0x1000)
    bad("stub-unknown-image-offset", "stub call where the image's place is unknown", ["call TEXT-0x101000+0x20000", RET], "CallTarget", 0x1000, image_offset="unknown")
    bad("stub-other-image-offset", "the same distance in an image elsewhere", ["call TEXT-0x101000+0x20000", RET], "CallTarget", 0x1000, image_offset="0x200010")
    ok("stub-image-offset", "stub call from an image elsewhere", ["call TEXT-0x201000+0x20000", RET], image_offset="0x200000")
    bad("header-call", "call of the header page", ["call TEXT-0x101000+0x10000", RET], "CallTarget", 0x1000)
    bad("call-wraps", "call that would reach a stub only if addresses wrapped at 4 GiB", [("e8 fb ef f1 7f", "call far up"), RET], "CallTarget", 0x1000)
    bad("falls-off-end-of-text", "the text ends without control having ended", ["nop"], "FallsOff", padding="none", entries="0x1000")
    bad("falls-off-into-function", "control runs into the next function", [("0f 1f 84 00 00 00 00 00", "nopl"), MARK, RET], "FallsOff", 0x1000)
    bad("falls-off-after-call", "a call that should not return at the end of a function", [("0f 1f 40 00", "nopl"), ("0f 1f 00", "nopl"), "push %rax", ("0f 1f 44 00 00", "nopl"), ("66 90", "nop"), ("90", "nop"), ("0f 1f 00", "nopl"), "call TEXT", MARK, RET], "FallsOff", 0x1013)
    bad("falls-off-after-jcc", "a conditional jump at the end of a function", [("0f 1f 80 00 00 00 00", "nopl"), ("0f 1f 80 00 00 00 00", "nopl"), ("75 f0", "jne to the start"), MARK, RET], "FallsOff", 0x100e)
    bad("falls-off-after-indirect-call", "a checked call at the end of a function", [("0f 1f 40 00", "nopl"), ("0f 1f 40 00", "nopl")] + checked("call") + [MARK, RET], "FallsOff", 0x101d)
    bad("falls-off-into-called", "control runs into a function that is known by a call only", ["nop", "1: push %rax", "pop %rax", RET, "call 1b", RET], "FallsOff", entries="0x1000")  # the call is unreachable: still an entry
    ok("padding-nops-before-function", "unreachable padding before a function", [RET, ("0f 1f 80 00 00 00 00", "nopl"), MARK, RET], report="functions=2")
    ok("padding-int3", "unreachable int3", [RET, "@ 0x10", MARK, RET])
    bad("runs-past-padding", "reachable no-ops run into the next function", [("0f 1f 80 00 00 00 00", "nopl"), ("90", "nop"), MARK, RET], "FallsOff", 0x1007)
    case(d, "no-entries", "text without any entry: nothing can be reached", [RET], entries="")
    bad("entry-inside-instruction", "an entry from the list inside an instruction", ["movl $0x90909090, %eax", RET], "EntryTarget", 0x1002, entries="0x1002")
    bad("entry-before-text", "an entry outside the text", [RET], "EntryTarget", entries="0xfff")
    bad("entry-behind-text", "an entry behind the text", [RET], "EntryTarget", entries="0x2000")
    seq = checked("jmp")
    for n, (off, name) in enumerate([(4, "cmp"), (14, "cmov"), (18, "add"), (21, "jmp")]):
        bad(f"into-sequence-{name}", f"jump to the {name} of the checked sequence", ["nop", f"je TEXT+{3 + off:#x}"] + seq, "IntoSequence", 0x1001)
        bad(f"into-sequence-{name}-called", f"call of the {name} of the checked sequence", ["nop", "je 1f"] + seq + [f"1: call TEXT+{3 + off:#x}", RET], "IntoSequence", 0x1003 + off)
        bad(f"into-sequence-{name}-listed", f"an entry from the list at the {name} of the checked sequence", seq, "IntoSequence", 0x1000 + off, entries=f"0x1000 {0x1000 + off:#x}")
    ok("to-sequence-start", "jump to the first instruction of the checked sequence", ["je 1f", "movl %eax, %r11d", "1: andl $-8, %r11d"] + seq[1:])
    for op, pairs, name in [("rep movsb", RDI + RSI, "movs"), ("rep stosb", RDI, "stos"), ("lodsb", RSI, "lods")]:
        offsets = [2, 6, 8, 12][: len(pairs)]
        for off in offsets:
            bad(f"into-string-{name}-{off}", f"jump into the fixed sequence of {op}, byte {off}", [f"je TEXT+{2 + off:#x}"] + pairs + [op, RET], "IntoSequence", 0x1000)
    ok("to-string-start", "jump to the first instruction of a string sequence", ["1: nop", "2: movl %edi, %edi", RDI[1], "stosb", "jne 2b", RET])


def rule5():
    d = "rule-5"
    ok = lambda name, what, code, **h: case(d, name, what, code, **h)
    bad = lambda name, what, code, rule, at=None, **h: case(d, name, what, code, rule, at, **h)
    ok("tail-call", "checked tail call at depth 0", ["movl %eax, %r11d"] + checked("jmp"), report="depth=0")
    ok("call", "checked call", ["movl %eax, %r11d"] + checked("call") + [RET])
    ok("call-deep", "checked call with pushed registers", ["push %rbx", "movl %gs:8(%edi), %r11d"] + checked("call") + ["pop %rbx", RET])
    ok("without-movl", "what r11 holds before does not matter", checked("call") + [RET])
    ok("label-jump", "checked jump to a label of the same function", checked("jmp", 0x629A0001) + ["@ 0x18", label(1), RET], report="labels=1")
    bad("label-call", "checked call with a label's identifier", checked("call", 0x629A0001) + [RET, "@ 0x20", label(1), RET], "5 CallIdentifier", 0x1015)
    bad("label-missing", "jump to a label identifier that nothing carries", checked("jmp", 0x629A0001), "5 UnknownLabel", 0x1015)
    bad("label-foreign", "jump to labels of another function", checked("jmp", 0x629A0001) + ["@ 0x18", MARK, RET, "@ 0x28", label(1), RET], "5 ForeignLabel", 0x1015)
    bad("label-foreign-before", "jump to labels of an earlier function", ["@ 0x0", RET, "@ 0x8", label(1), RET, "@ 0x20", MARK] + checked("jmp", 0x629A0001), "5 ForeignLabel", 0x103d)
    bad("label-not-ours", "jump with a label number that belongs to another module", checked("jmp", 0x629A1000) + ["@ 0x18"], "5 SequenceIdentifier", 0x1015)
    for name, ident in [("zero", 0), ("minus-one", 0xFFFFFFFF), ("prefix-only", 0x629A0000), ("prefix-twice", 0x629A629A), ("close", 0x629B0001), ("code", 0x90909090)]:
        bad(f"compare-with-{name}", f"compare with {ident:#x}, which is no identifier", checked("call", ident) + [RET], "5 SequenceIdentifier", 0x1015)
    # Every byte of the sequence changed in its lowest bit and in bit 3.
    bytes_ = bytes.fromhex("4183e3f8 65674181 7b04ffff 9a62450f 45de4d01 f341ffe3".replace(" ", ""))
    names = ["andl"] * 4 + ["cmpl"] * 10 + ["cmovnel"] * 4 + ["addq"] * 3 + ["jmp"] * 3
    for i in range(24):
        if 10 <= i < 14:
            continue
        for bit in (0, 3):
            b = bytearray(bytes_)
            b[i] ^= 1 << bit
            code = [(b.hex(" "), f"the sequence with byte {i} (of {names[i]}) changed"), RET]
            if (i, bit) == (22, 3):
                ok("byte-22-bit-3", "checked jump with bit 3 of byte 22 flipped: no jump any more, but mull %r11d", code)
                continue
            cases[f"{d}/byte-{i:02}-bit-{bit}.case"] = ([f"what: checked jump with bit {bit} of byte {i} flipped", "verdict: reject", "rule: any"], code)
    whole = checked("call")
    for i, part in enumerate(["andl", "cmpl", "cmovnel", "addq"]):
        bad(f"missing-{part}", f"checked call without the {part}", whole[:i] + whole[i + 1:] + [RET], "5 BareIndirect")
        bad(f"nop-before-{part}" if i else "nop-inside-after-andl", f"checked call with a no-op {'before the ' + part if i else 'after the andl'}", whole[:max(i, 1)] + [("90", "nop")] + whole[max(i, 1):] + [RET], "5 BareIndirect") if i != 1 else None
        bad(f"twice-{part}", f"checked call with the {part} twice", whole[:i + 1] + [whole[i]] + whole[i + 1:] + [RET], "5 BareIndirect") if i else ok("twice-andl", "a second andl in front does no harm", [whole[0]] + whole + [RET])
    bad("nop-before-call", "checked call with a no-op before the call itself", whole[:4] + [("90", "nop"), whole[4], RET], "5 BareIndirect")
    bad("swapped", "cmov before cmp", [whole[0], whole[2], whole[1], whole[3], whole[4], RET], "5 BareIndirect")
    bad("two-jumps", "a second jump after the sequence's end", checked("jmp") + ["jmp *%r11"], "5 BareIndirect", 0x1018)
    bad("second-call-reuses", "a second call that reuses the checked r11", checked("call") + ["call *%r11", RET], "5 BareIndirect", 0x1018)
    for reg in ["rax", "rcx", "rdi", "r8", "r10", "r12", "r14"]:
        bad(f"bare-jmp-{reg}", f"jump through {reg}", [f"jmp *%{reg}"], "5 BareIndirect", 0x1000)
    bad("bare-call-r11", "call through r11 without check", ["call *%r11", RET], "5 BareIndirect", 0x1000)
    bad("bare-jmp-r11", "jump through r11 without check", ["jmp *%r11"], "5 BareIndirect", 0x1000)
    for ins in ["jmp *%gs:(%edi)", "call *%gs:(%edi)", "jmp *TEXT+0x1000(%rip)", "call *TEXT+0x1000(%rip)", "jmp *(%rdi)", "call *(%rdi)"]:
        bad(f"memory-{ins}", f"target from memory: {ins}", [ins, RET], "5 BareIndirect", 0x1000)
    for code, what in [("66 41 ff e3", "jmp *%r11 with 66"), ("f2 41 ff e3", "bnd jmp *%r11"), ("3e 41 ff e3", "notrack jmp *%r11"), ("49 ff e3", "jmp *%r11 with REX.W")]:
        rule = {"66": "8 Prefix", "f2": "8 Prefix", "3e": "8 Prefix", "49": "8 RexUse"}[code[:2]]
        bad(f"prefixed-{code}", f"the sequence ends in {what}", checked("jmp")[:4] + [(code, what)], rule, 0x1015)
    bad("other-register", "the same sequence with r10", ["andl $-8, %r10d", "cmpl $0x629affff, %gs:4(%r10d)", "cmovnel %r14d, %r10d", "addq %r14, %r10", "jmp *%r10"], "5 BareIndirect")
    bad("conditional-jump", "a conditional jump in place of cmov: leaks by speculation", [whole[0], whole[1], "jne 1f", whole[3], "call *%r11", "1: ret"], "5 BareIndirect")
    bad("mask-7", "aligned to 4 only", [("41 83 e3 fc", "andl $-4, %r11d")] + whole[1:] + [RET], "5 BareIndirect")
    bad("and-imm32", "andl in its long form", [("41 81 e3 f8 ff ff ff", "andl $-8, %r11d")] + whole[1:] + [RET], "5 BareIndirect")
    bad("split-by-function", "a function's entry inside the sequence", checked("jmp"), "4 IntoSequence", 0x1004, entries="0x1000 0x1004")
    # r14 written by every encoding
    for ins in """movq %rax, %r14|movl %eax, %r14d|movw %ax, %r14w|movb %al, %r14b|movq $0, %r14|movl $0, %r14d|movb $1, %r14b|movabsq $0x123456789, %r14|xorl %r14d, %r14d|addq $1, %r14|addl $1, %r14d|addb $1, %r14b|
incq %r14|decl %r14d|negq %r14|notq %r14|leaq (%rdi), %r14|leal (%rdi), %r14d|leaq 0(%r14), %r14|xchgq %rax, %r14|xchgq %r14, %rcx|xchgl %ecx, %r14d|xchgb %cl, %r14b|cmovzq %rax, %r14|cmovnel %eax, %r14d|movzbl %al, %r14d|movsbq %al, %r14|movslq %eax, %r14|
pop %r14|imulq %rax, %r14|imulq $3, %rax, %r14|imull $1000, %eax, %r14d|shlq $1, %r14|sarl $3, %r14d|rolw %cl, %r14w|shldq $3, %rax, %r14|shrdq %cl, %rax, %r14|bswapq %r14|bswapl %r14d|sete %r14b|btsq $3, %r14|btrq %rax, %r14|btcl %eax, %r14d|bsfq %rax, %r14|bsrl %eax, %r14d|
popcntq %rax, %r14|lzcntl %eax, %r14d|tzcntq %rax, %r14|xaddq %r14, %rax|xaddq %rax, %r14|xaddq %r14, %gs:(%edi)|xchgq %r14, %gs:(%edi)|cmpxchgq %rax, %r14|crc32q %rax, %r14|crc32b %al, %r14d|movq %xmm0, %r14|movd %xmm0, %r14d|cvttsd2si %xmm0, %r14|cvtss2si %xmm0, %r14d|pmovmskb %xmm0, %r14d|
movmskps %xmm0, %r14d|pextrw $1, %xmm0, %r14d|pextrb $1, %xmm0, %r14d|pextrq $1, %xmm0, %r14|extractps $1, %xmm0, %r14d|vmovq %xmm0, %r14|vpextrw $1, %xmm0, %r14d|vpmovmskb %ymm0, %r14d|vcvttsd2si %xmm0, %r14|andnq %rax, %rcx, %r14|bextrq %rax, %rcx, %r14|blsrq %rax, %r14|blsmskl %eax, %r14d|blsiq %rax, %r14|bzhiq %rax, %rcx, %r14|
mulxq %rax, %r14, %rcx|mulxq %rax, %rcx, %r14|pdepq %rax, %rcx, %r14|pextq %rax, %rcx, %r14|rorxq $3, %rax, %r14|sarxq %rax, %rcx, %r14|shlxq %rax, %rcx, %r14|shrxq %rax, %rcx, %r14|adcxq %rax, %r14|adoxq %rax, %r14|movq %gs:(%edi), %r14|movl %gs:(%edi), %r14d|movb %gs:(%edi), %r14b|movbe %gs:(%edi), %r14|adcq $0, %r14|sbbq %r14, %r14|andl $-1, %r14d|orq %rax, %r14""".replace("\n", "").split("|"):
        bad(f"r14-{ins}", f"writes r14: {ins}", [ins, RET], "5 WindowBase", 0x1000) if not ins.startswith("pop ") else bad(f"r14-{ins}", f"writes r14: {ins}", ["push %rax", ins, RET], "5 WindowBase", 0x1001)
    for ins in ["movq %r14, %rax", "addq %r14, %rax", "cmpq %r14, %rax", "testq %r14, %r14", "leaq 8(%r14,%rax), %rcx", "movq %r14, %gs:(%edi)", "cmovzq %r14, %rax", "btq %r14, %rax", "cmpq $0, %r14", "btq $3, %r14", "mulq %r14", "cvtsi2sdq %r14, %xmm0", "movq %r14, %xmm0", "andnq %r14, %r14, %rax", "movl %gs:(%r14d), %eax", "cmpxchgq %r14, %gs:(%edi)", "shldq $1, %r14, %rax", "testb $1, %r14b"]:
        ok(f"r14-read-{ins}", f"reads r14, which is allowed: {ins}", [ins, RET])
    ok("r14-push", "pushing r14 is reading it", ["push %r14", "pop %rax", RET])


def rule6():
    d = "rule-6"
    ok = lambda name, what, code, **h: case(d, name, what, code, **h)
    bad = lambda name, what, code, rule, at=None, **h: case(d, name, what, code, rule, at, **h)
    ok("function-marker", "a function's marker is an entry", [RET, "@ 0x10", MARK, RET], report="functions=2 no-marked")
    ok("marked-entry", "marker at an entry of the list", [MARK, RET], report="functions=1 marked")
    ok("label-at-entry", "a label's marker at a function's first instruction: no marker of a function", [label(1), RET], report="functions=1 labels=1 no-marked")
    ok("marker-behind-entry", "a function's marker behind another function's end makes only its own function a marked one", [RET, "@ 0x10", MARK, RET, "@ 0x20", MARK, RET], report="functions=3 no-marked")
    hid = "6 HiddenIdentifier"
    bad("in-mov-immediate", "identifier of functions in an immediate at an address = 4 mod 8", [("0f 1f 00", "nopl"), ("b8 ff ff 9a 62", "movl $0x629affff, %eax"), RET], hid, 0x1004)
    bad("label-in-mov-immediate", "a label's identifier in an immediate at an address = 4 mod 8", [("0f 1f 00", "nopl"), ("b8 01 00 9a 62", "movl $0x629a0001, %eax"), RET], hid, 0x1004)
    bad("in-displacement", "identifier in a displacement", [("66 90", "nop"), ("8d 80 ff ff 9a 62", "leal 0x629affff(%rax), %eax"), RET], hid, 0x1004)
    bad("in-confined-displacement", "identifier in the displacement of a confined load", [("65 67 8b 80 01 00 9a 62", "movl %gs:0x629a0001(%eax), %eax"), RET], hid, 0x1004)
    bad("in-movabs-low", "identifier in the lower half of a 64-bit immediate", [("66 90", "nop"), ("48 b8 ff ff 9a 62 00 00 00 00", "movabsq $0x629affff, %rax"), RET], hid, 0x1004)
    bad("in-movabs-high", "identifier in the upper half of a 64-bit immediate", [("66 90", "nop"), ("0f 1f 40 00", "nopl"), ("48 b8 00 00 00 00 ff ff 9a 62", "movabsq $0x629affff00000000, %rax"), RET], hid, 0x100c)
    bad("across-instructions", "the only instruction that could start with the prefix's second byte is refused", [("0f 1f 40 00", "nopl"), ("90", "nop"), ("b4 9a", "movb $0x9a, %ah"), ("62 f1 7c 48 28 c1", "vmovaps %zmm1, %zmm0")], "8 Evex", 0x1007)
    bad("across-data-bytes", "prefix that spans two immediates of one instruction", [("65 67 c7 00 ff ff 9a 62", "movl $0x629affff, %gs:(%eax)"), RET], hid, 0x1004)
    bad("spans-displacement-and-immediate", "half in a displacement, half in an immediate", [("0f 1f 80 00 00 00 00", "nopl"), ("65 67 c7 80 00 00 00 9a 62 00 00 00", "movl $0x62, %gs:-0x66000000(%eax)"), RET], hid, 0x100c)
    ok("in-immediate-elsewhere", "the same immediate at an address that is not 4 mod 8", [("b8 ff ff 9a 62", "movl $0x629affff, %eax"), RET])
    ok("in-immediate-0-mod-8", "the same immediate at an address = 0 mod 8", [("0f 1f 80 00 00 00 00", "nopl"), ("b8 ff ff 9a 62", "movl $0x629affff, %eax"), RET])
    bad("wrong-base-register", "like a marker, with another base register", [("0f 1f 84 01 ff ff 9a 62", "nopl 0x629affff(%rcx,%rax,1)"), RET], hid, 0x1004)
    bad("wrong-scale", "like a marker, with another scale", [("0f 1f 84 40 ff ff 9a 62", "nopl 0x629affff(%rax,%rax,2)"), RET], hid, 0x1004)
    bad("lea-like-marker", "lea in the shape of a marker", [("90", "nop"), ("8d 84 00 ff ff 9a 62", "leal 0x629affff(%rax,%rax,1), %eax"), RET], hid, 0x1004)
    ok("marker-with-prefix", "66 in front moves the identifier: not a marker, and not at 4 mod 8", [("66 0f 1f 84 00 ff ff 9a 62", "nopw 0x629affff(%rax,%rax,1)"), RET], report="functions=1 no-marked")
    ok("marker-misaligned", "a marker's bytes at an address that is 4 mod 8: a plain no-op", [("0f 1f 40 00", "nopl"), ("0f 1f 84 00 ff ff 9a 62", "nopl 0x629affff(%rax,%rax,1)"), RET], report="functions=1 no-marked")
    ok("marker-odd", "a marker's bytes at an odd address: a plain no-op", [("90", "nop"), ("0f 1f 84 00 01 00 9a 62", "nopl 0x629a0001(%rax,%rax,1)"), RET], report="functions=1 labels=0")
    bad("marker-reached", "control falls into a function's marker", [("0f 1f 84 00 00 00 00 00", "nopl"), MARK, RET], "4 FallsOff", 0x1000)
    bad("marker-reached-by-jump-deep", "jump to a function's marker inside what was meant as one function", ["push %rax", "jmp 1f", "@ 0x10", "1: " + MARK, "pop %rax", RET], "3 TailCallDepth", 0x1001)
    bad("marker-inside-instruction", "a whole marker inside a 64-bit immediate: a hidden entry", [("0f 1f 44 00 00", "nopl"), ("90", "nop"), ("48 b8 0f 1f 84 00 ff ff 9a 62", "movabsq $0x629affff00841f0f, %rax"), RET], hid, 0x100c)
    # A long text is taken in two parts, the second from the first function's marker in its second half on.
    middle = ("48 b8 0f 1f 84 00 ff ff 9a 62", "movabsq $0x629affff00841f0f, %rax")
    bad("marker-inside-instruction-in-the-middle", "a whole marker inside a 64-bit immediate, where a page has its second half", [RET, "@ 0x806", middle, RET], hid, 0x180c)
    bad("marker-inside-instruction-in-the-middle-of-two-pages", "the same where the text has two pages", [RET, "@ 0x1006", middle, RET, "@ 0x1ff0", RET], hid, 0x200c)
    ok("marker-in-the-middle", "a function that begins where a page has its second half, with jumps and calls between both halves", ["1: call 2f", "jmp 2f", "@ 0x808", "2: " + MARK, "testl %eax, %eax", "jne 1b", RET], report="functions=2")
    bad("held-over-the-middle", "what r11 holds is lost at a marker where a page has its second half", ["@ 0x805", "movl %eax, %r11d", MARK, "movl (%r14,%r11), %eax", RET], "1 NotHeld", 0x1810)
    for n, ident in [("0", 0), ("prefix", 0x629A), ("above-range", 0x1000), ("largest", 0xFFFE)]:
        bad(f"marker-number-{n}", f"marker with label number {ident:#x}, which this module may not use", [RET, "@ 0x8", label(ident), RET], "6 MarkerIdentifier", 0x1008)
    ok("marker-number-first", "marker with the first label number", [RET, "@ 0x8", label(1), RET], report="labels=1")
    ok("marker-number-last", "marker with the last label number of the range", [RET, "@ 0x8", label(0xFFF), RET], report="labels=1")
    ok("marker-number-range", "label numbers of a module that was given others", checked("jmp", 0x629A2000) + ["@ 0x18", label(0x2000), RET], labels="0x2000 0x2fff")
    bad("marker-number-below-range", "a number below the module's range", [RET, "@ 0x8", label(1), RET], "6 MarkerIdentifier", 0x1008, labels="0x2000 0x2fff")
    bad("compare-number-below-range", "a compare with a number below the module's range", checked("jmp", 0x629A0001), "5 SequenceIdentifier", 0x1015, labels="0x2000 0x2fff")
    bad("no-labels-at-all", "a label in a module without label numbers", [RET, "@ 0x8", label(1), RET], "6 MarkerIdentifier", 0x1008, labels="1 0")
    bad("number-prefix-in-range", "label number 0x629a is never used, though in the range", [RET, "@ 0x8", label(0x629A), RET], "6 MarkerIdentifier", 0x1008, labels="1 0xfffe")
    bad("number-ffff-as-label", "a jump's compare with number 0 of the prefix", checked("jmp", 0x629A0000), "5 SequenceIdentifier", 0x1015, labels="0 0xffff")
    bad("shared-label", "one label identifier in two functions", checked("jmp", 0x629A0001) + ["@ 0x18", label(1), RET, "@ 0x28", MARK, RET, "@ 0x38", label(1), RET], "6 SharedLabel", 0x1038)
    bad("shared-label-unused", "the same where no jump names it", [RET, "@ 0x8", label(1), RET, "@ 0x18", MARK, RET, "@ 0x28", label(1), RET], "6 SharedLabel", 0x1028)
    bad("compare-at-4-mod-8", "the compare's identifier at an address = 4 mod 8", [("66 90", "nop")] + checked("call") + [RET], hid, 0x100c)
    ok("compare-elsewhere", "the compare's identifier at other addresses", [("90", "nop")] + checked("call") + [RET])
    bad("in-padding", "identifier in unreachable code", [RET, "@ 0x13", ("a9 05 00 9a 62", "testl $0x629a0005, %eax"), RET], hid, 0x1014)
    bad("jump-distance", "the distance of a jump reads as an identifier", [("0f 1f 00", "nopl"), ("e9 01 00 9a 62", "jmp far up")], hid, 0x1004)
    bad("call-distance", "the distance of a call reads as an identifier", [("0f 1f 00", "nopl"), ("e8 01 00 9a 62", "call far up"), RET], "4 CallTarget", 0x1003)
    bad("rip-displacement", "the displacement of a RIP-relative lea reads as an identifier", [("90", "nop"), ("48 8d 05 01 00 9a 62", "leaq 0x629a0001(%rip), %rax"), RET], hid, 0x1004)
    bad("one-off-the-end", "identifier in the last dword of the text", [RET, "@ 0xffb", ("a9 01 00 9a 62", "testl $0x629a0001, %eax")], hid, 0x1ffc)


def write():
    """All of them."""
    rule4()
    rule5()
    rule6()
