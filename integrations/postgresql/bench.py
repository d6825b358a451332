#!/usr/bin/env python3
"""What a call costs, beside the other languages: nanoseconds a row over the scan, each the median of interleaved rounds.

  bench.py [--rounds N] [--rows N] [--json FILE]

Makes a cluster of its own (tree.sh). The functions in C and the fenced ones are one source, basics.c and measured.c of test/modules,
compiled by gcc -O2 and by plfenced-cc; all have to give the same answers. Languages whose packages are not installed are left out,
visibly.
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

# The languages, and how their functions' names begin.
WAYS = {
    "C": "c",
    "plfenced": "f",
    "plfenced, plain C": "plain",
    "plfenced, text": "text",
    "SQL, not inlined": "sql",
    "PL/pgSQL": "p",
    "PL/Python": "py",
    "PL/Perl": "perl",
    "PL/Tcl": "tcl",
}

# What is measured: a table, the scan with nothing, the same with a function whose name is put in, and with what is built in.
TASKS = {
    "inc(int)": ("numbers", "sum(i)", "sum({}_inc(i))", "sum(i + 1)"),
    "x * y + 1": ("numbers", "sum(x)", "sum({}_fma(x, x))", "sum(x * x + 1)"),
    "gcd(bigint, bigint)": ("numbers", "sum(b)", "sum({}_gcd(b, 360360))", "sum(gcd(b, 360360))"),
    "collatz(bigint)": ("few", "sum(b)", "sum({}_collatz(b))", None),
    "check digit of 13": ("few", "count(s)", "sum({}_checked(s)::int)", None),
    "upper(50 bytes)": ("texts", "count(s)", "count({}_upper(s))", "count(upper(s))"),
    "each element of an array": ("numbers", "cardinality(array_agg(i))", "cardinality({}_inc_array(array_agg(i)))", None),
}
# The same, in MB of text a second.
TEXTS = {
    "upper": ("large", "count(s)", "count({}_upper(s))", "count(upper(s))"),
    "words": ("large", "count(s)", "sum({}_words(s))", "sum(cardinality(string_to_array(s, ' ')))"),
    "FNV-1a": ("large", "count(s)", "bit_xor({}_fnv(s))", None),
}
LARGE = 4000  # bytes of a text there: not compressed, and in the row

# Rows of each table, of --rows in the largest.
SHARE = {"numbers": 1, "texts": 1, "few": 20, "large": 500}

SETUP = """
CREATE EXTENSION plfenced;
SELECT fenced.install('basics', pg_read_binary_file('{out}/modules/basics.rf'));
SELECT fenced.install('measured', pg_read_binary_file('{out}/modules/measured.rf'));
CREATE TABLE numbers AS SELECT i::int, i::float8 AS x, i::int8 AS b FROM generate_series(1, {rows}) i;
CREATE TABLE texts AS SELECT i::text || repeat('a', 50 - length(i::text)) AS s FROM generate_series(1, {rows}) i;
CREATE TABLE few AS SELECT i::int8 AS b, lpad((i::int8 * 7919)::text, 13, '3') AS s FROM generate_series(1, {rows} / 20) i;
CREATE TABLE large (s text);
ALTER TABLE large ALTER s SET STORAGE PLAIN;
INSERT INTO large SELECT rtrim(left(repeat(i || ' words of a text, ', 400), {large})) FROM generate_series(1, {rows} / 500) i;
CREATE FUNCTION f_inc(int) RETURNS int AS 'basics:inc' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION f_fma(float8, float8) RETURNS float8 AS 'basics:fma_v1' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION f_upper(text) RETURNS text AS 'basics:upper_ascii' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION f_inc_array(int[]) RETURNS int[] AS 'basics:inc_array' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION plain_inc(int) RETURNS int AS 'basics:plain_inc' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION plain_fma(float8, float8) RETURNS float8 AS 'basics:plain_fma' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION plain_inc_array(int[]) RETURNS int[] AS 'each basics:plain_inc' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION text_inc(int) RETURNS int AS 'int text_inc(int x) {{ return x + 1; }}' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION text_fma(float8, float8) RETURNS float8 AS 'double text_fma(double x, double y) {{ return x * y + 1; }}'
    LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION text_gcd(int8, int8) RETURNS int8 LANGUAGE plfenced STRICT IMMUTABLE AS
    'long text_gcd(long a, long b) {{ while (b) {{ long rest = a % b; a = b; b = rest; }} return a; }}';
CREATE FUNCTION text_collatz(int8) RETURNS int LANGUAGE plfenced STRICT IMMUTABLE AS
    'int text_collatz(long n) {{ int steps = 0; for (; n > 1; steps++) n = n % 2 ? 3 * n + 1 : n / 2; return steps; }}';
CREATE FUNCTION text_inc_array(int[]) RETURNS int[] AS 'each int text_inc_array(int x) {{ return x + 1; }}'
    LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION c_inc(int) RETURNS int AS '{out}/modules/basics.so', 'inc' LANGUAGE C STRICT IMMUTABLE;
CREATE FUNCTION c_fma(float8, float8) RETURNS float8 AS '{out}/modules/basics.so', 'fma_v1' LANGUAGE C STRICT IMMUTABLE;
CREATE FUNCTION c_upper(text) RETURNS text AS '{out}/modules/basics.so', 'upper_ascii' LANGUAGE C STRICT IMMUTABLE;
CREATE FUNCTION c_inc_array(int[]) RETURNS int[] AS '{out}/modules/basics.so', 'inc_array' LANGUAGE C STRICT IMMUTABLE;
SELECT format('CREATE FUNCTION %s_%s(%s) RETURNS %s AS %s LANGUAGE %s STRICT IMMUTABLE', prefix, name, arguments, result,
    CASE prefix WHEN 'c' THEN format('%L, %L', '{out}/modules/measured.so', name) ELSE quote_literal('measured:' || name) END,
    CASE prefix WHEN 'c' THEN 'C' ELSE 'plfenced' END)
FROM (VALUES ('c'), ('f')) p(prefix),
    (VALUES ('gcd', 'int8, int8', 'int8'), ('collatz', 'int8', 'int'), ('checked', 'text', 'bool'), ('words', 'text', 'int'),
        ('fnv', 'text', 'int8')) n(name, arguments, result) \\gexec
CREATE FUNCTION sql_inc(x int) RETURNS int AS 'SELECT x + 1' LANGUAGE sql STRICT IMMUTABLE SET work_mem = '4MB';
CREATE FUNCTION p_inc(x int) RETURNS int AS 'BEGIN RETURN x + 1; END' LANGUAGE plpgsql STRICT IMMUTABLE;
CREATE FUNCTION p_fma(x float8, y float8) RETURNS float8 AS 'BEGIN RETURN x * y + 1; END' LANGUAGE plpgsql STRICT IMMUTABLE;
CREATE FUNCTION p_gcd(a int8, b int8) RETURNS int8 LANGUAGE plpgsql STRICT IMMUTABLE AS
    'DECLARE rest int8; BEGIN WHILE b <> 0 LOOP rest := a % b; a := b; b := rest; END LOOP; RETURN a; END';
CREATE FUNCTION p_collatz(n int8) RETURNS int LANGUAGE plpgsql STRICT IMMUTABLE AS
    'DECLARE steps int := 0;
     BEGIN
         WHILE n > 1 LOOP
             IF n % 2 = 1 THEN n := 3 * n + 1; ELSE n := n / 2; END IF;
             steps := steps + 1;
         END LOOP;
         RETURN steps;
     END';
CREATE FUNCTION p_checked(s text) RETURNS bool LANGUAGE plpgsql STRICT IMMUTABLE AS
    'DECLARE sum int := 0;
     BEGIN
         IF s !~ ''^[0-9]{{13}}$'' THEN RETURN false; END IF;
         FOR i IN 1..13 LOOP sum := sum + substr(s, i, 1)::int * (CASE i % 2 WHEN 1 THEN 1 ELSE 3 END); END LOOP;
         RETURN sum % 10 = 0;
     END';
CREATE FUNCTION p_upper(s text) RETURNS text AS 'BEGIN RETURN upper(s); END' LANGUAGE plpgsql STRICT IMMUTABLE;
CREATE FUNCTION p_words(s text) RETURNS int LANGUAGE plpgsql STRICT IMMUTABLE AS
    'BEGIN RETURN cardinality(string_to_array(s, '' '')); END';
VACUUM ANALYZE numbers, texts, few, large;
"""

LANGUAGES = {
    "plpython3u": """
CREATE FUNCTION py_inc(x int) RETURNS int AS 'return x + 1' LANGUAGE plpython3u STRICT IMMUTABLE;
CREATE FUNCTION py_fma(x float8, y float8) RETURNS float8 AS 'return x * y + 1' LANGUAGE plpython3u STRICT IMMUTABLE;
CREATE FUNCTION py_gcd(a int8, b int8) RETURNS int8 LANGUAGE plpython3u STRICT IMMUTABLE AS $$
x, y = a, b
while y:
    x, y = y, x % y
return x $$;
CREATE FUNCTION py_collatz(n int8) RETURNS int LANGUAGE plpython3u STRICT IMMUTABLE AS $$
steps, m = 0, n
while m > 1:
    m = 3 * m + 1 if m % 2 else m // 2
    steps += 1
return steps $$;
CREATE FUNCTION py_checked(s text) RETURNS bool LANGUAGE plpython3u STRICT IMMUTABLE AS $$
return len(s) == 13 and s.isdecimal() and sum(int(c) * (3 if i % 2 else 1) for i, c in enumerate(s)) % 10 == 0 $$;
CREATE FUNCTION py_upper(s text) RETURNS text AS 'return s.upper()' LANGUAGE plpython3u STRICT IMMUTABLE;
CREATE FUNCTION py_words(s text) RETURNS int AS 'return len(s.split())' LANGUAGE plpython3u STRICT IMMUTABLE;
CREATE FUNCTION py_fnv(s text) RETURNS int8 LANGUAGE plpython3u STRICT IMMUTABLE AS $$
h = 0xcbf29ce484222325
for c in s.encode():
    h = (h ^ c) * 0x100000001b3 & 0xffffffffffffffff
return h - (h >> 63 << 64) $$;
""",
    "plperl": """
CREATE FUNCTION perl_inc(int) RETURNS int AS 'return $_[0] + 1' LANGUAGE plperl STRICT IMMUTABLE;
CREATE FUNCTION perl_fma(float8, float8) RETURNS float8 AS 'return $_[0] * $_[1] + 1' LANGUAGE plperl STRICT IMMUTABLE;
CREATE FUNCTION perl_gcd(int8, int8) RETURNS int8 LANGUAGE plperl STRICT IMMUTABLE AS
    'my ($a, $b) = @_; ($a, $b) = ($b, $a % $b) while $b; return $a';
CREATE FUNCTION perl_collatz(int8) RETURNS int LANGUAGE plperl STRICT IMMUTABLE AS
    'my ($n, $steps) = ($_[0], 0); while ($n > 1) { $n = $n % 2 ? 3 * $n + 1 : $n / 2; $steps++ } return $steps';
CREATE FUNCTION perl_checked(text) RETURNS bool LANGUAGE plperl STRICT IMMUTABLE AS
    'my $sum = 0; my $i = 0; return 0 unless $_[0] =~ /^[0-9]{13}$/; $sum += $_ * ($i++ % 2 ? 3 : 1) for split //, $_[0];
     return $sum % 10 == 0 ? 1 : 0';
CREATE FUNCTION perl_upper(text) RETURNS text AS 'return uc($_[0])' LANGUAGE plperl STRICT IMMUTABLE;
CREATE FUNCTION perl_words(text) RETURNS int AS 'my @w = split " ", $_[0]; return scalar @w' LANGUAGE plperl STRICT IMMUTABLE;
""",
    "pltcl": """
CREATE FUNCTION tcl_inc(int) RETURNS int AS 'return [expr {$1 + 1}]' LANGUAGE pltcl STRICT IMMUTABLE;
CREATE FUNCTION tcl_fma(float8, float8) RETURNS float8 AS 'return [expr {$1 * $2 + 1}]' LANGUAGE pltcl STRICT IMMUTABLE;
CREATE FUNCTION tcl_upper(text) RETURNS text AS 'return [string toupper $1]' LANGUAGE pltcl STRICT IMMUTABLE;
CREATE FUNCTION tcl_words(text) RETURNS int AS 'return [llength [split $1]]' LANGUAGE pltcl STRICT IMMUTABLE;
""",
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
    for name in ("basics", "measured"):
        compile_module(out, name)
    with cluster(f"{out}/bench") as place:
        set_up(place, out, options.rows)
        found = {"ns": measure(options, place, TASKS, 1), "MB/s": measure(options, place, TEXTS, LARGE)}
    show("ns a row over the scan", found["ns"], lambda ns: f"{ns:.0f}")
    show(f"MB/s of texts of {LARGE} bytes", found["MB/s"], lambda ns: f"{1e3 / ns:.0f}" if ns > 0 else "")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


def set_up(place, out, rows):
    """The functions in each language whose package is installed; tells which are not."""
    psql(place, SETUP.format(out=out, rows=rows, large=LARGE))
    absent = []
    for language, text in LANGUAGES.items():
        try:
            run(TREE, "psql", place, "-v", "ON_ERROR_STOP=1", "-f", "-", stderr=subprocess.DEVNULL,
                input=f"CREATE EXTENSION {language};{text}")
        except subprocess.CalledProcessError:
            absent.append(language)
    if absent:
        print(f"left out, their packages are not installed: {', '.join(absent)}", file=sys.stderr)


def functions(place):
    """The names of what `set_up` has made."""
    return set(psql(place, "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace").split())


def measure(options, place, tasks, bytes_of_a_row):
    """Nanoseconds of each function for a row, or for a byte of it, over the scan: by task and way."""
    known = functions(place)
    found = {}
    for name, (table, scan, call, built_in) in tasks.items():
        function = re.search(r"{}(_\w+)", call)[1]
        ways = {"scan": scan, "built in": built_in} | {way: call.format(p) for way, p in WAYS.items() if p + function in known}
        ways = {way: expression for way, expression in ways.items() if expression}
        queries = "".join(f"SELECT {expression} FROM {table};\n" for expression in ways.values())
        text = psql(place, "\\timing on\n" + queries * (options.rounds + 1))
        answers = dict(zip(ways, (line for line in text.splitlines() if not line.startswith("T"))))
        if len({answer for way, answer in answers.items() if way != "scan"}) != 1:
            sys.exit(f"bench.py: {name}: the languages do not agree: {answers}")
        times = [float(t) for t in re.findall(r"^Time: ([\d.]+) ms", text, re.M)]
        rounds = [times[i : i + len(ways)] for i in range(len(ways), len(times), len(ways))]
        scale = 1e6 / (options.rows // SHARE[table]) / bytes_of_a_row
        medians = {way: statistics.median(r[k] for r in rounds) * scale for k, way in enumerate(ways)}
        found[name] = {way: t - medians["scan"] for way, t in medians.items() if way != "scan"}
        found[name]["scan"] = medians["scan"]
    return found


def show(title, found, figure):
    print(f"{title} | " + " | ".join(found))
    print("---|" + "---|" * len(found))
    for way in ["built in", *WAYS]:
        row = [figure(found[task][way]) if way in found[task] else "" for task in found]
        if any(row):
            print(f"{way} | " + " | ".join(row))
    print()


if __name__ == "__main__":
    main()
