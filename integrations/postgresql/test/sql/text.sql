-- Functions whose body is their text in C.
CREATE SCHEMA texts;
SET search_path = texts, public;
CREATE FUNCTION inc(x int) RETURNS int LANGUAGE plfenced STRICT IMMUTABLE AS $$
int inc(int x) { return x + 1; }
$$;
CREATE FUNCTION hypot2(float8, float8) RETURNS float8 LANGUAGE plfenced STRICT IMMUTABLE AS $$
static double square(double x) { return x * x; }
double hypot2(double a, double b) { return square(a) + square(b); }
$$;
CREATE FUNCTION all_kinds(bool, "char", int2, int4, int8, float4, float8) RETURNS float4 LANGUAGE plfenced STRICT IMMUTABLE AS $$
float all_kinds(_Bool a, signed char b, short c, int d, long e, float f, double g) { return a + b + c + d + e + f + g; }
$$;
CREATE FUNCTION collatz(int8) RETURNS int LANGUAGE plfenced STRICT IMMUTABLE AS $$
int collatz(long n) {
    int steps = 0;
    for (; n != 1; steps++)
        n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}
$$;
SELECT inc(41), inc(NULL), hypot2(3, 4), all_kinds(true, 'A', -2::int2, 3, -4, 0.5, 0.25), collatz(27);
SELECT sum(inc(i)) FROM generate_series(1, 100000) i;
-- State lives as long as the session says.
CREATE FUNCTION tick() RETURNS int8 LANGUAGE plfenced AS $$ static long n; long tick(void) { return ++n; } $$;
SELECT tick(), tick();
SELECT fenced.reset('tick'), tick();
BEGIN;
SET LOCAL plfenced.state = 'call';
SELECT tick(), tick();
COMMIT;
-- Replaced, also while a statement is prepared, and in a transaction that is rolled back.
PREPARE p AS SELECT inc(1);
EXECUTE p;
CREATE OR REPLACE FUNCTION inc(x int) RETURNS int LANGUAGE plfenced STRICT IMMUTABLE AS $$ int inc(int x) { return x + 10; } $$;
EXECUTE p;
BEGIN;
CREATE OR REPLACE FUNCTION inc(x int) RETURNS int LANGUAGE plfenced STRICT IMMUTABLE AS $$ int inc(int x) { return x + 100; } $$;
EXECUTE p;
ROLLBACK;
EXECUTE p;
-- Values of other types are pointers to what the server stores.
CREATE FUNCTION letters(text) RETURNS int LANGUAGE plfenced STRICT IMMUTABLE AS $$
int letters(const void *value) {
    const unsigned *head = value;
    const char *text = (const char *) (head + 1);
    int count = 0;
    for (unsigned i = 0; i < *head / 4 - 4; i++)
        count += text[i] >= 'a' && text[i] <= 'z';
    return count;
}
$$;
SELECT letters('ab1 c'), letters(''), letters(repeat('xyz ', 500000));
-- What it says.
CREATE FUNCTION speak(int) RETURNS int LANGUAGE plfenced STRICT AS $$
void notice(const char *);
void error(const char *);
int speak(int n) {
    notice("about to decide");
    if (n < 0)
        error("a number below zero");
    return n;
}
$$;
SELECT speak(1);
SELECT speak(-1);
SELECT speak(2);
DO LANGUAGE plfenced $$ void notice(const char *); void block(void) { notice("a block"); } $$;
-- Texts that are refused.
CREATE FUNCTION bad(int) RETURNS int LANGUAGE plfenced STRICT AS $$
int bad(int x) {
    return x +;
}
$$;
CREATE FUNCTION bad(int) RETURNS int LANGUAGE plfenced STRICT AS $$ int other(int x) { return x; } $$;
CREATE FUNCTION bad(int) RETURNS int LANGUAGE plfenced STRICT AS $$ long bad(int x) { return x; } $$;
CREATE FUNCTION bad(int) RETURNS int LANGUAGE plfenced STRICT AS $$ int missing(int); int bad(int x) { return missing(x); } $$;
CREATE FUNCTION bad(int) RETURNS int LANGUAGE plfenced AS $$ int bad(int x) { return x; } $$;
CREATE FUNCTION bad(int) RETURNS SETOF int LANGUAGE plfenced STRICT AS $$ int bad(int x) { return x; } $$;
CREATE FUNCTION bad() RETURNS trigger LANGUAGE plfenced AS $$ long bad(void) { return 0; } $$;
CREATE FUNCTION "no name"(int) RETURNS int LANGUAGE plfenced STRICT AS $$ int bad(int x) { return x; } $$;
CREATE FUNCTION bad(int) RETURNS int LANGUAGE plfenced STRICT AS 'bad';
DO LANGUAGE plfenced $$ void other(void) { } $$;
-- Failures cost one statement, and the function goes on.
CREATE FUNCTION divide(int, int) RETURNS int LANGUAGE plfenced STRICT AS $$ int divide(int a, int b) { return a / b; } $$;
CREATE FUNCTION wild(int8) RETURNS int LANGUAGE plfenced STRICT AS $$ int wild(long at) { return *(int *) at = 1; } $$;
CREATE FUNCTION endless() RETURNS int LANGUAGE plfenced AS $$ int endless(void) { for (;;) ; } $$;
CREATE FUNCTION deep(int) RETURNS int LANGUAGE plfenced STRICT AS $$ int deep(int n) { return n ? deep(n + 1) * 3 + 1 : 0; } $$;
SELECT divide(1, 0);
SELECT divide(7, 2);
SELECT wild(8);
SET statement_timeout = '100ms';
SELECT endless();
RESET statement_timeout;
SELECT deep(1);
SET client_min_messages = error;
DO $$
BEGIN
    FOR i IN 1 .. 1000 LOOP
        BEGIN
            PERFORM CASE i % 2 WHEN 0 THEN divide(i, 0) ELSE speak(-i) END;
        EXCEPTION WHEN external_routine_exception THEN
            NULL;
        END;
    END LOOP;
END $$;
RESET client_min_messages;
SELECT divide(9, 3), speak(3);
-- Blocks and dropped functions leave nothing behind.
DO $$
BEGIN
    FOR i IN 1 .. 200 LOOP
        EXECUTE format('CREATE FUNCTION passing() RETURNS int LANGUAGE plfenced AS $f$ int passing(void) { return %s; } $f$', i);
        PERFORM passing();
        DROP FUNCTION passing();
        EXECUTE format('DO LANGUAGE plfenced $b$ static int n = %s; void block(void) { n++; } $b$', i);
        COMMIT;
    END LOOP;
END $$;
SELECT count(*) < 20 AS few FROM fenced.stat_domains;
-- Other roles have domains of their own, and nobody needs to own a module.
CREATE ROLE plf_carol;
GRANT CREATE, USAGE ON SCHEMA texts TO plf_carol;
SET ROLE plf_carol;
SELECT tick(), tick();
CREATE FUNCTION mine(int) RETURNS int LANGUAGE plfenced STRICT AS $$ int mine(int x) { return -x; } $$;
SELECT mine(5);
RESET ROLE;
SELECT mine(6), tick();
