#!/usr/bin/env bash
# Runs every check, goes on after a failure, and ends with one line of totals.
#   scripts/test.sh [--quick | --soak] [--only STEP,STEP…] [--list]
# --quick is what to run before each commit: below two minutes once everything is built.
# A step is a command. What it counts is read from its output: cargo's "test result:" lines, or a
# line of its own "… N passed, M failed". A step without such a line counts as one check.
set -euo pipefail
cd "$(dirname "$0")/.."

soak=0 quick=0 only='' list=0
while (($#)); do
    case $1 in
    --soak) soak=1 ;;
    --quick) quick=1 ;;
    --only) only=$2 && shift ;;
    --list) list=1 ;;
    *) echo "usage: test.sh [--quick | --soak] [--only STEP,STEP] [--list]" >&2 && exit 2 ;;
    esac
    shift
done

# as the Makefile says, for whoever calls this by itself
RINGFENCE=${RINGFENCE:-$(realpath -m "${CARGO_TARGET_DIR:-target}")/release/ringfence}
export RINGFENCE
# longer runs of what has them
export RINGFENCE_SOAK=$soak

logs=build/test
mkdir -p "$logs"

passed=0 failed=0 broken=()

# Whether a step is one of those that are asked for.
selected() { [[ -z $only || ,$only, == *",$1,"* ]]; }

# step NAME COMMAND…
step() {
    local name=$1 log=$logs/$1.log status=0 begin=$SECONDS p f
    shift
    if ((list)); then
        echo "$name" && return
    fi
    selected "$name" || return 0
    printf '== %s: %s\n' "$name" "$*"
    "$@" 2>&1 </dev/null | tee "$log" || status=$?
    # each line of totals contributes; ANSI colours never reach a pipe
    read -r p f < <(awk '
        /^test result:/ { p += $4; f += $6; next }
        match($0, /[0-9]+ passed, [0-9]+ failed/) { split(substr($0, RSTART, RLENGTH), w, " "); p += w[1]; f += w[3] }
        END { print p + 0, f + 0 }' "$log")
    if ((p + f == 0)); then
        if ((status)); then f=1; else p=1; fi
    elif ((status && f == 0)); then
        f=1 # it failed outside of what it counts
    fi
    passed=$((passed + p)) failed=$((failed + f))
    if ((f)); then broken+=("$name"); fi
    printf -- '-- %s: %d passed, %d failed (%d s)\n\n' "$name" "$p" "$f" $((SECONDS - begin))
}

# needs COMMAND-OR-FILE NAME…: whether it is there; if not, says which steps are left out, and fails where nothing may be (CI)
needs() {
    local command=$1
    shift
    if [[ $command == /* ]]; then
        [[ -e $command ]] && return
    else
        command -v "$command" >/dev/null && return
    fi
    echo "== $*: skipped, there is no $command (scripts/setup.sh test installs it)"
    if [[ ${CI:-} == true ]]; then
        failed=$((failed + 1))
        broken+=("$*")
    fi
    return 1
}

shell_files() {
    git ls-files -- ':!*.rs' ':!*.md' | while read -r f; do
        if [[ -f $f ]] && { [[ $f == *.sh ]] || head -c 40 "$f" | head -1 | grep -aqE '^#!.*\b(ba)?sh\b'; }; then
            echo "$f"
        fi
    done
}
check_shell() {
    local files recipes
    mapfile -t recipes < <(shell_files | grep '^modules/.*/recipe\.sh$')
    mapfile -t files < <(shell_files | grep -v '^modules/.*/recipe\.sh$')
    # a step's command runs where a failure does not end the script
    local status=0
    shellcheck "${files[@]}" || status=1
    # these are read by modules/make.sh, with variables from there and for there
    shellcheck -s bash -e SC2034,SC2154 "${recipes[@]}" || status=1
    return $status
}

# excerpt LOG: the lines around the first failures that it tells, else its end
excerpt() {
    local lines
    lines=$(grep -anE -B1 -A6 -m 12 'panicked at|FAILED|^(FAIL|error|not ok)|[1-9][0-9]* failed' "$1" || true)
    if [[ -n $lines ]]; then head -n 60 <<<"$lines"; else tail -n 20 "$1"; fi
}

# the totals
totals() {
    ((list)) && return
    local name
    # what failed stands at the end, where one looks, also when the rest of the output is cut
    for name in "${broken[@]}"; do
        [[ -f $logs/$name.log ]] || continue
        echo "== failed: $name"
        excerpt "$logs/$name.log"
    done
    if ((${#broken[@]})); then
        echo "failed steps: ${broken[*]} (logs in $logs)"
    fi
    echo "$passed passed, $failed failed"
    ((failed == 0))
}

step format cargo fmt --all --check
# rooms import one way only, and files do not import each other in circles
step imports scripts/check_imports.py
step trusted scripts/count_trusted.py
step clippy cargo clippy --workspace --all-targets --quiet -- -D warnings
if needs shellcheck shell; then step shell check_shell; fi
step pages scripts/check_docs.py
if ((quick)); then
    step unit cargo test --workspace --quiet --lib --bins
    step golden cargo test --workspace --quiet --test golden
    step demo apps/demo/run.sh --smoke
    totals
    exit
fi
# the book of all pages, and its links
PATH=$PWD/build/tools/plain/bin:$PATH
if needs mdbook book; then step book scripts/book.sh; fi
step build cargo build --release --workspace --quiet
step sysroot sysroot/build.sh
step libc make -s -C sysroot test
# what headers declare and what libraries have
step declared sysroot/tests/declared.py
step cxx sysroot/tests/cxx.sh
step unit cargo test --workspace --quiet --no-fail-fast
# the Rust interface's tests on the other back ends
step backends scripts/test_backends.sh
# mistakes planted in the verifier one at a time; its corpus has to notice each
step holes cargo test -p ringfence-mistakes --quiet
# the verifier's decoder against three others: a sample, or everything
mapfile -t share < <(if ((soak)); then printf '%s\n' --table "$logs/accepted.txt"; else printf '%s\n' --sample 1000; fi)
if needs cmake enumerate; then
    step enumerate cargo run --release --quiet --manifest-path tests/enumerate/Cargo.toml --target-dir target/enumerate -- "${share[@]}"
fi
step api tests/api/run.sh
if ((soak)); then
    for kind in files frames throws memory hosts; do
        step "hostile-$kind" cargo run --release --quiet --package ringfence-hostile -- \
            --kind "$kind" --seconds 1800 --seed "$(date +%s)"
    done
    # every place of every operation where an allocation can fail
    step hostile-places cargo run --release --quiet --package ringfence-hostile -- --kind places --cases 0
    for attack in step gates fuzz words files calls races; do
        step "attack-$attack" cargo run --release --quiet --package ringfence-attack -- "$attack" --seconds 3600 --stride 1
    done
    step attack-holes cargo run --profile holes --features holes --quiet --package ringfence-attack -- \
        holes --seconds 60
    step attack-cover tests/cover/run.sh 1800
    step tsan tests/tsan/run.sh 300
    count=5000 torture=(--all) cxx=(--all)
else
    # machines that hunt for unbounded work: what was kept, and a few cases more
    step hostile cargo run --release --quiet --package ringfence-hostile -- --seconds 20 --cases 24
    # of g++'s tests those of exceptions
    count=60 torture=() cxx=(--level -O2 --only eh/)
fi
# the bounds' table, a few cases of each row: bytes and counts are judged, times are not
step bounds tests/hostile/table.sh --smoke
step torture tests/torture/run.sh "${torture[@]}"
step torture-c++ tests/torture/run.sh --c++ "${cxx[@]}"
if needs csmith random; then step random tests/torture/run.sh --random "$count"; fi
for recipe in modules/*/recipe.sh; do
    recipe=$(basename "$(dirname "$recipe")")
    # what judges its file systems, here and in the laboratory, which names and leaves out a subject without its judge
    if [[ $recipe != libext2fs ]] || needs /sbin/e2fsck "module-$recipe" lab-libext2fs; then
        step "module-$recipe" modules/make.sh check "$recipe"
    fi
done
# bindings from headers: every kind of parameter, and three libraries end to end
step bind tests/bind/run.sh
step examples examples/run.sh
# a package in a Debian of its own, where docs/start.md is followed to the letter; the wheel; cargo install
if needs dpkg-deb package; then step package tests/package/run.sh; fi
# packages of Debian's, unmodified, with their own tests natively and fenced
step farm-parts tests/farm/test.py
step farm-page tests/farm/farm.py --check-page
if needs dpkg-source farm; then
    if ((soak)); then step farm tests/farm/farm.py --again --jobs 2; else step farm tests/farm/farm.py --again --equal --only cjson,libcsv,lzip; fi
fi
# a language of PostgreSQL, and extensions of PostgreSQL's own, unmodified, as its modules
if needs pg_config postgresql postgresql-interrupts postgresql-clusters postgresql-contrib; then
    step postgresql integrations/postgresql/test/run.sh
    step postgresql-interrupts integrations/postgresql/test/interrupts.sh
    step postgresql-clusters integrations/postgresql/test/clusters.sh
    step postgresql-contrib integrations/postgresql/test/contrib.sh check
    if needs dpkg-deb postgresql-package; then step postgresql-package integrations/postgresql/test/package.sh; fi
    if ((soak)); then
        step postgresql-soak integrations/postgresql/test/soak.sh
        step postgresql-regress integrations/postgresql/test/regress.sh
    fi
fi
# pages of Apache, on servers of its own
if needs apxs httpd httpd-stock httpd-framework httpd-page httpd-package; then
    step httpd integrations/httpd/test/run.sh
    step httpd-stock integrations/httpd/test/stock.sh
    mapfile -t share < <(if ((!soak)); then echo --quick; fi)
    step httpd-framework integrations/httpd/test/framework.sh "${share[@]}"
    if needs chromium httpd-page; then step httpd-page integrations/httpd/test/page.sh; fi
    if needs dpkg-deb httpd-package; then step httpd-package integrations/httpd/test/package.sh; fi
    if ((soak)); then step httpd-soak integrations/httpd/soak.py; fi
fi
# faults put into libraries and into what servers load, on purpose: none reaches the host; behind the integrations, whose trees it uses
if ((soak)); then faults=10000; else faults=32; fi
step lab lab/run.sh run --mutants "$faults" --again --results "$logs/lab.jsonl"
step lab-killed lab/test/killed.sh
# functions from text, and packet filters over real captures and as people meet them
if ((soak)); then
    step text-random env RINGFENCE_TEXT_ROUNDS=100000 RINGFENCE_TEXT_SEED="$(date +%s)" \
        cargo test --release --quiet -p ringfence-text --test random
    step text-csmith env RINGFENCE_CSMITH_ROUNDS=2000 RINGFENCE_CSMITH_SEED="$(date +%s)" \
        cargo test --release --quiet -p ringfence-text --test csmith
fi
if needs /usr/lib/x86_64-linux-gnu/libpcap.so.0.8 captures demo-functions; then
    mapfile -t share < <(if ((soak)); then echo --all; fi)
    step captures integrations/packet-filter/test/captures.sh "${share[@]}"
    step demo-functions bash -c 'cargo build --release --quiet -p ringfence-packet-filter --examples && integrations/packet-filter/demo.sh'
fi
# rights to single words, as people meet them
step demo-words bash -c 'cargo build --release --quiet -p ringfence --example words && examples/words/demo.sh'
# the image server: its tests need its module, and its page a browser
step transcode apps/transcode/test/run.sh
step demo apps/demo/run.sh --smoke
# a thousandth of the work: whether everything is built and agrees, not how fast it is
step bench bench/run.sh --smoke --json "$logs/bench.json"

totals
