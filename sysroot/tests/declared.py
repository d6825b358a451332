#!/usr/bin/env python3
"""Checks the libc against its headers: what is exported is declared in one, and each declared function is exported.

A configure script finds what no header declares by a link, and calls it with the types of an undeclared function, which cuts
pointers.

    sysroot/tests/declared.py        needs build/sysroot (sysroot/build.sh) and the command ringfence
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SYSROOT = ROOT / "build/sysroot"
RINGFENCE = os.environ.get("RINGFENCE", str(ROOT / "target/release/ringfence"))
LIBRARIES = ("libc", "libm", "libcrypt", "libdl", "libpthread", "libresolv")

# The kernel's own: they declare no functions of the libc.
KERNEL = ("asm/", "asm-generic/", "drm/", "linux/", "misc/", "mtd/", "rdma/", "sound/", "video/", "xen/", "scsi/")
# `alloca` is the compiler's.
COMPILER = {"alloca"}
# The rewriter's: it has code for their calls (docs/rewriter.md).
REWRITER = {"setjmp", "_setjmp", "sigsetjmp"}
# Declared by musl for other processors or for nobody: it has none of them either.
NOT_IN_MUSL = {"cachectl", "cacheflush", "_flush_cache", "getcontext", "makecontext", "setcontext", "swapcontext", "sgetspent"}
NOT_IN_MUSL |= {"pthread_mutexattr_getprioceiling", "pthread_mutexattr_setprioceiling"}
# Functions that a domain cannot have: a link that names them fails (docs/porting.md).
NOT_FENCED = {"clone"}
# Exported for old programs, declared by no standard any more.
NOT_DECLARED = {"gets"}


def compiler():
    """gcc with the flags that modules are compiled with, to look at C and build nothing."""
    told = subprocess.run([RINGFENCE, "cc", "--print-flags"], capture_output=True, text=True, check=True).stdout
    flags = next(line for line in told.splitlines() if line.startswith("compile:")).split(":", 1)[1].split()
    # The compiler's own headers stay, the sysroot's are those that were built.
    return ["gcc", *(f for f in flags if not f.startswith("-W")), "-D_GNU_SOURCE", "-w", "-fsyntax-only"]


def including(headers):
    """C that includes all of these."""
    return "".join(f"#include <{h}>\n" for h in headers)


def declared(headers, gcc):
    """Functions that headers of the libc declare, without inline ones: name to header."""
    found = {}
    with tempfile.TemporaryDirectory() as place:
        source, told = Path(place, "all.c"), Path(place, "told")
        source.write_text(including(headers))
        subprocess.run([*gcc, "-aux-info", str(told), str(source)], check=True)
        for line in told.read_text().splitlines():
            head = re.match(r"/\* (.+?):\d+:\w+ \*/ extern (.*)", line)
            if not head or "/sysroot/include/" not in head[1]:
                continue
            header = head[1].split("/sysroot/include/")[1]
            # `int f (…)`, or what gives a pointer to a function: `void (*f (…))(int)`
            name = re.search(r"\(\*(\w+) \(", head[2]) or re.search(r"(\w+) \(", head[2])
            if name and not header.startswith(("ringfence/", "c++/", *KERNEL)):
                found[name[1]] = header
    return found


def exported():
    """What the libraries have: functions, and variables."""
    files = [str(SYSROOT / f"lib/{name}.a") for name in LIBRARIES]
    table = subprocess.run(["readelf", "-sW", *files], capture_output=True, text=True, check=True).stdout
    functions, variables = set(), set()
    for line in table.splitlines():
        match line.split():
            case [_, _, _, kind, "GLOBAL" | "WEAK", "DEFAULT", place, name] if place != "UND":
                (variables if kind in ("OBJECT", "TLS") else functions).add(name)
    return functions, variables


def undeclared(variables, headers, gcc):
    """Which of these variables no header declares, by what gcc says of their uses; some are macros as well."""
    uses = "".join(f"__typeof__({v}) *use_{v};\n" for v in variables)
    command = [*gcc, "-fdiagnostics-color=never", "-x", "c", "-"]
    told = subprocess.run(command, input=including(headers) + uses, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    found = set(re.findall(r"error: '(\w+)' undeclared", told.stderr))
    if told.returncode and not found:
        sys.exit(f"declared.py: {told.stderr}")
    return found


def main():
    include = SYSROOT / "include"
    names = (str(h.relative_to(include)) for h in sorted(include.rglob("*.h")))
    own = [h for h in names if not h.startswith(("c++/", "bits/", "ringfence/", *KERNEL)) and h != "tgmath.h"]
    gcc = compiler()
    there, variables = exported()
    variables = sorted(v for v in variables if not v.startswith("_"))
    said = declared(own, gcc)
    compared = len(there & said.keys()) + len(variables)
    if compared < 1200:
        sys.exit(f"declared.py: {compared} names are too few: {SYSROOT} is not whole, or gcc tells declarations in another way")
    mistakes = []
    for name in sorted(there - said.keys() - NOT_DECLARED):
        if not name.startswith("_"):
            mistakes.append(f"{name} is exported, and no header declares it")
    for name in sorted(undeclared(variables, own, gcc)):
        mistakes.append(f"the variable {name} is exported, and no header declares it")
    for name in sorted(said.keys() - there - COMPILER - REWRITER - NOT_IN_MUSL - NOT_FENCED):
        mistakes.append(f"{said[name]} declares {name}, and no library has it")
    # A name that is listed here for nothing hides the next mistake.
    for name in sorted((NOT_IN_MUSL | NOT_FENCED) & there | NOT_DECLARED - there):
        mistakes.append(f"{name} is listed in declared.py and need not be")
    for mistake in mistakes:
        print(f"declared.py: {mistake}")
    print(f"declared: {compared - len(mistakes)} passed, {len(mistakes)} failed")
    sys.exit(bool(mistakes))


if __name__ == "__main__":
    main()
