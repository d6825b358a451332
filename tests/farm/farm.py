#!/usr/bin/env python3
"""Builds the farm's projects natively and fenced, unmodified, runs their own tests both ways, and tells what came of it.

Nothing here knows a project by its name: projects.txt says how each is built. A project with a result in build/farm is not built
again. Needs apt-get, dpkg-source, and what the projects' builds call (scripts/setup.sh farm).
"""

import argparse
import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import outcomes
import page
import projects
import recipes

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(ROOT / "scripts"))
from debian_source import NoSource, Sources  # noqa: E402

KEPT = HERE / "results.json"


@contextlib.contextmanager
def alone(file):
    """Holds a lock on a file, which two farms at once would both write. BusyFarm names who has it."""
    with open(file, "a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            raise BusyFarm(f"another farm ({lock.read().strip() or 'starting'}) works on {file.parent}; wait for it, or give another --out") from error
        lock.truncate(0)
        lock.write(f"process {os.getpid()}")
        lock.flush()
        yield


class BusyFarm(Exception):
    """Somebody else works in the directory."""


def one(project, out, sources, limit, native):
    """Fetches, builds and tests a project; all that is known of it afterwards. `native` is what an earlier run has of the version natively."""
    result = {"package": project.package}
    place = out / "work" / project.package
    try:
        dsc, result["version"] = sources.fetch(project.package)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        sources.unpack(dsc, place / "source")
    except NoSource as error:
        return result | {"error": str(error)}
    env = recipes.environment(out / "bin", place / "home")
    known = native if native.get("version") == result["version"] and "outcomes" in native.get("native", {}) else {}
    for kind in ("native", "fenced"):
        if kind == "native" and known:
            result[kind] = known[kind]
            continue
        found = recipes.build(project, place / "source", place, kind == "fenced", limit, env)
        if "tests" in found:
            log = place / f"{kind}-tests.log"
            found["by"], found["outcomes"] = outcomes.of(project, place / "work", log)
            found["none"] = outcomes.none(log)
            if kind == "native" and found["by"] == "output" and found["tests"]["status"] == 0:
                # What two native runs print differently (random numbers, say) is not compared.
                again = recipes.test_again(project, place, limit, env)
                found["varies"] = outcomes.varies(found["outcomes"], outcomes.of(project, place / "work", again)[1])
        result[kind] = found
        if found.get("build", {}).get("status") != 0:
            break
    # The logs stay.
    for part in ("source", "work", "home"):
        shutil.rmtree(place / part, ignore_errors=True)
    return result


def entry(result):
    """What is kept of a result."""
    seconds = {
        kind: {step: result[kind][step]["seconds"] for step in recipes.STEPS if step in result[kind]} for kind in ("native", "fenced") if kind in result
    }
    return {"version": result.get("version", "")} | outcomes.judge(result) | seconds



def worse(now, kept):
    """Whether a project does worse than it did. What cannot be tried here is not worse."""
    if now["builds"] in ("no source", "not natively") or kept["builds"] != "yes":
        return False
    if now["builds"] == "no":
        return True
    return kept["tests"] == "equal" and now["tests"] == "differ"


def machine():
    """The processor and the compiler, as a reader knows them."""
    cpu = dict(re.findall(r"^(model name|cpu family|model)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M))
    gcc = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{cpu.get('model name', 'an unknown processor')} (family {cpu.get('cpu family')}, model {cpu.get('model')}), gcc {gcc}"


def tools(out):
    """A directory with the command under all of its names."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    command = Path(os.environ.get("RINGFENCE") or target / "release/ringfence").resolve()
    if not command.exists():
        sys.exit(f"farm: no command at {command}; make build, or name one by RINGFENCE")
    (out / "bin").mkdir(parents=True, exist_ok=True)
    for name in ("ringfence", "ringfence-cc", "ringfence-c++"):
        link = out / "bin" / name
        link.unlink(missing_ok=True)
        link.symlink_to(command)


def check_page():
    """Whether the page is what the kept results make."""
    kept, given = json.loads(KEPT.read_text()), page.reasons(page.REASONS.read_text())
    wrong = list(page.mistakes(kept, given))
    if page.PAGE.read_text() != page.render(kept, given):
        wrong.append("docs/farm.md is not what tests/farm/farm.py --page makes")
    print("\n".join(wrong), end="\n" if wrong else "")
    return len(wrong)


def write_page():
    kept, given = json.loads(KEPT.read_text()), page.reasons(page.REASONS.read_text())
    page.PAGE.write_text(page.render(kept, given))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", metavar="A,B", help="these projects; all without it")
    parser.add_argument("--again", action="store_true", help="build also what has a result")
    parser.add_argument("--fenced", action="store_true", help="with --again: natively only what was not built before")
    parser.add_argument("--jobs", type=int, default=1, help="projects at a time (1)")
    parser.add_argument("--limit", type=int, default=1200, metavar="SECONDS", help="most for each step (1200)")
    parser.add_argument("--out", type=Path, default=ROOT / "build/farm", help="where sources, results and logs go (build/farm)")
    parser.add_argument("--fetch", action="store_true", help="only download")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--equal", action="store_true", help="fail unless all build and their tests are equal")
    parser.add_argument("--keep", action="store_true", help="put the results into tests/farm/results.json, and write docs/farm.md")
    parser.add_argument("--page", action="store_true", help="write docs/farm.md from what is kept, and build nothing")
    parser.add_argument("--check-page", action="store_true", help="fail unless docs/farm.md is what --page makes")
    args = parser.parse_args()
    if args.check_page:
        return check_page()
    if args.page:
        return write_page()

    listed = projects.load()
    only = [name for name in args.only.split(",") if name]
    if unknown := set(only) - {p.package for p in listed}:
        sys.exit(f"farm: projects.txt has no {', '.join(sorted(unknown))}")
    chosen = [p for p in listed if not only or p.package in only]

    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    try:
        with alone(out / "lock"):
            return farm(args, listed, chosen, out)
    except BusyFarm as error:
        sys.exit(f"farm: {error}")


def farm(args, listed, chosen, out):
    """What main() does once nobody else works in `out`."""
    results = out / "results"
    results.mkdir(exist_ok=True)
    sources = Sources(out / "sources")
    if args.fetch:
        missing = 0
        for project in chosen:
            try:
                sources.fetch(project.package)
            except NoSource as error:
                missing += 1
                print(error)
        return int(missing > 0)
    tools(out)

    printing = threading.Lock()

    def work(project):
        file = results / f"{project.package}.json"
        if args.again or not file.exists():
            before = json.loads(file.read_text()) if args.fenced and file.exists() else {}
            result = one(project, out, sources, args.limit, before)
            file.write_text(json.dumps(result, indent=1) + "\n")
        told = entry(json.loads(file.read_text()))
        with printing:
            print(f"{project.package}: builds: {told['builds']}, tests: {told['tests'] or 'none'} {told['said']}".rstrip(), file=sys.stderr, flush=True)
        return told

    # What was downloaded already and is small comes first, so that most results are there soon.
    order = sorted(chosen, key=lambda p: sources.size(p.package))
    with ThreadPoolExecutor(max_workers=max(1, args.jobs)) as pool:
        found = {p.package: told for p, told in zip(order, pool.map(work, order))}

    if args.json:
        print(json.dumps({"machine": machine(), "projects": found}, indent=1))
    if found and all(e["builds"] == "no source" for e in found.values()):
        print("farm: skipped, no source package can be had here: " + next(iter(found.values()))["said"], file=sys.stderr)
        return int(os.environ.get("CI") == "true")
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"projects": {}}
    if args.keep:
        all_kept = kept["projects"] | found
        order = {p.package: all_kept[p.package] for p in listed if p.package in all_kept}
        note = {"note": kept["note"]} if "note" in kept else {}
        KEPT.write_text(json.dumps({"machine": machine()} | note | {"projects": order}, indent=1) + "\n")
        write_page()
        return 0
    fallen = [name for name, told in found.items() if name in kept["projects"] and worse(told, kept["projects"][name])]
    for name in fallen:
        print(f"farm: {name} does worse than kept: {found[name]['said']}", file=sys.stderr)
    unequal = [name for name, told in found.items() if told["tests"] != "equal"] if args.equal else []
    for name in unequal:
        print(f"farm: {name} is not as native: {found[name]['said']} (logs in {out}/work/{name})", file=sys.stderr)
    bad = set(fallen) | set(unequal)
    print(f"farm: {len(found) - len(bad)} passed, {len(bad)} failed")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
