#!/usr/bin/env python3
"""Writes the families of verifier cases: see README.md. Run it in this directory; needs GNU as, nm and objcopy.

A case is a list of lines. A line is either AT&T assembly, or raw bytes as a tuple (hex, what they are), or "@ OFFSET".
In assembly, TEXT is the address of the case's first byte, so that `movl TEXT+0x1000(%rip), %eax` reads the data page.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

cases = {}


def case(directory, name, what, code, rule=None, at=None, **header):
    """Notes down one case. `rule` is None for accepted code, else e.g. "1 Unconfined"."""
    name = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    path = f"{directory}/{name}.case"
    assert path not in cases, f"two cases called {path}"
    lines = [f"what: {what}", f"verdict: {'reject' if rule else 'accept'}"]
    if rule:
        lines.append(f"rule: {rule}" + (f" at {at:#x}" if at is not None else ""))
    for key, value in header.items():
        for v in value if isinstance(value, list) else [value]:
            lines.append(f"{key.replace('_', '-')}: {v}".rstrip())
    cases[path] = (lines, code)


RET = "ret"
MARK = "nopl 0x629affff(%rax,%rax,1)"


def label(n):
    return f"nopl {0x629A0000 + n:#x}(%rax,%rax,1)"


def checked(jump, ident=0x629AFFFF):
    """The checked indirect jump or call, without the movl in front."""
    compare = ("65 67 41 81 7b 04 " + ident.to_bytes(4, "little").hex(" "), f"cmpl ${ident:#x}, %gs:4(%r11d)")
    return ["andl $-8, %r11d", compare, "cmovnel %r14d, %r11d", "addq %r14, %r11", f"{jump} *%r11"]


RDI = ["movl %edi, %edi", "leaq (%r14,%rdi), %rdi"]
RSI = ["movl %esi, %esi", "leaq (%r14,%rsi), %rsi"]

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
    ok("push-pop", "pushed and popped", ["push %rbx", "push %rbp", "pop %rbp", "pop %rbx", RET], report="depth=16 writes-rbx writes-rbp no-writes-r12")
    ok("push-pop-other-register", "popped into other registers than pushed from: no rule against it", ["push %rbx", "push %rbp", "pop %rax", "pop %rcx", RET], report="depth=16 no-writes-rbx mentions-rbx")
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
    bad("join-mismatch", "two paths meet at different depths", ["je 1f", "push %rax", "1: ret"], "ReturnDepth", 0x1003)
    bad("join-mismatch-2", "two paths meet at different depths, the deeper one by a jump", ["push %rax", "je 1f", "pop %rax", "nop", "1: ud2"], "DepthMismatch")
    bad("loop-pushes", "a loop that pushes", ["1: push %rax", ("eb fd", "jmp to the push")], "DepthMismatch", 0x1000)
    bad("loop-pops", "a loop that pops what a loop pushed", ["push %rax", "push %rax", "1: pop %rax", ("75 fd", "jne to the pop"), RET], "ReturnDepth")
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
    """Landing pads: places where the runtime resumes, with the depth that the module claims."""
    d = "rule-3"
    body = ["push %rbx", "call 1f", "pop %rbx", RET, "@ 0x10", "pop %rbx", RET, "@ 0x20", "1: " + MARK, RET]
    case(d, "pad", "a landing pad at the depth of its frame", body, pad="0x1010 8", report="functions=2 depth=8")
    case(d, "pad-none", "without the claim the pad is unreachable", body)
    case(d, "pad-too-shallow", "the claim says less than the pad pops", body, "3 DepthUnderflow", 0x1010, pad="0x1010 0")
    case(d, "pad-too-deep", "the claim says more than the pad pops", body, "3 ReturnDepth", 0x1011, pad="0x1010 16")
    case(d, "pad-reached-otherwise", "the claim contradicts the depth by which control gets there", body, "any", pad="0x1006 0")
    case(d, "pad-two-claims", "two claims about one pad", body, "any", pad=["0x1010 8", "0x1010 16"])
    case(d, "pad-odd-depth", "a depth that is no multiple of 8", body, "4 PadClaim", pad="0x1010 9")
    case(d, "pad-huge-depth", "a depth above the limit", body, "4 PadClaim", pad="0x1010 0x80008")
    case(d, "pad-inside-instruction", "a pad inside an instruction", body, "4 PadClaim", 0x1002, pad="0x1002 8")
    case(d, "pad-outside", "a pad outside the text", body, "4 PadClaim", pad="0x3000 8")
    case(d, "pad-inside-sequence", "a pad inside the checked sequence", checked("jmp"), "4 PadClaim", 0x1004, pad="0x1004 0")
    case(d, "pad-no-function", "a pad before the first entry", [RET, "@ 0x10", RET], "4 PadClaim", 0x1000, entries="0x1010", pad="0x1000 0")


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
    ok("tail-call-marked", "tail call to a marked function", ["jmp 1f", "@ 0x20", "1: " + MARK, RET], report="tail-calls functions=2")
    ok("tail-call-conditional", "conditional tail call", ["je 1f", RET, "@ 0x20", "1: " + MARK, RET], report="tail-calls")
    ok("tail-call-called", "tail call to a function that is known by a direct call only", ["je 1f", "call 1f", RET, "@ 0x20", "1: ret"], report="tail-calls functions=2")
    ok("tail-call-listed", "tail call to an entry from the list", ["jmp 1f", "@ 0x20", "1: ret"], entries="0x1000 0x1020", report="tail-calls functions=2")
    bad("tail-call-behind-marker", "tail call just behind a marker", ["jmp 1f+8", "@ 0x20", "1: " + MARK, RET], "JumpTarget", 0x1000)
    ok("jmp-own-label", "jumps inside one function, forward and backward, near and short", ["jmp 1f", "2: ret", "@ 0x200", "1: jmp 2b"], report="no-tail-calls")
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
    ok("tail-call", "checked tail call at depth 0", ["movl %eax, %r11d"] + checked("jmp"), report="tail-calls depth=0")
    ok("call", "checked call", ["movl %eax, %r11d"] + checked("call") + [RET], report="no-tail-calls")
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


def rule8():
    d = "rule-8"
    forbidden = """
0f 05|syscall|SystemCall
0f 34|sysenter|SystemCall
0f 07|sysret|SystemCall
0f 35|sysexit|SystemCall
cd 80|int $0x80|SystemCall
cd 03|int $3 in two bytes|SystemCall
f1|int1|SystemCall
ce|into of other modes|0 NotAccepted
f4|hlt|Privileged
fa|cli|Privileged
fb|sti|Privileged
6c|insb|Privileged
6f|outsl|Privileged
e4 10|inb $0x10, %al|Privileged
e6 10|outb %al, $0x10|Privileged
ec|inb %dx, %al|Privileged
ee|outb %al, %dx|Privileged
0f 06|clts|Privileged
0f 08|invd|Privileged
0f 09|wbinvd|Privileged
f3 0f 09|wbnoinvd|Privileged
0f 20 c0|movq %cr0, %rax|Privileged
0f 22 c0|movq %rax, %cr0|Privileged
0f 21 c0|movq %db0, %rax|Privileged
0f 23 c0|movq %rax, %db0|Privileged
0f 30|wrmsr|Privileged
0f 32|rdmsr|Privileged
0f 33|rdpmc|Privileged
0f 37|getsec|Privileged
0f 00 c0|sldt %eax|SegmentRegister
0f 00 d8|ltr %ax|SegmentRegister
0f 00 e0|verr %ax|SegmentRegister
0f 02 c0|lar %ax, %eax|SegmentRegister
0f 03 c0|lsl %ax, %eax|SegmentRegister
0f 01 07|sgdt|ProcessorState
0f 01 0f|sidt|ProcessorState
0f 01 17|lgdt|ProcessorState
0f 01 e0|smsw %eax|ProcessorState
0f 01 f0|lmsw %ax|ProcessorState
0f 01 38|invlpg (%rax)|ProcessorState
0f 01 c1|vmcall|ProcessorState
0f 01 d4|vmfunc|ProcessorState
0f 01 d0|xgetbv|ProcessorState
0f 01 d1|xsetbv|ProcessorState
0f 01 d9|vmmcall|ProcessorState
0f 01 c8|monitor|ProcessorState
0f 01 c9|mwait|ProcessorState
0f 01 fa|monitorx|ProcessorState
0f 01 fb|mwaitx|ProcessorState
0f 01 ca|clac|ProcessorState
0f 01 cb|stac|ProcessorState
0f 01 cf|encls|ProcessorState
0f 01 d7|enclu|ProcessorState
0f 01 d5|xend|ProcessorState
0f 01 d6|xtest|ProcessorState
0f 01 ee|rdpkru|ProcessorState
0f 01 ef|wrpkru|ProcessorState
0f 01 f8|swapgs|ProcessorState
0f 01 f9|rdtscp|ProcessorState
0f 01 fd|rdpru|ProcessorState
f3 0f 01 28|rstorssp (%rax)|ProcessorState
f3 0f 01 ea|saveprevssp|ProcessorState
f3 0f 01 ee|uiret or clui space|ProcessorState
f3 0f 01 ec|uiret|ProcessorState
0f 31|rdtsc|TimeStamp
0f a2|cpuid|ProcessorState
0f ae 00|fxsave (%rax)|ControlState
0f ae 08|fxrstor (%rax)|ControlState
0f ae 10|ldmxcsr (%rax)|ControlState
65 67 0f ae 10|ldmxcsr %gs:(%eax)|ControlState
0f ae 18|stmxcsr (%rax)|ControlState
0f ae 20|xsave (%rax)|ControlState
48 0f ae 20|xsave64 (%rax)|ControlState
0f ae 28|xrstor (%rax)|ControlState
0f ae 30|xsaveopt (%rax)|ControlState
0f ae 38|clflush (%rax)|ProcessorState
66 0f ae 38|clflushopt (%rax)|ProcessorState
66 0f ae 30|clwb (%rax)|ProcessorState
66 0f ae f0|tpause %eax|ProcessorState
f2 0f ae f0|umwait %eax|ProcessorState
f3 0f ae f0|umonitor %rax|ProcessorState
f3 0f ae 30|clrssbsy (%rax)|ProcessorState
f3 48 0f ae c0|rdfsbase %rax|SegmentRegister
f3 48 0f ae c8|rdgsbase %rax|SegmentRegister
f3 48 0f ae d0|wrfsbase %rax|SegmentRegister
f3 48 0f ae d8|wrgsbase %rax|SegmentRegister
f3 0f ae d8|wrgsbase %eax|SegmentRegister
f3 48 0f ae e8|incsspq %rax|ProcessorState
f3 48 0f 1e c8|rdsspq %rax|HiddenNop
f3 0f 1e fb|endbr32|HiddenNop
0f 1e fa|nopl %edx in the space of shadow stacks|HiddenNop
66 f3 0f 1e fa|endbr64 with 66|HiddenNop
f3 41 0f 1e fa|endbr64 with REX|HiddenNop
0f 1c 00|cldemote (%rax)|HiddenNop
0f 1a 00|bndldx (%rax)|HiddenNop
0f 1b 00|bndstx (%rax)|HiddenNop
f3 0f 1b 00|bndmk (%rax)|HiddenNop
0f 19 00|reserved no-op|HiddenNop
0f 1d 00|reserved no-op|HiddenNop
0f 1f 48 00|0F 1F /1|0 NotAccepted
0f 1f c8|0F 1F /1 with registers|0 NotAccepted
0f 18 20|0F 18 /4|0 NotAccepted
0f 18 38|prefetchit0|0 NotAccepted
0f 0d 00|prefetch of 3DNow!|0 NotAccepted
0f 0d 10|prefetchwt1|0 NotAccepted
0f c7 20|xsavec|ControlState
0f c7 18|xrstors|ControlState
0f c7 28|xsaves|ControlState
0f c7 f0|rdrand %eax|ProcessorState
0f c7 f8|rdseed %eax|ProcessorState
f3 0f c7 f8|rdpid %rax|ProcessorState
f3 0f c7 f0|senduipi %rax|ProcessorState
0f c7 30|vmptrld|ProcessorState
0f c7 c8|0F C7 /1 with a register|0 NotAccepted
8e d8|movl %eax, %ds|SegmentRegister
8e e8|movl %eax, %gs|SegmentRegister
8c e8|movl %gs, %eax|SegmentRegister
0f b2 00|lss (%rax), %eax|SegmentRegister
0f b4 00|lfs (%rax), %eax|SegmentRegister
0f b5 00|lgs (%rax), %eax|SegmentRegister
9a 00 00 00 00 00 00|far call of other modes|FarTransfer
ea 00 00 00 00 00 00|far jump of other modes|FarTransfer
ff 18|far call through memory|FarTransfer
ff 28|far jump through memory|FarTransfer
65 67 ff 18|far call through confined memory|FarTransfer
48 ff 28|far jump through memory, 64-bit|FarTransfer
cb|far return|FarTransfer
ca 08 00|far return with immediate|FarTransfer
cf|iret|FarTransfer
48 cf|iretq|FarTransfer
c2 08 00|ret $8|ReturnImmediate
fc|cld|OutlivingFlags
fd|std|OutlivingFlags
9c|pushfq|OutlivingFlags
9d|popfq|OutlivingFlags
d9 28|fldcw (%rax)|ControlState
65 67 d9 28|fldcw %gs:(%eax)|ControlState
d9 20|fldenv (%rax)|ControlState
65 67 d9 20|fldenv %gs:(%eax)|ControlState
65 67 d9 30|fnstenv %gs:(%eax)|ControlState
65 67 dd 20|frstor %gs:(%eax)|ControlState
65 67 dd 30|fnsave %gs:(%eax)|ControlState
db e3|fninit|ControlState
db e2|fnclex|ControlState
dd c0|ffree %st(0)|ControlState
df c0|ffreep %st(0)|ControlState
d9 f6|fdecstp|ControlState
d9 f7|fincstp|ControlState
d9 d8|fstp in an undocumented encoding|ControlState
dc d0|fcom in an undocumented encoding|ControlState
dd c8|fxch in an undocumented encoding|ControlState
de d0|fcomp in an undocumented encoding|ControlState
db e4|fnsetpm of the 287|ControlState
df e1|frstpm space|ControlState
65 67 db 20|DB /4|0 NotAccepted
65 67 d9 08|D9 /1|0 NotAccepted
65 67 dd 28|DD /5|0 NotAccepted
0f 77|emms|Mmx
0f 6f c1|movq %mm1, %mm0|Mmx
0f 6e c0|movd %eax, %mm0|Mmx
0f 7e c0|movd %mm0, %eax|Mmx
0f fe c1|paddd %mm1, %mm0|Mmx
0f 2a c0|cvtpi2ps %mm0, %xmm0|Mmx
66 0f 2c c0|cvttpd2pi %xmm0, %mm0|Mmx
0f c4 c0 01|pinsrw $1, %eax, %mm0|Mmx
f2 0f d6 c0|movdq2q %xmm0, %mm0|Mmx
f3 0f d6 c0|movq2dq %mm0, %xmm0|Mmx
0f 38 00 c1|pshufb %mm1, %mm0|Mmx
0f 3a 0f c1 04|palignr $4, %mm1, %mm0|Mmx
0f e7 00|movntq %mm0, (%rax)|Mmx
0f 0e|femms|Mmx
0f 0f c1 9e|pfadd %mm1, %mm0|Mmx
c7 f8 00 00 00 00|xbegin|Transaction
c6 f8 00|xabort|Transaction
f2 f0 65 67 ff 00|xacquire lock incl|Prefix
f3 65 67 89 00|xrelease mov|Prefix
0f aa|rsm|0 NotAccepted
0f 0b 00|ud2 is fine, what follows is not memory-safe: addb|-
0f b9 c0|ud1|0 NotAccepted
0f ff c0|ud0|0 NotAccepted
0f 04|undefined 0F 04|0 NotAccepted
0f 24|undefined 0F 24|0 NotAccepted
0f a6 c0|xstore space|0 NotAccepted
0f a7 c0|padlock space|0 NotAccepted
d6|salc|0 NotAccepted
27|daa of other modes|0 NotAccepted
37|aaa of other modes|0 NotAccepted
d4 0a|aam of other modes|0 NotAccepted
06|push %es of other modes|0 NotAccepted
82 c0 01|add in an alias of 80|0 NotAccepted
c0 f0 03|sal in an undocumented alias|0 NotAccepted
d3 f0|sal in an undocumented alias|0 NotAccepted
f6 c8 01|test in an undocumented alias|0 NotAccepted
f7 c8 01 00 00 00|test in an undocumented alias|0 NotAccepted
c6 c8 00|C6 /1|0 NotAccepted
fe d0|FE /2|0 NotAccepted
ff f8|FF /7|0 NotAccepted
0f ba c0 01|0F BA /0|0 NotAccepted
0f 71 f8 01|0F 71 /7|Mmx
66 0f 71 f8 01|66 0F 71 /7|0 NotAccepted
0f 38 f6 00|wrssd %eax, (%rax)|ProcessorState
66 0f 38 f5 00|wrussd %eax, (%rax)|ProcessorState
66 0f 38 80 00|invept|0 NotAccepted
66 0f 38 82 00|invpcid|0 NotAccepted
0f 38 cb c1 00|-|-
f3 0f 38 dc c1|aesenc128kl space|0 NotAccepted
66 0f 38 cf c1|gf2p8mulb|0 NotAccepted
0f 78 c8|vmread|0 NotAccepted
0f 79 c8|vmwrite|0 NotAccepted
f2 0f 79 c1|insertq|0 NotAccepted
66 0f 78 c0 01 02|extrq|0 NotAccepted
f2 0f 2b 00|movntsd|0 NotAccepted
8f e8 78 c2 c0 07|vprotd of XOP|0 NotAccepted
63 c1|movsxd without REX.W|0 NotAccepted
e3 00|jrcxz: compilers do without|0 NotAccepted
67 e3 00|jecxz|0 NotAccepted
e2 fe|loop|0 NotAccepted
e1 fe|loope|0 NotAccepted
e0 fe|loopne|0 NotAccepted
66 63 c1|movsxd with 66|0 NotAccepted
""".strip().splitlines()
    for line in forbidden:
        code, what, reason = line.split("|")
        if reason == "-":
            continue
        rule = reason if reason[0] == "0" else f"8 {reason}"
        if line.startswith("66 63"):
            rule = "8 Prefix"
        case(d, f"forbidden-{what}-{code}", f"{what}", [(code, what), RET], rule, 0x1000)
    case(d, "tsc-allowed", "rdtsc where the policy allows it", [("0f 31", "rdtsc"), RET], tsc="allowed")
    case(d, "rdtscp-never", "rdtscp, which tells the processor too, even where the policy allows rdtsc", [("0f 01 f9", "rdtscp"), RET], "8 ProcessorState", 0x1000, tsc="allowed")
    for code, what in [("d9 c0", "fld %st(0)"), ("65 67 db 28", "fldt %gs:(%eax)"), ("9b", "fwait"), ("df e0", "fnstsw %ax"), ("d9 e8", "fld1")]:
        case(d, f"x87-{what}", f"{what} is accepted and reported", [(code, what), RET], report="x87 no-vector")
        case(d, f"x87-refused-{what}", f"{what} where the policy refuses x87", [(code, what), RET], "8 X87Refused", 0x1000, x87="refused")
    # Prefixes
    for pre, name in [("26", "es"), ("2e", "cs"), ("36", "ss"), ("3e", "ds"), ("64", "fs")]:
        for code, what in [("01 c8", "addl %ecx, %eax"), ("65 67 8b 07", "movl %gs:(%edi), %eax"), ("74 00", "je"), ("0f 1f 44 00 00", "nopl"), ("c3", "ret"), ("90", "nop"), ("c5 f8 28 c1", "vmovaps %xmm1, %xmm0")]:
            case(d, f"prefix-{name}-{what}", f"{name} segment prefix on {what}", [(f"{pre} {code}", f"{what} with {name}"), RET], "8 Prefix", 0x1000)
    case(d, "prefix-filler-cs", "the assembler's ten-byte filler has a cs prefix", [("66 2e 0f 1f 84 00 00 00 00 00", "cs nopw 0x0(%rax,%rax,1)"), RET], "8 Prefix", 0x1000)
    for code, what, rule in [("65 65 67 8b 07", "gs twice", "RepeatedPrefix"), ("65 67 67 8b 07", "address size twice", "RepeatedPrefix"), ("66 66 90", "66 twice", "RepeatedPrefix"), ("66 66 0f 1f 44 00 00", "66 twice on a no-op", "RepeatedPrefix"),
                             ("f3 f3 0f b8 c1", "F3 twice", "RepeatedPrefix"), ("f0 f0 65 67 ff 07", "lock twice", "RepeatedPrefix"), ("f2 f3 0f 10 c1", "F2 and F3", "Prefix"), ("f3 f2 0f 10 c1", "F3 and F2", "Prefix"), ("66 f3 0f 10 c1", "66 and F3 on movss", "Prefix"), ("f2 66 0f 58 c1", "F2 and 66 on addsd", "Prefix"),
                             ("f3 01 c8", "F3 on add", "Prefix"), ("f2 01 c8", "F2 on add", "Prefix"), ("f2 90", "F2 on nop", "Prefix"), ("f3 66 90", "F3 and 66 on nop", "Prefix"), ("f3 41 90", "pause with REX.B, xchg %r8 for some", "Prefix"), ("f3 91", "F3 on xchg", "Prefix"), ("f3 89 c8", "F3 on mov between registers", "Prefix"),
                             ("48 66 01 c8", "66 behind REX", "RexPlace"), ("48 65 67 8b 07", "gs behind REX", "RexPlace"), ("48 f3 0f b8 c1", "F3 behind REX", "RexPlace"), ("48 48 01 c8", "REX twice", "RexPlace"), ("40 49 01 c8", "REX twice", "RexPlace"), ("48 2e 01 c8", "cs behind REX", "RexPlace"), ("41 f0 65 67 ff 07", "lock behind REX", "RexPlace"),
                             ("66 48 01 c8", "66 with REX.W", "Prefix"), ("66 48 05 00 00 00 00", "66 with REX.W and an immediate: lengths differ between decoders", "Prefix"), ("66 84 c0", "66 on a byte instruction", "Prefix"), ("66 0f 05", "66 on syscall", "SystemCall"), ("66 0f 28 c1 00", "-", ""), ("66 88 c8", "66 on a byte move", "Prefix"), ("66 d8 c1", "66 on x87", "Prefix"), ("66 db e8", "66 on fucomi", "Prefix"), ("48 d8 c1", "REX on x87", "Prefix"),
                             ("66 0f c8", "66 on bswap: undefined", "0 NotAccepted"), ("66 0f c3 00", "66 on movnti", "0 NotAccepted"), ("66 65 67 0f c7 0f", "66 on cmpxchg8b", "8 ProcessorState"),
                             ("66 9f", "66 on lahf", "Prefix"), ("48 f8", "REX on clc", "RexUse"), ("40 98", "REX without W on cwtl", "RexUse"), ("41 98", "REX.B on cwtl", "RexUse"), ("49 a9 00 00 00 00", "REX.B on test", "RexUse"), ("4f 05 00 00 00 00", "all of REX on add to rax", "RexUse"), ("40 9e", "REX on sahf", "RexUse"),
                             ("48 88 c8", "REX.W on a byte move", "RexUse"), ("48 0f 28 c1", "REX.W on movaps", "RexUse"), ("48 0f 94 c0", "REX.W on sete", "RexUse"), ("48 0f 18 0f", "REX.W on prefetch", "1 Unconfined"), ("48 0f 50 c0", "REX.W on movmskps", "RexUse")]:
        if rule:
            full = rule if rule[0].isdigit() else f"8 {rule}"
            if what == "REX.W on prefetch":
                full = "8 RexUse"
            case(d, f"prefix-{what}-{code}", f"{what}", [(code, what), RET], full, 0x1000)
    for code, what in [("c3", "ret"), ("e9 00 00 00 00", "jmp"), ("eb 00", "short jmp"), ("74 00", "short je"), ("0f 84 00 00 00 00", "je"), ("e8 00 00 00 00", "call"), ("cc", "int3"), ("0f 0b", "ud2")]:
        for pre in ["66", "67", "f2", "f3", "65", "48", "40", "f0", "2e"]:
            if what == "ud2" and pre in ("66", "f2", "f3"):
                continue
            near = {"je": {"66": "0 NotAccepted", "f2": "0 NotAccepted", "f3": "0 NotAccepted"}}
            rule = near.get(what, {}).get(pre, "8 Prefix")
            case(d, f"branch-{what}-{pre}", f"{what} with {pre}: no prefixes on branches", [(f"{pre} {code}", f"{what} with {pre}"), RET], rule, 0x1000)
    for code, what in [("65 67 41 8b 04 25 00 00 01 00", "REX.B where SIB has no base: some decoders see r13"), ("41 8b 05 00 10 00 00", "REX.B with RIP"), ("42 01 c8", "REX.X without SIB"), ("65 67 42 8b 07", "REX.X without SIB, memory"),
                       ("44 f7 d8", "REX.R with an opcode extension"), ("44 0f 94 c0", "REX.R on sete"), ("4e 01 c8", "REX.W, R and X without SIB"), ("42 50", "REX.X on push"), ("44 58", "REX.R on pop"), ("46 b8 00 00 00 00", "REX.R and X on mov")]:
        case(d, f"rex-spare-{what}", f"{what}", [(code, what), RET], "8 RexUse", 0x1000)
    for code, what in [("c4 c1 78 10 04 25 00 00 00 00", "VEX.B where SIB has no base"), ("c4 a1 78 28 c1", "VEX.X without SIB"), ("c5 78 77", "VEX.R on vzeroupper"), ("c4 62 78 f3 c8", "VEX.R with an opcode extension"), ("c4 c1 78 10 05 00 10 00 00", "VEX.B with RIP")]:
        pre = "65 67 " if "SIB has" in what else ""
        case(d, f"vex-spare-{what}", f"{what}", [(pre + code, what), RET], "8 VexReserved", 0x1000)
    # lock
    for ins in ["addl %eax, %gs:(%edi)", "addl $1, %gs:(%edi)", "orb $1, %gs:(%edi)", "xorq %rax, %gs:(%edi)", "sbbl %eax, %gs:(%edi)", "incl %gs:(%edi)", "decb %gs:(%edi)", "notl %gs:(%edi)", "negq %gs:(%edi)", "xchgl %eax, %gs:(%edi)", "xaddl %eax, %gs:(%edi)", "cmpxchgl %ecx, %gs:(%edi)", "cmpxchgb %cl, %gs:(%edi)", "cmpxchg8b %gs:(%edi)", "cmpxchg16b %gs:(%edi)", "btsl $3, %gs:(%edi)", "btrq $3, %gs:(%edi)", "btcw $3, %gs:(%edi)", "addl %eax, TEXT+0x1000(%rip)"]:
        case(d, f"lock-{ins}", f"lock {ins}", ["lock " + ins, RET])
    for code, what in [("f0 01 c8", "addl %ecx, %eax"), ("f0 65 67 03 07", "addl %gs:(%edi), %eax"), ("f0 65 67 39 07", "cmpl %eax, %gs:(%edi)"), ("f0 65 67 83 3f 01", "cmpl $1, %gs:(%edi)"), ("f0 65 67 85 07", "testl %eax, %gs:(%edi)"), ("f0 65 67 89 07", "movl %eax, %gs:(%edi)"), ("f0 65 67 8b 07", "movl %gs:(%edi), %eax"), ("f0 65 67 d1 27", "shll %gs:(%edi)"), ("f0 65 67 f7 27", "mull %gs:(%edi)"),
                       ("f0 65 67 0f ba 27 03", "btl $3, %gs:(%edi)"), ("f0 90", "nop"), ("f0 87 c8", "xchgl %ecx, %eax"), ("f0 0f b1 c8", "cmpxchgl %ecx, %eax"), ("f0 0f c1 c8", "xaddl %ecx, %eax"), ("f0 ff c0", "incl %eax"), ("f0 48 8d 07", "leaq (%rdi), %rax"), ("f0 65 67 0f 11 07", "movups %xmm0, %gs:(%edi)"), ("f0 65 67 8f 07", "popq %gs:(%edi)"), ("f0 65 67 0f 94 07", "sete %gs:(%edi)"), ("f0 65 67 0f a4 07 03", "shldl $3, %eax, %gs:(%edi)"), ("f0 50", "push %rax"), ("f0 65 67 0f c3 07", "movnti %eax, %gs:(%edi)"), ("f0 65 67 d8 07", "fadds %gs:(%edi)")]:
        case(d, f"lock-refused-{what}", f"lock on {what}", [(code, f"lock {what}"), RET], "8 Lock", 0x1000)
    case(d, "lock-unconfined", "lock on an unconfined operand", ["lock incl (%rdi)", RET], "1 Unconfined", 0x1000)
    # VEX
    for code, what, rule in [("c5 f0 28 c1", "vmovaps with vvvv", "VexReserved"), ("c5 fa 58 c1", "vaddss %xmm1, %xmm0, %xmm0 (accepted)", None), ("c5 fe 58 c1", "vaddss with L", "VexReserved"), ("c4 e1 fa 58 c1", "vaddss with W", "VexReserved"), ("c4 e1 f8 28 c1", "vmovaps with W", "VexReserved"), ("c4 e1 78 28 c1", "vmovaps in the long form (accepted)", None),
                             ("c4 e2 7d 18 c1", "vbroadcastss %xmm1, %ymm0 (accepted)", None), ("c4 e2 79 19 c1", "vbroadcastsd without L", "VexReserved"), ("c4 e3 79 00 c1 00", "vpermq without W and L", "VexReserved"), ("c4 e3 fd 00 c1 00", "vpermq (accepted)", None), ("c4 e3 7d 18 c1 00", "vinsertf128 (accepted)", None), ("c4 e3 79 18 c1 00", "vinsertf128 without L", "VexReserved"),
                             ("c4 e3 79 4a c1 21", "vblendvps with low bits in the register immediate", "VexReserved"), ("c4 e3 79 4a c1 20", "vblendvps (accepted)", None), ("c4 e2 7c f2 c1", "andn with L", "VexReserved"), ("c4 e2 78 f2 c1", "andn (accepted)", None), ("c4 e3 7f f0 c1 03", "rorx with L", "VexReserved"), ("c4 e3 73 f0 c1 03", "rorx with vvvv", "VexReserved"), ("c5 e8 77", "vzeroupper with vvvv", "VexReserved"), ("c5 f8 77", "vzeroupper (accepted)", None), ("c5 fc 77", "vzeroall (accepted)", None), ("c4 e1 f8 77", "vzeroupper with W", "VexReserved"),
                             ("c5 f2 10 c1", "vmovss of three registers (accepted)", None), ("65 67 c5 f2 10 00", "vmovss from memory with vvvv", "VexReserved"), ("65 67 c5 fa 10 00", "vmovss from memory (accepted)", None), ("65 67 c5 f2 11 00", "vmovss to memory with vvvv", "VexReserved"), ("c4 e0 78 28 c1", "VEX map 0", "0 NotAccepted"), ("c4 e4 78 28 c1", "VEX map 4", "0 NotAccepted"), ("c4 e5 78 28 c1", "VEX map 5", "0 NotAccepted"), ("c4 ff 78 28 c1", "VEX map 31", "0 NotAccepted"),
                             ("66 c5 f8 28 c1", "66 before VEX", "Prefix"), ("f3 c5 f8 28 c1", "F3 before VEX", "Prefix"), ("f2 c5 f8 28 c1", "F2 before VEX", "Prefix"), ("f0 c5 f8 28 c1", "lock before VEX", "Prefix"), ("40 c5 f8 28 c1", "REX before VEX", "Prefix"), ("48 c4 e1 78 28 c1", "REX.W before VEX", "Prefix"),
                             ("c5 fb 93 c0", "kmovd %k0, %eax", "0 NotAccepted"), ("c5 f8 92 c0", "kmovw %eax, %k0", "0 NotAccepted"), ("c5 f4 41 c2", "kandw", "0 NotAccepted"), ("c5 f8 ae 10", "vldmxcsr", "ControlState"), ("65 67 c5 f8 ae 10", "vldmxcsr confined", "ControlState"), ("65 67 c5 f8 ae 18", "vstmxcsr confined", "ControlState"), ("c4 e2 7d dc c1", "vaesenc of 256 bits", "VexReserved"), ("c4 e2 71 50 c1", "vpdpbusd of AVX-VNNI", "0 NotAccepted"), ("c4 e2 7a b0 00", "vbcstnebf162ps space", "0 NotAccepted"), ("c4 e3 f9 6b c9 20", "vfmaddsd of FMA4", "0 NotAccepted"), ("c4 e2 78 49 00", "ldtilecfg of AMX", "0 NotAccepted"), ("c4 e2 7b 4b 04 00", "tileloadd of AMX", "0 NotAccepted"), ("c4 e2 78 f3 c0", "group 17 /0", "0 NotAccepted"), ("c4 e2 79 f7 c1", "shlx (accepted)", None), ("c5 79 c5 c0 01", "vpextrw to r8d (accepted)", None), ("c5 f9 d7 00", "vpmovmskb from memory", "0 NotAccepted"),
                             ("62 f1 7c 48 28 c1", "vmovaps %zmm1, %zmm0", "Evex"), ("62 f1 7c 08 28 c1", "vmovaps %xmm1, %xmm0 with EVEX", "Evex"), ("65 67 62 f1 7c 48 11 00", "vmovups %zmm0, %gs:(%eax)", "Evex"), ("62 f1 fd 48 e7 00", "vmovntdq %zmm0, (%rax)", "Evex"), ("d5 00 58", "pop with REX2 of APX", "0 NotAccepted")]:
        full = None if rule is None else rule if rule[0].isdigit() else f"8 {rule}"
        case(d, f"vex-{what}-{code}", f"{what}", [(code, what), RET], full, 0x1000 if full else None)
    # Length
    case(d, "length-15", "fifteen bytes are allowed", [("65 67 f0 66 81 84 08 00 00 00 00 01 00", "lock addw $1, %gs:0(%eax,%ecx)"), RET])
    case(d, "length-too-long", "more than fifteen bytes by prefixes alone", [("66 " * 14 + "90 90", "nop with fourteen 66"), RET], "8 RepeatedPrefix", 0x1000)
    case(d, "length-truncated", "the text ends inside an instruction", [RET, "@ 0xffe", ("b8 00", "half of movl $0, %eax")], "0 Truncated", 0x1ffe)
    case(d, "length-truncated-prefix", "the text ends behind a prefix", [RET, "@ 0xfff", ("65", "gs and nothing")], "any")
    case(d, "length-truncated-opcode", "the text ends behind 0F", [RET, "@ 0xfff", ("0f", "0F and nothing")], "8 SegmentRegister", 0x1fff)
    for ins in ["endbr64", "nop", "pause", "lfence", "mfence", "sfence", "lahf", "sahf", "clc", "stc", "cmc", "cltq", "cqto", "cltd", "cwtl", "xchgw %ax, %ax", "nopw 0x0(%rax,%rax,1)", "xchgl %eax, %r8d", "movb %ah, %al"]:
        case(d, f"accepted-{ins}", f"accepted: {ins}", [ins, RET])
    for code, what in [("0f ae e9", "lfence with another number"), ("0f ae f7", "mfence with another number"), ("0f ae fa", "sfence with another number"), ("41 0f ae e8", "lfence with REX.B")]:
        case(d, f"fence-{what}-{code}", f"{what}", [(code, what), RET], "0 NotAccepted", 0x1000)
    case(d, "setcc-digit", "setcc with a reserved ModRM.reg", [("0f 94 c8", "sete %al with reg 1"), RET], "0 NotAccepted", 0x1000)


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


def rule10():
    d = "rule-10"
    case(d, "text-not-on-page", "text that does not start on a page", [RET], "0 TextMisplaced", text_address="0x1008", segment=["0x1008 0x1000 text"])
    case(d, "text-beyond-area", "text that ends beyond the area of images", [RET], "0 TextTooLarge", text_address="0x3ff00000", segment=["0x3fe00000 0x1000 text"])
    case(d, "text-last-page", "text in the last page of the area", [RET], text_address="0x3feff000", segment=["0x3feff000 0x1000 text"])
    case(d, "segments-overlap", "two segments overlap", [RET], "0 Segments", segment=["0x1000 0x1000 text", "0x2000 0x1000 data", "0x2fff 0x10 read-only"])
    case(d, "data-over-text", "a data segment lies over the text", [RET], "0 Segments", segment=["0x0 0x2000 data"])
    case(d, "data-over-text-tail", "a data segment lies over the text's last byte", [RET], "0 Segments", segment=["0x1000 0xfff text", "0x1fff 0x100 data"])
    case(d, "read-only-over-text", "a read-only segment lies over the text", [RET], "0 Segments", segment=["0x1800 0x100 read-only"])
    case(d, "segment-beyond-area", "a segment ends beyond the area of images", [RET], "0 Segments", segment=["0x1000 0x1000 text", "0x10000000 0xf0000000 data"])
    case(d, "segment-wraps", "a segment whose end wraps around 4 GiB", [RET], "0 Segments", segment=["0x1000 0x1000 text", "0xfffff000 0x2000 data"])
    case(d, "segment-empty", "empty segments mean nothing", [RET], segment=["0x1000 0x1000 text", "0x1800 0x0 data"])
    case(d, "no-segments", "without segments only accesses through gs are possible", ["movl %gs:(%edi), %eax", RET], segment=["0x0 0x0 data"])
    case(d, "no-segments-rip", "a RIP-relative load without segments", ["movl TEXT+0x1000(%rip), %eax", RET], "1 OutsideImage", 0x1000, segment=["0x0 0x0 data"])
    case(d, "segments-any-order", "segments need not be sorted", ["movl TEXT+0x1000(%rip), %eax", RET], segment=["0x2000 0x1000 data", "0x0 0x1000 read-only", "0x1000 0x1000 text"])
    case(d, "store-through-second-data", "two data segments that touch: an access must lie in one", ["movq %rax, TEXT+0x10fc(%rip)", RET], "1 OutsideImage", 0x1000, segment=["0x1000 0x1000 text", "0x2000 0x100 data", "0x2100 0x100 data"])
    case(d, "relro-hole", "a store into the read-only part between two data segments", ["movl %eax, TEXT+0x1100(%rip)", RET], "1 StoreToConstants", 0x1000, segment=["0x1000 0x1000 text", "0x2000 0x100 data", "0x2100 0x100 read-only", "0x2200 0x100 data"])


def accepted():
    """What compilers emit, by instruction-set extension: all of it confined, and accepted."""
    d = "accepted"
    M, N = "%gs:16(%edi,%ecx,8)", "%gs:(%r12d)"
    groups = {
        "arithmetic": ["addb %al, M", "addw $300, M", "adcl %eax, M", "sbbq M, %rax", "andl $-16, %eax", "orq $1, %rax", "xorb $1, M", "cmpb $0, M", "cmpw %ax, M", "subq $0x7fffffff, %rax", "addb $1, %al", "cmpl $1, %eax", "testb %al, %al", "testq $1, M", "incq M", "decb %al", "negl M", "notb %al"],
        "moves": ["movb $1, M", "movw $1, M", "movl $1, M", "movq $-1, M", "movabsq $0x123456789abcdef0, %rax", "movl $1, %r15d", "movzwl M, %eax", "movzbw M, %ax", "movsbl M, %eax", "movswq M, %rax", "movslq M, %r9", "movsbw %al, %ax", "cmovaeq M, %r12", "xchgb %al, M", "bswapl %eax", "bswapq %r12", "setg M", "setnp %r12b", "cltq", "cqto"],
        "multiply-divide": ["mull M", "imulq M", "imull $10, M, %eax", "imulq $1000, M, %rax", "divq M", "idivl %ecx", "mulb %cl", "imulw M, %ax"],
        "shifts-bits": ["shll $3, M", "shrq %cl, M", "sarb M", "roll $1, %eax", "rorw $3, M", "rclq %rax", "rcrl %cl, %eax", "shldq $3, %rax, M", "shrdl %cl, %eax, M", "btq $63, M", "btsl %eax, %ecx", "bsfq M, %rax", "bsrl M, %eax"],
        "atomics": ["lock xaddq %rax, M", "lock cmpxchgl %ecx, M", "lock cmpxchg16b M", "mfence", "lock orl $0, M", "xchgq %rax, M", "pause"],
        "sse": ["movss M, %xmm0", "movsd %xmm0, M", "movaps M, %xmm9", "movups %xmm9, M", "movdqa M, %xmm0", "movdqu %xmm0, M", "movd M, %xmm0", "movq %xmm0, M", "movq M, %xmm12", "movd %xmm0, %r12d", "movhps M, %xmm0", "movlpd %xmm0, M", "movhlps %xmm1, %xmm0", "addps M, %xmm0", "mulsd M, %xmm0", "divss M, %xmm0", "sqrtpd M, %xmm0", "cvtsi2sdl M, %xmm0", "cvtsi2ssq %rax, %xmm0", "cvttss2si M, %eax", "cvtsd2siq M, %rax", "cvtps2pd M, %xmm0", "cvtdq2ps M, %xmm0", "ucomisd M, %xmm0", "comiss %xmm1, %xmm0", "cmpltps M, %xmm0", "shufps $3, M, %xmm0", "unpcklpd M, %xmm0", "andnps M, %xmm0", "pxor M, %xmm0", "paddq M, %xmm0", "pmuludq M, %xmm0", "psrlq $3, %xmm0", "pslldq $4, %xmm0", "psrad %xmm1, %xmm0", "punpcklbw M, %xmm0", "pshufd $3, M, %xmm0", "packuswb M, %xmm0", "pextrw $1, %xmm0, %eax", "pinsrw $1, M, %xmm0", "pmovmskb %xmm0, %eax", "movmskpd %xmm0, %eax", "movntdq %xmm0, M", "movntiq %rax, M", "psadbw M, %xmm0", "prefetchnta M", "prefetcht2 M"],
        "ssse3-sse4": ["pshufb M, %xmm0", "palignr $3, M, %xmm0", "pabsd M, %xmm0", "haddpd M, %xmm0", "movddup M, %xmm0", "lddqu M, %xmm0", "fisttpl M", "pmulld M, %xmm0", "ptest M, %xmm0", "pminsd M, %xmm0", "pblendvb %xmm0, M, %xmm1", "roundsd $3, M, %xmm0", "pextrb $1, %xmm0, M", "pextrq $1, %xmm0, M", "pinsrq $1, M, %xmm0", "insertps $1, M, %xmm0", "extractps $1, %xmm0, M", "pmovzxbw M, %xmm0", "pmovsxdq M, %xmm0", "dpps $1, M, %xmm0", "pcmpistri $3, M, %xmm0", "pcmpestrm $3, M, %xmm0", "popcntq M, %rax", "popcntw M, %ax", "crc32b M, %eax", "crc32q M, %rax", "crc32w M, %eax", "movntdqa M, %xmm0", "phminposuw M, %xmm0"],
        "avx": ["vmovups M, %ymm0", "vmovaps %ymm9, M", "vmovdqu M, %ymm0", "vmovss M, %xmm0", "vmovsd %xmm0, M", "vmovss %xmm2, %xmm1, %xmm0", "vaddps M, %ymm1, %ymm0", "vmulsd M, %xmm1, %xmm0", "vsqrtss M, %xmm1, %xmm0", "vcvtsi2sdq %rax, %xmm1, %xmm0", "vcvttsd2si M, %eax", "vcvtpd2psy M, %xmm0", "vucomiss M, %xmm0", "vcmpeqpd M, %ymm1, %ymm0", "vshufps $3, M, %ymm1, %ymm0", "vbroadcastss M, %ymm0", "vbroadcastsd M, %ymm0", "vinsertf128 $1, M, %ymm1, %ymm0", "vextractf128 $1, %ymm0, M", "vperm2f128 $1, M, %ymm1, %ymm0", "vpermilps $1, M, %ymm0", "vblendvps %ymm2, M, %ymm1, %ymm0", "vmaskmovps M, %ymm1, %ymm0", "vmaskmovpd %ymm0, %ymm1, M", "vtestps M, %ymm0", "vzeroupper", "vzeroall", "vmovq %xmm0, %rax", "vmovd M, %xmm0", "vpinsrd $1, M, %xmm1, %xmm0", "vpextrw $1, %xmm0, M", "vmovhps M, %xmm1, %xmm0", "vmovlps %xmm0, M", "vmovntdq %ymm0, M", "vaesenc M, %xmm1, %xmm0", "vpclmulqdq $1, M, %xmm1, %xmm0", "vpsllw $3, %xmm1, %xmm0", "vpcmpeqb M, %xmm1, %xmm0", "vmovddup M, %ymm0", "vroundps $3, M, %ymm0", "vdpps $3, M, %ymm1, %ymm0", "vaddss %xmm10, %xmm9, %xmm8"],
        "avx2": ["vpaddd M, %ymm1, %ymm0", "vpshufb M, %ymm1, %ymm0", "vpsllvq M, %ymm1, %ymm0", "vpsravd M, %ymm1, %ymm0", "vpermq $3, M, %ymm0", "vpermd M, %ymm1, %ymm0", "vpermps M, %ymm1, %ymm0", "vpbroadcastb M, %ymm0", "vpbroadcastq %xmm1, %ymm0", "vbroadcasti128 M, %ymm0", "vinserti128 $1, M, %ymm1, %ymm0", "vextracti128 $1, %ymm0, M", "vperm2i128 $1, M, %ymm1, %ymm0", "vpblendd $1, M, %ymm1, %ymm0", "vpmaskmovd M, %ymm1, %ymm0", "vpmaskmovq %ymm0, %ymm1, M", "vpmovmskb %ymm0, %eax", "vpmovzxbd M, %ymm0", "vpmovsxbq M, %ymm0", "vpsrldq $4, %ymm1, %ymm0", "vpblendvb %ymm2, M, %ymm1, %ymm0", "vpackusdw M, %ymm1, %ymm0", "vmovntdqa M, %ymm0"],
        "fma-f16c": ["vfmadd132ps M, %ymm1, %ymm0", "vfmadd213sd M, %xmm1, %xmm0", "vfnmadd231ss M, %xmm1, %xmm0", "vfmsub231pd M, %xmm1, %xmm0", "vfmaddsub132pd M, %ymm1, %ymm0", "vfnmsub213ps M, %xmm1, %xmm0", "vfmsubadd231ps M, %ymm1, %ymm0", "vcvtph2ps M, %ymm0", "vcvtps2ph $3, %ymm0, M"],
        "bmi": ["andnq M, %rax, %rcx", "bextrl %eax, M, %ecx", "blsrq M, %rax", "blsil %eax, %ecx", "blsmskq M, %rax", "bzhil %eax, M, %ecx", "mulxq M, %rax, %rcx", "pdepl M, %eax, %ecx", "pextq M, %rax, %rcx", "rorxq $3, M, %rax", "sarxl %eax, M, %ecx", "shlxq %rax, M, %rcx", "shrxq %rax, M, %rcx", "tzcntq M, %rax", "lzcntl M, %eax", "tzcntw M, %ax"],
        "crypto-other": ["aesenc M, %xmm0", "aesdeclast M, %xmm0", "aesimc M, %xmm0", "aeskeygenassist $1, M, %xmm0", "pclmulqdq $1, M, %xmm0", "sha1rnds4 $1, M, %xmm0", "sha256rnds2 %xmm0, M, %xmm1", "sha256msg1 M, %xmm0", "sha1nexte M, %xmm0", "movbeq M, %rax", "movbew %ax, M", "adcxl M, %eax", "adoxq M, %rax"],
        "x87": ["flds M", "fldl M", "fldt M", "fstpt M", "fsts M", "fildl M", "fildll M", "fistpl M", "fadds M", "fmull M", "fiaddl M", "ficoms M", "fld %st(1)", "fxch %st(2)", "fadd %st(1), %st", "fmulp %st, %st(1)", "fdivrp %st, %st(1)", "fucomip %st(1), %st", "fcomi %st(1), %st", "fcmove %st(1), %st", "fchs", "fabs", "fsqrt", "fsin", "fpatan", "fprem", "fyl2x", "frndint", "fscale", "f2xm1", "fld1", "fldpi", "fxam", "ftst", "fnstsw %ax", "fnstcw M", "fstp %st(0)", "fucompp", "fcompp", "fnop", "fwait"],
    }
    for group, lines in groups.items():
        for line in lines:
            ins = re.sub(r"\bM\b", M, line)
            case(d, f"{group}-{line}", f"{group}: {line}", [ins, RET])
        several = [re.sub(r"\bM\b", N, line) for line in lines]
        case(d, f"all-of-{group}", f"all of {group} in one function, operands at r12", several + [RET], report="mentions-r12" if any("M" in l for l in lines) else "depth=0")
    case(d, "all-general-registers", "every register pushed and popped that may be", [f"push %{r}" for r in "rax rbx rcx rdx rsi rdi rbp r8 r9 r10 r11 r12 r13 r14 r15".split()] + ["addq $8, %rax", "pop %r15", "pop %rax", "pop %r13", "pop %r12"] + [f"pop %{r}" for r in "r11 r10 r9 r8 rbp rdi rsi rdx rcx rbx rax".split()] + [RET], report="depth=120 writes-rbx writes-rbp writes-r12 writes-r13 writes-r15")


def assemble():
    """Turns the assembly lines of all cases into bytes, in one run of the assembler."""
    source, marks = [], {}
    for n, (path, (header, code)) in enumerate(sorted(cases.items())):
        source += [".p2align 14, 0xcc", f"case{n}:"]
        for i, line in enumerate(code):
            if isinstance(line, str) and line.startswith("@ "):
                source.append(f".org case{n} + {line[2:]}, 0xcc")
                continue
            source.append(f"c{n}_{i}:")
            if isinstance(line, tuple):
                source.append(".byte " + ", ".join("0x" + b for b in line[0].split()))
            else:
                source.append(line.replace("TEXT", f"case{n}"))
            source.append(f"e{n}_{i}:")
    with tempfile.TemporaryDirectory() as tmp:
        with open(f"{tmp}/all.s", "w") as f:
            f.write("\n".join(source) + "\n")
        subprocess.run(["as", "-o", f"{tmp}/all.o", f"{tmp}/all.s"], check=True)
        undefined = subprocess.run(["objdump", "-r", f"{tmp}/all.o"], check=True, capture_output=True, text=True).stdout
        assert "R_X86_64" not in undefined, undefined
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", f"{tmp}/all.o", f"{tmp}/all.bin"], check=True)
        symbols = {}
        for line in subprocess.run(["nm", f"{tmp}/all.o"], check=True, capture_output=True, text=True).stdout.splitlines():
            value, _, name = line.split()
            symbols[name] = int(value, 16)
        with open(f"{tmp}/all.bin", "rb") as f:
            binary = f.read()
    for n, (path, (header, code)) in enumerate(sorted(cases.items())):
        yield path, header, [line if isinstance(line, str) and line.startswith("@ ") else
                             (binary[symbols[f"c{n}_{i}"]:symbols[f"e{n}_{i}"]].hex(" "), line[1] if isinstance(line, tuple) else line.replace("TEXT", "text"))
                             for i, line in enumerate(code)]


def main():
    for family in (rule1, rule2, rule3, pads, rule4, rule5, rule6, rule7, rule8, rule9, rule10, accepted):
        family()
    for path, header, code in assemble():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write("\n".join(header) + "\n\n")
            for line in code:
                f.write(line + "\n" if isinstance(line, str) else f"{line[0]:<32}  {line[1]}".rstrip() + "\n")
    print(f"{len(cases)} cases written")


if __name__ == "__main__":
    main()
