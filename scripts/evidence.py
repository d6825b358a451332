#!/usr/bin/env python3
"""Runs the commands that docs/evidence.md names, each once, and tells which rows they cover.

  evidence.py [PREFIX]     only rows whose name begins with PREFIX
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/evidence.md"
LOGS = ROOT / "build/evidence"


def rows():
    """(name, what, command or "") of each row of the page's tables."""
    for line in PAGE.read_text().splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 6 and cells[0] != "row":
            yield cells[0], cells[1], cells[5].strip("`")


def main():
    prefix = sys.argv[1] if len(sys.argv) > 1 else ""
    wanted = [r for r in rows() if r[0].startswith(prefix)]
    if not wanted:
        sys.exit(f"evidence: docs/evidence.md has no row that begins with '{prefix}'")
    LOGS.mkdir(parents=True, exist_ok=True)
    failed, waiting = 0, 0
    results = {}
    for name, what, command in wanted:
        if not command:
            print(f"{name}: {what}: the part that this row needs is not built yet", flush=True)
            waiting += 1
            continue
        if command not in results:
            log = LOGS / f"{name}.log"
            print(f"{name}: {command} (log: {log.relative_to(ROOT)})", flush=True)
            with log.open("w") as out:
                results[command] = subprocess.run(command, shell=True, cwd=ROOT, stdout=out, stderr=out, check=False).returncode
        status = results[command]
        failed += status != 0
        print(f"{name}: {what}: {'measured' if status == 0 else f'failed with exit status {status}'}", flush=True)
    print(f"evidence: {len(wanted) - waiting - failed} rows measured, {failed} failed, {waiting} wait for a part")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
