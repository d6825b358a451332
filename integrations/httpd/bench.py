#!/usr/bin/env python3
"""What a page costs: processor time of the server a request, by size and by the way in which the page is made; and what faults cost others.

  bench.py [--rounds N] [--seconds S] [--mpm NAME] [--fire-only | --pages-only] [--json FILE]

Starts servers of its own (server.py), which wrk loads. Rounds are interleaved; of processor times the least is told, of others the median.
FastCGI is left out, visibly, if mod_fcgid or libfcgi is not installed, and with it mod_proxy_fcgi; so is uWSGI.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

from server import Server, free_port, tree

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
<Location /whole>
  SetHandler plain-whole
</Location>
<Location /buffer>
  SetHandler fenced:handler
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
PROXY = "LoadModule proxy_module {modules}/mod_proxy.so\n"
UWSGI = """
LoadModule proxy_uwsgi_module {modules}/mod_proxy_uwsgi.so
LoadModule proxy_http_module {modules}/mod_proxy_http.so
<Location /uwsgi>
  ProxyPass uwsgi://127.0.0.1:%d/
</Location>
<Location /process>
  ProxyPass http://127.0.0.1:%d/
</Location>
"""
PROXY_FASTCGI = """
LoadModule proxy_fcgi_module {modules}/mod_proxy_fcgi.so
<Location /proxy>
  ProxyPass fcgi://127.0.0.1:%d/
</Location>
"""
SERVER_SIZES = {
    "prefork": "StartServers 8\nMinSpareServers 8\nMaxSpareServers 8\nServerLimit 8\nMaxRequestWorkers 8",
    "event": "StartServers 1\nServerLimit 1\nThreadsPerChild 16\nMaxRequestWorkers 16\nMinSpareThreads 1\nMaxSpareThreads 16",
}


def build():
    """Compiles the shapes. Whether FastCGI is among them, and uWSGI."""
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
        fastcgi = False
    else:
        run("gcc", "-O2", "-o", to / "loop", source / "loop.c", "-lfcgi")
        fastcgi = True
    uwsgi = bool(shutil.which("uwsgi-core")) and pathlib.Path(modules, "mod_proxy_uwsgi.so").exists()
    if uwsgi:
        run("gcc", "-O2", "-shared", "-fPIC", "-o", to / "uwsgi.so", source / "uwsgi.c")
    else:
        print("uWSGI is left out: install uwsgi-core")
    return fastcgi, uwsgi


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


@contextlib.contextmanager
def uwsgi_processes(library, count):
    """uWSGI's processes, which speak its own protocol on one port and HTTP on another. Both ports, and the first one's id."""
    ports = [free_port(), free_port()]
    running = subprocess.Popen(["uwsgi-core", "--plugin", "symcall", "--symcall", "bench_page", "--master", "--processes", str(count),
                                "--socket", f"127.0.0.1:{ports[0]}", "--http-socket", f"127.0.0.1:{ports[1]}", "--disable-logging", "--die-on-term"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "LD_PRELOAD": str(library)})
    try:
        for port in ports:
            for _ in range(200):
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), timeout=5).close()
                    break
                time.sleep(0.05)
        yield ports, running.pid
    finally:
        running.terminate()
        running.wait()


def processor_time(server):
    """Microseconds that the server has used, with all its processes and those that it asks: what the scheduler has counted for the living, and the coarser
    figure of those that were waited for."""
    spent = 0.0
    others = [pid for root in getattr(server, "others", []) for pid in processes(root)]
    for pid in processes(server.pid()) + others:
        with contextlib.suppress(OSError):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            spent += sum(int(n) for n in fields[13:15]) * 1e6 / os.sysconf("SC_CLK_TCK")
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                spent += int(task.read_text().split()[0]) / 1e3
    return spent


UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def load(server, path, seconds, connections=4):
    """Requests by wrk, connections kept. Processor time of the server a request in microseconds, requests a second, and the median and the 99th
    percentile of the latency in milliseconds."""
    before = processor_time(server)
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "--latency", f"http://127.0.0.1:{server.port}{path}"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout
    spent = processor_time(server) - before
    if re.search(r"Non-2xx|Socket errors", done):
        raise RuntimeError(f"{path}: {done}")
    count, rate = int(re.search(r"(\d+) requests in", done)[1]), float(re.search(r"Requests/sec: +([\d.]+)", done)[1])
    late = [float(n) * UNITS[unit] for n, unit in re.findall(r"(?:50|99)% +([\d.]+)(us|ms|s)", done)]
    return spent / count, rate, *late


def told(mpm, title, head, rows):
    """Prints a table."""
    print(f"\n{mpm}: {title}\n\n| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def pages(mpm, rounds, seconds, fastcgi, uwsgi):
    """By the tables' names: heads, and rows."""
    shapes = {"static": "/{0}.txt", "plain module": "/plain?n={0}", "the same, in one piece": "/whole?n={0}", "fenced handler": "/handler?n={0}",
              "fenced, by a buffer": "/buffer?n={0}", "fenced, kept": "/kept?n={0}", "fenced CGI": "/program?n={0}"}
    # A load is no place for a limit that a busy machine may pass.
    config, others = CONFIG.replace("FencedTimeLimit 50ms", "FencedTimeLimit 60"), []
    stack = contextlib.ExitStack()
    out = pathlib.Path(tree("out")) / "bench"
    if fastcgi or uwsgi:
        config += PROXY
    if fastcgi:
        shapes["FastCGI"] = "/fcgi?n={0}"
        shapes["mod_proxy_fcgi"] = "/proxy?n={0}"
        # A connection for each request: libfcgi ends those that are kept while the server sends the next one.
        port, pids = stack.enter_context(backends(out / "loop", 16))
        others += pids
        config += FASTCGI + PROXY_FASTCGI % port
    if uwsgi:
        shapes["mod_proxy_uwsgi"] = "/uwsgi?n={0}"
        shapes["mod_proxy_http"] = "/process?n={0}"
        ports, pid = stack.enter_context(uwsgi_processes(out / "uwsgi.so", 4))
        others.append(pid)
        config += UWSGI % tuple(ports)
    shapes["CGI"] = "/cgi?n={0}"
    server = Server("bench-" + mpm, mpm, config, SERVER_SIZES[mpm])
    server.others = others
    for size in SIZES:
        (server.dir / f"docs/{size}.txt").write_bytes(b"x" * size)
    found = {}
    with stack, server:
        for _ in range(rounds):
            for size in SIZES:
                for shape, path in shapes.items():
                    found.setdefault((shape, size), []).append(load(server, path.format(size), seconds))
    tables = {}
    for name, what, title, best in (("httpd-pages", 0, "processor time of the server, microseconds a request, least", min),
                                    ("httpd-rates", 1, "requests a second, most", max)):
        rows = []
        for size in SIZES:
            # Neighbours on the machine only ever add.
            row = {shape: best(one[what] for one in found[shape, size]) for shape in shapes}
            over = [f"{row[s] / row['plain module']:.2f}" for s in ("fenced handler", "fenced, by a buffer")] if what == 0 else []
            rows.append([f"{size:,}", *(f"{row[s]:,.1f}" if what == 0 else f"{row[s]:,.0f}" for s in shapes), *over])
        tables[name] = ["bytes", *shapes, *(["handler over plain", "buffer over plain"] if what == 0 else [])], rows
        told(mpm, f"{title} of {rounds} rounds", *tables[name])
    return tables


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


def mixed(server, bad, share, seconds):
    """Four clients, each of which sends good and bad requests on the same connection. Times of the good ones, and how many bad ones there were."""
    def client(until):
        connection, took, turn, sent = Connection(server), [], 0.0, 0
        while time.monotonic() < until:
            turn += share
            if turn >= 1:
                turn -= 1
                sent += 1
                if connection.get(bad) != 500:
                    raise RuntimeError("a bad request was answered")
                continue
            # A bad request ends its connection: the good one has its own time, not that of connecting again.
            connection.socket or connection.get(b"/plain")
            took.append(good_one(connection))
        connection.close()
        return took, sent

    until = time.monotonic() + seconds
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        done = [one.result() for one in [pool.submit(client, until) for _ in range(4)]]
    return [t for took, _ in done for t in took], sum(sent for _, sent in done)


def good_one(connection):
    begun = time.perf_counter()
    if connection.get(b"/handler?n=1000") != 200:
        raise RuntimeError("a good request failed")
    return time.perf_counter() - begun


def apart(server, bad, share, seconds):
    """The same, but two clients send good ones only, and two bad ones only, as many as make the share, or as many as are answered."""
    counts = {"good": 0, "bad": 0}  # one thread more or less does not matter

    def good(until):
        connection, took = Connection(server), []
        while time.monotonic() < until:
            took.append(good_one(connection))
            counts["good"] += 1
        connection.close()
        return took

    def wrong(until):
        connection = Connection(server)
        while time.monotonic() < until:
            if counts["bad"] * (1 - share) >= counts["good"] * share:
                time.sleep(0.0002)
                continue
            counts["bad"] += 1
            if connection.get(bad) != 500:
                raise RuntimeError("a bad request was answered")
        connection.close()
        return []

    until = time.monotonic() + seconds
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        each = [pool.submit(good if number < 2 or not share else wrong, until) for number in range(4)]
        took = [t for one in each for t in one.result()]
    return took, counts["bad"]


FIRE = ["bad ones", "share aimed at", "connections", "bad ones of all", "good ones a second", "median, ms", "99th percentile, ms"]


def fire(mpm, seconds):
    """Good requests among bad ones: how many a second, and their 99th percentile. As pages."""
    rows = []
    with Server("fire-" + mpm, mpm, CONFIG, SERVER_SIZES[mpm]) as server:
        for bad, share in [("none", 0.0)] + [(b, s) for b in ("crash", "spin", "eat") for s in (0.01, 0.1, 0.5)]:
            for name, way in (("the same", mixed), ("their own", apart)):
                took, sent = way(server, b"/handler/" + bad.encode(), share, seconds)
                took.sort()
                rows.append([bad, f"{share:.0%}", name, f"{sent / (sent + len(took)):.1%}", f"{len(took) / seconds:,.0f}", f"{took[len(took) // 2] * 1e3:.2f}",
                             f"{took[len(took) * 99 // 100] * 1e3:.2f}"])
        told(mpm, "good requests (1 KB) among bad ones, 4 connections", FIRE, rows)
        return {"httpd-fire": (FIRE, rows), "httpd-crash": crash(mpm, server)}


def crash(mpm, server):
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
    head = ["request, on a connection of its own", "microseconds", "processor time of the server"]
    rows = [[path, *(f"{statistics.median(r[i] for r in rows):.0f}" for i in (0, 1))] for path, rows in found.items()]
    told(mpm, "a fault", head, rows)
    return head, rows


def conditions(name, options):
    """Under which the figures came to be, as a table of `bench charts`. To be asked for before anything is measured."""
    return {"name": name, "head": ["rounds", "seconds of each load", "processors", "programs that want one, before"],
            "rows": [[str(options.rounds), str(options.seconds), str(os.cpu_count()), f"{os.getloadavg()[0]:.1f}"]]}


def drawn(figures, under):
    """What `bench charts` puts into docs/httpd-figures.md: the tables of all MPMs, one below the other."""
    names = [name for name in ("httpd-pages", "httpd-rates", "httpd-fire", "httpd-crash") if any(name in found for found in figures.values())]
    return {"page": "httpd", "tables": [
        under,
        *({"name": name, "head": ["MPM", *next(iter(figures.values()))[name][0]], "rows": [[mpm, *row] for mpm, found in figures.items() for row in found[name][1]]}
          for name in names)
    ]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=1, help="for each load; three times as much for each line of bad requests")
    parser.add_argument("--mpm", choices=SERVER_SIZES, action="append")
    parser.add_argument("--fire-only", action="store_true")
    parser.add_argument("--pages-only", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, help="leave the figures there, for `bench charts`")
    options = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("bench: no wrk: install it (scripts/setup.sh httpd)")
    peers, figures, under = build(), {}, conditions("httpd-pages-conditions", options)
    for mpm in options.mpm or ("event", "prefork"):
        figures[mpm] = {}
        if not options.fire_only:
            figures[mpm] |= pages(mpm, options.rounds, options.seconds, *peers)
        if not options.pages_only:
            figures[mpm] |= fire(mpm, 3 * options.seconds)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(drawn(figures, under), indent=1) + "\n")


if __name__ == "__main__":
    main()
