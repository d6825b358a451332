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
WIDTH = 100
ROOMS = ("apps", "bench", "bindings", "crates", "docs", "include", "integrations", "modules", "scripts", "sysroot", "tests")


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


def links(page):
    """Links to files and headings of the tree lead somewhere."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, heading = target.partition("#")
        to = (page.parent / name).resolve() if name else page
        if not to.exists():
            yield f"{page.relative_to(ROOT)}: a link leads to {target}, which is not there"
        elif heading and heading not in headings(to):
            yield f"{page.relative_to(ROOT)}: {to.relative_to(ROOT)} has no heading #{heading}"


def headings(page):
    """The anchors of a page's headings."""
    for line in re.findall(r"^#+ (.*)$", page.read_text(), re.M):
        yield re.sub(r"[^\w -]", "", line.lower()).strip().replace(" ", "-")


def opens(page):
    """A page's first words say whom it is for."""
    first = [line for line in page.read_text().splitlines() if line and not line.startswith("#")][:1]
    if not first or not first[0].startswith("For "):
        yield f"{page.relative_to(ROOT)}: does not open with whom it is for"


def in_book(pages):
    """Every page below docs/ is in the book."""
    summary = (ROOT / "docs/SUMMARY.md").read_text()
    for page in pages:
        if ROOT / "docs" in page.parents and page.name != "SUMMARY.md" and f"({page.relative_to(ROOT / 'docs')})" not in summary:
            yield f"docs/SUMMARY.md lacks {page.relative_to(ROOT)}"


def width(page):
    """Prose is wrapped at 100, but for what cannot be broken."""
    text = re.sub(r"```.*?```|<!--.*?-->", lambda m: "\n" * m[0].count("\n"), page.read_text(), flags=re.S)
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > WIDTH and not re.match(r"\||    |<|#|\[", line.lstrip(" ")) and not line.startswith("    "):
            yield f"{page.relative_to(ROOT)}: {number}: {len(line)} characters; wrap at 100"


def options(page):
    """Options that `ringfence …` is shown with are known to it: to clap by a field's name, to the compiler driver by a
    literal."""
    sources = [*ROOT.glob("crates/cli/src/*.rs"), *ROOT.glob("crates/driver/src/**/*.rs"), *ROOT.glob("crates/rewrite/src/*.rs")]
    code = "\n".join(p.read_text() for p in sources)
    table = (ROOT / "crates/core/src/options.rs").read_text().split("\noptions! {")[1]
    for line in re.findall(r"\bringfence (?:cc|c\+\+|run|call|verify|inspect)\b[^`\n|]*", page.read_text()):
        for option in re.findall(r"(?<![\w,=-])--([a-z][a-z-]+)", line.split(" -- ")[0]):
            known = f'"--{option}' in code or f'long = "{option}"' in code or re.search(rf"^    {option.replace('-', '_')}: ", code + table, re.M)
            # configure's and make's own, on the same line
            if not known and option not in ("build", "host", "disable-shared"):
                yield f"{page.relative_to(ROOT)}: ringfence has no --{option}: {line.strip()}"


def main():
    if sys.argv[1:] == ["--copy-examples"]:
        return copy_examples()
    pages = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md", ROOT / "RELEASES.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    wrong = list(examples())
    for page in pages:
        if ROOT / "docs" in page.parents and page.name != "SUMMARY.md":
            wrong += opens(page)
        wrong += [*named_files(page), *targets(page), *cargo_targets(page), *options(page), *links(page), *width(page)]
    wrong += in_book(pages)
    print("\n".join(wrong), end="\n" if wrong else "")
    checks = 7 * len(pages) + len(EXAMPLES) + 1
    print(f"pages: {checks - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
