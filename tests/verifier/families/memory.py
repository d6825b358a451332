"""Rule 1: memory operands."""

import re

from families.common import RET, case

# Instructions with a memory operand M at (%rdi): name, bytes after the prefixes 65 67, what, bytes accessed, kind. Kinds: r read, w written,
# m read and written. `pre` are mandatory prefixes that stand before the rest.
MEMORY = [
    ("mov-load", "8b 07", "movl M, %eax", 4, "r"),
    ("mov-load-byte", "8a 07", "movb M, %al", 1, "r"),
    ("mov-store", "89 07", "movl %eax, M", 4, "w"),
    ("mov-store-64", "48 89 07", "movq %rax, M", 8, "w"),
    ("mov-store-byte", "88 07", "movb %al, M", 1, "w"),
    ("mov-store-imm", "c7 07 01 00 00 00", "movl $1, M", 4, "w"),
    ("add-to-memory", "01 07", "addl %eax, M", 4, "m"),
    ("add-from-memory", "03 07", "addl M, %eax", 4, "r"),
    ("cmp-memory-imm", "83 3f 01", "cmpl $1, M", 4, "r"),
    ("test-memory", "85 07", "testl %eax, M", 4, "r"),
    ("xchg", "87 07", "xchgl %eax, M", 4, "m"),
    ("not", "f7 17", "notl M", 4, "m"),
    ("div", "f7 37", "divl M", 4, "r"),
    ("shl", "d1 27", "shll M", 4, "m"),
    ("movzx", "0f b6 07", "movzbl M, %eax", 1, "r"),
    ("movsxd", "48 63 07", "movslq M, %rax", 4, "r"),
    ("setcc", "0f 94 07", "sete M", 1, "w"),
    ("cmov", "0f 44 07", "cmovel M, %eax", 4, "r"),
    ("imul", "0f af 07", "imull M, %eax", 4, "r"),
    ("cmpxchg", "0f b1 0f", "cmpxchgl %ecx, M", 4, "m"),
    ("cmpxchg16b", "48 0f c7 0f", "cmpxchg16b M", 16, "m"),
    ("xadd", "0f c1 07", "xaddl %eax, M", 4, "m"),
    ("bt-imm", "0f ba 27 03", "btl $3, M", 4, "r"),
    ("bts-imm", "0f ba 2f 03", "btsl $3, M", 4, "m"),
    ("shld", "0f a4 07 03", "shldl $3, %eax, M", 4, "m"),
    ("movnti", "0f c3 07", "movnti %eax, M", 4, "w"),
    ("movbe-load", "0f 38 f0 07", "movbe M, %eax", 4, "r"),
    ("movbe-store", "0f 38 f1 07", "movbe %eax, M", 4, "w"),
    ("prefetch", "0f 18 0f", "prefetcht0 M", 1, "r"),
    ("prefetchw", "0f 0d 0f", "prefetchw M", 1, "w"),
    ("movups-load", "0f 10 07", "movups M, %xmm0", 16, "r"),
    ("movups-store", "0f 11 07", "movups %xmm0, M", 16, "w"),
    ("movntps", "0f 2b 07", "movntps %xmm0, M", 16, "w"),
    ("movlps-store", "0f 13 07", "movlps %xmm0, M", 8, "w"),
    ("vmovups-load-ymm", "c5 fc 10 07", "vmovups M, %ymm0", 32, "r"),
    ("vmovups-store-ymm", "c5 fc 11 07", "vmovups %ymm0, M", 32, "w"),
    ("vmovss-store", "c5 fa 11 07", "vmovss %xmm0, M", 4, "w"),
    ("vmaskmovps-load", "c4 e2 79 2c 07", "vmaskmovps M, %xmm0, %xmm0", 16, "r"),
    ("vmaskmovps-store", "c4 e2 79 2e 07", "vmaskmovps %xmm0, %xmm0, M", 16, "w"),
    ("vpmaskmovq-store-ymm", "c4 e2 fd 8e 07", "vpmaskmovq %ymm0, %ymm0, M", 32, "w"),
    ("vextractf128-store", "c4 e3 7d 19 07 01", "vextractf128 $1, %ymm0, M", 16, "w"),
    ("vpextrb-store", "c4 e3 79 14 07 01", "vpextrb $1, %xmm0, M", 1, "w"),
    ("vcvtps2ph-store", "c4 e3 79 1d 07 00", "vcvtps2ph $0, %xmm0, M", 8, "w"),
    ("vbroadcastf128", "c4 e2 7d 1a 07", "vbroadcastf128 M, %ymm0", 16, "r"),
    ("vfmadd", "c4 e2 f9 98 07", "vfmadd132pd M, %xmm0, %xmm0", 16, "r"),
    ("andn", "c4 e2 78 f2 07", "andnl M, %eax, %eax", 4, "r"),
    ("mulx", "c4 e2 73 f6 07", "mulx M, %ecx, %eax", 4, "r"),
    ("rorx", "c4 e3 7b f0 07 03", "rorx $3, M, %eax", 4, "r"),
    ("fld32", "d9 07", "flds M", 4, "r"),
    ("fld80", "db 2f", "fldt M", 10, "r"),
    ("fstp80", "db 3f", "fstpt M", 10, "w"),
    ("fistp64", "df 3f", "fistpll M", 8, "w"),
    ("fnstsw", "dd 3f", "fnstsw M", 2, "w"),
    ("fnstcw", "d9 3f", "fnstcw M", 2, "w"),
    ("push-mem", "ff 37", "pushq M", 8, "r"),
    ("pop-mem", "8f 07", "popq M", 8, "w"),
]
# The same with mandatory prefixes: they may stand on either side of 65 and 67.
MANDATORY = [
    ("movsd-load", "f2", "0f 10 07", "movsd M, %xmm0", 8, "r"),
    ("movsd-store", "f2", "0f 11 07", "movsd %xmm0, M", 8, "w"),
    ("movdqu-store", "f3", "0f 7f 07", "movdqu %xmm0, M", 16, "w"),
    ("movd-store", "66", "0f 7e 07", "movd %xmm0, M", 4, "w"),
    ("pinsrw-load", "66", "0f c4 07 01", "pinsrw $1, M, %xmm0", 2, "r"),
    ("pextrd-store", "66", "0f 3a 16 07 01", "pextrd $1, %xmm0, M", 4, "w"),
    ("popcnt", "f3", "0f b8 07", "popcntl M, %eax", 4, "r"),
    ("crc32", "f2", "0f 38 f1 07", "crc32l M, %eax", 4, "r"),
    ("adcx", "66", "0f 38 f6 07", "adcxl M, %eax", 4, "r"),
    ("mov16-store", "66", "89 07", "movw %ax, M", 2, "w"),
]


def around(name, code):
    """The rest of a function around one memory instruction: pushes and pops have to balance."""
    if name == "push-mem":
        return code + [("58", "pop %rax"), RET]
    if name == "pop-mem":
        return [("50", "push %rax")] + code + [RET]
    return code + [RET]


def rule1():
    d = "rule-1"
    confined = "%gs:(%edi)"
    for name, code, what, size, kind in MEMORY:
        at = 0x1001 if name == "pop-mem" else 0x1000
        shown = what.replace("M", "%gs:(%edi)")
        case(d, f"{name}-confined", f"{what} with gs and 32-bit address size", around(name, [(f"65 67 {code}", shown)]))
        case(d, f"{name}-bare", f"{what} without prefixes", around(name, [(code, what.replace("M", "(%rdi)"))]),
             "1 Unconfined", at)
        case(d, f"{name}-gs-only", f"{what} with gs but 64-bit address", around(name, [("65 " + code, what.replace("M", "%gs:(%rdi)"))]),
             "1 Unconfined", at)
        case(d, f"{name}-addr32-only", f"{what} with 32-bit address but no gs", around(name, [("67 " + code, what.replace("M", "(%edi)"))]),
             "1 Unconfined", at)
        case(d, f"{name}-fs", f"{what} through fs", around(name, [("64 67 " + code, what.replace("M", "%fs:(%edi)"))]),
             "8 Prefix", at)
        # Integrity: pure reads are free, everything else is as before.
        free = kind == "r"
        case(d, f"{name}-integrity-bare", f"{what} without prefixes, integrity mode", around(name, [(code, what.replace("M", "(%rdi)"))]),
             None if free else "1 Unconfined", None if free else at, isolation="integrity")
    for name, pre, code, what, size, kind in MANDATORY:
        for order, prefixes in [("before", f"{pre} 65 67"), ("between", f"65 {pre} 67"), ("after", f"65 67 {pre}"), ("after-67-65", f"67 65 {pre}")]:
            case(d, f"{name}-prefix-{order}", f"{what}, mandatory prefix {order} gs and address size",
                 [(f"{prefixes} {code}", what.replace("M", confined)), RET])
        case(d, f"{name}-bare", f"{what} without gs", [(f"{pre} {code}", what.replace("M", "(%rdi)")), RET], "1 Unconfined", 0x1000)
        case(d, f"{name}-integrity-gs-only", f"{what} with gs and a 64-bit address, integrity mode",
             [(f"{pre} 65 {code}", what.replace("M", "%gs:(%rdi)")), RET], "1 Unconfined", 0x1000, isolation="integrity")
        case(d, f"{name}-integrity-addr32", f"{what} with a 32-bit address and no gs, integrity mode",
             [(f"67 {pre} {code}", what.replace("M", "(%edi)")), RET], "1 Unconfined", 0x1000, isolation="integrity")

    forms = [
        ("base", "(%rdi)"), ("base-disp8", "0x7f(%rdi)"), ("base-disp8-negative", "-0x80(%rdi)"), ("base-disp32", "0x12345678(%rdi)"),
        ("base-disp32-negative", "-0x12345678(%rdi)"), ("base-index", "(%rdi,%rcx)"), ("base-index-8", "(%rdi,%rcx,8)"),
        ("base-index-disp", "0x1000(%rdi,%rcx,4)"), ("index-only", "0x10(,%rcx,8)"), ("rbp", "(%rbp)"), ("r13", "(%r13)"), ("r12", "(%r12)"),
        ("r12-disp", "8(%r12)"), ("index-r12", "(%rdi,%r12)"), ("index-rbp", "(%rdi,%rbp,2)"), ("r8-r15", "0x40(%r8,%r15,2)"),
        ("r14-base", "(%r14)"), ("r14-index", "(%rdi,%r14)"), ("r11", "4(%r11)"), ("absolute", "0x10008"), ("absolute-negative", "-8"),
    ]
    for name, form in forms:
        low = re.sub(r"%r([a-d]x|[sd]i|bp)", r"%e\1", re.sub(r"%r(\d+)", r"%r\1d", form))
        # gas would encode an absolute operand with 67 as a 32-bit one, which is what we want
        case(d, f"form-{name}-load", f"confined load from {form}", [f"movl %gs:{low}, %eax" if "absolute" not in name else f"addr32 movl %gs:{form}, %edx", RET])
        case(d, f"form-{name}-bare", f"load from {form} without gs and address size",
             [f"movl {form}, %edx", RET], "1 Unconfined", 0x1000)
        case(d, f"form-{name}-integrity-store", f"store to {form} without gs and address size, integrity mode",
             [f"movl %edx, {form}", RET], "1 Unconfined", 0x1000, isolation="integrity")
    for name, code, what in [
        ("gs-eip", "65 67 8b 05 00 10 00 00", "movl %gs:0x1000(%eip), %eax"), ("gs-rip", "65 8b 05 00 10 00 00", "movl %gs:0x1000(%rip), %eax"),
        ("eip", "67 8b 05 00 10 00 00", "movl 0x1000(%eip), %eax")]:
        case(d, f"rip-with-{name}", f"RIP-relative with prefixes: {what}", [(code, what), RET], "1 SegmentedRip", 0x1000)
        case(d, f"rip-with-{name}-integrity", f"RIP-relative with prefixes, integrity mode: {what}", [(code, what), RET], "1 SegmentedRip", 0x1000, isolation="integrity")
    for name, code, what in [("a0", "65 67 a0 00 00 01 00", "movb %gs:0x10000, %al"), ("a1", "65 67 a1 00 00 01 00", "movl %gs:0x10000, %eax"),
                             ("a2", "65 67 a2 00 00 01 00", "movb %al, %gs:0x10000"), ("a3", "65 67 a3 00 00 01 00", "movl %eax, %gs:0x10000"),
                             ("a1-64", "48 a1 00 00 00 00 00 00 00 00", "movabs 0x0, %rax"), ("a3-gs-64", "65 48 a3 00 00 00 00 00 00 00 00", "movabs %rax, %gs:0x0")]:
        case(d, f"moffs-{name}", f"absolute offset form: {what}", [(code, what), RET], "1 AbsoluteOffset", 0x1000)

    # RIP-relative operands: the data page is at TEXT+0x1000, the read-only page at TEXT-0x1000.
    for size, load, store in [
        (1, "movb {}(%rip), %al", "movb %al, {}(%rip)"), (2, "movw {}(%rip), %ax", "movw %ax, {}(%rip)"), (4, "movl {}(%rip), %eax", "movl %eax, {}(%rip)"),
        (8, "movq {}(%rip), %rax", "movq %rax, {}(%rip)"), (10, "fldt {}(%rip)", "fstpt {}(%rip)"), (16, "movups {}(%rip), %xmm0", "movups %xmm0, {}(%rip)"),
        (32, "vmovups {}(%rip), %ymm0", "vmovups %ymm0, {}(%rip)")]:
        last, past = f"TEXT+{0x2000 - size:#x}", f"TEXT+{0x2001 - size:#x}"
        case(d, f"rip-load-{size}-last", f"RIP-relative load of the data page's last {size} bytes", [load.format(last), RET])
        case(d, f"rip-load-{size}-past", f"RIP-relative load of {size} bytes, one of them behind the data page", [load.format(past), RET], "1 OutsideImage", 0x1000)
        case(d, f"rip-store-{size}-last", f"RIP-relative store to the data page's last {size} bytes", [store.format(last), RET])
        case(d, f"rip-store-{size}-past", f"RIP-relative store of {size} bytes, one of them behind the data page", [store.format(past), RET], "1 OutsideImage", 0x1000)
        case(d, f"rip-store-{size}-read-only", f"RIP-relative store of {size} bytes into the read-only page", [store.format("TEXT-0x1000"), RET], "1 StoreToConstants", 0x1000)
        case(d, f"rip-store-{size}-text", f"RIP-relative store of {size} bytes into text", [store.format("TEXT+0x800"), RET], "1 StoreToConstants", 0x1000)
        if size > 1:
            case(d, f"rip-store-{size}-straddles", f"RIP-relative store of {size} bytes that begins in text and ends in data",
                 [store.format("TEXT+0xfff"), RET], "1 OutsideImage", 0x1000)
            case(d, f"rip-load-{size}-straddles", f"RIP-relative load of {size} bytes that begins in text and ends in data",
                 [load.format("TEXT+0xfff"), RET], "1 OutsideImage", 0x1000)
    for name, target, rule in [("read-only", "TEXT-0x1000", None), ("text", "TEXT+0x10", None), ("before-image", "TEXT-0x1001", "1 OutsideImage"),
                               ("far-below", "TEXT-0x70000000", "1 OutsideImage"), ("far-above", "TEXT+0x70000000", "1 OutsideImage")]:
        case(d, f"rip-load-{name}", f"RIP-relative load, {name}", [f"movl {target}(%rip), %eax", RET], rule, 0x1000 if rule else None)
        case(d, f"rip-load-{name}-integrity", f"RIP-relative load, {name}, integrity mode", [f"movl {target}(%rip), %eax", RET], rule, 0x1000 if rule else None, isolation="integrity")
        case(d, f"rip-lea-{name}", f"address only, {name}: lea reads nothing", [f"leaq {target}(%rip), %rax", RET])
    case(d, "rip-rmw-data", "RIP-relative lock incl in the data page", ["lock incl TEXT+0x1004(%rip)", RET])
    case(d, "rip-rmw-read-only", "RIP-relative lock incl in the read-only page", ["lock incl TEXT-0x1000(%rip)", RET], "1 StoreToConstants", 0x1000)
    case(d, "rip-xchg-read-only", "RIP-relative xchg, which stores, in the read-only page", ["xchgl %eax, TEXT-0x1000(%rip)", RET], "1 StoreToConstants", 0x1000)
    case(d, "rip-pop-data", "pop into the data page", ["pushq %rax", "popq TEXT+0x1000(%rip)", RET])
    case(d, "rip-pop-text", "pop into text", ["pushq %rax", "popq TEXT+0x800(%rip)", RET], "1 StoreToConstants", 0x1001)
    case(d, "rip-imm-counted", "the displacement counts from the end, behind the immediate: the last four bytes of data",
         ["movl $0x11223344, TEXT+0x1ffc(%rip)", RET])
    case(d, "rip-imm-past", "the same one byte further", ["movl $0x11223344, TEXT+0x1ffd(%rip)", RET], "1 OutsideImage", 0x1000)
    case(d, "rip-cmpxchg16b-past", "cmpxchg16b of which eight bytes lie behind the data page", ["cmpxchg16b TEXT+0x1ff8(%rip)", RET], "1 OutsideImage", 0x1000)
    case(d, "rip-cmpxchg8b-last", "cmpxchg8b of the data page's last eight bytes", ["cmpxchg8b TEXT+0x1ff8(%rip)", RET])
    for name, form in [("lea", "leaq (%rdi,%rcx,8), %rax"), ("lea-32", "leal 7(%rdi), %eax"), ("lea-addr32", "leal (%edi,%ecx), %eax"), ("lea-absolute", "leaq 0x1234, %rax"), ("nop-any", "nopw 0x1234(%rdi,%rcx,8)")]:
        case(d, f"no-access-{name}", f"no memory is accessed: {form}", [form, RET])
    for name, code, what in [("lea-gs", "65 48 8d 07", "leaq %gs:(%rdi), %rax"), ("lea-gs-addr32", "65 67 48 8d 07", "leaq %gs:(%edi), %rax"), ("lea-eip", "67 8d 05 00 00 00 00", "leal (%eip), %eax"),
                             ("nop-gs", "65 0f 1f 00", "nopl %gs:(%rax)"), ("nop-addr32", "67 0f 1f 00", "nopl (%eax)"), ("ret-less-add", "65 01 c0", "addl %eax, %eax with gs"),
                             ("addr32-add", "67 01 c0", "addl %eax, %eax with address size"), ("addr32-push", "67 50", "push with address size"), ("gs-push", "65 50", "push with gs"),
                             ("gs-addr32-mov", "65 67 89 c8", "movl %ecx, %eax with gs and address size"), ("addr32-vex", "67 c5 f8 28 c1", "vmovaps %xmm1, %xmm0 with address size")]:
        case(d, f"no-operand-{name}", f"prefix without a memory access: {what}", [(code, what), RET], "1 AddressPrefix", 0x1000)


def write():
    """All of them."""
    rule1()
