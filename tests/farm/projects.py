"""The list of projects: how each is built and tested."""

import re
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).resolve().parent / "projects.txt"
SYSTEMS = ("autoconf", "script", "cmake", "meson", "make")


@dataclass(frozen=True)
class Project:
    package: str
    kind: str
    system: str
    directory: str
    options: tuple[str, ...]
    test: str | None


def read(text):
    """The projects that a list's text names. ValueError names the line that is wrong."""
    projects = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        facts, _, test = re.sub(r"\s+", " ", line).partition(" : ")
        words = facts.split()
        if len(words) < 3:
            raise ValueError(f"line {number}: a package, its kind and what builds it are needed: {line!r}")
        system, _, directory = words[2].partition(":")
        if system not in SYSTEMS:
            raise ValueError(f"line {number}: {system} is none of {', '.join(SYSTEMS)}")
        projects.append(Project(words[0], words[1], system, directory or ".", tuple(words[3:]), test.strip() or None))
    names = [p.package for p in projects]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} is there twice")
    return projects


def load():
    return read(LIST.read_text())
