#!/usr/bin/env python3
"""Sequoia 2000's queries 6, 7, 8 and 10 with polygons of an untrusted author: C beside plfenced, and pipes by prediction.

  sequoia.py [--rounds N] [--json FILE] [--generated]

Makes a cluster of its own (tree.sh). The functions are one source, test/modules/polygons.c, compiled by gcc -O2 and by plfenced-cc.
Two sets of data: counties of the United States and places of the world, from a package that pip fetches once; and generated
polygons, as many as the first fence's benchmark had. --generated: only those. Times are the server's processor time for the
executor, medians of interleaved rounds.
"""

import argparse
import contextlib
import csv
import gzip
import hashlib
import io
import json
import math
import pathlib
import random
import re
import sqlite3
import statistics
import struct
import subprocess
import sys
import zipfile

from bench import HERE, TREE, cluster, compile_module, psql, run

# Boundaries of the census of the United States and places of GeoNames, in a package for examples of plots.
PACKAGE = "bokeh_sampledata==2026.1"
SHA256 = "f40331a40ca30c64a1c1471835aad9006b61b0d9731a3f649ee8cbbf48d3822f"
PIECES = ("geographic_boundaries.db", "world_cities.csv.gz")

# What each set of data is asked: a study rectangle, a size and a circle, a place and a reach, a kind of polygon.
QUESTIONS = {
    "real": {"box": "(-105,35),(-95,42)", "size": 0.001, "circle": "((-100,38),8)", "place": "Denver", "reach": 0.5, "kind": "NM"},
    "generated": {"box": "(300,300),(500,440)", "size": 0.1, "circle": "((500,500),250)", "place": "place 1993", "reach": 25,
                  "kind": "kind 7"},
}

# In the words of the benchmark (Stonebraker and others, The Sequoia 2000 Storage Benchmark, 1993).
QUERIES = {
    6: ("polygons that intersect a rectangle",
        "SELECT id FROM polygons WHERE ring && box '{box}'"),
    7: ("polygons of more than a size, within a circle",
        "SELECT id FROM polygons WHERE area(ring) > {size} AND ring <@ circle '{circle}'"),
    8: ("kinds of land in the square around a place",
        "SELECT p.id, p.kind FROM places t, polygons p WHERE t.name = '{place}' AND p.ring && square_around(t.at, {reach})"),
    10: ("places within polygons of one kind",
         "SELECT t.id, t.name, p.id FROM polygons p, places t WHERE p.kind = '{kind}' AND p.ring @> t.at"),
}

# The first fence's table 3, in per cent of the time with trusted functions: function manager for untrusted ones, fence, calls, pipes
# by prediction.
THEN = {6: (1.4, 1.7, 60_989, 18.6), 7: (5.0, 1.8, 121_986, 38.6), 8: (9.0, 2.7, 121_978, 31.2), 10: (9.6, 5.7, 1_427_024, 31.9)}

LOAD = """
SET client_min_messages = warning;
CREATE EXTENSION plfenced;
SELECT fenced.install('polygons', pg_read_binary_file('{out}/modules/polygons.rf'));
\\set schema in_c
\\set language c
\\set file {out}/modules/polygons.so
\\ir {here}/test/sql/polygons.inc
\\set schema in_fence
\\set language plfenced
\\set file polygons
\\ir {here}/test/sql/polygons.inc
"""


def fetch(into):
    """The files of the package, or None."""
    if all((into / name).exists() for name in PIECES):
        return into
    into.mkdir(parents=True, exist_ok=True)
    got = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "--only-binary", ":all:",
                          "-d", into, PACKAGE], check=False, stdout=sys.stderr)
    wheels = list(into.glob("*.whl"))
    if got.returncode != 0 or len(wheels) != 1:
        return None
    if hashlib.sha256(wheels[0].read_bytes()).hexdigest() != SHA256:
        sys.exit(f"sequoia: {PACKAGE} is not what it was: its SHA-256 differs")
    with zipfile.ZipFile(wheels[0]) as wheel:
        for name in PIECES:
            (into / name).write_bytes(wheel.read(f"bokeh_sampledata/_data/{name}"))
    wheels[0].unlink()
    return into


def ring(points):
    """Points as the bytes of a polygon; they end where they begin."""
    return struct.pack("<BIII", 1, 3, 1, len(points) // 2) + struct.pack(f"<{len(points)}d", *points)


def outer_rings(geometry):
    """The outer ring of each polygon in the bytes of a polygon or of several, as coordinates. Holes are left out."""
    many = struct.unpack_from("<I", geometry, 1)[0] == 6
    count, at = (struct.unpack_from("<I", geometry, 5)[0], 9) if many else (1, 0)
    for _ in range(count):
        rings, at = struct.unpack_from("<I", geometry, at + 5)[0], at + 9
        for number in range(rings):
            n = struct.unpack_from("<I", geometry, at)[0]
            if number == 0:
                yield struct.unpack_from(f"<{2 * n}d", geometry, at + 4)
            at += 4 + 16 * n


def real(files):
    """(kind, ring) of each polygon, and (name, x, y) of each place."""
    with contextlib.closing(sqlite3.connect(files / PIECES[0])) as db:
        rows = db.execute("SELECT state, geometry FROM us_counties ORDER BY ordinal").fetchall()
    polygons = [(state, points) for state, geometry in rows for points in outer_rings(geometry)]
    with gzip.open(files / PIECES[1]) as packed:
        cities = list(csv.DictReader(io.TextIOWrapper(packed, encoding="utf-8")))
    return polygons, [(c["name"], float(c["lng"]), float(c["lat"])) for c in cities]


def generated():
    """As real(): 60,989 rings with 46 points in the mean, as the older benchmark's, in a square of 1000 by 1000."""
    dice = random.Random(1993)
    polygons = []
    for i in range(60_989):
        n, size = dice.randint(12, 80), dice.uniform(1, 6)
        x, y = dice.uniform(0, 1000), dice.uniform(0, 1000)
        points = []
        for k in range(n):
            reach = size * dice.uniform(0.7, 1)
            points += [x + reach * math.cos(2 * math.pi * k / n), y + reach * math.sin(2 * math.pi * k / n)]
        polygons.append((f"kind {i % 1000}", points + points[:2]))
    return polygons, [(f"place {i}", dice.uniform(0, 1000), dice.uniform(0, 1000)) for i in range(23_394)]


def load(place, polygons, places):
    """Fills the tables of both schemas."""
    copy = ["CREATE TABLE public.raw (id int, kind text, ring bytea);\nCOPY raw FROM STDIN;\n"]
    copy += [f"{i}\t{kind}\t\\\\x{ring(points).hex()}\n" for i, (kind, points) in enumerate(polygons)]
    copy.append("\\.\nCREATE TABLE public.places (id int, name text, at point);\nCOPY places FROM STDIN;\n")
    copy += [f"{i}\t{name}\t({x!r},{y!r})\n" for i, (name, x, y) in enumerate(places)]
    copy.append("\\.\n")
    for schema in ("in_c", "in_fence"):
        copy.append(f"CREATE TABLE {schema}.polygons AS SELECT id, kind, {schema}.shape_from(ring) AS ring FROM raw ORDER BY id;\n")
    copy.append("VACUUM ANALYZE;\n")
    psql(place, "".join(copy))


def times(place, queries, rounds):
    """(C, fenced) of each query: seconds of processor time of the executor, medians of interleaved rounds after one to warm up."""
    once = "".join(f"SET search_path = {schema}, public;\nSELECT count(*) FROM ({query}) q;\n"
                   for query in queries for schema in ("in_c", "in_fence"))
    text = run(TREE, "psql", place, "-At", "-v", "ON_ERROR_STOP=1", "-f", "-", stderr=subprocess.STDOUT,
               input="SET log_executor_stats = on;\nSET client_min_messages = log;\n" + once * (rounds + 1))
    found = [float(user) + float(system)
             for user, system in re.findall(r"^!\t([\d.]+) s user, ([\d.]+) s system, [\d.]+ s elapsed", text, re.M)]
    each = 2 * len(queries)
    if len(found) != each * (rounds + 1):
        sys.exit(f"sequoia: {each * (rounds + 1)} statements, and times of {len(found)}:\n{text[-2000:]}")
    medians = [statistics.median(found[k + each::each]) for k in range(each)]
    return list(zip(medians[::2], medians[1::2]))


def compare(place, query):
    """Rows, which have to be the same both ways, and calls of fenced functions."""
    count = "SELECT 'calls', coalesce(sum(calls), 0) FROM fenced.stat_domains;\n"
    by_c = sorted(psql(place, f"SET search_path = in_c, public;\n{query};\n").splitlines())
    text = psql(place, f"SET search_path = in_fence, public;\n{count}{query};\n{count}")
    rows = text.splitlines()
    calls = [int(row.split("|")[1]) for row in rows if row.startswith("calls|")]
    by_fence = sorted(row for row in rows if not row.startswith("calls|"))
    if by_c != by_fence:
        sys.exit(f"sequoia: C and plfenced answer differently: {query}")
    return len(by_fence), calls[1] - calls[0]


def measure(place, data, rounds, pipe):
    """What is told of each query: counts, seconds, and shares of the time in C."""
    asked = {number: text.format(**QUESTIONS[data]) for number, (_, text) in QUERIES.items()}
    answers = {number: compare(place, query) for number, query in asked.items()}
    found = {}
    for (number, (count, calls)), (by_c, fenced) in zip(answers.items(), times(place, asked.values(), rounds)):
        found[number] = {
            "rows": count, "calls": calls, "c": by_c, "fenced": fenced, "overhead": fenced / by_c - 1, "pipes": calls * pipe / by_c,
            # Another process whose calls cost more than this is dearer than the fence.
            "break_even": (fenced - by_c) / calls,
        }
    return found


def show(data, about, found):
    print(f"\n{data}: {about}\n")
    print("query | rows | calls | C, ms | fenced, ms | fenced over C | pipes over C, predicted | break-even, ns a call | then: fenced, pipes")
    print("---|" * 9)
    for number, row in found.items():
        manager, fence, _, pipes = THEN[number]
        print(f"{number}: {QUERIES[number][0]} | {row['rows']:,} | {row['calls']:,} | {row['c'] * 1e3:.1f} | {row['fenced'] * 1e3:.1f}"
              f" | {row['overhead']:.1%} | {row['pipes']:.0%} | {row['break_even'] * 1e9:.0f}"
              f" | {manager} + {fence} %, {pipes} %")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--json", type=pathlib.Path)
    options.add_argument("--generated", action="store_true")
    options = options.parse_args()

    run(TREE, "make")
    out = run(TREE, "out").strip()
    compile_module(out, "polygons")
    run("gcc", "-O2", "-o", f"{out}/modules/pipe", str(HERE / "pipe.c"))
    sets = {"generated": generated}
    if not options.generated:
        files = fetch(pathlib.Path(out) / "sequoia")
        if files:
            sets = {"real": lambda: real(files), **sets}
        else:
            print(f"sequoia: pip cannot get {PACKAGE}: the real geometry is left out", file=sys.stderr)

    pipe = statistics.median(float(run(f"{out}/modules/pipe", "100000")) for _ in range(5)) / 1e9
    print(f"a question and an answer through pipes: {pipe * 1e9:.0f} ns of both processes' time")
    found = {"pipe": pipe}
    for data, make in sets.items():
        polygons, places = make()
        about = (f"{len(polygons):,} polygons of {sum(len(p) // 2 - 1 for _, p in polygons) / len(polygons):.0f} points in the mean,"
                 f" {len(places):,} places")
        with cluster(f"{out}/sequoia-{data}") as place:
            psql(place, LOAD.format(out=out, here=HERE))
            load(place, polygons, places)
            found[data] = measure(place, data, options.rounds, pipe)
        show(data, about, found[data])
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
