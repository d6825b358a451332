#!/usr/bin/env python3
"""Where the instructions of a request are when all stock modules run fenced: counted one by one, outside the kernel.

  bench_steps.py [--requests N] [--path PATH] [--top N] [--fenced]

Two servers of bench_stock.py, alike but for the fence, prefork with one process, which is stepped through N requests by bench/steps.c when
it has answered some hundreds. Counts are a request's, and agree from run to run within some per cent; what the watchdog causes is among
them, as stepping takes long.
"""

import argparse
import bisect
import collections
import os
import pathlib
import re
import subprocess
import sys

from bench import Connection
from bench_stock import modules
from server import tree

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "test"))
from stock import Pair  # noqa: E402

SIZE = "StartServers 1\nMinSpareServers 1\nMaxSpareServers 1\nServerLimit 1\nMaxRequestWorkers 1"
WARM = 600  # requests before: hooks are watched in their first 256 calls


class Symbols:
    """Names of a file's functions."""

    def __init__(self, path):
        self.segments = [
            [int(n, 16) for n in match]
            for match in re.findall(r"LOAD +(\w+) (\w+) \w+ (\w+)", subprocess.run(["readelf", "-lW", path], stdout=subprocess.PIPE, text=True, check=True).stdout)
        ]
        found = {}
        for words in (["-C"], ["-C", "-D"]):
            text = subprocess.run(["nm", *words, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
            for address, name in re.findall(r"^(\w+) [tTwWiI] (.*)$", text, re.MULTILINE):
                found.setdefault(int(address, 16), name)
        self.starts = sorted(found)
        self.names = [found[at] for at in self.starts]

    def at(self, offset):
        """The function there, and whether it begins there."""
        for start, address, size in self.segments:
            if start <= offset < start + size:
                k = bisect.bisect(self.starts, offset - start + address)
                return (self.names[k - 1], self.starts[k - 1] == offset - start + address) if k else ("?", False)
        return "?", False


def mappings(pid):
    found = []
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split(None, 5)
        first, last = (int(n, 16) for n in words[0].split("-"))
        found.append((first, last, int(words[2], 16), words[5] if len(words) > 5 else ""))
    return found


def count(server, path, requests, files):
    """Instructions a request by file and function, and calls."""
    connection = Connection(server)
    for _ in range(WARM):
        connection.get(path)
    pid = server.children()[0]
    steps = subprocess.Popen([tree("out") + "/steps", str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if steps.stderr.readline() != "ready\n":
        sys.exit("bench_steps: " + steps.stderr.read())
    for _ in range(requests):
        if connection.get(path) != 200:
            sys.exit("bench_steps: a request has failed: with so much other work, stepping takes longer than a hook may")
    maps = mappings(pid)
    steps.stdin.close()
    lines = steps.stdout.read().splitlines()
    steps.wait()
    connection.close()
    symbols, found, calls = {}, collections.Counter(), collections.Counter()
    by_name = {file.name: file for file in files}
    for line in lines:
        address, times = int(line.split()[0], 16), int(line.split()[1])
        k = bisect.bisect(maps, (address, 1 << 64))
        first, last, offset, name = maps[k - 1]
        if address >= last:
            name = "?"
        name = name.removesuffix(" (deleted)").removeprefix("/memfd:ringfence:")
        file = by_name.get(name, pathlib.Path(name))
        if file not in symbols:
            symbols[file] = Symbols(file) if file.is_file() else None
        function, begins = symbols[file].at(address - first + offset) if symbols[file] else ("?", False)
        found[file.name or "thunks", function] += times / requests
        calls[file.name or "thunks", function] += begins * times / requests
    return found, calls


def parts(found):
    by_part = collections.Counter()
    for (file, _), times in found.items():
        known = file.endswith(".rf") or file in ("mod_fenced.so", "thunks") or file.startswith("libringfence")
        by_part[file if known else "libc" if file.startswith("libc.so") else "the server, its libraries and modules"] += times
    return by_part


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4)
    parser.add_argument("--path", default="/1.txt")
    parser.add_argument("--top", type=int, default=0, help="functions to tell of")
    parser.add_argument("--fenced", action="store_true", help="only the fenced server")
    options = parser.parse_args()
    files = modules()
    subprocess.run(["gcc", "-O2", "-Wall", "-o", tree("out") + "/steps", HERE / "bench/steps.c"], check=True)
    pair = Pair("prefork", files, size=SIZE)
    path = pair.bare.dir / "docs/1.txt"
    path.write_bytes(b"x" * 1024)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    with pair:
        for name, server in (("unfenced", pair.bare), ("fenced", pair.fenced))[options.fenced :]:
            found, calls = count(server, options.path.encode(), options.requests, files)
            print(f"\n| {name}: code of | instructions a request |\n|---|---|")
            for part, times in parts(found).most_common():
                print(f"| {part} | {times:,.0f} |")
            print(f"| all | {sum(found.values()):,.0f} |")
            if options.top:
                print("\n| file | function | calls a request | instructions |\n|---|---|---|---|")
            for (file, function), times in found.most_common(options.top):
                print(f"| {file} | {function} | {calls[file, function]:.1f} | {times:,.0f} |")


if __name__ == "__main__":
    main()
