-- Polygons in C and fenced: the same source, the same answers; then shapes that somebody made to do harm.
\set ON_ERROR_STOP on
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS plfenced;
RESET client_min_messages;
SELECT fenced.install('polygons', pg_read_binary_file(:'modules' || '/polygons.rf'));
\set ECHO none
\set schema in_c
\set language c
\set file :modules '/polygons.so'
\ir polygons.inc
\set schema in_fence
\set language plfenced
\set file polygons
\ir polygons.inc
\set ECHO all
\unset ON_ERROR_STOP
-- Stars of 4 to 70 points, some larger than a page, in rows and columns.
CREATE TABLE public.stars AS
    SELECT i AS id, i % 5 AS kind, '(' || string_agg(format('(%s,%s)', round((i % 20 + r * cos(k * w))::numeric, 3),
        round((i / 20 + r * sin(k * w))::numeric, 3)), ',' ORDER BY k) || ')' AS ring
    FROM generate_series(0, 399) i,
        LATERAL (SELECT CASE WHEN i % 50 = 49 THEN 1000 ELSE 4 + i % 67 END AS n, 0.4 + (i % 7) * 0.05 AS half) a,
        LATERAL (SELECT k, 2 * pi() / n AS w, half * (1 + (k % 2)) AS r FROM generate_series(0, n - 1) k) b
    GROUP BY i;
CREATE TABLE in_c.polygons AS SELECT id, kind, ring::in_c.shape AS ring FROM stars;
CREATE TABLE in_fence.polygons AS SELECT id, kind, ring::in_fence.shape AS ring FROM stars;
CREATE TABLE public.points AS SELECT i AS id, point(i % 37 * 0.6, i / 37 * 0.7) AS at FROM generate_series(0, 999) i;
SELECT count(*), count(*) FILTER (WHERE a.ring::text <> b.ring::text) AS different,
    count(*) FILTER (WHERE in_c.area(a.ring) <> in_fence.area(b.ring)) AS other_areas,
    count(*) FILTER (WHERE in_c.bounds(a.ring)::text <> in_fence.bounds(b.ring)::text) AS other_bounds
    FROM in_c.polygons a JOIN in_fence.polygons b USING (id);
-- The benchmark's queries, and a join of shapes: what one way finds and the other does not.
\set six 'SELECT id, 0 AS other FROM polygons WHERE ring && box ''(5,5),(9.3,8)'''
\set seven 'SELECT id, 0 FROM polygons WHERE area(ring) > 0.5 AND ring <@ circle ''((9,9),6)'''
\set eight 'SELECT p.id, t.id FROM points t, polygons p WHERE t.id IN (204, 777) AND p.ring && square_around(t.at, 1.5)'
\set ten 'SELECT p.id, t.id FROM points t, polygons p WHERE p.kind = 3 AND p.ring @> t.at'
\set join 'SELECT a.id, b.id FROM polygons a, polygons b WHERE a.kind = 1 AND b.kind = 2 AND a.ring && b.ring'
\set again 'SELECT 6, * FROM (' :six ') a UNION ALL SELECT 7, * FROM (' :seven ') b UNION ALL SELECT 8, * FROM (' :eight ') c UNION ALL SELECT 10, * FROM (' :ten ') d UNION ALL SELECT 0, * FROM (' :join ') e'
SET search_path = in_c, public;
CREATE TEMP TABLE by_c (query, id, other) AS :again;
SET search_path = in_fence, public;
CREATE TEMP TABLE by_fence (query, id, other) AS :again;
SELECT query, count(*) FROM by_fence GROUP BY query ORDER BY query;
SELECT count(*) AS different FROM ((TABLE by_c EXCEPT ALL TABLE by_fence) UNION ALL (TABLE by_fence EXCEPT ALL TABLE by_c)) d;
-- With an index, whose functions are fenced.
CREATE INDEX stars_by_box ON in_fence.polygons USING gist (ring);
SET enable_seqscan = off;
SET enable_indexscan = off;
EXPLAIN (COSTS OFF) :six;
CREATE TEMP TABLE by_index (query, id, other) AS :again;
RESET enable_seqscan;
RESET enable_indexscan;
SELECT count(*) AS different FROM ((TABLE by_c EXCEPT ALL TABLE by_index) UNION ALL (TABLE by_index EXCEPT ALL TABLE by_c)) d;
-- However a value is stored: in the row, out of line, compressed, both; the largest does not fit into the call area.
CREATE TABLE public.rings AS
    SELECT n, '(' || string_agg(format('(%s,%s)', k % 1009, k / 7 + k % 13), ',' ORDER BY k) || ')' AS ring
    FROM unnest(ARRAY[3, 5, 100, 500, 5000, 70000]) n, LATERAL generate_series(1, n) k GROUP BY n;
CREATE TABLE in_c.stored (n int, plain in_c.shape, outside in_c.shape, packed in_c.shape);
CREATE TABLE in_fence.stored (n int, plain in_fence.shape, outside in_fence.shape, packed in_fence.shape);
ALTER TABLE in_c.stored ALTER plain SET STORAGE main, ALTER outside SET STORAGE external;
ALTER TABLE in_fence.stored ALTER plain SET STORAGE main, ALTER outside SET STORAGE external;
INSERT INTO in_c.stored SELECT n, ring::in_c.shape, ring::in_c.shape, ring::in_c.shape FROM rings;
INSERT INTO in_fence.stored SELECT n, ring::shape, ring::shape, ring::shape FROM rings;
SELECT n, in_c.area(a.plain) = area(b.plain) AS plain, in_c.area(a.outside) = area(b.outside) AS outside,
    in_c.area(a.packed) = area(b.packed) AS packed, shape_meets(b.outside, b.packed) AS meets
    FROM in_c.stored a JOIN in_fence.stored b USING (n) WHERE n < 70000 ORDER BY n;
SELECT in_c.area(a.plain) = area(b.plain) AS plain, in_c.area(a.outside) = area(b.outside) AS outside,
    in_c.area(a.packed) = area(b.packed) AS packed, pg_column_compression(b.packed) IS NOT NULL AS is_packed,
    pg_column_size(b.outside) > 1100000 AS is_outside
    FROM in_c.stored a JOIN in_fence.stored b USING (n) WHERE n = 70000;
-- What the type refuses: cut bytes, impossible counts, numbers that are none.
SELECT '((0,0),(1,0),(0,1))'::shape, '( (0, 0), (1e3,0),(0,1.5) )'::shape;
SELECT ''::shape;
SELECT '((0,0),(1,1))'::shape;
SELECT '((0,0),(1,0),(0,1'::shape;
SELECT '((0,0),(1,0),(0,1))x'::shape;
SELECT '((0,0),(1,0),(0,NaN))'::shape;
SELECT '((0,0),(1,0),(0,1e999))'::shape;
SELECT ('(' || repeat('(0,0),', 1000000) || '(0,0))')::shape;
-- Bytes: the first is as it should be.
CREATE FUNCTION public.bytes(head text, zeros int) RETURNS bytea LANGUAGE sql AS $$SELECT decode(head || repeat('00', zeros), 'hex')$$;
SELECT shape_from(bytes('01030000000100000004000000', 64));
SELECT shape_from(bytes('01030000000100000004000000', 63));
SELECT shape_from(bytes('01030000000100000004000000', 65));
SELECT shape_from(bytes('01030000000100000004000000', 0));
SELECT shape_from(bytes('010300000001000000ffffffff', 64));
SELECT shape_from(bytes('01030000000100000000000000', 0));
SELECT shape_from(bytes('01030000000100000004000000000000000000f87f', 56));
SELECT shape_from(bytes('01030000000200000004000000', 64));
SELECT shape_from(bytes('00000000030000000100000004', 64));
SELECT shape_from('');
-- Forged shapes, of functions that trust them: faults in the fence, and the server goes on.
SELECT pg_backend_pid() AS before \gset
SELECT area(shape_forged(bytes('ffffff7f', 32)));
SELECT shape_forged(bytes('ffffff7f', 32));
SELECT shape_has(shape_forged(bytes('00000080', 32)), '(0,0)');
SELECT bounds(shape_forged('')) IS NULL AS no_bounds;
CREATE TEMP TABLE forged (ring shape);
INSERT INTO forged VALUES (shape_forged(bytes('ffffff7f', 32)));
CREATE INDEX ON forged USING gist (ring);
SELECT ring FROM forged LIMIT 1;
SELECT area('((0,0),(2,0),(2,2),(0,2))'::shape), pg_backend_pid() = :before AS same_session;
RESET search_path;
