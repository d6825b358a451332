#!/usr/bin/env python3
"""Checks that the pages agree with the tree: examples are the files that tests compile, named files and targets exist.

  check_docs.py                   the check
  check_docs.py --copy-examples   copies the examples into the README
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = {"c": "tests/api/readme.c", "rust": "crates/ringfence/examples/readme.rs"}
ROOMS = ("apps", "bench", "crates", "docs", "include", "modules", "scripts", "sysroot", "tests")


def examples():
    """The README's examples are compiled files, verbatim."""
    blocks = dict(re.findall(r"```(c|rust)\n(.*?)```", (ROOT / "README.md").read_text(), re.S))
    for language, name in EXAMPLES.items():
        want = (ROOT / name).read_text() if (ROOT / name).exists() else None
        if want is None or blocks.get(language, "").strip() != want.strip():
            yield f"README.md: the {language} example is not {name}"


def copy_examples():
    """Brings the README's examples up to date."""
    page = ROOT / "README.md"
    text = page.read_text()
    for language, name in EXAMPLES.items():
        block = f"```{language}\n{(ROOT / name).read_text().strip()}\n```"
        text = re.sub(rf"```{language}\n.*?```", lambda _: block, text, count=1, flags=re.S)
    page.write_text(text)


def named_files(page):
    """Paths in backticks exist."""
    for path in re.findall(r"`((?:%s)/[\w./*-]*)" % "|".join(ROOMS), page.read_text()):
        if not list(ROOT.glob(path.rstrip("/.").rstrip("/") or ".")):
            yield f"{page.relative_to(ROOT)}: there is no {path}"


def targets(page):
    """`make X` is a target."""
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for target in re.findall(r"\bmake ([a-z]+)`", page.read_text()):
        if target not in known:
            yield f"{page.relative_to(ROOT)}: make has no target {target}"


def cargo_targets(page):
    """Examples and tests that cargo is told to run exist."""
    for kind, folder in (("example", "examples"), ("test", "tests")):
        for name in re.findall(rf"\bcargo [^`\n]*--{kind} ([\w-]+)", page.read_text()):
            if not list(ROOT.glob(f"*/*/{folder}/{name}.rs")):
                yield f"{page.relative_to(ROOT)}: cargo finds no {kind} {name}"


def options(page):
    """Options that `ringfence …` is shown with are known to it: to clap by a field's name, to the compiler driver by a
    literal."""
    sources = [*ROOT.glob("crates/cli/src/*.rs"), *ROOT.glob("crates/driver/src/**/*.rs"), *ROOT.glob("crates/rewrite/src/*.rs")]
    code = "\n".join(p.read_text() for p in sources)
    for line in re.findall(r"\bringfence (?:cc|c\+\+|run|call|verify|inspect)\b[^`\n|]*", page.read_text()):
        for option in re.findall(r"(?<![\w,=-])--([a-z][a-z-]+)", line.split(" -- ")[0]):
            known = f'"--{option}' in code or f'long = "{option}"' in code or re.search(rf"^    {option.replace('-', '_')}: ", code, re.M)
            # configure's and make's own, on the same line
            if not known and option not in ("host", "disable-shared"):
                yield f"{page.relative_to(ROOT)}: ringfence has no --{option}: {line.strip()}"


def main():
    if sys.argv[1:] == ["--copy-examples"]:
        return copy_examples()
    pages = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    wrong = list(examples())
    for page in pages:
        wrong += [*named_files(page), *targets(page), *cargo_targets(page), *options(page)]
    print("\n".join(wrong), end="\n" if wrong else "")
    checks = 4 * len(pages) + len(EXAMPLES)
    print(f"pages: {checks - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
