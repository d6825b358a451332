# What the tests in shell share. Read with `source tests/checks.sh` by those that have made $work, a directory for what they leave.
# shellcheck shell=bash
# shellcheck disable=SC2154 # work is theirs

passed=0 failed=0

# check NAME COMMAND…: runs it, for at most $limit seconds (120), and shows what it printed if it fails.
check() {
    local name=$1 log=$work/log status=0
    shift
    timeout "${limit:-120}" "$@" >"$log" 2>&1 || status=$?
    if ((status == 0)); then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name (status $status): $*"
        sed 's/^/    /' "$log"
    fi
}

# skip NAME WHY: a check that cannot be made here.
skip() {
    echo "skipped $1 ($2)"
}

# totals: the line that scripts/test.sh reads, and whether all has passed.
totals() {
    echo "$passed passed, $failed failed"
    ((failed == 0))
}
