#!/usr/bin/env python3
"""What a page costs: processor time of the server a request, by size and by the way in which the page is made; and what faults cost others.

  bench.py [--rounds N] [--requests N] [--mpm NAME] [--fire-only | --pages-only]

Starts servers of its own (server.py). Rounds are interleaved; of processor times the least is told, of others the median. FastCGI is left
out, visibly, if mod_fcgid or libfcgi is not installed, and with it mod_proxy_fcgi.
"""

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

from server import Server, tree

HERE = pathlib.Path(__file__).resolve().parent
SIZES = (28, 1000, 10000, 100000)
CONFIG = """
<Directory "{dir}">
  Require all granted
</Directory>
LogLevel crit
LoadModule plain_module {out}/bench/mod_plain.so
FencedModule handler {out}/bench/handler.rf
FencedModule program {out}/bench/program.rf
<Location /plain>
  SetHandler plain
</Location>
<Location /handler>
  SetHandler fenced:handler
  FencedTimeLimit 50ms
</Location>
<Location /kept>
  SetHandler fenced:handler
  FencedReset on-fault
</Location>
<Location /program>
  SetHandler fenced:program
</Location>
<IfModule mpm_prefork_module>
  LoadModule cgi_module {modules}/mod_cgi.so
</IfModule>
<IfModule !mpm_prefork_module>
  LoadModule cgid_module {modules}/mod_cgid.so
  ScriptSock {dir}/cgisock
</IfModule>
ScriptAlias /cgi {out}/bench/program
<Directory "{out}/bench">
  Require all granted
</Directory>
"""
FASTCGI = """
LoadModule fcgid_module {modules}/mod_fcgid.so
FcgidIPCDir {dir}/fcgid
FcgidProcessTableFile {dir}/fcgid.shm
FcgidMinProcessesPerClass 2
FcgidMaxProcessesPerClass 4
Alias /fcgi {out}/bench/loop
<Location /fcgi>
  SetHandler fcgid-script
  Options +ExecCGI
</Location>
"""
PROXY = """
LoadModule proxy_module {modules}/mod_proxy.so
LoadModule proxy_fcgi_module {modules}/mod_proxy_fcgi.so
<Location /proxy>
  ProxyPass fcgi://127.0.0.1:%d/ enablereuse=on max=1
</Location>
"""
SERVER_SIZES = {
    "prefork": "StartServers 8\nMinSpareServers 8\nMaxSpareServers 8\nServerLimit 8\nMaxRequestWorkers 8",
    "event": "StartServers 1\nServerLimit 1\nThreadsPerChild 16\nMaxRequestWorkers 16\nMinSpareThreads 1\nMaxSpareThreads 16",
}


def build():
    """Compiles the shapes. Whether FastCGI is among them."""
    tree("make")
    out = pathlib.Path(tree("out"))
    to = out / "bench"
    to.mkdir(exist_ok=True)

    def run(*words):
        subprocess.run([str(w) for w in words], check=True)

    def include(what):
        return "-I" + subprocess.run(["apxs", "-q", what], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    source = HERE / "bench"
    run("gcc", "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", include("INCLUDEDIR"), include("APR_INCLUDEDIR"), "-o", to / "mod_plain.so",
        source / "mod_plain.c")
    run(out / "library/fenced-cc", "-o", to / "handler.rf", source / "handler.c")
    run(out / "library/fenced-cc", "--program", "-o", to / "program.rf", source / "program.c")
    run("gcc", "-O2", "-o", to / "program", source / "program.c")
    modules = subprocess.run(["apxs", "-q", "LIBEXECDIR"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    if not pathlib.Path(modules, "mod_fcgid.so").exists() or not pathlib.Path("/usr/include/fcgi_stdio.h").exists():
        print("FastCGI is left out: install libapache2-mod-fcgid and libfcgi-dev")
        return False
    run("gcc", "-O2", "-o", to / "loop", source / "loop.c", "-lfcgi")
    return True


def processes(root):
    """The process and all below it."""
    found = [root]
    for pid in found:
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(n) for n in task.read_text().split()]
    return found


@contextlib.contextmanager
def backends(program, count):
    """Processes that answer by FastCGI on a port of their own, which mod_proxy_fcgi asks. The port, and their ids."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = [subprocess.Popen([program], stdin=listener) for _ in range(count)]
        try:
            yield listener.getsockname()[1], [one.pid for one in running]
        finally:
            for one in running:
                one.terminate()
                one.wait()


def processor_time(server):
    """Microseconds that the server has used, with all its processes and those that it asks: what the scheduler has counted for the living, and the coarser
    figure of those that were waited for."""
    spent = 0.0
    for pid in processes(server.pid()) + getattr(server, "others", []):
        with contextlib.suppress(OSError):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            spent += sum(int(n) for n in fields[13:15]) * 1e6 / os.sysconf("SC_CLK_TCK")
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                spent += int(task.read_text().split()[0]) / 1e3
    return spent


def load(server, path, requests):
    """Requests by ab, 4 at a time, connections kept. Processor time a request."""
    before = processor_time(server)
    done = subprocess.run(["ab", "-q", "-k", "-c", "4", "-n", str(requests), f"http://127.0.0.1:{server.port}{path}"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout
    if re.search(r"Non-2xx|Failed requests: +[1-9]", done):
        raise RuntimeError(f"{path}: {done}")
    return (processor_time(server) - before) / requests


def pages(mpm, rounds, requests, fastcgi):
    shapes = {"static": "/{0}.txt", "plain module": "/plain?n={0}", "fenced handler": "/handler?n={0}",
              "the same, kept": "/kept?n={0}", "fenced CGI": "/program?n={0}"}
    if fastcgi:
        shapes["FastCGI"] = "/fcgi?n={0}"
        shapes["mod_proxy_fcgi"] = "/proxy?n={0}"
    shapes["CGI"] = "/cgi?n={0}"
    config, others = CONFIG, []
    stack = contextlib.ExitStack()
    if fastcgi:
        # A process for each worker: each keeps one connection.
        port, others = stack.enter_context(backends(pathlib.Path(tree("out")) / "bench/loop", 16))
        config += FASTCGI + PROXY % port
    server = Server("bench-" + mpm, mpm, config, SERVER_SIZES[mpm])
    server.others = others
    for size in SIZES:
        (server.dir / f"docs/{size}.txt").write_bytes(b"x" * size)
    found = {}
    with stack, server:
        for _ in range(rounds):
            for size in SIZES:
                for shape, path in shapes.items():
                    count = max(requests // 20, 50) if shape == "CGI" else requests
                    found.setdefault((shape, size), []).append(load(server, path.format(size), count))
    print(f"\n{mpm}: processor time of the server, microseconds a request, least of {rounds} rounds\n")
    print("| bytes | " + " | ".join(shapes) + " | fenced over plain |")
    print("|---" * (len(shapes) + 2) + "|")
    for size in SIZES:
        # Neighbours on the machine only ever add.
        row = {shape: min(found[shape, size]) for shape in shapes}
        over = row["fenced handler"] / row["plain module"]
        print(f"| {size:,} | " + " | ".join(f"{row[s]:.1f}" for s in shapes) + f" | {over:.2f} |")


class Connection:
    """HTTP as fast as Python goes."""

    def __init__(self, server):
        self.port, self.socket = server.port, None

    def get(self, path):
        """The status."""
        if not self.socket:
            self.socket = socket.create_connection(("127.0.0.1", self.port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: a\r\n\r\n")
        got = b""
        while b"\r\n\r\n" not in got:
            part = self.socket.recv(65536)
            if not part:
                raise RuntimeError("the connection has ended")
            got += part
        head, _, body = got.partition(b"\r\n\r\n")
        left = int(re.search(rb"Content-Length: (\d+)", head)[1]) - len(body)
        while left > 0:
            left -= len(self.socket.recv(65536))
        if b"Connection: close" in head:
            self.close()
        return int(head[9:12])

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None


def fire(mpm, seconds):
    """Good requests among bad ones: how many a second, and their 99th percentile."""
    print(f"\n{mpm}: good requests (1 KB) among bad ones, 4 connections\n")
    print("| bad ones | share | good ones a second | median, ms | 99th percentile, ms |\n|---|---|---|---|---|")
    with Server("fire-" + mpm, mpm, CONFIG, SERVER_SIZES[mpm]) as server:
        def client(bad, share, until):
            connection, took, turn = Connection(server), [], 0.0
            while time.monotonic() < until:
                turn += share
                if turn >= 1:
                    turn -= 1
                    if connection.get(bad) != 500:
                        raise RuntimeError("a bad request was answered")
                    continue
                # A bad request ends its connection: the good one has its own time, not that of connecting again.
                connection.socket or connection.get(b"/plain")
                begun = time.perf_counter()
                if connection.get(b"/handler?n=1000") != 200:
                    raise RuntimeError("a good request failed")
                took.append(time.perf_counter() - begun)
            connection.close()
            return took

        for bad, share in [("none", 0.0)] + [(b, s) for b in ("crash", "spin", "eat") for s in (0.01, 0.1, 0.5)]:
            until = time.monotonic() + seconds
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                each = [pool.submit(client, b"/handler/" + bad.encode(), share, until) for _ in range(4)]
                took = sorted(t for one in each for t in one.result())
            print(f"| {bad} | {share:.0%} | {len(took) / seconds:,.0f} | {took[len(took) // 2] * 1e3:.2f} | "
                  f"{took[len(took) * 99 // 100] * 1e3:.2f} |", flush=True)
        crash(server)


def crash(server):
    """How much longer a request takes that ends in a fault, and how much processor time: each on a connection of its own."""
    found = {}
    for _ in range(5):
        for path in ("/plain?n=500", "/handler?n=500", "/handler/crash"):
            before, begun, count = processor_time(server), time.perf_counter(), 3000
            for _ in range(count):
                connection = Connection(server)
                connection.get(path.encode())
                connection.close()
            took = (time.perf_counter() - begun) / count * 1e6
            found.setdefault(path, []).append((took, (processor_time(server) - before) / count))
    print("\n| request, on a connection of its own | microseconds | processor time of the server |\n|---|---|---|")
    for path, rows in found.items():
        print(f"| {path} | {statistics.median(r[0] for r in rows):.0f} | {statistics.median(r[1] for r in rows):.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=3, help="for each line of bad requests")
    parser.add_argument("--mpm", choices=SERVER_SIZES, action="append")
    parser.add_argument("--fire-only", action="store_true")
    parser.add_argument("--pages-only", action="store_true")
    options = parser.parse_args()
    if not shutil.which("ab"):
        sys.exit("bench: no ab: install apache2-utils")
    fastcgi = build()
    for mpm in options.mpm or ("event", "prefork"):
        if not options.fire_only:
            pages(mpm, options.rounds, options.requests, fastcgi)
        if not options.pages_only:
            fire(mpm, options.seconds)


if __name__ == "__main__":
    main()
