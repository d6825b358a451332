\echo Use "CREATE EXTENSION plfenced" to load this file. \quit

CREATE FUNCTION call_handler() RETURNS language_handler AS 'MODULE_PATHNAME', 'plfenced_call_handler' LANGUAGE C;
CREATE FUNCTION inline_handler(internal) RETURNS void AS 'MODULE_PATHNAME', 'plfenced_inline_handler' LANGUAGE C STRICT;
CREATE FUNCTION validator(oid) RETURNS void AS 'MODULE_PATHNAME', 'plfenced_validator' LANGUAGE C STRICT;

CREATE TRUSTED LANGUAGE plfenced HANDLER call_handler INLINE inline_handler VALIDATOR validator;
COMMENT ON LANGUAGE plfenced IS 'native code in Ringfence domains';

-- Modules as bytes, so that dumps, restores and replication carry them. Only the functions below get at them.
CREATE TABLE module (
    name text PRIMARY KEY,
    owner regrole NOT NULL,
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    bytes bytea NOT NULL,
    installed timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE module ALTER bytes SET STORAGE EXTERNAL;
SELECT pg_catalog.pg_extension_config_dump('module', '');

CREATE FUNCTION install(name text, bytes bytea) RETURNS void AS 'MODULE_PATHNAME', 'plfenced_install' LANGUAGE C STRICT;
COMMENT ON FUNCTION install(text, bytea) IS 'verifies a module and keeps it under a name, in place of what was there';
CREATE FUNCTION remove(name text) RETURNS void AS 'MODULE_PATHNAME', 'plfenced_remove' LANGUAGE C STRICT;
COMMENT ON FUNCTION remove(text) IS 'removes a module that no function needs';
CREATE FUNCTION reset(name text DEFAULT NULL) RETURNS integer AS 'MODULE_PATHNAME', 'plfenced_reset' LANGUAGE C;
COMMENT ON FUNCTION reset(text) IS 'puts this role''s domains of a module (all: NULL) back to their first state; how many there were';

CREATE FUNCTION inspect(name text, OUT symbol text, OUT kind text, OUT imported boolean, OUT size bigint)
    RETURNS SETOF record AS 'MODULE_PATHNAME', 'plfenced_inspect' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION inspect(text) IS 'what a module of one''s own exports, and what it needs of plfenced';

CREATE VIEW modules AS
    SELECT name, owner, pg_catalog.octet_length(bytes) AS size, pg_catalog.encode(hash, 'hex') AS hash, installed FROM module;
COMMENT ON VIEW modules IS 'the modules that are installed in this database';
GRANT SELECT ON modules TO PUBLIC;

CREATE FUNCTION domains(OUT module text, OUT role regrole, OUT calls bigint, OUT faults bigint, OUT errors bigint,
    OUT resets bigint, OUT memory bigint, OUT current boolean)
    RETURNS SETOF record AS 'MODULE_PATHNAME', 'plfenced_domains' LANGUAGE C VOLATILE;
CREATE VIEW stat_domains AS SELECT * FROM domains();
COMMENT ON VIEW stat_domains IS 'the domains of this session: calls, faults, memory';
GRANT SELECT ON stat_domains TO PUBLIC;

CREATE FUNCTION stat(OUT funcid oid, OUT calls bigint, OUT faults bigint, OUT errors bigint, OUT memory bigint, OUT scope text)
    RETURNS SETOF record AS 'MODULE_PATHNAME', 'plfenced_stat' LANGUAGE C VOLATILE;
CREATE VIEW pg_stat_fenced AS
    SELECT s.funcid, n.nspname AS schemaname, p.proname AS funcname, s.calls, s.faults, s.errors, s.memory,
        pg_catalog.pg_stat_get_function_total_time(s.funcid) AS total_time, s.scope
    FROM stat() s LEFT JOIN pg_catalog.pg_proc p ON p.oid = s.funcid LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE s.funcid IS NULL OR p.oid IS NOT NULL;
COMMENT ON VIEW pg_stat_fenced IS 'what fenced functions of this database have done, in all sessions (scope server) or in this one (session)';
GRANT SELECT ON pg_stat_fenced TO PUBLIC;
CREATE FUNCTION stat_reset() RETURNS void AS 'MODULE_PATHNAME', 'plfenced_stat_reset' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION stat_reset() IS 'begins to count anew what pg_stat_fenced tells of this database';
REVOKE EXECUTE ON FUNCTION stat_reset() FROM PUBLIC;
GRANT USAGE ON SCHEMA fenced TO PUBLIC;
