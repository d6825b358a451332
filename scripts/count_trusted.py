#!/usr/bin/env python3
"""Counts the verifier's trusted text, and fails where it is larger than promised.

Trusted is all of crates/verify/src that decides: everything but the tables (table.rs), what decides nothing (OTHERS, the same files
that docs/verifier.md says are not trusted) and tests. A line of code is one that is neither empty nor a comment only.

  count_trusted.py      the lines of each file, and the sum
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / "crates/verify/src"
TABLES = {"table.rs"}
OTHERS = {"depths.rs", "identifiers.rs", "messages.rs", "reason.rs", "report.rs", "summary.rs", "why.rs"}
MOST = 2550


def count(path):
    """All lines, and those of code, before a file's tests."""
    lines = path.read_text().split("#[cfg(test)]\nmod tests")[0].splitlines()
    code = [line for line in lines if line.strip() and not line.strip().startswith("//")]
    return len(lines), len(code)


def untrusted_of_the_page():
    """The files that docs/verifier.md says decide nothing."""
    rows = (ROOT / "docs/verifier.md").read_text().splitlines()
    named = [row.split("|")[1] for row in rows if row.startswith("| `") and row.rstrip().endswith("| no |")]
    return {name.strip(" `") for row in named for name in row.split(",")}


def main():
    """The check."""
    files = sorted(p for p in SOURCES.rglob("*.rs") if p.name != "tests.rs" and p.name not in TABLES | OTHERS)
    total = code = 0
    for path in files:
        lines, of_code = count(path)
        print(f"{of_code:5} of {lines:5}  {path.relative_to(SOURCES)}")
        total, code = total + lines, code + of_code
    print(f"{code:5} of {total:5}  lines of code of all lines; most: {MOST}")
    if untrusted_of_the_page() != OTHERS:
        sys.exit(f"docs/verifier.md names others that decide nothing: {sorted(untrusted_of_the_page())}")
    if code > MOST:
        sys.exit("the trusted text is larger than promised")


if __name__ == "__main__":
    main()
