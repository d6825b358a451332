#!/usr/bin/env python3
"""What a picture costs: fenced, plain, in a process of its own, in Wasmtime; small and large pictures; and what damaged ones cost the good ones.

  bench.py [--quick] [--only PART,PART] [--json FILE] [--charts FILE] [--page]

Parts are transcode, sizes, damaged. Starts servers of its own; wrk loads one at a time, in rounds that go through all of them. Figures are
medians of the rounds. --page writes the tables into docs/transcode.md. Wasmtime is left out, and that is said, where its toolchain is not
there (scripts/setup.sh bench).
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "build/transcode"
RELEASE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
CONNECTIONS = 4
PARTS = ("transcode", "sizes", "damaged")
NO_TOOLCHAIN = 3  # the status of wasmtime/build.sh, which has said what is missing
SIZES = {"9 KB": (60, 50), "99 KB": (200, 165), "270 KB": (300, 300), "3.3 MB": (1250, 880)}
SERVER = RELEASE / "ringfence-transcode"
WASMTIME = RELEASE.parent / "bench-wasmtime/release/ringfence-transcode-wasmtime"
WAYS = {
    "fenced": (SERVER, "window", "pictures.rf", {}),
    "plain": (SERVER, "none", "pictures.so", {}),
    "plain, JPEG in C": (SERVER, "none", "pictures.so", {"JSIMD_FORCENONE": "1"}),
    "process": (SERVER, "process", "pictures.rf", {}),
    # It has a back end of its own; the clients' runtimes, which get no text, are what they are elsewhere.
    "Wasmtime": (WASMTIME, "window", "pictures.wasm", {}),
}


class Server:
    """A server of its own, and what it uses."""

    def __init__(self, directory, program, backend, module, environment, *more):
        self.process = subprocess.Popen(
            [program, "--listen", "127.0.0.1:0", "--pictures", directory, "--processors", "2",
             "--backend", backend, "--module", OUT / module, *more],
            stdout=subprocess.PIPE, text=True, env={**os.environ, **environment, "RINGFENCE_WORKER": str(RELEASE / "ringfence-worker")})
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"bench: the server with {module} did not start")
        self.address = line.split("//")[1].strip()

    def processor_time(self):
        """Seconds of processor time, workers included."""
        ticks, waiting = 0, [self.process.pid]
        while waiting:
            pid = waiting.pop()
            try:
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(int(f) for f in fields[11:15])
                for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                    waiting += [int(p) for p in (task / "children").read_text().split()]
            except OSError:
                pass  # it has ended
        return ticks / os.sysconf("SC_CLK_TCK")

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def stop(self):
        self.process.terminate()
        self.process.wait()


def milliseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def load(server, path, seconds):
    """Requests a second, latencies in ms, and processor time of a request in ms, while wrk loads the server."""
    before = server.processor_time()
    run = subprocess.run(
        ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "30s", "--latency", f"http://{server.address}{path}"],
        capture_output=True, text=True, check=True)
    used = server.processor_time() - before
    count = int(re.search(r"(\d+) requests in", run.stdout)[1])
    if "Non-2xx" in run.stdout or "Socket errors" in run.stdout or not count:
        raise SystemExit(f"bench: {path}: {run.stdout}")
    quantile = {q: milliseconds(re.search(rf"^ +{q}% +(\S+)", run.stdout, re.M)[1]) for q in (50, 99)}
    rate = float(re.search(r"Requests/sec: +([\d.]+)", run.stdout)[1])
    return {"rate": rate, "p50": quantile[50], "p99": quantile[99], "cpu": 1e3 * used / count}


def middle(rounds):
    """The median of each figure."""
    return {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}


def interleaved(cases, rounds, seconds):
    """`cases`: what → (server, path). The middle of what each round found."""
    found = {what: [] for what in cases}
    for server, path in cases.values():
        load(server, path, 1)  # warm
    for _ in range(rounds):
        for what, (server, path) in cases.items():
            found[what].append(load(server, path, seconds))
    return {what: middle(all) for what, all in found.items()}


def shown(ways):
    """Which ways are compared by sizes and with damaged pictures."""
    return [way for way in ("plain", "fenced", "process", "Wasmtime") if way in ways]


def ways_of(found):
    """Those that the sizes have."""
    return ["no transcoding"] + shown({name.partition(", ")[2] for name in found})


def transcode(servers, rounds, seconds):
    """The picture of 2000 x 1333, 500 wide, grey; and without a function."""
    cases = {"no transcoding": (servers["fenced"], "/pictures/large.jpg")}
    for way, server in servers.items():
        cases[way] = (server, "/pictures/large.jpg?width=500&through=grey")
        cases[way + ", no function"] = (server, "/pictures/large.jpg?width=500")
    return interleaved(cases, rounds, seconds)


def sizes(servers, rounds, seconds):
    """Pictures in 24-bit colour to 8-bit grey, as the kernel plugins' server had them."""
    cases = {}
    for size in SIZES:
        name = size.replace(" ", "")
        cases[f"{size}, no transcoding"] = (servers["fenced"], f"/pictures/{name}.ppm")
        for way in shown(servers):
            cases[f"{size}, {way}"] = (servers[way], f"/pictures/{name}.ppm?through=grey")
    return interleaved(cases, rounds, seconds)


def damaged(servers, rounds, seconds, bad):
    """Good requests while damaged pictures come, one for each hundred and each ten good ones."""
    path = "/pictures/large.jpg?width=500&through=grey"
    found = {}
    for way in shown(servers):
        for share in (0, 1, 10):
            found[way, share] = []
    for _ in range(rounds):
        for way in shown(servers):
            server = servers[way]
            rate = None
            for share in (0, 1, 10):
                stop, counts = threading.Event(), {"sent": 0, "refused": 0}

                def disturb():
                    pause = 100 / (share * rate)
                    while True:
                        status, _ = server.ask("POST", "/pictures?width=500&through=grey", bad[counts["sent"] % len(bad)])
                        counts["sent"] += 1
                        counts["refused"] += status in (413, 422)
                        if stop.wait(pause):
                            return

                thread = threading.Thread(target=disturb) if share else None
                if thread:
                    thread.start()
                result = load(server, path, seconds)
                stop.set()
                if thread:
                    thread.join()
                if counts["sent"] != counts["refused"]:
                    raise SystemExit(f"bench: {way}: of {counts['sent']} damaged pictures {counts['refused']} were refused")
                rate = rate or result["rate"]
                result["bad"] = counts["sent"] / (result["rate"] * seconds) * 100
                found[way, share].append(result)
    return {f"{way}, {share} %": middle(all) for (way, share), all in found.items()}


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def tables(results):
    """The results for docs/transcode.md."""
    lines = []
    if "transcode" in results:
        found = results["transcode"]
        lines += ["A JPEG of 2000 × 1333 becomes 500 wide, and grey by a function:", ""]
        rows = []
        for way in found:
            if way.endswith(", no function"):
                continue
            bare, plain = found.get(way + ", no function"), found.get("plain")
            ratio = f"{found[way]['cpu'] / plain['cpu']:.2f} ×" if bare and plain else ""
            rows.append([way, f"{found[way]['rate']:.0f}", f"{found[way]['p50']:.1f}", f"{found[way]['p99']:.1f}", f"{found[way]['cpu']:.2f}",
                         ratio, f"{bare['cpu']:.2f}" if bare else ""])
        lines += table(["way", "requests/s", "median, ms", "99th percentile, ms", "processor time, ms", "over plain",
                        "without the function, ms"], rows) + [""]
    if "sizes" in results:
        found = results["sizes"]
        lines += ["PPM pictures in 24-bit colour become grey; requests a second, and processor time of one in µs:", ""]
        ways = ways_of(found)
        rows = [[size] + [f"{found[f'{size}, {way}']['rate']:.0f} ({1e3 * found[f'{size}, {way}']['cpu']:.0f})" for way in ways]
                for size in SIZES]
        lines += table(["size", *ways], rows) + [""]
    if "damaged" in results:
        found = results["damaged"]
        lines += ["Damaged pictures among the good ones of the first table; the figures are those of the good ones:", ""]
        rows = [[what, f"{r['bad']:.1f} %", f"{r['rate']:.0f}", f"{r['p50']:.1f}", f"{r['p99']:.1f}"] for what, r in found.items()]
        lines += table(["way, damaged pictures", "of the good ones", "good requests/s", "median, ms", "99th percentile, ms"], rows) + [""]
    without = [part for part in PARTS if not any("Wasmtime" in what for what in results.get(part, ["Wasmtime"]))]
    if without:
        lines += [f"Wasmtime was left out of {', '.join(without)}: not measured yet, or its toolchain was not there.", ""]
    return lines


def charts(found):
    """The pictures' sizes for docs/functions-figures.md, as `bench charts` reads them."""
    ways = ways_of(found)
    bytes_of = {size: 3 * width * height for size, (width, height) in SIZES.items()}

    def chart(name, title, y, value):
        series = [{"name": way, "points": [[bytes_of[size], value(found[f"{size}, {way}"])] for size in SIZES]} for way in ways]
        return {"name": name, "title": title, "x": "bytes of the picture", "y": y, "logarithmic": True, "series": series}

    rows = [[size, way, f"{r['rate']:.0f}", f"{r['p50']:.2f}", f"{r['p99']:.2f}", f"{1e3 * r['cpu']:.0f}"]
            for size in SIZES for way in ways for r in [found[f"{size}, {way}"]]]
    return {
        "charts": [chart("picture-rate", "PPM pictures become grey", "requests a second", lambda r: r["rate"]),
                   chart("picture-time", "Processor time of a picture", "microseconds", lambda r: 1e3 * r["cpu"])],
        "tables": [{"name": "pictures", "rows": rows,
                    "head": ["picture", "way", "requests/s", "median, ms", "99th percentile, ms", "processor time, µs"]}],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "build/bench/transcode.json")
    parser.add_argument("--charts", type=pathlib.Path, help="leave the sizes there, for `bench charts`")
    parser.add_argument("--page", action="store_true", help="write the tables into docs/transcode.md")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--built", action="store_true", help="everything is built already")
    options = parser.parse_args()
    rounds, seconds = (1, 1) if options.quick else (options.rounds, options.seconds)
    if not shutil.which("wrk"):
        raise SystemExit("bench: there is no wrk (scripts/setup.sh transcode installs it)")
    if not options.built:
        subprocess.run([ROOT / "apps/transcode/build.sh"], check=True)
        subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "ringfence-transcode", "-p", "ringfence-process"], cwd=ROOT, check=True)
        status = subprocess.run([ROOT / "apps/transcode/wasmtime/build.sh"]).returncode
        if status not in (0, NO_TOOLCHAIN):
            raise SystemExit("bench: the build for Wasmtime failed")
        if status == NO_TOOLCHAIN:
            WASMTIME.unlink(missing_ok=True)
    ways = dict(WAYS)
    if not WASMTIME.exists():
        print("bench: Wasmtime is left out", file=sys.stderr)
        del ways["Wasmtime"]
    parts = options.only.split(",")
    results = json.loads(options.json.read_text())["results"] if options.json.exists() else {}
    with tempfile.TemporaryDirectory() as directory:
        servers = {}
        try:
            for way, what in ways.items():
                servers[way] = Server(directory, *what)
            make(pathlib.Path(directory), servers["plain"])
            broken = damages(pathlib.Path(directory))
            agree(servers, broken)
            limited(directory, ways, broken)
            if "transcode" in parts:
                results["transcode"] = transcode(servers, rounds, seconds)
            if "sizes" in parts:
                results["sizes"] = sizes(servers, rounds, seconds)
            if "damaged" in parts:
                results["damaged"] = damaged(servers, rounds, seconds, broken)
        finally:
            for server in servers.values():
                server.stop()
    machine = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())[1]
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"machine": machine, "processors": os.cpu_count(), "rounds": rounds, "seconds": seconds,
                                        "connections": CONNECTIONS, "results": results}, indent=2) + "\n")
    if options.charts and "sizes" in results:
        options.charts.parent.mkdir(parents=True, exist_ok=True)
        options.charts.write_text(json.dumps(charts(results["sizes"]), indent=2) + "\n")
    text = "\n".join(tables(results))
    print(text)
    if options.page:
        page = ROOT / "docs/transcode.md"
        begin, end = "<!-- bench.py writes what follows -->\n", "<!-- to here -->"
        before, _, rest = page.read_text().partition(begin)
        page.write_text(before + begin + "\n" + text + "\n" + end + rest.partition(end)[2])


def damages(directory):
    """Damaged pictures: half of one, one bent in the middle, a bomb."""
    large = (directory / "large.jpg").read_bytes()
    bent = bytearray(large)
    bent[len(large) // 3:len(large) // 3 + 40] = b"\xff\xd9" * 20
    return [large[: len(large) // 2], bytes(bent), b"P6 60000 60000 255\n" + bytes(1000)]


def agree(servers, broken):
    """Ends the comparison unless all ways answer alike: with the same pictures, and with the same refusals."""
    asked = [("GET", f"/pictures/large.jpg?width=500{more}", None) for more in ("", "&through=grey", "&through=grey&format=png")]
    asked += [("GET", f"/pictures/{size.replace(' ', '')}.ppm?through={through}", None)
              for size in SIZES for through in ("grey", "crop(5,5,40,30)", "scale(33,20)", "quantise(4)")]
    asked += [("GET", "/pictures/base.png?width=300&format=webp", None)]
    asked += [("POST", "/pictures?width=500&through=grey", body) for body in broken]
    asked += [("GET", "/pictures/9KB.ppm?through=scale(0,5)", None), ("GET", "/pictures/9KB.ppm?through=nothing", None)]
    for method, path, body in asked:
        wanted = servers["plain"].ask(method, path, body)
        for way, server in servers.items():
            got = server.ask(method, path, body)
            if got[0] != wanted[0] or (got[0] == 200 and got[1] != wanted[1]):
                told = [f"{status} {len(what)} bytes" if status == 200 else f"{status} {what[:200]!r}" for status, what in (got, wanted)]
                raise SystemExit(f"bench: {method} {path}: {way} answers {told[0]}, plain {told[1]}")


def limited(directory, ways, broken):
    """Ends the comparison unless each fence, Wasmtime's too, holds memory and time, and has its instances back after failures."""
    for way in shown(ways):
        if way == "plain":
            continue  # it has no limits
        for limit, wanted in (("--memory-limit=8M", 413), ("--time-limit=1ms", 504)):
            server = Server(directory, *ways[way], limit)
            try:
                for _ in range(10):
                    status, told = server.ask("GET", "/pictures/base.png?width=1900&format=webp")
                    if status != wanted:
                        raise SystemExit(f"bench: {way} {limit}: {status}, not {wanted}: {told[:200]!r}")
            finally:
                server.stop()
        server = Server(directory, *ways[way], "--requests=4")
        try:
            refused = {server.ask("POST", "/pictures?through=grey", broken[n % len(broken)])[0] for n in range(24)}
            status, _ = server.ask("GET", "/pictures/9KB.ppm?through=grey")
            if not refused <= {413, 422} or status != 200:
                raise SystemExit(f"bench: {way}: {refused} for damaged pictures, and then {status} for a good one")
        finally:
            server.stop()


def make(directory, server):
    """The pictures; the server itself encodes the JPEG."""
    base = directory / "base.png"
    pictures = ROOT / "apps/transcode/pictures.py"
    kept = OUT / "bench-2000x1333.png"
    if not kept.exists():
        subprocess.run([pictures, "2000", "1333", kept], check=True)
    base.write_bytes(kept.read_bytes())
    status, body = server.ask("GET", "/pictures/base.png?format=jpeg&quality=88")
    assert status == 200, body
    (directory / "large.jpg").write_bytes(body)
    for size, (width, height) in SIZES.items():
        status, body = server.ask("GET", f"/pictures/base.png?through=scale({width},{height})&format=pnm")
        assert status == 200, body
        (directory / (size.replace(" ", "") + ".ppm")).write_bytes(body)


if __name__ == "__main__":
    started = time.time()
    main()
    print(f"bench-transcode: {time.time() - started:.0f} s")
