"""What a project's tests have said: test by test where they tell it in a way that is known here, else their output."""

import json
import re
import xml.etree.ElementTree as tree

# Bytes of output that are looked at.
MOST = 8 << 20


def of(project, work, log):
    """How the tests told their outcomes, and these: {test: outcome}, or {line number: line} of normalised output."""
    folder = work / project.directory
    text = log.read_bytes()[:MOST].decode(errors="replace").partition("\n")[2].replace(str(work), "<work>")
    for way, found in (
        ("automake", automake(work)),
        ("ctest", ctest(folder / "farm-build/farm.xml")),
        ("meson", meson(folder / "farm-build/meson-logs/testlog.json")),
        ("lines", lines(text)),
    ):
        if found:
            return way, found
    return "output", dict(enumerate(normal(text)))


def numbered(pairs):
    """A dictionary of pairs whose names may repeat."""
    found = {}
    for name, outcome in pairs:
        key, again = name, 1
        while key in found:
            again += 1
            key = f"{name} ({again})"
        found[key] = outcome
    return found


def automake(work):
    """Automake's files of results."""
    pairs = []
    for file in sorted(work.rglob("*.trs")):
        name = str(file.relative_to(work).with_suffix(""))
        for outcome, rest in re.findall(r"^:test-result: *(\w+) ?(.*)$", file.read_text(errors="replace"), re.M):
            pairs.append((f"{name} {rest}".strip(), outcome))
    return numbered(pairs)


def ctest(file):
    if not file.exists():
        return {}
    cases = tree.parse(file).getroot().iter("testcase")
    return numbered((case.get("name"), case.get("status")) for case in cases)


def meson(file):
    if not file.exists():
        return {}
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    return numbered((entry["name"], entry["result"]) for entry in entries)


def lines(text):
    """Lines that tell a test's outcome: of automake's older harness, of GoogleTest, of the Test Anything Protocol."""
    pairs = []
    for line in text.splitlines():
        if old := re.match(r"(PASS|FAIL|XFAIL|XPASS|SKIP|ERROR): (\S+)", line):
            pairs.append((old[2], old[1]))
        elif google := re.match(r"\[ +(OK|FAILED|SKIPPED) +\] (\S+)(?: \(\d+ ms\))$", line):
            pairs.append((google[2].rstrip(","), google[1]))
        elif protocol := re.match(r"(ok|not ok) (\d+)\b(?: -)? ?(.*)", line):
            pairs.append((f"{protocol[2]} {without_measures(protocol[3])}".strip(), protocol[1]))
    return numbered(pairs)


MEASURES = [
    (r"\d+(\.\d+)?(e-?\d+)? *(s|secs?|seconds?|ms|msec|us|µs|ns|min|cycles|KB/s|kB/s|MB/s|GB/s|KiB/s|MiB/s|GiB/s|it/s|/s|%)(?!\w)", "<measure>"),
    (r"\b\d\d:\d\d(:\d\d)?(\.\d+)?\b", "<time>"),
    (r"\b\d{4}-\d\d-\d\d\b", "<date>"),
    (r"\b0x[0-9a-fA-F]{6,}\b", "<address>"),
    (r"\bpid[ =:]+\d+", "<pid>"),
    (r"(ringfence-cc|ringfence-c\+\+)( --wrapper)?", "<compiler>"),
    (r"\b(gcc|g\+\+)(?=\s|$)", "<compiler>"),
    (r"\( +", "("),
]


def without_measures(line):
    """A line without what differs from run to run."""
    for pattern, word in MEASURES:
        line = re.sub(pattern, word, line)
    return re.sub(r"\s+", " ", line).strip()


# What make, compilers and their kin print while tests are being built.
BUILDING = re.compile(
    r"make(\[\d+\])?: |Making \S+ in |<compiler>|libtool: |(ar|ranlib|rm|cp|mv|mkdir|ln|cd|depbase=\S*) |(CC|CXX|CCLD|CXXLD|AR|LD|GEN) \S+$|In file included from|"
    r"from \S+:\d+|\S+:(\d+:)* (warning|note|error|In function)|\S+: In function|(\d+ )?\|( *[\^~+]|$)|\d+ \| |.*\blibtool\b.*--(tag|mode)="
)


# What a progress display last wrote when somebody else's line came: behind a carriage return, with blanks over what was there before.
PROGRESS = re.compile(r"\r[^\r]*\S {2,}\r?$")


def normal(text):
    """The lines of a test run that are its tests' own, as they stand in the end: what a progress display writes over is gone."""
    ended = (line for line in text.split("\n") if not PROGRESS.search(line))
    kept = (without_measures(line.rstrip("\r").rpartition("\r")[2]) for line in ended)
    return [line for line in kept if line and not BUILDING.match(line)]


NONE = re.compile(r"No rule to make target '(check|test)'|No tests (were found|defined)")


def none(log):
    """Whether a test run says that there are no tests."""
    return bool(NONE.search(log.read_bytes()[:MOST].decode(errors="replace")))


def varies(one, other):
    """The lines of a run that another run of the same has otherwise; none if they do not stand side by side."""
    return [] if len(one) != len(other) else [str(number) for number in one if one[number] != other[number]]


def good(outcome):
    """Whether an outcome is a test that ran and passed."""
    return outcome in ("PASS", "run", "OK", "ok")


def judge(result):
    """What came of a project, in words: {builds, tests, note…}, as the table and the kept results have it."""
    native, fenced = result.get("native", {}), result.get("fenced", {})
    if "error" in result:
        return {"builds": "no source", "tests": "", "said": result["error"]}
    for kind, found in (("natively", native), ("fenced", fenced)):
        for step in ("configure", "build"):
            status = found.get(step, {}).get("status")
            if status != 0:
                told = "is out of time" if status is None else f"ends with {status}"
                return {"builds": "not natively" if kind == "natively" else "no", "tests": "", "said": f"{kind}, {step} {told}"}
    # Numbers of lines are text once they have been written.
    one, other = ({str(name): outcome for name, outcome in found["outcomes"].items()} for found in (native, fenced))
    by = native["by"]
    verdict = {"builds": "yes", "by": by, "count": len(one)}
    status = native["tests"]["status"], fenced["tests"]["status"]
    if status[0] is None:
        return verdict | {"tests": "not natively", "said": "natively, the tests are out of time"}
    if native.get("none") or by == "output" and not one and status[0] == 0:
        return verdict | {"tests": "none", "said": "it has no tests"}
    if by == "output" and status[0] != 0:
        return verdict | {"tests": "not natively", "said": f"natively, the tests end with {status[0]}"}
    if by != "output" and not any(good(o) for o in one.values()):
        return verdict | {"tests": "not natively", "said": "natively, no test passes"}
    if native.get("varies") and len(one) == len(other):
        free = native["varies"]
        one, other = ({name: line for name, line in found.items() if name not in free} for found in (one, other))
    differ = [[name, one.get(name, ""), other.get(name, "")] for name in [*one, *(n for n in other if n not in one)] if one.get(name) != other.get(name)]
    if fenced["by"] == by and not differ and status[0] == status[1]:
        return verdict | {"tests": "equal", "said": ""}
    told = "out of time" if status[1] is None else f"status {status[1]}"
    said = f"{len(differ)} of {len(one)} differ" if by != "output" and fenced["by"] == by else "the output differs"
    return verdict | {"tests": "differ", "said": f"{said}; natively status {status[0]}, fenced {told}", "differ": differ[:12]}
