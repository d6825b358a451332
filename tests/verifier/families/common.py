"""What all families are written with: see ../README.md.

A case is a list of lines. A line is either AT&T assembly, or raw bytes as a tuple (hex, what they are), or "@ OFFSET".
In assembly, TEXT is the address of the case's first byte, so that `movl TEXT+0x1000(%rip), %eax` reads the data page.
"""

import re

cases = {}


def case(directory, name, what, code, rule=None, at=None, **header):
    """Notes down one case. `rule` is None for accepted code, else e.g. "1 Unconfined"."""
    name = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    path = f"{directory}/{name}"
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
