-- Aggregates with states inside the fence, also in parallel workers; window functions.
SELECT fenced.install('windows', pg_read_binary_file(:'modules' || '/windows.rf'));
CREATE FUNCTION median_add(internal, int) RETURNS internal AS 'windows:median_add' LANGUAGE plfenced PARALLEL SAFE;
CREATE FUNCTION median_combine(internal, internal) RETURNS internal AS 'windows:median_combine' LANGUAGE plfenced PARALLEL SAFE;
CREATE FUNCTION median_out(internal) RETURNS bytea AS 'windows:median_out' LANGUAGE plfenced STRICT PARALLEL SAFE;
CREATE FUNCTION median_in(bytea, internal) RETURNS internal AS 'windows:median_in' LANGUAGE plfenced STRICT PARALLEL SAFE;
CREATE FUNCTION median_end(internal) RETURNS int AS 'windows:median_end' LANGUAGE plfenced PARALLEL SAFE;
CREATE AGGREGATE median(int) (SFUNC = median_add, STYPE = internal, FINALFUNC = median_end, COMBINEFUNC = median_combine,
    SERIALFUNC = median_out, DESERIALFUNC = median_in, PARALLEL = SAFE);
CREATE TABLE measured AS SELECT i % 7 AS kind, (i * 7919) % 10007 AS value FROM generate_series(1, 20000) i;
ANALYZE measured;
SELECT median(value) FROM measured;
SELECT kind, median(value) = percentile_disc(0.5) WITHIN GROUP (ORDER BY value) AS equal FROM measured WHERE kind < 2 GROUP BY kind ORDER BY kind;
SELECT median(value) FROM measured WHERE false;
SELECT median(NULL) FROM measured;
SELECT DISTINCT median(value) OVER (PARTITION BY kind) = (SELECT median(value) FROM measured m WHERE m.kind = measured.kind) AS equal FROM measured WHERE kind = 3;
-- Many groups that spill.
SET work_mem = '64kB';
SELECT count(*), sum(m) FROM (SELECT median(value) AS m FROM measured GROUP BY value) AS g;
RESET work_mem;
-- In parallel: states travel as bytes.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT median(value) FROM measured;
SELECT median(value) FROM measured;
RESET max_parallel_workers_per_gather;
-- Who calls.
CREATE FUNCTION called_by(int, int) RETURNS int AS 'windows:called_by' LANGUAGE plfenced;
CREATE AGGREGATE called_by(int) (SFUNC = called_by, STYPE = int);
SELECT called_by(1, 2), (SELECT called_by(n) FROM generate_series(1, 3) n) AS aggregate,
    (SELECT max(c) FROM (SELECT called_by(n) OVER (ORDER BY n) AS c FROM generate_series(1, 3) n) AS w) AS window;
-- What is no state of the module's.
CREATE FUNCTION wild_add(internal, int) RETURNS internal AS 'windows:wild_add' LANGUAGE plfenced;
CREATE AGGREGATE wild(int) (SFUNC = wild_add, STYPE = internal, FINALFUNC = median_end);
SELECT wild(n) FROM generate_series(1, 3) n;
CREATE AGGREGATE foreign_state(numeric) (SFUNC = numeric_avg_accum, STYPE = internal, FINALFUNC = median_end);
SELECT foreign_state(n) FROM generate_series(1, 3) n;
SELECT fenced.install('windows2', pg_read_binary_file(:'modules' || '/windows.rf'));
CREATE FUNCTION other_end(internal) RETURNS int AS 'windows2:median_end' LANGUAGE plfenced;
CREATE AGGREGATE of_two(int) (SFUNC = median_add, STYPE = internal, FINALFUNC = other_end);
SELECT of_two(n) FROM generate_series(1, 3) n;
CREATE FUNCTION text_state(internal, int) RETURNS internal LANGUAGE plfenced STRICT AS 'void *text_state(void *s, int n) { return s; }';
-- Window functions.
CREATE FUNCTION ago(int, int) RETURNS int AS 'windows:ago' LANGUAGE plfenced WINDOW;
CREATE FUNCTION ago(text, int) RETURNS text AS 'windows:ago' LANGUAGE plfenced WINDOW;
CREATE FUNCTION dense() RETURNS int8 AS 'windows:dense' LANGUAGE plfenced WINDOW;
CREATE FUNCTION part() RETURNS float8 AS 'windows:part' LANGUAGE plfenced WINDOW;
CREATE FUNCTION last_of_frame(text) RETURNS text AS 'windows:last_of_frame' LANGUAGE plfenced WINDOW;
CREATE TABLE games (team text, points int);
INSERT INTO games VALUES ('a', 3), ('a', 5), ('a', 5), ('a', 9), ('b', 1), ('b', 1), ('b', NULL);
SELECT team, points, ago(points, 1) OVER w, ago(team || points, 2) OVER w AS text, dense() OVER w, part() OVER w,
    last_of_frame(team || points) OVER (PARTITION BY team ORDER BY points ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS next
FROM games WINDOW w AS (PARTITION BY team ORDER BY points) ORDER BY team, points;
SELECT count(*) AS different FROM (SELECT ago(value, 3) OVER w AS fenced, lag(value, 3) OVER w AS plain, dense() OVER w AS fenced_rank,
    dense_rank() OVER w AS rank FROM measured WINDOW w AS (PARTITION BY kind ORDER BY value)) AS compared
WHERE fenced IS DISTINCT FROM plain OR fenced_rank <> rank;
-- What a window function must not ask.
CREATE FUNCTION ask(int) RETURNS int AS 'windows:ask' LANGUAGE plfenced WINDOW;
SELECT ask(0) OVER ();
SELECT ask(1) OVER ();
SELECT ask(2) OVER ();
SELECT ask(3) OVER ();
SELECT ask(4) OVER ();
\set SHOW_CONTEXT never
SELECT ask(5) OVER ();
SELECT ask(6) OVER ();
CREATE FUNCTION no_window(int) RETURNS int AS 'windows:ask' LANGUAGE plfenced;
SELECT no_window(0);
CREATE FUNCTION plain_window(int) RETURNS int LANGUAGE plfenced WINDOW STRICT AS 'int plain_window(int n) { return n; }';
SELECT median(value) FROM measured;
