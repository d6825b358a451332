#!/usr/bin/env python3
"""What the fence costs when all stock modules run behind it: processor time of the server a request, crossings, and memory.

  bench_stock.py [--rounds N] [--requests N] [--mpm NAME]

Two servers of its own, alike but for the fence, with the modules and the configuration of test/stock.py. Rounds are interleaved, the least
is told.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

from bench import SERVER_SIZES, load

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "test"))
from stock import Pair, counters  # noqa: E402

SIZES = (1000, 8000, 64000, 256000)


def modules():
    """The files of the stock modules."""
    subprocess.run([HERE / "tree.sh", "make"], check=True)
    subprocess.run([HERE / "stock.sh", "fetch"], check=True)
    made = subprocess.run([HERE / "stock.sh", "build"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    known = subprocess.run([HERE / "stock.sh", "list"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return [pathlib.Path(made) / f"mod_{name}.rf" for name in known]


def costs(pair, rounds, requests):
    found = {}
    for _ in range(rounds):
        for size in SIZES:
            for server in (pair.bare, pair.fenced):
                found.setdefault((server, size), []).append(load(server, f"/{size}.txt", requests))
    print("\n| bytes | unfenced, microseconds | fenced | fenced over unfenced |\n|---|---|---|---|")
    for size in SIZES:
        bare, fenced = min(found[pair.bare, size]), min(found[pair.fenced, size])
        print(f"| {size:,} | {bare:.1f} | {fenced:.1f} | {fenced / bare:.2f} |")


def crossings(pair, requests):
    before = counters(pair.fenced)
    load(pair.fenced, "/1000.txt", requests)
    after = counters(pair.fenced)
    print("\n| module | calls of it a request | its questions |\n|---|---|---|")
    sums = [0.0, 0.0]
    for name in sorted(name for name in after if name.endswith(".calls")):
        ways = [(after[key] - before[key]) / requests for key in (name, name.replace(".calls", ".questions"))]
        sums = [a + b for a, b in zip(sums, ways, strict=True)]
        if ways[0] >= 0.01:
            print(f"| {name.removesuffix('.calls')} | {ways[0]:.1f} | {ways[1]:.1f} |")
    print(f"| all | {sums[0]:.1f} | {sums[1]:.1f} |")


def memory(pair):
    print("\n| a process of the server, MiB | virtual | resident | page tables |\n|---|---|---|---|")
    for name, server in (("unfenced", pair.bare), ("fenced", pair.fenced)):
        status = pathlib.Path(f"/proc/{server.children()[0]}/status").read_text()
        row = [int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) / 1024 for field in ("VmSize", "VmRSS", "VmPTE")]
        print(f"| {name} | " + " | ".join(f"{n:,.1f}" for n in row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--mpm", choices=SERVER_SIZES, action="append")
    options = parser.parse_args()
    if not shutil.which("ab"):
        sys.exit("bench_stock: no ab: install apache2-utils")
    files = modules()
    for mpm in options.mpm or ("event", "prefork"):
        pair = Pair(mpm, files, size=SERVER_SIZES[mpm])
        for size in SIZES:
            path = pair.bare.dir / f"docs/{size}.txt"
            path.write_bytes(b"x" * size)
            os.utime(path, (1_700_000_000, 1_700_000_000))
        print(f"\n{mpm}: {len(files)} stock modules, processor time of the server a request, least of {options.rounds} rounds")
        with pair:
            costs(pair, options.rounds, options.requests)
            crossings(pair, options.requests)
            memory(pair)


if __name__ == "__main__":
    main()
