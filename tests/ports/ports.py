#!/usr/bin/env python3
"""Builds Debian source packages natively and fenced, unmodified, by the recipes of docs/porting.md, runs their own tests both ways,
and writes what came of it.

    tests/ports/ports.py [--out DIR] [--limit SECONDS] [PACKAGE...]

Without names it takes all of packages.txt. What was done stays: a package with a result in DIR is not built again. The table is
DIR/table.md, the results DIR/NAME.json, the logs DIR/NAME/*.log. Needs apt-get, dpkg-source, and what the packages' builds call.
Nothing here knows a package by its name.
"""

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def sources_list(work):
    """apt's options for a package list of its own, with source packages, made from the machine's."""
    apt = work / "apt"
    (apt / "lists/partial").mkdir(parents=True, exist_ok=True)
    text = ""
    for file in sorted(Path("/etc/apt/sources.list.d").glob("*.sources")):
        text += file.read_text().replace("Types: deb\n", "Types: deb-src\n") + "\n"
    options = [f"-oDir::Etc::sourcelist={apt}/none", f"-oDir::Etc::sourceparts={apt}/parts", f"-oDir::State::lists={apt}/lists", f"-oDir::Cache={apt}/cache"]
    (apt / "parts").mkdir(exist_ok=True)
    (apt / "cache/archives/partial").mkdir(parents=True, exist_ok=True)
    (apt / "parts/source.sources").write_text(text)
    if not any((apt / "lists").glob("*Sources*")):
        subprocess.run(["apt-get", *options, "update", "-qq"], check=True)
    return options


def fetch(name, place, options):
    """The package's source directory, as dpkg-source unpacks it."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", *options, "-oAPT::Sandbox::User=root", "-qq", "source", "--download-only", name], cwd=place, check=True, stdout=subprocess.DEVNULL)
    dsc = next(place.glob("*.dsc"))
    subprocess.run(["dpkg-source", "--no-check", "-x", dsc.name, "source"], cwd=place, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return place / "source"


def run(command, where, log, limit, env):
    """Runs a command with everything it starts; its exit status (None: out of time), and its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(log, "ab") as out:
        out.write(f"$ {command}\n".encode())
        out.flush()
        child = subprocess.Popen(
            ["bash", "-c", f"ulimit -f 4194304; {command}"], cwd=where, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env, start_new_session=True
        )
        try:
            status = child.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return status, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def recipe(source, fenced):
    """The commands that configure, build and test a project, by what it is built with."""
    cc = 'CC="ringfence-cc --wrapper" CXX="ringfence-c++ --wrapper"' if fenced else "CC=gcc CXX=g++"
    has = lambda name: (source / name).exists()
    # As released, else by what needs least to be made first.
    if has("configure") or has("configure.ac") and not (has("CMakeLists.txt") or has("meson.build")):
        make = "" if has("configure") else "autoreconf -fi && "
        cross = "--build=x86_64-pc-linux-gnu --host=x86_64-linux-musl" if fenced else ""
        # Old copies of config.sub know no musl.
        if fenced and (source / "config.sub").exists() and "musl" not in (source / "config.sub").read_text(errors="replace"):
            cross = cross.replace("linux-musl", "linux-gnu")
        return f"{make}./configure {cc} {cross} --disable-shared", "make -j2", "make -k check"
    if has("CMakeLists.txt"):
        file = f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/share/ringfence.cmake" if fenced else ""
        return f"cmake -S . -B ports-build {file} -DBUILD_SHARED_LIBS=OFF", "make -C ports-build -j2", "cd ports-build && ctest"
    if has("meson.build"):
        file = f"--cross-file {ROOT}/share/ringfence.meson" if fenced else ""
        return f"meson setup ports-build {file} -Ddefault_library=static", "ninja -C ports-build", "meson test -C ports-build"
    if any(has(name) for name in ("Makefile", "makefile", "GNUmakefile")):
        return "true", f"make -j2 {cc}", f"make -k check {cc} || make -k test {cc}"
    return None


def verdict(log):
    """What a test run says of itself: how many of which outcome. Nothing if it says nothing that is known here."""
    text = log.read_text(errors="replace")
    text = text[text.rfind("$ ") :] if "$ " in text else text
    counts = {}
    for word, number in re.findall(r"^# (PASS|FAIL|XFAIL|XPASS|ERROR|SKIP): +(\d+)", text, re.M):
        counts[word] = counts.get(word, 0) + int(number)
    for failed, of in re.findall(r"(\d+) tests? failed out of (\d+)", text):
        counts["FAIL"] = counts.get("FAIL", 0) + int(failed)
        counts["PASS"] = counts.get("PASS", 0) + int(of) - int(failed)
    for word, number in re.findall(r"^(Ok|Fail|Skipped|Timeout|Expected Fail): +(\d+)", text, re.M):
        counts[word] = counts.get(word, 0) + int(number)
    return counts


def one(name, out, limit, options, env):
    place = out / name
    shutil.rmtree(place, ignore_errors=True)
    result = {"package": name, "native": {}, "fenced": {}}
    try:
        source = fetch(name, place, options)
    except (subprocess.CalledProcessError, StopIteration) as error:
        return {**result, "error": f"no source: {error}"}
    for kind in ("native", "fenced"):
        steps = recipe(source, kind == "fenced")
        if steps is None:
            return {**result, "error": "no build system that is known here"}
        # The same name for both: paths are in what tests print.
        work = place / "work"
        shutil.copytree(source, work, symlinks=True)
        log = place / f"{kind}.log"
        found = result[kind]
        for step, command in zip(("configure", "build", "tests"), steps):
            status, seconds = run(command, work, log, limit, env)
            found[step] = status
            found[f"{step}_seconds"] = round(seconds, 2)
            if status != 0:
                break
        if "tests" in found:
            found["counts"] = verdict(log)
            if re.search(r"^No tests (were found|defined)", log.read_text(errors="replace"), re.M):
                found["says"] = "No tests"
        shutil.rmtree(work, ignore_errors=True)
        if found.get("build") != 0:
            break
    return result


def row(r):
    native, fenced = r["native"], r["fenced"]
    if "error" in r or native.get("build") != 0:
        return "not natively", "", "", "", r.get("error", "does not build here natively")
    if fenced.get("build") != 0:
        step = "configure" if fenced.get("configure") != 0 else "build"
        return "no", "", "", "", f"{step} ends with {fenced.get(step)}"
    # Without counts that are known, the exit status is all there is.
    if "No tests" in str(native.get("says")):
        return "yes", "none", "", "", "it has none"
    equal = fenced.get("counts") == native.get("counts") and fenced.get("tests") == native.get("tests")
    times = native.get("tests_seconds", 0), fenced.get("tests_seconds", 0)
    ratio = f"{times[1] / times[0]:.2f}" if times[0] > 0.5 else ""
    text = lambda found: " ".join(f"{k.lower()} {v}" for k, v in sorted(found.get("counts", {}).items()) if v) or f"status {found.get('tests')}"
    return "yes", "yes" if equal else "no", f"{times[0]:.1f} / {times[1]:.1f}", ratio, text(native) if equal else f"native {text(native)}; fenced {text(fenced)}"


def table(out, names):
    results = [json.loads(p.read_text()) for n in names if (p := out / f"{n}.json").exists()]
    rows = [(r["package"], *row(r)) for r in results]
    tried = [r for r in rows if r[1] != "not natively"]
    lines = [
        f"{sum(r[1] == 'yes' for r in tried)} of {len(tried)} that build natively build fenced; the tests of "
        f"{sum(r[2] == 'yes' for r in tried)} are as native, of {sum(r[2] == 'no' for r in tried)} not.",
        "",
        "| package | builds | tests equal | processor seconds of the tests, native / fenced | ratio | tests |",
        "|---|---|---|---|---|---|",
        *("| " + " | ".join(r) + " |" for r in rows),
    ]
    (out / "table.md").write_text("\n".join(lines) + "\n")
    return lines[0], rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("packages", nargs="*")
    parser.add_argument("--out", type=Path, default=ROOT / "build/ports")
    parser.add_argument("--limit", type=int, default=1800, help="most seconds for each step")
    parser.add_argument("--again", action="store_true", help="build also what has a result")
    parser.add_argument("--equal", action="store_true", help="fail unless the tests of all are as native")
    args = parser.parse_args()
    names = args.packages or [l for l in (HERE / "packages.txt").read_text().splitlines() if l and not l.startswith("#")]
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    command = os.environ.get("RINGFENCE") or target / "release/ringfence"
    if not Path(command).exists():
        sys.exit(f"ports: no command at {command}; make build, or name one by RINGFENCE")
    tools = out / "bin"
    tools.mkdir(exist_ok=True)
    for link in ("ringfence", "ringfence-cc", "ringfence-c++"):
        (tools / link).unlink(missing_ok=True)
        (tools / link).symlink_to(Path(command).resolve())
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CC", "CXX", "CFLAGS")}
    env |= {"PATH": f"{tools}:{env['PATH']}", "LC_ALL": "C.UTF-8", "RINGFENCE": str(tools / "ringfence")}
    options = sources_list(out)
    for name in names:
        if args.again or not (out / f"{name}.json").exists():
            result = one(name, out, args.limit, options, env)
            (out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        print(name, *row(json.loads((out / f"{name}.json").read_text())), sep=" | ", flush=True)
    summary, rows = table(out, names)
    print(summary)
    return int(args.equal and any(r[2] != "yes" for r in rows))


if __name__ == "__main__":
    sys.exit(main())
