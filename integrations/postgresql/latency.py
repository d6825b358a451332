#!/usr/bin/env python3
"""How soon a session's first call is done in each language, what memory the session has then, and how soon a cancelled call ends.

  latency.py [--rounds N] [--json FILE]

Makes a cluster of its own (tree.sh), with plfenced and the module preloaded. A cancelled call is an endless loop: the time runs from
before `pg_cancel_backend` is sent in another session until the client has the error.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

import bench

SETUP = """
CREATE FUNCTION forever(int) RETURNS int AS 'basics:plain_forever' LANGUAGE plfenced STRICT;
CREATE FUNCTION crash(int8) RETURNS void AS 'basics:crash' LANGUAGE plfenced;
"""


class Session:
    """A session whose answers are waited for."""

    def __init__(self, place):
        self.psql = subprocess.Popen(
            [bench.TREE, "psql", place, "-At"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def send(self, text):
        self.psql.stdin.write(text + ";\n\\echo end of answer\n")
        self.psql.stdin.flush()

    def answer(self):
        lines = []
        for line in self.psql.stdout:
            if line == "end of answer\n":
                return "".join(lines)
            lines.append(line)
        sys.exit("latency.py: a session has ended: " + "".join(lines))

    def ask(self, text):
        self.send(text)
        return self.answer().strip()

    def close(self):
        self.psql.stdin.close()
        self.psql.wait()


def cancels(place, rounds, errors):
    """Times from a cancel to its error, in a session that has had so many errors."""
    one, other = Session(place), Session(place)
    pid = one.ask("SELECT pg_backend_pid()")
    for _ in range(errors):
        if "ERROR" not in one.ask("SELECT crash(0)"):
            sys.exit("latency.py: a crash was no error")
    times = []
    for _ in range(rounds):
        one.send("SELECT forever(1)")
        while other.ask(f"SELECT state = 'active' AND query LIKE '%forever%' FROM pg_stat_activity WHERE pid = {pid}") != "t":
            pass
        time.sleep(0.02)
        begin = time.monotonic()
        other.send(f"SELECT pg_cancel_backend({pid})")
        if "cancel" not in one.answer():
            sys.exit("latency.py: the loop has ended otherwise")
        times.append((time.monotonic() - begin) * 1000)
        other.answer()
    one.close()
    other.close()
    return times


def first_calls(place, rounds, expression):
    """Times of a new session's first statement, and KiB of memory that the session's process has for itself then."""
    times, memory = [], []
    look = "\\! sed -n 's/^Private_Dirty: *\\([0-9]*\\) kB/dirty \\1/p' /proc/$PID/smaps_rollup"
    for _ in range(rounds):
        told = bench.psql(
            place, f"\\timing on\nSELECT {expression};\n\\timing off\nSELECT pg_backend_pid() AS pid \\gset\n\\setenv PID :pid\n{look}\n")
        times.append(float(re.search(r"^Time: ([\d.]+) ms", told, re.M)[1]))
        memory.append(int(re.search(r"^dirty (\d+)", told, re.M)[1]))
    return times, memory


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--json", type=pathlib.Path)
    options = options.parse_args()

    bench.run(bench.TREE, "make")
    out = bench.run(bench.TREE, "out").strip()
    for name in ("basics", "measured"):
        bench.compile_module(out, name)
    preload = pathlib.Path(out) / "preload"
    preload.mkdir(exist_ok=True)
    (preload / "basics.rf").write_bytes((pathlib.Path(out) / "modules/basics.rf").read_bytes())
    found, memory = {}, {}
    with bench.cluster(f"{out}/latency", "shared_preload_libraries = 'plfenced'", f"plfenced.preload = '{preload}'") as place:
        bench.set_up(place, out, 1000)
        bench.psql(place, SETUP)
        known = bench.functions(place)
        calls = {"without a function": "1"} | {way: f"{p}_inc(1)" for way, p in bench.WAYS.items() if f"{p}_inc" in known}
        for name, expression in calls.items():
            row = f"first statement of a session: {name}"
            found[row], memory[row] = first_calls(place, options.rounds, expression)
        for errors in (0, 1000):
            found[f"cancel, after {errors} errors"] = cancels(place, options.rounds, errors)
    print("ms | median | most | KiB of its own")
    print("---|---|---|---")
    for name, times in found.items():
        own = f"{statistics.median(memory[name]):,.0f}" if name in memory else ""
        print(f"{name} | {statistics.median(times):.2f} | {max(times):.2f} | {own}")
    if options.json:
        options.json.write_text(json.dumps({"ms": found, "KiB": memory}, indent=1) + "\n")


if __name__ == "__main__":
    main()
