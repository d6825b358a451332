-- Every shape of scalar, and what a failing function costs.
CREATE EXTENSION plfenced;
SELECT fenced.install('basics', pg_read_binary_file(:'modules' || '/basics.rf'));
SELECT name, owner, size > 0 AS size FROM fenced.modules;
CREATE FUNCTION plain_inc(int) RETURNS int AS 'basics:plain_inc' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION plain_fma(float8, float8) RETURNS float8 AS 'basics:plain_fma' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION plain_half(float4) RETURNS float4 AS 'basics:plain_half' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION plain_not(bool) RETURNS bool AS 'basics:plain_not' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION plain_sum6(int8, int2, int, int8, "char", int) RETURNS int8 AS 'basics:plain_sum6' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION inc(int) RETURNS int AS 'basics:inc' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION either(int8, int8) RETURNS int8 AS 'basics:either' LANGUAGE plfenced;
CREATE FUNCTION upper_ascii(text) RETURNS text AS 'basics:upper_ascii' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION repeat_text(int) RETURNS text AS 'basics:repeat_text' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION sum_array(int[]) RETURNS int8 AS 'basics:sum_array' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION make_array(int) RETURNS int[] AS 'basics:make_array' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION counter() RETURNS int8 AS 'basics:counter' LANGUAGE plfenced;
SELECT plain_inc(1), plain_fma(2, 3), plain_half(3), plain_not(true), plain_sum6(1, 2::int2, 3, 4, 'A', 6), inc(41), inc(NULL);
SELECT either(1, NULL), either(NULL, 2), either(NULL, NULL);
SELECT upper_ascii('grüße'), upper_ascii(''), length(repeat_text(10)), length(repeat_text(3000000)), md5(upper_ascii(repeat('a', 2000000)));
SELECT sum_array('{1,2,3}'), sum_array('{}'), make_array(5), make_array(0);
SELECT sum(inc(i)) FROM generate_series(1, 10000) i;
-- State is kept in the session, and begins anew when it is asked for.
SELECT counter(), counter();
SELECT fenced.reset('basics'), counter();
BEGIN;
SET LOCAL plfenced.state = 'call';
SELECT counter(), counter();
COMMIT;
-- Failures cost one statement.
CREATE FUNCTION complain(int) RETURNS int AS 'basics:complain' LANGUAGE plfenced;
CREATE FUNCTION crash(int8) RETURNS void AS 'basics:crash' LANGUAGE plfenced;
CREATE FUNCTION spin() RETURNS void AS 'basics:spin' LANGUAGE plfenced;
CREATE FUNCTION recurse() RETURNS int AS 'basics:recurse' LANGUAGE plfenced;
CREATE FUNCTION eat() RETURNS void AS 'basics:eat' LANGUAGE plfenced;
\set VERBOSITY verbose
SELECT complain(7);
\set VERBOSITY default
-- An error of the module's own is no fault: it keeps its state.
SELECT counter() > 1 AS kept;
SELECT crash(0);
SELECT inc(1);
SET statement_timeout = '100ms';
SELECT spin();
RESET statement_timeout;
SET plfenced.time_limit = '50ms';
SELECT spin();
RESET plfenced.time_limit;
SET plfenced.backtrace = 1;
SELECT recurse();
SELECT eat();
DO $$
BEGIN
    FOR i IN 1 .. 1000 LOOP
        BEGIN
            PERFORM crash(i);
        EXCEPTION WHEN external_routine_exception THEN
            NULL;
        END;
    END LOOP;
END $$;
SET statement_timeout = '100ms';
SELECT spin();
RESET statement_timeout;
SELECT inc(1);
-- What the server must not believe.
CREATE FUNCTION wrong(int) RETURNS text AS 'basics:wrong' LANGUAGE plfenced STRICT;
CREATE FUNCTION wrong_array(int) RETURNS int[] AS 'basics:wrong' LANGUAGE plfenced STRICT;
CREATE FUNCTION wrong_numeric(int) RETURNS numeric AS 'basics:wrong' LANGUAGE plfenced STRICT;
SELECT wrong(0);
SELECT wrong(1);
SELECT wrong(2);
SELECT wrong(3);
SELECT wrong(4);
SELECT wrong(5);
SELECT wrong(6);
SELECT wrong_array(6);
SELECT wrong_numeric(6);
-- Definitions that cannot be.
CREATE FUNCTION bad() RETURNS int AS 'inc' LANGUAGE plfenced;
CREATE FUNCTION bad() RETURNS int AS 'nowhere:inc' LANGUAGE plfenced;
CREATE FUNCTION bad() RETURNS int AS 'basics:nothing' LANGUAGE plfenced;
CREATE FUNCTION bad() RETURNS int AS 'basics:inc(void); int x' LANGUAGE plfenced;
CREATE FUNCTION bad(int) RETURNS int AS 'basics:plain_inc' LANGUAGE plfenced;
CREATE FUNCTION bad(anyelement) RETURNS int AS 'basics:inc' LANGUAGE plfenced;
CREATE FUNCTION bad() RETURNS jsonb AS 'basics:inc' LANGUAGE plfenced;
SELECT fenced.install('basics', 'no module');
SELECT fenced.install('../x', '');
SELECT fenced.remove('basics');
SELECT fenced.remove('nowhere');
SELECT module, role, faults >= 1000 AS faults, current FROM fenced.stat_domains;
