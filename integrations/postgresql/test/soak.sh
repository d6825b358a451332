#!/usr/bin/env bash
# One session that fails for a long time: neither its memory nor its mappings nor its descriptors grow.
#   soak.sh [FAULTS] [ERRORS]     100,000 faults, and 10,000 errors that modules report, unless told otherwise
# shellcheck disable=SC2016 # the session's shell expands these
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$here/../tree.sh
faults=${1:-100000} errors=${2:-10000}
"$tree" make
out=$("$tree" out)
cluster=$out/soak
mkdir -p "$out/modules"
"$("$tree" library)/plfenced-cc" -o "$out/modules/basics.rf" "$here/modules/basics.c"
"$tree" stop "$cluster" 2>/dev/null || true
rm -rf "$cluster"
"$tree" start "$cluster"
trap '"$tree" stop "$cluster" || true' EXIT

# What the session's process has: KiB of its own memory, mappings, descriptors.
look='echo look $(sed -n "s/^RssAnon:[[:space:]]*\([0-9]*\) kB/\1/p" /proc/$PID/status) $(wc -l </proc/$PID/maps) $(ls /proc/$PID/fd | wc -l)'
failing() { # FUNCTION HOW_OFTEN: a thousand in each statement
    cat <<END
SELECT format('DO \$\$ BEGIN FOR i IN 1..%s LOOP BEGIN PERFORM $1; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END \$\$', least(1000, $2 - n))
    FROM generate_series(0, $2 - 1, 1000) n \\gexec
END
}
found=$("$tree" psql "$cluster" -At -v ON_ERROR_STOP=1 <<END
SET client_min_messages = error;
CREATE EXTENSION plfenced;
SELECT fenced.install('basics', pg_read_binary_file('$out/modules/basics.rf'));
CREATE FUNCTION crash(int8) RETURNS void AS 'basics:crash' LANGUAGE plfenced;
CREATE FUNCTION complain(int) RETURNS void AS 'basics:complain' LANGUAGE plfenced;
SELECT pg_backend_pid() AS pid \\gset
\\setenv PID :pid
$(failing 'crash(0)' 2000)
$(failing 'complain(1)' 2000)
\\! $look
$(failing 'crash(0)' "$faults")
$(failing 'complain(1)' "$errors")
\\! $look
SELECT 'calls', sum(faults), sum(errors) FROM fenced.stat_domains;
END
)
read -r _ memory mappings descriptors < <(grep '^look' <<<"$found" | head -1)
read -r _ memory_after mappings_after descriptors_after < <(grep '^look' <<<"$found" | tail -1)
echo "before and after $faults faults and $errors errors: $memory and $memory_after KiB, $mappings and $mappings_after mappings," \
    "$descriptors and $descriptors_after descriptors"
status=0
grep -qx "calls|$((faults + 2000))|$((errors + 2000))" <<<"$found" || { echo "not so many failed: $(tail -1 <<<"$found")"; status=1; }
# An allocator may take a page or two more.
if ((memory_after > memory + 1024 || mappings_after > mappings + 4 || descriptors_after > descriptors)); then
    echo "the session grows"
    status=1
fi
((status == 0)) && echo "postgresql-soak: 1 passed, 0 failed"
exit "$status"
