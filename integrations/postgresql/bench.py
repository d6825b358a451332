#!/usr/bin/env python3
"""What a call costs, beside the other languages: nanoseconds a row over the scan, each the median of interleaved rounds.

  bench.py [--rounds N] [--rows N] [--json FILE]

Makes a cluster of its own (tree.sh). The functions in C and the fenced ones are one source, test/modules/basics.c, compiled by gcc -O2
and by plfenced-cc. Languages whose packages are not installed are left out, visibly.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TREE = str(HERE / "tree.sh")

# What is measured: the scan with nothing, then an expression in each language.
TASKS = {
    "inc(int)": {
        "table": "numbers",
        "scan": "sum(i)",
        "built in": "sum(i + 1)",
        "C": "sum(c_inc(i))",
        "plfenced": "sum(f_inc(i))",
        "plfenced, plain C": "sum(f_plain_inc(i))",
        "plfenced, text": "sum(text_inc(i))",
        "SQL, not inlined": "sum(sql_inc(i))",
        "PL/pgSQL": "sum(p_inc(i))",
        "PL/Python": "sum(py_inc(i))",
        "PL/Perl": "sum(perl_inc(i))",
        "PL/Tcl": "sum(tcl_inc(i))",
    },
    "x * y + 1": {
        "table": "numbers",
        "scan": "sum(x)",
        "built in": "sum(x * x + 1)",
        "C": "sum(c_fma(x, x))",
        "plfenced": "sum(f_fma_v1(x, x))",
        "plfenced, plain C": "sum(f_fma(x, x))",
        "plfenced, text": "sum(text_fma(x, x))",
        "PL/pgSQL": "sum(p_fma(x, x))",
        "PL/Python": "sum(py_fma(x, x))",
        "PL/Perl": "sum(perl_fma(x, x))",
    },
    "each element of an array": {
        "table": "numbers",
        "scan": "cardinality(array_agg(i))",
        "C": "cardinality(c_inc_array(array_agg(i)))",
        "plfenced": "cardinality(f_inc_array(array_agg(i)))",
        "plfenced, plain C": "cardinality(f_inc_each(array_agg(i)))",
        "plfenced, text": "cardinality(text_inc_each(array_agg(i)))",
    },
    "upper(50 bytes)": {
        "table": "texts",
        "scan": "count(s)",
        "built in": "count(upper(s))",
        "C": "count(c_upper(s))",
        "plfenced": "count(f_upper(s))",
        "PL/pgSQL": "count(p_upper(s))",
        "PL/Python": "count(py_upper(s))",
        "PL/Perl": "count(perl_upper(s))",
    },
}

SETUP = """
CREATE EXTENSION plfenced;
SELECT fenced.install('basics', pg_read_binary_file('{out}/modules/basics.rf'));
CREATE FUNCTION f_inc(int) RETURNS int AS 'basics:inc' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION f_plain_inc(int) RETURNS int AS 'basics:plain_inc' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION f_fma(float8, float8) RETURNS float8 AS 'basics:plain_fma' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION f_fma_v1(float8, float8) RETURNS float8 AS 'basics:fma_v1' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION f_upper(text) RETURNS text AS 'basics:upper_ascii' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION text_inc(int) RETURNS int AS 'int text_inc(int x) {{ return x + 1; }}' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION text_fma(float8, float8) RETURNS float8 AS 'double text_fma(double x, double y) {{ return x * y + 1; }}'
    LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION c_inc(int) RETURNS int AS '{out}/modules/basics.so', 'inc' LANGUAGE C STRICT IMMUTABLE;
CREATE FUNCTION c_fma(float8, float8) RETURNS float8 AS '{out}/modules/basics.so', 'fma_v1' LANGUAGE C STRICT IMMUTABLE;
CREATE FUNCTION c_upper(text) RETURNS text AS '{out}/modules/basics.so', 'upper_ascii' LANGUAGE C STRICT IMMUTABLE;
CREATE FUNCTION c_inc_array(int[]) RETURNS int[] AS '{out}/modules/basics.so', 'inc_array' LANGUAGE C STRICT IMMUTABLE;
CREATE FUNCTION f_inc_array(int[]) RETURNS int[] AS 'basics:inc_array' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION f_inc_each(int[]) RETURNS int[] AS 'each basics:plain_inc' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION text_inc_each(int[]) RETURNS int[] AS 'each int text_inc_each(int x) {{ return x + 1; }}'
    LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION sql_inc(x int) RETURNS int AS 'SELECT x + 1' LANGUAGE sql STRICT IMMUTABLE SET work_mem = '4MB';
CREATE FUNCTION p_inc(x int) RETURNS int AS 'BEGIN RETURN x + 1; END' LANGUAGE plpgsql STRICT IMMUTABLE;
CREATE FUNCTION p_fma(x float8, y float8) RETURNS float8 AS 'BEGIN RETURN x * y + 1; END' LANGUAGE plpgsql STRICT IMMUTABLE;
CREATE FUNCTION p_upper(s text) RETURNS text AS 'BEGIN RETURN upper(s); END' LANGUAGE plpgsql STRICT IMMUTABLE;
CREATE TABLE numbers AS SELECT i::int, i::float8 AS x FROM generate_series(1, {rows}) i;
CREATE TABLE texts AS SELECT i::text || repeat('a', 50 - length(i::text)) AS s FROM generate_series(1, {rows}) i;
VACUUM ANALYZE numbers, texts;
"""

LANGUAGES = {
    "plpython3u": """
CREATE FUNCTION py_inc(x int) RETURNS int AS 'return x + 1' LANGUAGE plpython3u STRICT IMMUTABLE;
CREATE FUNCTION py_fma(x float8, y float8) RETURNS float8 AS 'return x * y + 1' LANGUAGE plpython3u STRICT IMMUTABLE;
CREATE FUNCTION py_upper(s text) RETURNS text AS 'return s.upper()' LANGUAGE plpython3u STRICT IMMUTABLE;
""",
    "plperl": """
CREATE FUNCTION perl_inc(int) RETURNS int AS 'return $_[0] + 1' LANGUAGE plperl STRICT IMMUTABLE;
CREATE FUNCTION perl_fma(float8, float8) RETURNS float8 AS 'return $_[0] * $_[1] + 1' LANGUAGE plperl STRICT IMMUTABLE;
CREATE FUNCTION perl_upper(text) RETURNS text AS 'return uc($_[0])' LANGUAGE plperl STRICT IMMUTABLE;
""",
    "pltcl": "CREATE FUNCTION tcl_inc(int) RETURNS int AS 'return [expr {$1 + 1}]' LANGUAGE pltcl STRICT IMMUTABLE;",
}


def run(*command, **more):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **more).stdout


def psql(cluster, text):
    """Runs statements in one session; what was printed. Errors end the program."""
    return run(TREE, "psql", cluster, "-At", "-v", "ON_ERROR_STOP=1", "-f", "-", input=text)


def compile_module(out, name):
    """test/modules/NAME.c below OUT/modules: NAME.rf for plfenced, NAME.so for C."""
    os.makedirs(f"{out}/modules", exist_ok=True)
    source = str(HERE / f"test/modules/{name}.c")
    include = run("pg_config", "--includedir-server").strip()
    library = run(TREE, "library").strip()
    run(f"{library}/plfenced-cc", "-O2", "-o", f"{out}/modules/{name}.rf", source)
    run("gcc", "-O2", "-fPIC", "-shared", f"-I{include}", "-o", f"{out}/modules/{name}.so", source)


@contextlib.contextmanager
def cluster(place, *settings):
    """A new cluster in that directory, until the block ends."""
    subprocess.run([TREE, "stop", place], stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(place, ignore_errors=True)
    run(TREE, "start", place, "jit = off", "max_parallel_workers_per_gather = 0", "shared_buffers = 256MB", *settings)
    try:
        yield place
    finally:
        run(TREE, "stop", place)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--json", type=pathlib.Path)
    options = options.parse_args()

    run(TREE, "make")
    out = run(TREE, "out").strip()
    compile_module(out, "basics")
    with cluster(f"{out}/bench") as place:
        measure(options, place, out)


def measure(options, place, out):
    psql(place, SETUP.format(out=out, rows=options.rows))
    absent = []
    for language, text in LANGUAGES.items():
        try:
            run(TREE, "psql", place, "-v", "ON_ERROR_STOP=1", "-f", "-", stderr=subprocess.DEVNULL,
                input=f"CREATE EXTENSION {language};{text}")
        except subprocess.CalledProcessError:
            absent.append(language)
    if absent:
        print(f"left out, their packages are not installed: {', '.join(absent)}", file=sys.stderr)
    prefix = {"PL/Python": "plpython3u", "PL/Perl": "plperl", "PL/Tcl": "pltcl"}

    found = {}
    for name, task in TASKS.items():
        ways = {way: e for way, e in task.items() if way != "table" and prefix.get(way) not in absent}
        queries = "".join(f"SELECT {e} FROM {task['table']};\n" for e in ways.values())
        text = psql(place, "\\timing on\n" + queries * (options.rounds + 1))
        times = [float(t) for t in re.findall(r"^Time: ([\d.]+) ms", text, re.M)]
        rounds = [times[i : i + len(ways)] for i in range(len(ways), len(times), len(ways))]
        medians = {way: statistics.median(r[k] for r in rounds) * 1e6 / options.rows for k, way in enumerate(ways)}
        found[name] = {way: t - medians["scan"] for way, t in medians.items() if way != "scan"}
        found[name]["scan"] = medians["scan"]

    columns = list(dict.fromkeys(way for task in TASKS.values() for way in task if way not in ("table", "scan")))
    print("ns a row over the scan | " + " | ".join(found))
    print("---|" + "---|" * len(found))
    for way in columns:
        row = [f"{found[task][way]:.0f}" if way in found[task] else "" for task in found]
        if any(row):
            print(f"{way} | " + " | ".join(row))
    print("scan itself | " + " | ".join(f"{f['scan']:.0f}" for f in found.values()))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
