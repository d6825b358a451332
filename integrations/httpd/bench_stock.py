#!/usr/bin/env python3
"""What the fence costs when all stock modules run behind it: processor time of the server a request, crossings, and memory.

  bench_stock.py [--rounds N] [--seconds S] [--mpm NAME] [--json FILE]

Two servers of its own, alike but for the fence, with the modules and the configuration of test/stock.py. Rounds are interleaved, the least
is told.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from bench import SERVER_SIZES, Connection, conditions, load

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "test"))
from stock import Pair, counters  # noqa: E402

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # KiB, of figures 6 to 8
CONNECTIONS = 10


def modules():
    """The files of the stock modules."""
    subprocess.run([HERE / "tree.sh", "make"], check=True)
    subprocess.run([HERE / "stock.sh", "fetch"], check=True)
    made = subprocess.run([HERE / "stock.sh", "build"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    known = subprocess.run([HERE / "stock.sh", "list"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return [pathlib.Path(made) / f"mod_{name}.rf" for name in known]


def costs(pair, rounds, seconds):
    """Throughput, overhead and latency by size. The rows."""
    found = {}
    for _ in range(rounds):
        for size in SIZES:
            for server in (pair.bare, pair.fenced):
                found.setdefault((server, size), []).append(load(server, f"/{size}.txt", seconds, CONNECTIONS))
    print("\n| KiB | unfenced, us of processor time | fenced | over unfenced | unfenced, requests a second | fenced | of it lost | unfenced, median ms | fenced "
          "| unfenced, 99th percentile ms | fenced |\n" + "|---" * 11 + "|")
    rows = []
    for size in SIZES:
        bare, fenced = ([min(one[0] for one in found[server, size]), max(one[1] for one in found[server, size]), min(one[2] for one in found[server, size]),
                         min(one[3] for one in found[server, size])] for server in (pair.bare, pair.fenced))
        rows.append({"kib": size, "unfenced": bare, "fenced": fenced})
        print(f"| {size} | {bare[0]:.1f} | {fenced[0]:.1f} | {fenced[0] / bare[0]:.2f} | {bare[1]:,.0f} | {fenced[1]:,.0f} | {1 - fenced[1] / bare[1]:.0%} "
              f"| {bare[2]:.2f} | {fenced[2]:.2f} | {bare[3]:.2f} | {fenced[3]:.2f} |")
    return rows


def crossings(pair):
    """By module and direction, for requests one after another. The rows."""
    before, requests = counters(pair.fenced), 2000
    connection = Connection(pair.fenced)
    for _ in range(requests):
        connection.get(b"/1.txt")
    connection.close()
    after = counters(pair.fenced)
    print("\n| module | calls of it a request | its questions |\n|---|---|---|")
    rows = []
    sums = [0.0, 0.0]
    for name in sorted(name for name in after if name.endswith(".calls")):
        ways = [(after[key] - before[key]) / requests for key in (name, name.replace(".calls", ".questions"))]
        sums = [a + b for a, b in zip(sums, ways, strict=True)]
        if ways[0] >= 0.01:
            rows.append([name.removesuffix(".calls"), f"{ways[0]:.1f}", f"{ways[1]:.1f}"])
    rows.append(["all", f"{sums[0]:.1f}", f"{sums[1]:.1f}"])
    print("\n".join("| " + " | ".join(row) + " |" for row in rows))
    return rows


def memory(pair):
    rows = []
    print("\n| a process of the server, MiB | virtual | resident | page tables |\n|---|---|---|---|")
    for name, server in (("unfenced", pair.bare), ("fenced", pair.fenced)):
        status = pathlib.Path(f"/proc/{server.children()[0]}/status").read_text()
        row = [int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) / 1024 for field in ("VmSize", "VmRSS", "VmPTE")]
        rows.append([name, *(f"{n:,.1f}" for n in row)])
        print("| " + " | ".join(rows[-1]) + " |")
    return rows


def drawn(figures, under):
    """What `bench charts` puts into docs/httpd-figures.md."""
    def chart(name, title, y, values):
        series = [{"name": f"{mpm}{who}", "points": [[row["kib"], value(row)] for row in found[0]]} for mpm, found in figures.items() for who, value in values]
        return {"name": name, "title": title, "x": "KiB of the answer", "y": y, "logarithmic": True, "series": series}

    def lost(row):
        # A logarithm has no place for what is not lost.
        return max(100 * (1 - row["fenced"][1] / row["unfenced"][1]), 0.1)

    sides = ("unfenced", "fenced")
    costs = [[mpm, f"{row['kib']}", *(f"{row[side][0]:.1f}" for side in sides), f"{row['fenced'][0] / row['unfenced'][0]:.2f}",
              *(f"{row[side][1]:,.0f}" for side in sides), f"{lost(row):.0f} %", *(f"{row[side][n]:.2f}" for n in (2, 3) for side in sides)]
             for mpm, found in figures.items() for row in found[0]]
    return {
        "page": "httpd",
        "charts": [
            chart("httpd-throughput", "29 stock modules, throughput", "requests a second", [(f", {s}", lambda row, s=s: row[s][1]) for s in sides]),
            chart("httpd-overhead", "29 stock modules, throughput that the fence takes", "percent", [("", lost)]),
            chart("httpd-latency", "29 stock modules, median latency", "milliseconds", [(f", {s}", lambda row, s=s: row[s][2]) for s in sides]),
        ],
        "tables": [
            under,
            {"name": "httpd-costs", "head": ["MPM", "KiB", "unfenced, µs of processor time", "fenced", "over unfenced", "unfenced, requests/s", "fenced",
                                             "lost", "unfenced, median ms", "fenced", "unfenced, 99th percentile ms", "fenced"], "rows": costs},
            {"name": "httpd-crossings", "head": ["MPM", "module", "calls of it a request", "its questions"],
             "rows": [[mpm, *row] for mpm, found in figures.items() for row in found[1]]},
            {"name": "httpd-memory", "head": ["MPM", "a process of the server", "virtual, MiB", "resident", "page tables"],
             "rows": [[mpm, *row] for mpm, found in figures.items() for row in found[2]]},
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=1, help="for each load")
    parser.add_argument("--json", type=pathlib.Path, help="leave the figures there, for `bench charts`")
    parser.add_argument("--mpm", choices=SERVER_SIZES, action="append")
    options = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("bench_stock: no wrk: install it (scripts/setup.sh httpd)")
    files, figures = modules(), {}
    under = conditions("httpd-conditions", options)
    for mpm in options.mpm or ("event", "prefork"):
        pair = Pair(mpm, files, size=SERVER_SIZES[mpm])
        for size in SIZES:
            path = pair.bare.dir / f"docs/{size}.txt"
            path.write_bytes(b"x" * 1024 * size)
            os.utime(path, (1_700_000_000, 1_700_000_000))
        print(f"\n{mpm}: {len(files)} stock modules, processor time of the server a request, least of {options.rounds} rounds")
        with pair:
            figures[mpm] = costs(pair, options.rounds, options.seconds), crossings(pair), memory(pair)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(drawn(figures, under), indent=1) + "\n")


if __name__ == "__main__":
    main()
