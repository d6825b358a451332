#!/usr/bin/env bash
# A laboratory that is killed leaves nothing behind: no server, no cluster, no directory.
# RINGFENCE and CARGO_TARGET_DIR are as for lab/run.sh, which has built it.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release
lab=$target/lab
export RINGFENCE=${RINGFENCE:-$target/ringfence}
results=$(mktemp)
trap 'rm -f "$results"' EXIT
if ! command -v pg_config >/dev/null || ! command -v apxs >/dev/null; then
    echo "lab: killed: no servers here: left out"
    [[ ${CI:-} != true ]]
    exit
fi
places=(build/lab/rooms "$(integrations/postgresql/tree.sh out)" "$(integrations/httpd/tree.sh out)")

rooms() { find "${places[@]}" -maxdepth 1 -name 'lab-??????' 2>/dev/null || true; }

# Processes of the laboratory: what it has started, or what works in a room of its own.
workers() {
    local process where
    for process in /proc/[0-9]*; do
        where=$(readlink "$process/cwd" 2>/dev/null) || continue
        [[ $where != */lab-??????/* ]] || echo "${process#/proc/}"
    done
    pgrep -s "$1" || true
}

setsid "$lab" run --subject apache,postgresql --mutants 2000 --seed 3 --jobs 2 --again --results "$results" >/dev/null 2>&1 &
run=$!
# Until both kinds of servers have been tried.
for ((n = 0; n < 6000; n++)); do
    if grep -qs '"subject":"apache"' "$results" && grep -qs '"subject":"postgresql"' "$results"; then break; fi
    kill -0 $run 2>/dev/null || { echo "lab: killed: the run ended by itself" >&2; exit 1; }
    sleep 0.1
done
[[ -n $(rooms) && -n $(workers $run) ]] || { echo "lab: killed: nothing was there" >&2; exit 1; }
kill -KILL $run
wait $run 2>/dev/null || true
for ((n = 0; n < 600; n++)); do
    [[ -n $(workers $run) ]] || break
    sleep 0.1
done
left=$(workers $run)
[[ -z $left ]] || { echo "lab: killed: still there: $(ps -o pid=,args= -p "${left//$'\n'/,}")" >&2; exit 1; }
# The keepers have cleared the clusters; what is left of directories goes with the next run.
"$lab" run --subject postgresql --mutants 1 --again --results "$results" >/dev/null
[[ -z $(rooms) ]] || { echo "lab: killed: left behind: $(rooms)" >&2; exit 1; }
echo "lab: killed: 1 passed, 0 failed"
