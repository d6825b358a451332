#!/usr/bin/env python3
"""Many requests with graceful restarts in between: memory, mappings and descriptors of the server stay as they are.

  soak.py [--requests N] [--parts N] [--mpm NAME]      10 million requests, 100 parts with a restart behind each, event

One request in 100 crashes. What the first process has is looked at behind each restart, and what a process that serves has when the part
is over. RINGFENCE_PREFIX: where Ringfence is installed.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import sys
import threading
import time

from bench import SERVER_SIZES, CONFIG, Connection, build
from server import Server

CLIENTS = 4


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
    for _ in range(1200):
        if server.log().count("resuming normal operations") > then and not old & set(server.children()):
            return
        time.sleep(0.1)
    raise RuntimeError("the server does not start again: " + server.log()[-1000:])


class Load:
    """Clients that ask until they are stopped; a restart may close a connection before its next request."""

    def __init__(self, server):
        self.server, self.done, self.bad, self.lock = server, 0, 0, threading.Lock()

    def ask(self, count):
        connection, done, bad = Connection(self.server), 0, 0
        while done < count:
            crash = done % 100 == 99
            status = connection.get(b"/handler/crash" if crash else b"/handler?n=1000")
            if status != (500 if crash else 200):
                raise RuntimeError(f"status {status} for request {done}")
            done += 1
            bad += crash
        connection.close()
        with self.lock:
            self.done += done
            self.bad += bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--parts", type=int, default=100)
    parser.add_argument("--mpm", choices=SERVER_SIZES, default="event")
    options = parser.parse_args()
    build()
    each = max(options.requests // options.parts // CLIENTS, 200)
    begun, first, children = time.monotonic(), [], []
    with Server("soak", options.mpm, CONFIG.replace("LogLevel crit", "LogLevel notice\nFencedLogLimit 10 1h\nKeepAliveTimeout 300"), SERVER_SIZES[options.mpm]) as server:
        load = Load(server)
        for part in range(options.parts):
            with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
                for one in [pool.submit(load.ask, each) for _ in range(CLIENTS)]:
                    one.result()
            # Each part's processes are new: their sizes at its end are compared with those of the first parts.
            children.append(max(filter(None, map(sizes, server.children()))))
            restart(server)
            first.append(sizes(server.pid()))
            if part % max(options.parts // 10, 1) == 0 or part == options.parts - 1:
                print(f"{load.done:,} requests, {load.bad:,} crashes, {part + 1} restarts: first process {first[-1]}, "
                      f"of those that serve {children[-1]} (KiB, mappings, descriptors)", flush=True)
        crashed = re.search(r"exit signal|seg fault", server.log())
    print(f"{load.done:,} requests in {time.monotonic() - begun:.0f} s")
    # The first parts may still grow pools and tables.
    calm = min(2, options.parts - 1)
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
