-- Sets, rows, triggers, queries, aggregates, blocks.
SELECT fenced.install('shapes', pg_read_binary_file(:'modules' || '/shapes.rf'));
CREATE FUNCTION series(int) RETURNS SETOF int AS 'shapes:series' LANGUAGE plfenced STRICT;
CREATE FUNCTION words(int, OUT n int, OUT word text) RETURNS SETOF record AS 'shapes:words' LANGUAGE plfenced STRICT;
CREATE TYPE pair AS (a int, b int);
CREATE FUNCTION swap(pair) RETURNS pair AS 'shapes:swap' LANGUAGE plfenced STRICT;
CREATE FUNCTION count_rows(text) RETURNS int8 AS 'shapes:count_rows' LANGUAGE plfenced STRICT;
CREATE FUNCTION first_text(text) RETURNS text AS 'shapes:first_text' LANGUAGE plfenced STRICT;
CREATE FUNCTION add_pair(int8, int) RETURNS int8 AS 'shapes:add_pair' LANGUAGE plfenced STRICT PARALLEL SAFE;
CREATE AGGREGATE fenced_sum(int) (SFUNC = add_pair, STYPE = int8, INITCOND = '0', PARALLEL = SAFE);
SELECT * FROM series(3);
SELECT series(2), series(3);
SELECT * FROM words(3);
SELECT swap(ROW(1, 2)::pair), swap(ROW(1, NULL)::pair), (swap(ROW(7, 8)::pair)).a;
CREATE TABLE w (n int, word text);
CREATE FUNCTION prefix() RETURNS trigger AS 'shapes:prefix' LANGUAGE plfenced;
CREATE TRIGGER p BEFORE INSERT OR UPDATE ON w FOR EACH ROW EXECUTE FUNCTION prefix('pre-');
INSERT INTO w VALUES (1, 'a'), (2, NULL), (3, 'c');
UPDATE w SET word = 'z' WHERE n = 3;
SELECT * FROM w;
SELECT count_rows('SELECT generate_series(1, 5)'), first_text('SELECT ''hi '' || 1'), first_text('SELECT 1 WHERE false');
SELECT count_rows('SELECT nonsense');
SELECT count_rows('SELECT count_rows(''SELECT 1'')');
SELECT count_rows('SELECT count_rows(''SELECT 1/0'')');
SELECT count_rows('SELECT 1');
SELECT fenced_sum(i) FROM generate_series(1, 100) i;
SELECT n, fenced_sum(n) OVER (ORDER BY n) FROM w;
-- Errors out of callbacks, again and again.
DO $$
BEGIN
    FOR i IN 1 .. 2000 LOOP
        BEGIN
            PERFORM count_rows('SELECT 1/0');
        EXCEPTION WHEN division_by_zero THEN
            NULL;
        END;
    END LOOP;
END $$;
SELECT count_rows('SELECT 1');
SELECT resets, errors >= 2000 AS errors, memory < 16000000 AS memory FROM fenced.stat_domains WHERE module = 'shapes';
-- An error three calls deep, caught in the middle; the outer calls go on.
CREATE FUNCTION caught(text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM count_rows($1);
    RETURN 'nothing caught';
EXCEPTION WHEN OTHERS THEN
    PERFORM count_rows('SELECT 1');
    RETURN 'caught ' || SQLERRM;
END $$;
SELECT first_text($$SELECT caught('SELECT 1/0')$$), first_text($$SELECT caught('SELECT 1')$$);
SELECT first_text($$SELECT caught('SELECT count_rows(''SELECT crash(0)'')')$$), first_text($$SELECT first_text('SELECT 2 + 2')$$);
SELECT first_text($$SELECT caught('SELECT complain(1)') || series(1)$$);
SELECT resets FROM fenced.stat_domains WHERE module = 'shapes';
-- A constructor is in no call, not even in the one that goes on outside: it gets nothing of that.
SELECT fenced.install('early', pg_read_binary_file(:'modules' || '/early.rf'));
SET check_function_bodies = off;
CREATE FUNCTION early() RETURNS int AS 'early:early' LANGUAGE plfenced;
RESET check_function_bodies;
SELECT early();
SELECT count_rows('SELECT early()');
SELECT count_rows('SELECT 1');
-- Blocks.
DO LANGUAGE plfenced 'basics:counter';
DO LANGUAGE plfenced ' basics:plain_block ';
DO LANGUAGE plfenced 'basics:nothing';
DO LANGUAGE plfenced 'nothing';
