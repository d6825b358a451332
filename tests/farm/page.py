"""The page docs/farm.md, from the kept results and the reasons, and whether these fit each other."""

from pathlib import Path

import projects

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs/farm.md"
REASONS = HERE / "reasons.txt"

HEAD = """\
# The farm: Debian's packages, built and tested in the fence

For somebody who asks whether a project of their own would build. The farm takes {total} projects from
Debian's source packages, unmodified, builds each natively and fenced by the recipes of
`docs/porting.md`, and runs each one's own tests both ways.

| of {total} projects | |
|---|---|
| have been run here | {done} |
| of these, build natively | {native} |
| of these, build fenced | {built} |
| of these, have tests that run natively | {tested} |
| of these, tests the same fenced | {equal} |
| processor time of equal tests, fenced over native, geometric mean of the {long} that take 0.5 s or more | {mean} |

Measured on {machine}{loaded}.

    tests/farm/farm.py                       # all that has no result yet; results and logs in build/farm
    tests/farm/farm.py --only cjson,sed --again
    tests/farm/farm.py --keep                # writes the results that are kept, and this page

The projects were chosen by kind before any was tried, and stand in `tests/farm/projects.txt` with
how each is built. No patch, no configuration and no code of this tree is for one of them. `make
soak` runs the farm and fails if a project does worse than the kept result
(`tests/farm/results.json`); `make test` builds a few, and checks that this page is made from both.

Tests are the same if each test has the same outcome and the run the same exit status: as Automake,
CTest, Meson, GoogleTest or the Test Anything Protocol tell them (*tests* counts these), else if the
output is the same but for times and addresses (*lines*). Seconds are processor time of the whole
test run: small tests pay for the start of a fenced program, which reads, verifies and links it, and
the fenced runs compile their test programs by way of `ringfence cc`.

"""



def reasons(text):
    """{package: reason}. ValueError names the line that is wrong."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        name, colon, reason = line.partition(": ")
        if not colon or name in found:
            raise ValueError(f"reasons.txt: line {number}: a package, a colon and a reason, once: {line!r}")
        found[name] = reason.strip()
    return found


def owed(entry):
    """Whether a project's result needs a reason."""
    return entry["builds"] == "no" or entry["tests"] == "differ"


def mistakes(kept, given):
    """What does not fit: results without reasons, reasons without need, projects that nobody lists or tried."""
    names = {p.package for p in projects.load()}
    for name, entry in kept["projects"].items():
        if name not in names:
            yield f"results.json has {name}, which projects.txt does not list"
        if owed(entry) and name not in given:
            yield f"{name} is not as native ({entry['said']}): reasons.txt has to say why"
    for name in given:
        if name not in kept["projects"] or not owed(kept["projects"][name]):
            yield f"reasons.txt gives a reason for {name}, which needs none"


def ratio(entry):
    """Processor time of the tests, fenced over native, where it is long enough to be measured."""
    one, other = (entry.get(kind, {}).get("tests", 0) for kind in ("native", "fenced"))
    return other / one if one >= 0.5 and entry["tests"] == "equal" else None


def row(project, entry, given):
    name = f"{project.package} {entry['version']}" if entry and entry.get("version") else project.package
    if entry is None:
        return [name, project.kind, project.system, "not run yet", "", "", "", ""]
    seconds = lambda kind: f"{entry[kind]['tests']:.1f}" if "tests" in entry.get(kind, {}) else ""
    tests = {"equal": "same", "differ": "**differ**", "none": "none"}.get(entry["tests"], entry["tests"])
    if entry["tests"] in ("equal", "differ"):
        tests += f", {entry['count']} {'lines' if entry['by'] == 'output' else 'tests'}"
    over = f"{ratio(entry):.2f}" if ratio(entry) else ""
    said = given.get(project.package) or (entry["said"] if entry["tests"] != "none" else "")
    builds = "**no**" if entry["builds"] == "no" else entry["builds"]
    return [name, project.kind, project.system, builds, tests, seconds("native"), seconds("fenced"), over, said]


def render(kept, given):
    """The page's text."""
    listed = projects.load()
    entries = [kept["projects"].get(p.package) for p in listed]
    done = [e for e in entries if e]
    native = [e for e in done if e["builds"] in ("yes", "no")]
    built = [e for e in native if e["builds"] == "yes"]
    tested = [e for e in built if e["tests"] in ("equal", "differ")]
    equal = [e for e in tested if e["tests"] == "equal"]
    ratios = [r for e in equal if (r := ratio(e))]
    product = 1.0
    for r in ratios:
        product *= r ** (1 / len(ratios))
    text = HEAD.format(
        total=len(listed),
        done=len(done),
        native=len(native),
        built=len(built),
        tested=len(tested),
        equal=len(equal),
        long=len(ratios),
        mean=f"{product:.2f}" if ratios else "none",
        machine=kept["machine"],
        loaded=kept.get("note", ""),
    )
    heads = ["project", "kind", "built by", "builds fenced", "tests", "native s", "fenced s", "ratio", "why, or what is missing"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for project, entry in zip(listed, entries):
        cells = row(project, entry, given)
        lines.append("| " + " | ".join(cells + [""] * (len(heads) - len(cells))) + " |")
    return text + "\n".join(lines) + "\n"
