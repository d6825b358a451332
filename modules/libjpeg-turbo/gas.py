#!/usr/bin/env python3
"""Turns an object of NASM's into assembly that gcc takes, or with --fenced `ringfence cc`: gas.py [--fenced] OBJECT >FILE.s

For the fence: libjpeg-turbo's functions use r11, r14 and r15, which the fence has taken. Their arguments come in rdi, rsi, rdx, rcx, r8, r9 and go to
r10 to r15; what comes as r8 and r9 stays there, r11 gets a register that the function leaves alone, and vectors in the frame are reached
from rbp, which is aligned to 16 bytes: as far as 32 were asked for, moves become unaligned ones.
"""

import re
import subprocess
import sys

WIDTHS = {
    **{n: (f"r{n}", f"r{n}d", f"r{n}w", f"r{n}b") for n in range(8, 16)},
    "bp": ("rbp", "ebp", "bp", "bpl"),
    "bx": ("rbx", "ebx", "bx", "bl"),
}


def objdump(*args):
    return subprocess.run(["objdump", *args], capture_output=True, text=True, check=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def decimal(match):
    number = int(match[0], 16)
    return str(number - (1 << 64) if number >> 63 else number)


class Function:
    def __init__(self, name):
        self.name, self.code = name, []  # (address, text, relocation)

    def uses(self, register):
        names = "|".join(WIDTHS[register])
        return [text for _, text, _ in self.code if re.search(rf"%({names})\b", text)]

    def rename(self, old, new):
        names = dict(zip(WIDTHS[old], WIDTHS[new]))
        pattern = re.compile(r"%(" + "|".join(WIDTHS[old]) + r")\b")
        self.code = [(at, pattern.sub(lambda m: "%" + names[m[1]], text), to) for at, text, to in self.code]

    def drop(self, *texts):
        self.code = [(at, "" if text in texts else text, to) for at, text, to in self.code]

    def replace(self, old, new):
        self.code = [(at, new if text == old else text, to) for at, text, to in self.code]

    def save(self, old, new=None):
        """Where `old` was saved, `new` is, or nothing: the space keeps what lies behind it aligned."""
        if new and self.uses(new):
            raise SystemExit(f"gas.py: {self.name}: {WIDTHS[new][0]} is not free for r{old}")
        self.replace(f"pushq %r{old}", f"pushq %{WIDTHS[new][0]}" if new else "subq $8,%rsp")
        self.replace(f"popq %r{old}", f"popq %{WIDTHS[new][0]}" if new else "addq $8,%rsp")

    def free_frame(self):
        """Makes rbp free, which is saved, if nothing but the stack pointer is kept there. Whether it could."""
        if not set(self.uses("bp")) <= {"pushq %rbp", "movq %rsp,%rbp", "popq %rbp", "movq %rbp,%rsp"}:
            return False
        self.drop("movq %rsp,%rbp")
        self.replace("movq %rbp,%rsp", "addq $16,%rsp")
        return True

    def fence(self):
        """Leaves r11, r14 and r15 alone."""
        texts = [text for _, text, _ in self.code]
        vectors = "movq %rsp,%r15" in texts
        if vectors:
            size = next(int(m[1]) for text in texts if (m := re.fullmatch(r"andq \$-(\d+),%rsp", text)))
            self.replace(f"andq $-{size},%rsp", f"subq ${size},%rsp")
            self.replace("leaq -8(%rbp),%rsp", "movq %rbp,%rsp")
            self.drop("movq %rsp,%r15", "pushq %r15", "popq %r15")
            move = lambda m: f"{int(m[1] or 0) - size}(%rbp"
            self.code = [(at, re.sub(r"(-?\d+)?\(%r15", move, text), to) for at, text, to in self.code]
        else:
            self.drop("andq $-16,%rsp")
        others = {n: set(self.uses(n)) - {"movq %r8,%r14", "movl %r8d,%r14d", "movq %r9,%r15", "movl %r9d,%r15d"} for n in (8, 9)}
        if "movq %r9,%r15" in texts and others[9]:
            # The value stays on the stack, and comes to rcx, which holds nothing where it is needed.
            self.replace("pushq %r15", "pushq %r9")
            self.replace("popq %r15", "addq $8,%rsp")
            self.drop("movq %r9,%r15")
            load = lambda text: f"movq (%rsp),%rcx; {text.replace('%r15', '%rcx')}" if "(%r15)" in text else text
            self.code = [(at, load(text), to) for at, text, to in self.code]
        elif "movq %r9,%r15" in texts:
            self.save(15)
            self.drop("movq %r9,%r15")
            self.rename(15, 9)
        elif self.uses(15):
            self.save(15, 13)
            self.rename(15, 13)
        if not others[8] and self.uses(14):
            self.save(14)
            self.drop("movq %r8,%r14", "movl %r8d,%r14d")
            self.rename(14, 8)
        elif self.uses(14) and self.free_frame():
            self.save(14)
            self.rename(14, "bp")
        if self.uses(11):
            if free := [n for n in (8, 9) if not self.uses(n)]:
                self.save(11)
                self.rename(11, free[0])
            elif not self.uses("bx"):
                self.save(11, "bx")
                self.rename(11, "bx")
            elif self.free_frame():
                self.save(11)
                self.rename(11, "bp")
        self.save(10)
        # rsp is no general register: where the frame begins goes through rbx, which holds nothing there.
        self.replace("subl %esp,%edi", "movq %rsp,%rbx; subl %ebx,%edi")
        self.code = [(at, text.replace("vmovdqa ", "vmovdqu "), to) for at, text, to in self.code]
        for register in (11, 14, 15):
            if left := self.uses(register):
                raise SystemExit(f"gas.py: {self.name}: no register for r{register} in: {left[0]}")


def functions(path, names):
    """The functions of the object, and the addresses that are jumped to from behind."""
    found, targets = [], {}
    for line in objdump("-dr", "-w", "-M", "suffix", "--no-show-raw-insn", "-j", ".text", path).splitlines():
        relocation = re.search(r"\t([0-9a-f]+): R_\S+\s+(\S+)$", line)
        if m := re.match(r"\s+([0-9a-f]+):\t(.*)", line):
            at, text = int(m[1], 16), " ".join(re.split("[#\t]", m[2])[0].split())
            if at in names:
                found.append(Function(names[at]))
            if m := re.match(r"(j\w+|call\w*) ([0-9a-f]+) <", text):
                to = int(m[2], 16)
                targets.setdefault(to, False)
                targets[to] |= to <= at and not m[1].startswith("call")
                text = f"{m[1]} " + (names[to] if to in names else f".L{to}")
            text = re.sub(r"^(jmp|call|ret)q", r"\1", text)
            if re.match(r"(\S+ )*nop|xchg[wq] %ax,%ax|data16|cld$", text):
                text = ""
            found[-1].code.append((at, re.sub(r"0x[0-9a-f]+", decimal, text) if not text.startswith("j") else text,
                                   relocation and (int(relocation[1], 16), relocation[2])))
    return found, targets


def main(path, fenced):
    symbols = [line.split() for line in objdump("-t", path).splitlines() if re.match(r"[0-9a-f]{16}", line)]
    known = {s: {int(f[0], 16): f[-1] for f in symbols if s in f and f[1] == "g"} for s in (".text", ".rodata")}
    found, targets = functions(path, known[".text"]) if known[".text"] else ([], {})
    print("\t.text")
    for n, function in enumerate(found):
        ends = [at for at, _, _ in function.code[1:]]
        ends.append(found[n + 1].code[0][0] if n + 1 < len(found) else function.code[-1][0] + 16)
        after = dict(zip((at for at, _, _ in function.code), ends))
        if fenced:
            function.fence()
        name = function.name
        print(f"\t.p2align 5\n\t.globl {name}\n\t.hidden {name}\n\t.type {name}, @function\n{name}:")
        for at, text, relocation in function.code:
            if at in targets and at not in known[".text"]:
                print("\t.p2align 4" * targets[at] + f"\n.L{at}:")
            if relocation:
                where, symbol = relocation
                m = re.fullmatch(r"([^+-]+?)([+-]0x[0-9a-f]+)?", symbol)
                to = int(m[2] or "0", 16) + after[at] - where
                base = ".Lrodata" if m[1] == ".rodata" else m[1]
                text = re.sub(r"-?\d+\(%rip\)", f"{base}+{to}(%rip)" if to else f"{base}(%rip)", text)
            if text:
                print("\t" + text)
        print(f"\t.size {name}, .-{name}")
    # Constants, with the names that others know them by.
    data = bytearray()
    for line in objdump("-s", "-j", ".rodata", path).splitlines() if any(".rodata" in f for f in symbols) else []:
        if m := re.match(r" [0-9a-f]+ ((?:[0-9a-f]{2,8} ){1,4})", line):
            data += bytes.fromhex(m[1])
    if data:
        print("\t.section .rodata\n\t.p2align 5\n.Lrodata:")
        cuts = sorted({0, len(data), *known[".rodata"]})
        for begin, end in zip(cuts, cuts[1:]):
            if name := known[".rodata"].get(begin):
                print(f"\t.globl {name}\n\t.hidden {name}\n\t.type {name}, @object\n{name}:")
            for at in range(begin, end, 16):
                print("\t.byte " + ", ".join(map(str, data[at:min(at + 16, end)])))
    print('\t.section .note.GNU-stack,"",@progbits')


main(sys.argv[-1], "--fenced" in sys.argv)
