-- Where a server calls functions: prepared statements, cursors, parallel workers, indexes, constraints, COPY, statistics.
PREPARE twice(int) AS SELECT inc($1), plain_inc($1);
EXECUTE twice(1);
EXECUTE twice(2);
SET plan_cache_mode = force_generic_plan;
EXECUTE twice(3);
RESET plan_cache_mode;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT inc(i) FROM generate_series(1, 5) i;
FETCH 2 FROM c;
SELECT inc(100);
FETCH BACKWARD 1 FROM c;
FETCH ALL FROM c;
COMMIT;
-- An error takes back what a savepoint says, and no more.
BEGIN;
CREATE TEMP TABLE kept (n int);
INSERT INTO kept SELECT inc(i) FROM generate_series(1, 3) i;
SAVEPOINT s;
INSERT INTO kept SELECT inc(i) FROM generate_series(4, 6) i;
SELECT crash(0);
ROLLBACK TO s;
SELECT count(*) FROM kept;
COMMIT;
-- Parallel workers have domains of their own.
CREATE TABLE many AS SELECT i FROM generate_series(1, 200000) i;
ANALYZE many;
ALTER FUNCTION inc(int) PARALLEL SAFE;
ALTER FUNCTION crash(int8) PARALLEL SAFE;
CREATE FUNCTION add_long(int8, int8) RETURNS int8 AS 'shapes:add_long' LANGUAGE plfenced STRICT PARALLEL SAFE;
CREATE AGGREGATE parallel_sum(int) (SFUNC = add_pair, STYPE = int8, INITCOND = '0', COMBINEFUNC = add_long, PARALLEL = SAFE);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT parallel_sum(inc(i)) FROM many;
SELECT parallel_sum(inc(i)) FROM many;
SELECT count(crash(i)) FROM many;
SELECT parallel_sum(inc(i)) FROM many;
SET max_parallel_workers_per_gather = 0;
-- Indexes on expressions, and failures while one is built.
CREATE FUNCTION picky(int) RETURNS int AS 'shapes:picky' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE INDEX many_inc ON many (inc(i));
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT i FROM many WHERE inc(i) = 78;
SELECT i FROM many WHERE inc(i) = 78;
RESET enable_seqscan;
CREATE INDEX many_picky ON many (picky(i));
SELECT count(*) FROM pg_class WHERE relname = 'many_picky';
-- Constraints, defaults, generated columns, COPY.
CREATE TABLE guarded (n int CHECK (picky(n) > 0), d int DEFAULT inc(1), g int GENERATED ALWAYS AS (inc(n)) STORED);
INSERT INTO guarded (n) VALUES (1), (2);
INSERT INTO guarded (n) VALUES (13);
COPY guarded (n) FROM STDIN;
5
13
6
\.
SELECT * FROM guarded ORDER BY n;
-- ANALYZE calls the expressions of indexes.
CREATE TABLE counted AS SELECT i FROM generate_series(1, 10) i;
CREATE INDEX counted_picky ON counted (picky(i));
ANALYZE counted;
-- At commit: the transaction is rolled back.
CREATE TABLE late (n int);
CREATE FUNCTION fail_late() RETURNS trigger AS 'shapes:fail_late' LANGUAGE plfenced;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail_late();
BEGIN;
INSERT INTO late VALUES (1), (13);
SELECT count(*) FROM late;
COMMIT;
SELECT count(*) FROM late;
INSERT INTO late VALUES (1);
-- Keys that are no numbers.
CREATE FUNCTION no_number(int) RETURNS float8 AS 'shapes:no_number' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE TABLE numbered AS SELECT i FROM generate_series(1, 20) i;
CREATE INDEX numbered_by ON numbered (no_number(i));
SET enable_seqscan = off;
SELECT i FROM numbered WHERE no_number(i) > 18;
RESET enable_seqscan;
-- An argument that does not fit into the domain.
SELECT length(upper_ascii(repeat('a', 100000000)));
SELECT inc(41);
DROP TABLE late, numbered;
-- In views, under the rights of their owners; as a domain's constraint; in policies.
CREATE VIEW seen AS SELECT inc(i) AS n FROM counted;
SELECT sum(n) FROM seen;
CREATE DOMAIN lucky AS int CHECK (picky(VALUE) > 0);
SELECT 12::lucky;
SELECT 13::lucky;
-- Large values, and compressed ones.
CREATE TABLE large AS SELECT repeat('ab', 500000) AS s;
SELECT length(upper_ascii(s)), md5(upper_ascii(s)) = md5(upper(s)) AS equal FROM large;
-- Wrong text never gets in: the database is in UTF-8.
CREATE FUNCTION broken_text() RETURNS text AS 'shapes:broken_text' LANGUAGE plfenced;
SELECT broken_text();
-- A comparison that contradicts itself loses no row and ends.
CREATE FUNCTION odd_order(int, int) RETURNS int AS 'shapes:odd_order' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION int_lt(int, int) RETURNS bool AS 'int4lt' LANGUAGE internal STRICT IMMUTABLE;
CREATE OPERATOR <<<< (LEFTARG = int, RIGHTARG = int, FUNCTION = int_lt);
CREATE OPERATOR CLASS odd_ops FOR TYPE int USING btree AS OPERATOR 1 <<<<, OPERATOR 3 =, FUNCTION 1 odd_order(int, int);
SELECT count(*) FROM (SELECT i FROM many ORDER BY i USING <<<<) s;
DROP TABLE many, guarded, counted, large CASCADE;
-- What the module keeps for a place in a query is of one domain: another role's begins anew.
CREATE FUNCTION remember() RETURNS int8 AS 'basics:remember' LANGUAGE plfenced;
CREATE FUNCTION remembers() RETURNS int8 LANGUAGE plpgsql AS 'BEGIN RETURN remember(); END';
CREATE ROLE plf_visitor;
\c -
BEGIN;
SELECT remembers();
SELECT remembers();
SET LOCAL ROLE plf_visitor;
SELECT remembers();
RESET ROLE;
SELECT remembers();
COMMIT;
DROP ROLE plf_visitor;
