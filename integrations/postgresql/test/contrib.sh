#!/usr/bin/env bash
# PostgreSQL's own extensions in C, unmodified, as modules for plfenced, and their own regression tests.
#
#   contrib.sh fetch              the source of the installed PostgreSQL (or the newest that can be had) below build/postgresql
#   contrib.sh build [NAME...]    compiles extensions and writes them for a server's extension directory
#   contrib.sh check              fetches, and tests those that are known to pass
#   contrib.sh test [NAME...]     builds, installs them into the tree of tree.sh (`tree.sh make` first) and runs their tests there
#
# RINGFENCE: the command (default: that of build/postgresql/prefix). PG_CONFIG: default pg_config.
# PLF_TREE: the tree, if not build/postgresql/tree. PLF_SOURCE: an unpacked source of PostgreSQL, instead of `fetch`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$("$here/../tree.sh" out)
config=$(command -v "${PG_CONFIG:-pg_config}") || { echo "contrib.sh: no pg_config: install postgresql-server-dev-15" >&2; exit 1; }
export RINGFENCE=${RINGFENCE:-$out/prefix/bin/ringfence} PG_CONFIG=$config
tree=${PLF_TREE:-$out/tree}
# The extensions that do without GIN, options of operator classes and values whose layout only the server knows. Others build, and
# `test NAME` shows what they miss: citext, hstore, intarray, ltree.
# Those whose own tests say what they say natively.
equal=(fuzzystrmatch isn seg cube earthdistance)
all=(fuzzystrmatch isn seg cube earthdistance)

fetch() {
    local package

    package=postgresql-$("$config" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
    "$here/../../../scripts/debian_source.py" "$out" "$package" "$package"
    rm -rf "$out/source"
    mv "$out/$package" "$out/source"
}

source_of() { # NAME
    local source=${PLF_SOURCE:-$out/source}
    [[ -d $source/contrib/$1 ]] || { echo "contrib.sh: no source of $1: run contrib.sh fetch" >&2; exit 1; }
    echo "$source/contrib/$1"
}

# A variable of an extension's Makefile.
variable() { # DIR NAME
    sed -n ':a;/\\$/{N;s/\\\n//;ba};s/^'"$2"' *= *//p' "$1/Makefile"
}

build() { # NAME
    local name=$1 dir file object
    local -a sources=() flags=()

    dir=$(source_of "$name")
    for object in $(variable "$dir" OBJS); do
        file=${object%.o}.c
        if [[ $object == *.o && -f $dir/$file ]]; then sources+=("$file"); fi
    done
    # Without OBJS: MODULES, each a source of its own name.
    if ((${#sources[@]} == 0)); then sources=("$name.c"); fi
    # ltree folds case unless its Makefile says otherwise.
    for file in $(variable "$dir" PG_CPPFLAGS); do
        if [[ $file == -D* ]]; then flags+=("$file"); fi
    done
    (cd "$dir" && "$out/guest/plfenced-cc" -fPIC -w "${flags[@]}" -I"$dir" -I"$(dirname "$dir")" "${sources[@]}" \
        -o "$out/contrib/$name.rf")
    "$here/fence-extension" "$name" "$dir" "$out/contrib/$name.rf" "$out/contrib/extension"
}

build_all() {
    local name

    mkdir -p "$out/contrib/extension"
    "$here/../guest/build.sh" "$out/guest"
    for name; do build "$name"; done
}

# Whether a result is one of the expected ones, but for the line that tells in which fenced function an error was.
same() { # EXPECTED-WITHOUT-ENDING RESULT
    local expected
    [[ -f $2 ]] || return 1
    for expected in "$1".out "$1"_[0-9].out; do
        if [[ -f $expected ]] && sed '/^CONTEXT:  fenced function "[^"]*" of module "[^"]*"$/d' "$2" |
            diff -U3 "$expected" - >"${2%/results/*}/$(basename "$1").diff"; then
            return 0
        fi
    done
    return 1
}

run_tests() { # NAME...
    local name db=$out/contrib/db failed=0 regress test
    local -a tests

    regress=$(dirname "$("$config" --pgxs)")/../test/regress/pg_regress
    for name; do cp "$out/contrib/extension/$name"[.-]* "$tree$("$config" --sharedir)/extension/"; done
    # whatever an interrupted run has left
    "$here/../tree.sh" stop "$db" 2>/dev/null || true
    rm -rf "$db"
    "$here/../tree.sh" start "$db"
    for name; do
        mkdir -p "$out/contrib/results/$name"
        read -ra tests <<<"$(variable "$(source_of "$name")" REGRESS)"
        (cd "$(source_of "$name")" && "$regress" --inputdir=. --outputdir="$out/contrib/results/$name" \
            --bindir="$tree$("$config" --bindir)" --host="$db" --user=postgres --dbname="contrib_$name" \
            --load-extension=plfenced "${tests[@]}") >"$out/contrib/results/$name/log" || true
        for test in "${tests[@]}"; do
            if same "$(source_of "$name")/expected/$test" "$out/contrib/results/$name/results/$test.out"; then
                echo "ok      $name $test: 1 passed, 0 failed"
            else
                echo "FAILED  $name $test: $out/contrib/results/$name/$test.diff: 0 passed, 1 failed"
                failed=1
            fi
        done
    done
    "$here/../tree.sh" stop "$db"
    return $failed
}

command=${1:-}
if (($# > 0)); then shift; fi
if (($# == 0)); then set -- "${all[@]}"; fi
case $command in
fetch) fetch ;;
build) build_all "$@" ;;
check) fetch && build_all "${equal[@]}" && run_tests "${equal[@]}" ;;
test) build_all "$@" && run_tests "$@" ;;
*) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
