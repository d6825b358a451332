#!/usr/bin/env python3
"""Prints the cases of the verifier, or those with WORD in their names: generate.py [WORD]. See README.md; needs GNU as, nm, objdump
and objcopy."""

import subprocess
import sys
import tempfile

from families import accepted, control, held, memory, stack, state, strings, tables, words
from families.common import cases


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
    for families in (memory, held, stack, control, tables, strings, state, accepted, words):
        families.write()
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for path, header, code in assemble():
        if wanted not in path:
            continue
        print(f"=== {path}")
        print("\n".join(header) + "\n")
        for line in code:
            print(line if isinstance(line, str) else f"{line[0]:<32}  {line[1]}".rstrip())


if __name__ == "__main__":
    main()
