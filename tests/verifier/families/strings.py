"""Rules 7 and 9: string instructions, bit strings, implicit addresses."""

from families.common import RDI, RET, RSI, case

STRINGS = [("movsb", "a4", "rdi rsi"), ("movsl", "a5", "rdi rsi"), ("cmpsb", "a6", "rdi rsi"), ("cmpsl", "a7", "rdi rsi"), ("stosb", "aa", "rdi"), ("stosl", "ab", "rdi"),
           ("lodsb", "ac", "rsi"), ("lodsl", "ad", "rsi"), ("scasb", "ae", "rdi"), ("scasl", "af", "rdi")]


def rule7():
    d = "rule-7"
    for name, op, regs in STRINGS:
        pairs = (RDI if "rdi" in regs else []) + (RSI if "rsi" in regs else [])
        at = 0x1000 + 6 * len(regs.split())
        bare = "7 BareString"
        case(d, f"{name}-good", f"{name} after its pointers were rebuilt", pairs + [(op, name), RET])
        case(d, f"{name}-rep", f"rep {name}", pairs + [("f3 " + op, f"rep {name}"), RET])
        cmp_ = name[:4] in ("cmps", "scas")
        case(d, f"{name}-repne", f"repne {name}" + ("" if cmp_ else ": undefined"), pairs + [("f2 " + op, f"repne {name}"), RET], None if cmp_ else "8 Prefix", None if cmp_ else at)
        case(d, f"{name}-bare", f"{name} alone", [(op, name), RET], bare, 0x1000)
        case(d, f"{name}-bare-integrity", f"{name} alone, integrity mode", [(op, name), RET], bare, 0x1000, isolation="integrity")
        case(d, f"{name}-addr32", f"{name} with 32-bit address size: it would truncate the pointers", pairs + [("67 " + op, f"{name} with 67"), RET], "1 AddressPrefix", at)
        case(d, f"{name}-gs", f"{name} with gs", pairs + [("65 " + op, f"{name} with gs"), RET], "1 AddressPrefix", at)
        case(d, f"{name}-gs-addr32", f"{name} with gs and address size", pairs + [("65 67 " + op, f"{name} with gs and 67"), RET], "1 AddressPrefix", at)
        case(d, f"{name}-gap", f"{name} with an instruction between", pairs + [("90", "nop"), (op, name), RET], bare, at + 1)
        case(d, f"{name}-lock", f"lock {name}", pairs + [("f0 " + op, f"lock {name}"), RET], "8 Lock", at)
        case(d, f"{name}-twice", f"{name} twice after one rebuild: the pointers have moved", pairs + [(op, name), (op, name), RET], bare, at + 1)
        if op[1] in "57bdf":
            case(d, f"{name}-64", f"{name} with 64-bit operands", pairs + [("48 " + op, f"{name} with REX.W"), RET])
            case(d, f"{name}-16", f"{name} with 16-bit operands", pairs + [("66 " + op, f"{name} with 66"), RET])
            case(d, f"{name}-rep-64", f"rep {name} with 64-bit operands", pairs + [("f3 48 " + op, f"rep {name} with REX.W"), RET])
    both = [("f3 a4", "rep movsb"), RET]
    bad = lambda name, what, code, at=None: case(d, name, what, code, "7 BareString", at)
    bad("movs-rdi-only", "movs with only rdi rebuilt", RDI + both)
    bad("movs-rsi-only", "movs with only rsi rebuilt", RSI + both)
    bad("movs-other-order", "rsi rebuilt before rdi: one order is enough", RSI + RDI + both)
    bad("stos-rsi", "stos with rsi rebuilt instead of rdi", RSI + [("aa", "stosb"), RET], 0x1006)
    bad("lods-rdi", "lods with rdi rebuilt instead of rsi", RDI + [("ac", "lodsb"), RET], 0x1006)
    bad("scas-rsi", "scas with rsi rebuilt instead of rdi", RSI + [("ae", "scasb"), RET], 0x1006)
    bad("no-mov", "upper half of rdi not cleared", [RDI[1], ("aa", "stosb"), RET], 0x1004)
    bad("no-lea", "base not added", [RDI[0], ("aa", "stosb"), RET], 0x1002)
    bad("mov-64", "movq in place of movl", ["movq %rdi, %rdi", RDI[1], ("aa", "stosb"), RET], 0x1007)
    bad("mov-16", "movw in place of movl", ["movw %di, %di", RDI[1], ("aa", "stosb"), RET], 0x1007)
    bad("mov-from-esi", "movl from another register", ["movl %esi, %edi", RDI[1], ("aa", "stosb"), RET], 0x1006)
    bad("lea-disp", "lea with a displacement", [RDI[0], "leaq 8(%r14,%rdi), %rdi", ("aa", "stosb"), RET], 0x1007)
    bad("lea-scale", "lea with a scale", [RDI[0], "leaq (%r14,%rdi,2), %rdi", ("aa", "stosb"), RET], 0x1006)
    bad("lea-32", "lea with a 32-bit result", [RDI[0], "leal (%r14,%rdi), %edi", ("aa", "stosb"), RET], 0x1006)
    bad("lea-r13", "lea with another base", [RDI[0], "leaq (%rdi,%r12), %rdi", ("aa", "stosb"), RET], 0x1006)
    bad("hidden-in-immediate", "the sequence's bytes inside an immediate do not count", [("90", "nop"), ("48 b8 90 90 89 ff 49 8d 3c 3e", "movabsq $0x3e3c8d49ff899090, %rax"), ("aa", "stosb"), RET], 0x100b)
    bad("half-hidden", "the movl is the end of another instruction", [("66 b8 89 ff", "movw $0xff89, %ax"), RDI[1], ("aa", "stosb"), RET], 0x1008)
    case(d, "mov-other-encoding", "movl %edi, %edi in its other encoding: one is enough", [("8b ff", "movl %edi, %edi"), RDI[1], ("aa", "stosb"), RET], "7 BareString", 0x1006)
    case(d, "xchg-pair", "a prefix 26 before a string instruction", RDI + [("26 aa", "stosb with es"), RET], "8 Prefix", 0x1006)
    case(d, "ins", "ins: a port", RDI + [("6c", "insb"), RET], "8 Privileged", 0x1006)
    case(d, "outs", "outs: a port", RSI + [("6e", "outsb"), RET], "8 Privileged", 0x1006)
    case(d, "rep-and-repne", "both F3 and F2", RDI + [("f3 f2 aa", "stosb with F3 and F2"), RET], "8 Prefix", 0x1006)
    for first, second in ["f3 f2".split(), "f2 f3".split()]:
        case(d, f"cmps-{first}-{second}", f"{first} and {second} on cmps", RDI + RSI + [(f"{first} {second} a6", "cmpsb"), RET], "8 Prefix", 0x100c)
        case(d, f"scas-{first}-{second}", f"{first} and {second} on scas", RDI + [(f"{first} {second} af", "scasl"), RET], "8 Prefix", 0x1006)
    case(d, "rex-16-and-64", "both 66 and REX.W", RDI + [("66 48 ab", "stosq with 66"), RET], "8 Prefix", 0x1006)


def rule9():
    d = "rule-9"
    for op, name in [("a3", "bt"), ("ab", "bts"), ("b3", "btr"), ("bb", "btc")]:
        case(d, f"{name}-register", f"{name} between registers", [(f"0f {op} c8", f"{name}l %ecx, %eax"), (f"48 0f {op} c8", f"{name}q %rcx, %rax"), (f"66 0f {op} c8", f"{name}w %cx, %ax"), RET])
        for pre, what in [("65 67 ", "confined"), ("", "bare"), ("f0 65 67 ", "locked"), ("65 67 48 ", "64-bit"), ("65 67 66 ", "16-bit"), ("66 65 67 ", "16-bit, 66 first")]:
            case(d, f"{name}-memory-{what}", f"{name} with a register offset on memory, {what}", [(f"{pre}0f {op} 0f", f"{name} %ecx, M"), RET], "9 BitString", 0x1000)
        case(d, f"{name}-memory-integrity", f"{name} with a register offset on memory, integrity mode", [(f"0f {op} 0f", f"{name} %ecx, (%rdi)"), RET], "9 BitString", 0x1000, isolation="integrity")
        case(d, f"{name}-memory-rip", f"{name} with a register offset on a RIP-relative operand", [(f"0f {op} 0d 00 10 00 00", f"{name} %ecx, data(%rip)"), RET], "9 BitString", 0x1000)
    for code, what, rule in [("d7", "xlat", "TableLookup"), ("65 67 d7", "xlat with gs and address size", "TableLookup"), ("66 0f f7 c1", "maskmovdqu %xmm1, %xmm0", "ImplicitStore"), ("67 66 0f f7 c1", "maskmovdqu with address size", "ImplicitStore"), ("65 67 66 0f f7 c1", "maskmovdqu with gs and address size", "ImplicitStore"), ("c5 f9 f7 c1", "vmaskmovdqu", "ImplicitStore"), ("65 67 c5 f9 f7 c1", "vmaskmovdqu with gs and address size", "ImplicitStore"), ("0f f7 c1", "maskmovq", "ImplicitStore"),
                             ("66 0f 38 f8 00", "movdir64b (%rax), %rax", "ImplicitStore"), ("65 67 66 0f 38 f8 00", "movdir64b with gs and address size", "ImplicitStore"), ("f2 0f 38 f8 00", "enqcmd", "ImplicitStore"), ("f3 0f 38 f8 00", "enqcmds", "ImplicitStore"),
                             ("65 67 c4 e2 69 92 04 08", "vgatherdps", "Gather"), ("65 67 c4 e2 e9 93 04 08", "vgatherqpd", "Gather"), ("65 67 c4 e2 6d 90 04 08", "vpgatherdd of 256 bits", "Gather"), ("65 67 c4 e2 ed 91 04 08", "vpgatherqq of 256 bits", "Gather"), ("c4 e2 69 90 04 08", "vpgatherdd unconfined", "Gather")]:
        case(d, f"{what}-{code}", f"{what}", [(code, what), RET], f"9 {rule}", 0x1000)
    case(d, "movdiri", "movdiri", [("65 67 0f 38 f9 00", "movdiri %eax, %gs:(%eax)"), RET], "0 NotAccepted", 0x1000)
    case(d, "evex-scatter", "vpscatterdd", [("62 f2 7d 49 a0 04 08", "vpscatterdd"), RET], "8 Evex", 0x1000)


def write():
    """All of them."""
    rule7()
    rule9()
