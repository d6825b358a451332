#!/usr/bin/env python3
"""Checks who imports whom: rooms import one way only, and files do not import each other in circles.

    scripts/check_imports.py            checks all crates
    scripts/check_imports.py --edges CRATE   prints a crate's imports, file by file

Reads the `use` items and path expressions (`crate::…`, `super::…`, `self::…`, and paths that begin
with a module's name) of each Rust file, without its tests. A path counts for the file that defines
what it names: a file of nothing but `mod` and `use` items, a room's head, hands it through.
The last line is `imports: N passed, M failed`, N being the files read.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The rooms of a crate, each after those that it may import from. A room is a folder below `src`, or
# a file beside it; what is not listed (`lib.rs`) may import all.
ROOMS = {
    "crates/runtime": ["os", "load", "lanes", "place", "words", "domain", "gates", "share"],
    "crates/words": ["bits", "object", "sink", "error", "layer", "objects", "members", "tell", "overview", "supervisor", "policy", "report"],
    "crates/text": ["error", "extended", "types", "lex", "ast", "parse", "ir", "lower", "live", "alloc", "emit", "compiled"],
}

# As many files may import each other in a circle.
LARGEST = 2


def blank(text, match):
    """The match as spaces, so that offsets and lines stay."""
    return re.sub(r"[^\n]", " ", match.group(0))


CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.|[^'\\\n])'""", re.S
)
TEST = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*")
INLINE = re.compile(r"\bmod\s+(\w+)\s*\{")
DECLARED = re.compile(
    r"(?:#\[path\s*=\s*(?P<path>\S+?)\]\s*)?(?:pub\s*(?:\([^)]*\)\s*)?)?\bmod\s+(?P<name>\w+)\s*;"
)
USE = re.compile(r"(?P<pub>\bpub\s*(?:\([^)]*\)\s*)?)?\buse\s+(?P<tree>[^;]+);")
PATH = re.compile(r"(?<![\w:.])(?:::)?([A-Za-z_]\w*(?:::[A-Za-z_]\w*)+)")
ITEM = re.compile(
    r"\b(?:fn|struct|enum|union|trait|type|const|static|macro_rules!|mod)\s+(?:mut\s+)?(\w+)"
)


def closing(text, at):
    """The offset behind the brace that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    return len(text)


def without_tests(text):
    """The text with items that only tests have as spaces."""
    while match := TEST.search(text):
        rest = re.compile(r"[;{]").search(text, match.end())
        end = len(text) if not rest else rest.end()
        if rest and rest.group() == "{":
            end = closing(text, rest.start())
        text = text[: match.start()] + re.sub(r"[^\n]", " ", text[match.start() : end]) + text[end:]
    return text


def leaves(tree, prefix=()):
    """The paths of a use tree: (segments, the name it is bound to)."""
    tree = tree.strip()
    if "{" in tree:
        head, rest = tree.split("{", 1)
        prefix += tuple(s for s in head.strip().split("::") if s)
        rest = rest[: rest.rindex("}")]
        depth, part = 0, ""
        for c in rest + ",":
            depth += {"{": 1, "}": -1}.get(c, 0)
            if c == "," and depth == 0:
                if part.strip():
                    yield from leaves(part, prefix)
                part = ""
            else:
                part += c
        return
    path, _, name = tree.partition(" as ")
    segments = prefix + tuple(s for s in path.strip().split("::") if s)
    if segments[-1] == "self":
        segments = segments[:-1]
    yield segments, (name.strip() or segments[-1])


class Source:
    """One file, which is one module."""

    def __init__(self, path, name):
        self.path, self.name = path, name
        raw = path.read_text()
        # `#[path = "…"]` is a string: keep those.
        paths = {m.start(): m.group(1) for m in re.finditer(r'#\[path\s*=\s*"([^"]+)"\]', raw)}
        text = CODE.sub(lambda m: blank(raw, m), raw)
        self.text = text = without_tests(text)
        self.inline = [
            (m.start(), closing(text, m.end() - 1), m.group(1)) for m in INLINE.finditer(text)
        ]
        self.children = {}
        for m in re.finditer(r"\bmod\s+(\w+)\s*;", text):
            before = [p for at, p in paths.items() if raw.count("\n", at, m.start()) <= 2 and at < m.start()]
            self.children[m.group(1)] = before[-1] if before else None
        self.uses = []  # (offset, segments, bound name)
        for m in USE.finditer(text):
            for segments, name in leaves(m.group("tree")):
                self.uses.append((m.start(), segments, name))
        rest = USE.sub(lambda m: blank(text, m), text)
        rest = re.sub(r"\bpub\s*\([^)]*\)", lambda m: blank(rest, m), rest)
        self.paths = [(m.start(1), tuple(m.group(1).split("::"))) for m in PATH.finditer(rest)]
        self.items = set(ITEM.findall(rest))
        bare = re.sub(r"#!?\[[^\]]*\]", "", rest)
        bare = re.sub(r"(?:pub\s*(?:\([^)]*\)\s*)?)?\bmod\s+\w+\s*;", "", bare)
        # Hands through what its `use` items name, and has nothing of its own.
        self.head = not bare.replace("pub", "").strip()

    def nested(self, at):
        """How many inline modules enclose an offset."""
        return sum(1 for start, end, _ in self.inline if start < at < end)

    def line(self, at):
        return self.text.count("\n", 0, at) + 1


class Crate:
    def __init__(self, folder):
        self.folder = folder
        self.files = {}
        src = ROOT / folder / "src"
        for root in ("lib.rs", "main.rs"):
            if (src / root).exists():
                self.read(src / root, (root,))

    def read(self, path, name):
        source = self.files[name] = Source(path, name)
        at_top = path.name in ("lib.rs", "main.rs", "mod.rs")
        beside = path.parent if at_top else path.parent / path.stem
        for child, given in source.children.items():
            for file in [path.parent / given] if given else [beside / f"{child}.rs", beside / child / "mod.rs"]:
                if file.exists():
                    self.read(file, name + (child,))

    def find(self, module, segments, seen=()):
        """The file that defines what `segments` name from inside `module` on."""
        while True:
            source = self.files[module]
            if not segments or segments[0] == "*":
                return module
            first, rest = segments[0], segments[1:]
            if first in source.children and module + (first,) in self.files:
                module, segments = module + (first,), rest
                continue
            if first in source.items:
                return module
            for at, path, name in source.uses:
                if name == first and (module, path) not in seen:
                    found = self.resolve(source, at, path, seen + ((module, path),))
                    if found:
                        return self.find(found, rest) if self.is_module(source, at, path) else found
            for at, path, name in source.uses:
                if name == "*" and (module, path) not in seen:
                    found = self.resolve(source, at, path[:-1], seen + ((module, path),))
                    if found and found != module and first in self.files[found].items:
                        return found
            return module

    def start(self, source, at, path):
        """Where a path begins: a module's name and the segments left; None if outside the crate."""
        depth, module, rest = source.nested(at), source.name, list(path)
        if rest[0] == "crate":
            return (module[0],), tuple(rest[1:])
        if rest[0] in ("super", "self"):
            while rest and rest[0] in ("super", "self"):
                if rest.pop(0) == "super":
                    if depth:
                        depth -= 1
                    else:
                        module = module[:-1]
            return (module, tuple(rest)) if module else None
        if rest[0] in source.children and not depth:
            return module, tuple(rest)
        return None

    def is_module(self, source, at, path):
        begin = self.start(source, at, path)
        return begin is not None and begin[0] + begin[1] in self.files

    def resolve(self, source, at, path, seen=()):
        begin = self.start(source, at, path)
        if begin is None:
            # A module that a use item has bound.
            if len(path) > 1:
                for where, other, name in source.uses:
                    if name == path[0] and (source.name, other) not in seen and other != path:
                        if self.is_module(source, where, other):
                            module, rest = self.start(source, where, other)
                            return self.find(module + rest, path[1:], seen)
            return None
        return self.find(*begin, seen)

    def imports(self):
        """(from, to) -> line of the first place."""
        edges = {}
        for name, source in self.files.items():
            for at, path in [(at, p) for at, p, _ in source.uses] + source.paths:
                to = self.resolve(source, at, path)
                # A submodule is a part of the module that declares it: what it takes from it is no import.
                if to and to != name and to != name[: len(to)]:
                    edges.setdefault((name, to), source.line(at))
        return edges

    def shown(self, name):
        return str(self.files[name].path.relative_to(ROOT))

    def room(self, name):
        path = self.files[name].path.relative_to(ROOT / self.folder / "src")
        return path.parts[0].removesuffix(".rs")


def circles(nodes, edges):
    """Tarjan's strongly connected components of more than one node."""
    after = defaultdict(list)
    for a, b in edges:
        after[a].append(b)
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in after[v]:
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = []
            while True:
                w = stack.pop()
                on.discard(w)
                part.append(w)
                if w == v:
                    break
            if len(part) > 1:
                found.append(part)

    for v in nodes:
        if v not in index:
            visit(v)
    return found


def check(crate, fail):
    edges = crate.imports()
    heads = {n for n, s in crate.files.items() if s.head or len(n) == 1}
    plain = {e: line for e, line in edges.items() if e[0] not in heads}
    order = {room: i for i, room in enumerate(ROOMS.get(crate.folder, []))}
    for (a, b), line in sorted(plain.items()):
        from_room, to_room = order.get(crate.room(a)), order.get(crate.room(b), len(order))
        if from_room is not None and from_room < to_room:
            fail(
                f"{crate.shown(a)}:{line}: imports {crate.shown(b)}: room {crate.room(a)} stands "
                f"before {crate.room(b)}; pass a value, a trait or a function down instead"
            )
    for part in circles(crate.files, plain):
        if len(part) > LARGEST:
            ties = [
                f"    {crate.shown(a)}:{line} -> {crate.shown(b)}"
                for (a, b), line in sorted(plain.items())
                if a in part and b in part
            ]
            fail(f"{crate.folder}: {len(part)} files import each other in a circle:\n" + "\n".join(ties))
    return len(crate.files)


def crates():
    listed = subprocess.run(
        ["git", "ls-files", "--", "Cargo.toml", "**/Cargo.toml"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    for manifest in listed.stdout.splitlines():
        folder = Path(manifest).parent
        if (ROOT / folder / "src").is_dir():
            yield str(folder)


def main():
    sys.setrecursionlimit(10_000)
    if sys.argv[1:2] == ["--edges"]:
        crate = Crate(sys.argv[2])
        for (a, b), line in sorted(crate.imports().items()):
            print(f"{crate.shown(a)}:{line} -> {crate.shown(b)}")
        return 0
    messages = []
    read = sum(check(Crate(folder), messages.append) for folder in crates())
    for message in messages:
        print(message)
    print(f"imports: {read} passed, {len(messages)} failed")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
