#!/usr/bin/env python3
"""Checks the names in the C headers against the rules at the top of ringfence.h, and against a library.

  headers.py [LIBRARY]
"""

import pathlib
import re
import subprocess
import sys

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
HOST = INCLUDE / "ringfence" / "host"
ALONE = {"rf_error", "rf_version"}  # a noun that is all there is to say
STATUS = ("RF_OK", "RF_ERROR_", "RF_FAULT_")


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def functions(text):
    """Names of the functions that a header declares (inline ones too), in order."""
    code = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", without_comments(text), flags=re.M)
    return re.findall(r"^(?:static inline )?[a-z_][\w ]*?[ *]+(rf_\w+)\(", code, re.M)


def enums(text):
    """(name or None, enumerators) of each enum."""
    for body, name in re.findall(r"enum(?: rf_\w+)? \{(.*?)\} ?(rf_\w+)?;", without_comments(text), re.S):
        yield name or None, re.findall(r"\b(RF_\w+)", body)


def macros(text):
    return set(re.findall(r"#define (\w+)", text))


def undocumented(text):
    """Functions whose block, up to the last empty line before them, has no comment. Inline ones say all themselves."""
    for block in re.split(r"\n\s*\n", text):
        if "/*" not in block and "*/" not in block:
            yield from (name for name in functions(block) if "static inline" not in block)


def names(headers):
    for noun, text in headers.items():
        prefix = "rf_dl" if noun == "dl" else f"rf_{noun}_"
        for name in functions(text):
            if not name.startswith(prefix) and name not in ALONE:
                yield f"{noun}.h: {name} does not begin with {prefix}"
        for name, members in enums(text):
            prefixes = STATUS if name == "rf_status" else (f"{name.upper()}_",) if name else ("RF_",)
            for member in members:
                if not member.startswith(prefixes):
                    yield f"{noun}.h: {member} of {name} does not begin with {prefixes[0]}"
        for name in undocumented(text):
            yield f"{noun}.h: {name} is not documented"


def pairs(declared):
    made = {re.sub(r"_create\w*$", "", n) for n in declared if "_create" in n}
    ended = {n.removesuffix("_destroy") for n in declared if n.endswith("_destroy")}
    for noun in sorted(made ^ ended):
        yield f"{noun} has no {noun}_create or no {noun}_destroy"
    for name in declared:
        if re.search(r"_(open|close|new|delete|put|release)$", name):
            yield f"{name}: handles are made by _create and ended by _destroy"


def main(library=None):
    headers = {p.stem: p.read_text() for p in sorted(HOST.glob("*.h"))}
    declared = {n for text in headers.values() for n in functions(text)}
    outside = (INCLUDE / "ringfence" / "module.h").read_text()
    wrong = [*names(headers), *pairs(declared)]

    included = re.findall(r"#include <ringfence/host/(\w+)\.h>", (INCLUDE / "ringfence.h").read_text())
    for noun in sorted(set(headers) ^ set(included)):
        wrong.append(f"ringfence.h and ringfence/host/ disagree about {noun}.h")

    host = set().union(*map(macros, headers.values()), *(m for t in headers.values() for _, m in enums(t)))
    module = macros(outside) | {m for _, members in enums(outside) for m in members}
    wrong += [f"{name} means two things, on the host's side and on the module's" for name in sorted(host & module)]

    if library:
        listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
        exported = set(re.findall(r" T (rf_\w+)", listed))
        inline = {n for text in headers.values() for n in re.findall(r"static inline \w+ (rf_\w+)\(", text)}
        wrong += [f"{name} is declared or exported, not both" for name in sorted(exported ^ (declared - inline))]

    print("\n".join(wrong), end="\n" if wrong else "")
    print(f"headers: {len(declared)} functions in {len(headers)} headers, {len(wrong)} mistakes")
    return 1 if wrong or len(declared) < 90 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
