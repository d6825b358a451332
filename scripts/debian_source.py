#!/usr/bin/env python3
"""Debian's source packages, from a package list apart from the system's, downloaded once.

    scripts/debian_source.py INTO SOURCE INSTALLED [PATTERN...]

unpacks the upstream source of SOURCE at INTO/SOURCE, or the files of it whose names have one of the patterns: of the version that the
installed package INSTALLED was made of, or the newest that the archive still has (sources of superseded updates go).
"""

import shutil
import subprocess
import sys
import threading
from pathlib import Path


class NoSource(Exception):
    """What keeps a package's source away."""


class Sources:
    """Keeps apt's files and the packages below `place`; nothing of the machine's own state is touched."""

    def __init__(self, place):
        self.place = place
        self.lock = threading.Lock()
        apt = place / "apt"
        for folder in ("lists/partial", "parts", "cache/archives/partial"):
            (apt / folder).mkdir(parents=True, exist_ok=True)
        self.options = [
            f"-oDir::Etc::sourcelist={apt}/none",
            f"-oDir::Etc::sourceparts={apt}/parts",
            f"-oDir::State::lists={apt}/lists",
            f"-oDir::Cache={apt}/cache",
            "-oAPT::Sandbox::User=root",
        ]

    def lists(self):
        """Fetches the list of source packages, if it is not there yet."""
        apt = self.place / "apt"
        if any((apt / "lists").glob("*Sources*")):
            return
        machine = sorted(Path("/etc/apt/sources.list.d").glob("*.sources"))
        text = "\n".join(f.read_text().replace("Types: deb\n", "Types: deb-src\n") for f in machine)
        (apt / "parts/source.sources").write_text(text)
        old = Path("/etc/apt/sources.list")
        lines = old.read_text().splitlines() if old.exists() else []
        (apt / "parts/source.list").write_text("".join(f"deb-src {line[4:]}\n" for line in lines if line.startswith("deb ")))
        run = subprocess.run(["apt-get", *self.options, "update", "-qq"], capture_output=True, text=True, check=False)
        if not any((apt / "lists").glob("*Sources*")):
            raise NoSource(f"apt-get has no list of source packages: {run.stderr.strip()[:300]}")

    def versions(self, package):
        """What there is of a package, newest first: a mirror need not have the newest."""
        shown = subprocess.run(
            ["apt-cache", *self.options, "showsrc", "--only-source", package], capture_output=True, text=True, check=False
        ).stdout
        found = []
        for entry in shown.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in entry.splitlines() if ": " in line and not line.startswith(" "))
            if fields.get("Package") == package and fields["Version"] not in found:
                found.append(fields["Version"])
        newer = lambda a, b: subprocess.run(["dpkg", "--compare-versions", a, "gt", b], check=False).returncode == 0
        return sorted(found, key=lambda v: -sum(newer(v, other) for other in found))

    def download(self, package, version, *options):
        """Downloads into the package's folder: that version, or the newest that there is, which it returns."""
        self.lists()
        folder = self.place / package
        folder.mkdir(exist_ok=True)
        said = "the list has no such package"
        for found in sorted(self.versions(package), key=lambda v: v != version):
            command = ["apt-get", *self.options, "-qq", "source", "--download-only", *options, f"{package}={found}"]
            got = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if got.returncode == 0:
                return found
            said = got.stderr.strip().splitlines()[0] if got.stderr.strip() else f"apt-get ends with {got.returncode}"
            for part in folder.iterdir():
                part.unlink()
        raise NoSource(f"{package}: {said}")

    def fetch(self, package, version=None):
        """Downloads a package, if it is not there, in that version if there is one: its description file, and its version."""
        with self.lock:
            folder = self.place / package
            if not list(folder.glob("*.dsc")):
                self.download(package, version)
            dsc = next(folder.glob("*.dsc"))
            version = next(line.split(": ", 1)[1] for line in dsc.read_text().splitlines() if line.startswith("Version: "))
            return dsc, version

    def fetch_upstream(self, package, version=None):
        """Downloads what upstream has, without Debian's changes, if it is not there, in that version if there is one: its version."""
        with self.lock:
            told = self.place / package / "upstream-version"
            if not told.exists():
                told.write_text(self.download(package, version, "--tar-only"))
            return told.read_text()

    def unpack(self, dsc, to):
        """The source as a build of Debian's has it: with its patches."""
        done = subprocess.run(["dpkg-source", "--no-check", "--no-copy", "-x", str(dsc), str(to)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoSource(f"{dsc.name}: dpkg-source: {done.stderr.strip()[:300]}")

    def size(self, package):
        """Bytes of what was downloaded; 0 if nothing was."""
        folder = self.place / package
        return sum(f.stat().st_size for f in folder.iterdir()) if folder.exists() else 0

    def upstream(self, package, to, patterns=()):
        """The source as upstream has it, of a package that was fetched; `patterns`: only files with such names."""
        files = [f for f in self.place.joinpath(package).glob(f"{package}_*.orig.tar.*") if f.suffix != ".asc"]
        if not files:
            raise NoSource(f"{package}: the package has no upstream source of its own")
        new = to.with_name(to.name + ".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        only = ["--wildcards", *patterns] if patterns else []
        subprocess.run(["tar", "-xf", str(files[0]), "-C", str(new), "--strip-components=1", *only], check=True)
        shutil.rmtree(to, ignore_errors=True)
        new.rename(to)


def main():
    if len(sys.argv) < 4:
        sys.exit("usage: debian_source.py INTO SOURCE INSTALLED [PATTERN...]")
    into, package, installed = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    query = subprocess.run(["dpkg-query", "-W", "-f", "${source:Version}", installed], capture_output=True, text=True, check=False)
    sources = Sources(into / "packages")
    try:
        version = sources.fetch_upstream(package, query.stdout)
        sources.upstream(package, into / package, sys.argv[4:])
    except NoSource as error:
        sys.exit(f"debian_source.py: {error}; is the archive reachable?")
    print(f"{package} {version}")


if __name__ == "__main__":
    main()
