#!/usr/bin/env python3
"""Many requests with graceful restarts in between: memory, mappings and descriptors of the server stay as they are.

  soak.py [--requests N] [--seconds S] [--mpm NAME]      10 million requests, a restart in the middle of each part of S seconds, event

wrk sends them, one in 100 crashes. A restart may close a connection between two requests, which is HTTP: wrk connects again. What the first
process has is looked at behind each restart, and what a process that serves has when the part is over. RINGFENCE_PREFIX: where Ringfence is
installed.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

from bench import SERVER_SIZES, CONFIG, build
from server import Server

CONNECTIONS = 8
HOUR = 3600
# Who waits long waits for a processor.
PATIENT = f"""
LogLevel notice
FencedLogLimit 10 1h
Timeout {HOUR}
KeepAliveTimeout {HOUR}
"""
SCRIPT = """
local n = 0
request = function()
  n = n + 1
  return wrk.format("GET", n % 100 == 0 and "/handler/crash" or "/handler?n=1000")
end
done = function(summary, latency, requests)
  io.write(string.format("counts %d %d %d %d\\n", summary.requests, summary.errors.status, summary.errors.read + summary.errors.write,
                         summary.errors.connect + summary.errors.timeout))
end
"""


def sizes(pid):
    """KiB of its own memory, mappings, descriptors; None if the process has ended."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]), maps.count("\n"), len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, TypeError):
        return None


def restart(server):
    then = server.log().count("resuming normal operations")
    old = set(server.children())
    server.graceful()
    for _ in range(10 * HOUR):
        if server.log().count("resuming normal operations") > then and not old & set(server.children()):
            return
        time.sleep(0.1)
    raise RuntimeError("the server does not start again: " + server.log()[-1000:])


def part(server, seconds, script):
    """Load, and a restart while it goes on. How many requests were answered, how many of them by 500, and how many connections were closed before
    their answer; what the first process has, and what one that serves."""
    # wrk has memory for each microsecond of its patience.
    wrk = subprocess.Popen(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", "--timeout", "600s", "-s", script, f"http://127.0.0.1:{server.port}/"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(seconds / 2)
    restart(server)
    said = wrk.communicate()[0]
    counts = re.search(r"counts (\d+) (\d+) (\d+) (\d+)", said)
    if not counts:
        raise RuntimeError(f"wrk: {said}")
    answered, bad, closed, lost = map(int, counts.groups())
    if lost or closed > 2 * CONNECTIONS or abs(bad - answered / 100) > 4 * CONNECTIONS:
        raise RuntimeError(f"{answered} answered, {bad} by an error (1 in 100 crashes), {closed} connections closed, {lost} not made: {server.log()[-1000:]}")
    return answered, bad, closed, sizes(server.pid()), max(filter(None, map(sizes, server.children())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--mpm", choices=SERVER_SIZES, default="event")
    options = parser.parse_args()
    build()
    begun, first, children, told = time.monotonic(), [], [], 0
    answered = bad = closed = 0
    config = CONFIG.replace("LogLevel crit", PATIENT).replace("FencedTimeLimit 50ms", f"FencedTimeLimit {HOUR}")
    with Server("soak", options.mpm, config, SERVER_SIZES[options.mpm]) as server:
        script = server.dir / "soak.lua"
        script.write_text(SCRIPT)
        while answered < options.requests:
            *counts, one, other = part(server, options.seconds, script)
            answered, bad, closed = (a + b for a, b in zip((answered, bad, closed), counts, strict=True))
            first.append(one)
            # Each part's processes are new: their sizes at its end are compared with those of the first parts.
            children.append(other)
            if answered >= told or answered >= options.requests:
                told = answered + options.requests / 50
                print(f"{answered:,} requests, {bad:,} crashes, {len(first)} restarts, {closed} connections closed: first process {one}, "
                      f"of those that serve {other} (KiB, mappings, descriptors)", flush=True)
        crashed = re.search(r"exit signal|seg fault", server.log())
    print(f"{answered:,} requests in {time.monotonic() - begun:.0f} s")
    # The first parts may still grow pools and tables, and a process that is new has fewer domains.
    calm = min(max(2, len(first) // 10), len(first) - 1)
    grown = [f"{who}: {kind} {now}, once {then}" for who, rows in (("first process", first), ("those that serve", children))
             for i, (kind, slack) in enumerate((("KiB", 4096), ("mappings", 8), ("descriptors", 2)))
             for then, now in [(max(row[i] for row in rows[:calm + 1]), rows[-1][i])] if now > then + slack]
    for line in grown:
        print(f"grown: {line}")
    if crashed:
        print("a process of the server crashed")
    failed = bool(grown or crashed)
    print(f"httpd-soak: {int(not failed)} passed, {int(failed)} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
