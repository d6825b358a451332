#!/usr/bin/env bash
# `ringfence bind`: a library with every kind of parameter, from its header to calls in a domain.
#   tests/bind/run.sh
# Ends with "N passed, M failed".
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$PWD/${CARGO_TARGET_DIR:-target}/release
export RINGFENCE_SYSROOT=${RINGFENCE_SYSROOT:-$PWD/build/sysroot}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source tests/checks.sh

mkdir "$work/lib" "$work/other"
soname=$(readelf -d "$target/libringfence_c.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
ln -s "$target/libringfence_c.so" "$work/lib/$soname"
ln -s "$soname" "$work/lib/libringfence.so"
export LD_LIBRARY_PATH=$work/lib
bind=("$target/ringfence" bind tests/bind/kinds.h --notes tests/bind/kinds.bind)
warnings=(-std=gnu11 -O1 -g -Wall -Wextra -Werror -Iinclude)

# said NAME PATTERN COMMAND…: it fails, and says this
said() {
    local name=$1 pattern=$2
    shift 2
    # shellcheck disable=SC2016 # the shell inside expands these
    check "$name" bash -c 'pattern=$1; shift; if "$@" >"$0" 2>&1; then echo "it does not fail"; exit 1; fi
        grep -qE -- "$pattern" "$0" || { cat "$0"; exit 1; }' "$work/said" "$pattern" "$@"
}

check "bind" "${bind[@]}" -o "$work"
module=(tests/bind/kinds.c "$work/kinds_layout.c")
check "module" "$target/ringfence" cc -O1 -g -shared -Itests/bind "${module[@]}" -o "$work/kinds.rf"
check "bind: the module agrees" "${bind[@]}" -o "$work" --module "$work/kinds.rf"
check "host: compile" gcc "${warnings[@]}" -I"$work" tests/bind/host.c "$work/kinds_fenced.c" -L"$work/lib" -lringfence -pthread -o "$work/host"

# The same library, whose struct is another.
sed 's/double weight;/float heavy, weight;/' tests/bind/kinds.h >"$work/other/kinds.h"
sed "s|#include \".*kinds.h\"|#include \"$work/other/kinds.h\"|" "$work/kinds_layout.c" >"$work/other/layout.c"
sed "s|#include \"kinds.h\"|#include \"$work/other/kinds.h\"|" tests/bind/kinds.c >"$work/other/kinds.c"
check "another module" "$target/ringfence" cc -O1 -g -shared "$work/other/kinds.c" "$work/other/layout.c" -o "$work/other.rf"
said "bind: another module's struct" 'kinds_point.weight is at 8 in the headers and at 12 in the module' \
    "${bind[@]}" -o "$work/other" --module "$work/other.rf"
check "host" "$work/host" "$work/kinds.rf" "$work/other.rf"

# The other languages.
check "bind: all languages" "${bind[@]}" -o "$work" --lang c,c++,rust,python
check "C++: compile" g++ -std=c++17 -O1 -g -Wall -Wextra -Werror -Iinclude -I"$work" tests/bind/host.cc -L"$work/lib" -lringfence -o "$work/host-cc"
check "C++" "$work/host-cc" "$work/kinds.rf"
# Types in structs, as sqlite3.h has them.
check "structs in structs: bind" "$target/ringfence" bind tests/bind/nested.h -o "$work" --lang c++
cat >"$work/nested.cc" <<'EOF'
#include "nested_fenced.hpp"
int f(ringfence::sandbox &box) {
    auto all = box.allocate<nested>();
    auto inner = box.allocate<nested::nested_inner>();
    all->inner = inner.get();
    all->color = nested::NESTED_RED;
    all->flag = true;
    (void)all->seen.UNSAFE_unverified();
    all->inner->more->values[1] = 7;
    return sandbox_invoke(box, nested_sum, all, nullptr).UNSAFE_unverified();
}
EOF
check "structs in structs" g++ -std=c++17 -Wall -Wextra -Werror -Iinclude -I"$work" -fsyntax-only "$work/nested.cc"
check "structs by value: bind" "$target/ringfence" bind tests/bind/passed.h -o "$work" --lang c++
check "structs by value: module" "$target/ringfence" cc -O1 -g -shared -Itests/bind tests/bind/passed.c -o "$work/passed.rf"
check "structs by value: compile" g++ -std=c++17 -O1 -g -Wall -Wextra -Werror -Iinclude -I"$work" tests/bind/passed.cc -L"$work/lib" -lringfence -o "$work/passed"
check "structs by value" "$work/passed" "$work/passed.rf"
for shape in packed long_double unnamed lane imaginary; do
    printf '#include "passed_fenced.hpp"\nvoid f(ringfence::sandbox &box, passed_%s s) { sandbox_invoke(box, passed_by_%s, s); }\n' "$shape" "$shape" >"$work/shape.cc"
    said "structs by value: $shape" 'pass a pointer into|call a function that takes a pointer' g++ -std=c++17 -Iinclude -I"$work" -fsyntax-only "$work/shape.cc"
done
check "Python: the library" gcc "${warnings[@]}" -shared -fPIC -I"$work" "$work/kinds_fenced.c" -L"$work/lib" -lringfence -pthread \
    -o "$work/libkinds_fenced.so"
check "Python" python3 tests/bind/host.py "$work" "$work/kinds.rf"
cp tests/bind/host.rs "$work/host.rs"
check "Rust: compile" rustc --edition 2024 -L "$work" -L "$work/lib" -l kinds_fenced -l ringfence "$work/host.rs" -o "$work/host-rs"
check "Rust" env LD_LIBRARY_PATH="$work/lib:$work" "$work/host-rs" "$work/kinds.rf"

# RLBox on top: where there is a checkout of it.
if [[ ${RLBOX:-} ]]; then
    check "RLBox: compile" g++ -std=c++17 -O1 -g -w -Iinclude -Itests/bind -I"$work" -I"$RLBOX/code/include" tests/bind/rlbox.cc \
        -L"$work/lib" -lringfence -pthread -o "$work/rlbox"
    check "RLBox" "$work/rlbox" "$work/kinds.rf"
    # Its own tests of back ends, with their library as it is. They call for Catch 2 (Debian's catch2).
    suite=$RLBOX/code/tests/rlbox_glue
    check "RLBox's tests: the module" "$target/ringfence" cc -O1 -g -w -shared -I"$suite/lib" "$suite/lib/libtest.c" -o "$work/suite.rf"
    check "RLBox's tests: compile" g++ -std=c++17 -O0 -w -Iinclude -I"$RLBOX/code/include" -I"$suite" -I"$suite/lib" \
        ${CATCH2:+-I"$CATCH2"} -DSUITE_MODULE="\"$work/suite.rf\"" tests/bind/rlbox_suite.cc -L"$work/lib" -lringfence -pthread -o "$work/suite"
    check "RLBox's tests" "$work/suite"
else
    skip "RLBox" "RLBOX names no checkout of it"
fi
# The example of its book, which differs in the four lines that name the back end: it prints what the book's unfenced one does.
if [[ ${RLBOX:-} && ${RLBOX_BOOK:-} ]]; then
    plain=$RLBOX_BOOK/src/examples/hello-example example=$RLBOX_BOOK/src/examples/noop-hello-example
    sed -e '/RLBOX_USE_STATIC_CALLS/d' -e 's/"rlbox_noop_sandbox.hpp"/<ringfence\/rlbox_ringfence_sandbox.hpp>/' -e 's/FOR(mylib, noop)/FOR(mylib, ringfence)/' \
        -e 's/create_sandbox()/create_sandbox(fenced_module())/' "$example/main.cpp" >"$work/example.cc"
    check "RLBox's book: four lines" test "$(diff "$example/main.cpp" "$work/example.cc" | grep -c '^<')" = 4
    check "RLBox's book: the module" "$target/ringfence" cc -O1 -shared "$example/mylib.c" -o "$work/example.rf"
    check "RLBox's book: compile" g++ -std=c++17 -w -DEXAMPLE_MODULE="\"$work/example.rf\"" -include tests/bind/rlbox_example.h -Iinclude -I"$RLBOX/code/include" \
        -I"$example" "$work/example.cc" -L"$work/lib" -lringfence -pthread -o "$work/example"
    gcc -c "$plain/mylib.c" -o "$work/mylib.o"
    check "RLBox's book: unfenced" g++ -w "$plain/main.cpp" "$work/mylib.o" -o "$work/plain"
    "$work/plain" | sort >"$work/plain.txt"
    # The module's stream is written at its end.
    "$work/example" | sort >"$work/example.txt"
    check "RLBox's book" diff "$work/plain.txt" "$work/example.txt"
else
    skip "RLBox's book" "RLBOX and RLBOX_BOOK name no checkouts of PLSysSec's rlbox and rlbox-book"
fi

# What is tainted cannot be used: each line of refused.txt does not compile, and the compiler says what to do.
while IFS='|' read -r snippet pattern; do
    if [[ -z $snippet || $snippet == '#'* ]]; then continue; fi
    # shellcheck disable=SC2016 # C++
    printf '#include "kinds_fenced.hpp"\nstruct unknown { int x; };\nint plain(int);\nvoid f(ringfence::sandbox &box, ringfence::tainted<int> n, ringfence::tainted<kinds_point *> p, ringfence::tainted<unknown *> u, int *host) {\n(void)box, (void)n, (void)p, (void)u, (void)host;\n%s\n}\n' "$snippet" >"$work/snippet.cc"
    if [[ -z ${pattern// /} ]]; then
        check "C++ takes: $snippet" g++ -std=c++17 -Iinclude -I"$work" -fsyntax-only "$work/snippet.cc"
    else
        said "C++ refuses: $snippet" "${pattern# }" g++ -std=c++17 -Iinclude -I"$work" -fsyntax-only "$work/snippet.cc"
    fi
done <tests/bind/refused.txt

# What cannot be bound does not compile, and the compiler says why.
refused() { # FUNCTION CALL PATTERN
    printf '#include "kinds_fenced.h"\n#include <stdarg.h>\nint f(va_list l) { (void)l; %s }\n' "$2" >"$work/refused.c"
    said "refused: $1" "$3" gcc -O1 -Iinclude -I"$work" -c "$work/refused.c" -o "$work/refused.o"
}
refused "a FILE *" 'return kinds_print(stdout, 0);' 'kinds_print takes a FILE \*.*read the file into memory'
refused "a va_list" 'return kinds_vprint("", l);' 'kinds_vprint takes a va_list.*format the text first'
refused "variable arguments" 'return kinds_printf("");' 'kinds_printf takes variable arguments'
refused "a struct by value" 'kinds_point p = { 0, 0, 0 }; return kinds_by_value(p).x;' 'kinds_by_value passes kinds_point by value'
refused "a function's address" 'return kinds_visitor(0) != 0;' 'kinds_visitor returns a pointer to a function'

# Bad input.
said "no such header" 'gcc does not understand the headers' "$target/ringfence" bind "$work/nowhere.h" -o "$work"
echo 'int f(int' >"$work/broken.h"
said "a header that does not parse" 'expected' "$target/ringfence" bind "$work/broken.h" -o "$work"
echo '#define NOTHING 1' >"$work/empty.h"
said "a header without functions" 'declare no functions' "$target/ringfence" bind "$work/empty.h" -o "$work"
echo 'kinds_sum.valves in(count)' >"$work/bad.bind"
said "a note of nobody" 'bad.bind:1: the headers have no kinds_sum.valves' "$target/ringfence" bind tests/bind/kinds.h --notes "$work/bad.bind" -o "$work"
echo 'kinds_sum.values inn(count)' >"$work/bad.bind"
said "an unknown note" 'bad.bind:1: kinds_sum.values: inn' "$target/ringfence" bind tests/bind/kinds.h --notes "$work/bad.bind" -o "$work"
said "a module that is none" 'no ELF file' "${bind[@]}" -o "$work/other" --module tests/bind/kinds.h
said "an unknown language" 'cobol' "${bind[@]}" -o "$work" --lang cobol

totals
