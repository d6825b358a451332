-- Plain functions over arrays: one crossing for thousands of elements.
CREATE SCHEMA each;
SET search_path = each;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS plfenced;
RESET client_min_messages;
SELECT fenced.install('each_basics', pg_read_binary_file(:'modules' || '/basics.rf'));
CREATE FUNCTION inc(int[]) RETURNS int[] AS 'each each_basics:plain_inc' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION fma(float8[], float8[]) RETURNS float8[] AS 'each each_basics:plain_fma' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION fma_by(float8[], float8) RETURNS float8[] AS 'each each_basics:plain_fma' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION half(float4[]) RETURNS float4[] AS 'each each_basics:plain_half' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION negate(bool[]) RETURNS bool[] AS 'each each_basics:plain_not' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION sum6(int8[], int2[], int, int8[], "char"[], int[]) RETURNS int8[] AS 'each each_basics:plain_sum6'
    LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION divide(int[], int[]) RETURNS int[] AS 'each each_basics:plain_divide' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION positive(int[]) RETURNS int[] AS 'each each_basics:plain_positive' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION forever(int[]) RETURNS int[] AS 'each each_basics:plain_forever' LANGUAGE plfenced STRICT IMMUTABLE;
SELECT inc('{41,-1,2147483647}'), fma('{1,2.5}', '{3,4}'), fma_by('{1,2.5}', 2), half('{1,0.5,NaN}'), negate('{t,f}');
SELECT sum6('{1000000000000,1}', '{-1,1}', 3, '{4,1}', '{A,B}', '{5,6}');
-- Dimensions and bounds are the first array's; NULL elements stay NULL, and no array is none.
SELECT inc('[2:3][0:1]={{1,2},{3,4}}'), inc('{}'), inc(NULL), inc('{1,NULL,3,NULL,NULL,6}'), inc('{NULL}');
SELECT fma('{1,NULL,3,4}', '{1,2,NULL,4}'), divide('{8,NULL,6}', '{2,0,NULL}');
-- More than one crossing, with and without NULLs.
SELECT count(*), sum(x) FROM unnest(inc((SELECT array_agg(i) FROM generate_series(1, 100000) i))) x;
SELECT count(*), count(x), sum(x) FROM unnest(inc((SELECT array_agg(CASE WHEN i % 7 <> 0 THEN i END) FROM generate_series(1, 100000) i))) x;
SELECT bool_and(a = b + 1) FROM unnest(inc((SELECT array_agg(i) FROM generate_series(1, 10000) i)), (SELECT array_agg(i) FROM generate_series(1, 10000) i)) x(a, b);
-- Groups of a table.
SELECT g, inc(array_agg(i ORDER BY i)) FROM generate_series(1, 7) i, LATERAL (SELECT i % 2) x(g) GROUP BY g ORDER BY g;
-- From text.
CREATE FUNCTION square(float8[]) RETURNS float8[] AS 'each double square(double x) { return x * x; }' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION mixed(float4[], int2[], bool) RETURNS float4[] LANGUAGE plfenced STRICT IMMUTABLE AS $$
each
static float twice(float x) { return x + x; }
float mixed(float x, short n, bool yes) { return yes ? twice(x) * n : n; }
$$;
SELECT square('{1,1.5,NULL,-2}'), mixed('{1.25,2}', '{3,-4}', true), mixed('{1.25,2}', '{3,-4}', false);
SELECT sum(x) FROM unnest(square((SELECT array_agg(i::float8) FROM generate_series(1, 10000) i))) x;
SELECT fenced.reset('square') > 0, square('{3}');
CREATE OR REPLACE FUNCTION square(float8[]) RETURNS float8[] AS 'each double square(double x) { return x * x + 1; }' LANGUAGE plfenced STRICT IMMUTABLE;
SELECT square('{3}');
-- What fails is told with its element.
\set VERBOSITY verbose
SELECT divide('{8,NULL,6,4}', '{2,0,3,0}');
SELECT positive('{1,2,-3,4}');
SELECT positive((SELECT array_agg(5000 - i) FROM generate_series(1, 10000) i));
\set VERBOSITY terse
SET statement_timeout = '50ms';
SELECT forever('{1,2}');
RESET statement_timeout;
\set VERBOSITY default
SELECT inc('{1}');
-- Arrays that do not fit together, and functions that cannot be called so.
SELECT divide('{1,2}', '{1}');
SELECT divide('{1,2}', '{{1,2}}');
CREATE FUNCTION never(int) RETURNS int[] AS 'each each_basics:plain_inc' LANGUAGE plfenced STRICT;
CREATE FUNCTION never(int[]) RETURNS int AS 'each each_basics:plain_inc' LANGUAGE plfenced STRICT;
CREATE FUNCTION never(text[]) RETURNS int[] AS 'each each_basics:plain_inc' LANGUAGE plfenced STRICT;
CREATE FUNCTION never(int[]) RETURNS text[] AS 'each each_basics:plain_inc' LANGUAGE plfenced STRICT;
CREATE FUNCTION never(int[]) RETURNS int[] AS 'each each_basics:plain_inc' LANGUAGE plfenced;
CREATE FUNCTION never(int[]) RETURNS int[] AS 'each each_basics:inc' LANGUAGE plfenced STRICT;
CREATE FUNCTION never(int[]) RETURNS int[] AS 'each each_basics:nothing' LANGUAGE plfenced STRICT;
CREATE FUNCTION never(anyarray) RETURNS anyarray AS 'each each_basics:plain_inc' LANGUAGE plfenced STRICT;
CREATE FUNCTION never(int[]) RETURNS int[] AS 'each int other(int x) { return x; }' LANGUAGE plfenced STRICT;
-- Results are checked, element by element.
CREATE FUNCTION day(int[]) RETURNS date[] AS 'each each_basics:plain_inc' LANGUAGE plfenced STRICT;
SELECT day('{0,1}');
SELECT day('{0,2147483640}');
-- A function becomes another one between calls.
CREATE FUNCTION turns(int[]) RETURNS int[] AS 'each each_basics:plain_inc' LANGUAGE plfenced STRICT;
PREPARE p AS SELECT turns('{1,2}');
EXECUTE p;
CREATE OR REPLACE FUNCTION turns(int[]) RETURNS int[] AS 'each_basics:inc_array' LANGUAGE plfenced STRICT;
EXECUTE p;
CREATE OR REPLACE FUNCTION turns(int[]) RETURNS int[] AS 'each int turns(int x) { return x + 5; }' LANGUAGE plfenced STRICT;
EXECUTE p;
SET client_min_messages = warning;
DROP SCHEMA each CASCADE;
SELECT fenced.remove('each_basics');
