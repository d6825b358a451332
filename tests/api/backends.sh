#!/usr/bin/env bash
# Runs the tests of the C interface on the back ends that are not the default; tests/api/run.sh has run them on that one.
#   tests/api/backends.sh [DIRECTORY WITH libringfence_c.so, ringfence AND ringfence-worker]
# What a test leaves out for a back end, it notes in the file that RINGFENCE_TEST_LEFT_OUT names. Ends with "N passed, M failed".
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/release}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/lib"
soname=$(readelf -d "$target/libringfence_c.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
ln -s "$target/libringfence_c.so" "$work/lib/$soname"
ln -s "$soname" "$work/lib/libringfence.so"
export LD_LIBRARY_PATH=$work/lib RINGFENCE_WORKER=$target/ringfence-worker

source tests/checks.sh

# Each module fenced, and as an ordinary shared object.
fence=(-O1 -g -ffreestanding -nostdlib -Iinclude)
for m in basic readme program plugin files; do
    options=("${fence[@]}")
    if [[ $m == files ]]; then options=(-O1 -g -shared --import=own_number); fi
    check "build $m.rf" "$target/ringfence" cc "${options[@]}" -o "$work/$m.rf" "tests/api/modules/$m.c"
done
for m in basic readme plugin; do
    check "build $m.so" gcc -O1 -g -w -shared -fPIC -Iinclude -o "$work/$m.so" "tests/api/modules/$m.c"
done
check "build registers.rf" "$target/ringfence" cc --no-rewrite -nostdlib -o "$work/registers.rf" crates/runtime/tests/modules/registers.s \
    --import=host_void,host_byte,host_int,host_long,host_float,host_double,host_untyped,host_closure,other,failing

check "build on.so" gcc -std=c11 -O1 -Wall -Wextra -Wno-unused-result -shared -fPIC -Iinclude -o "$work/on.so" tests/api/on.c
build=(-O1 -g -Wall -Wextra -Iinclude "-L$work/lib")
programs=(arenas dl dlpolicy leaks checked batch threads regions many exhaust added policy readme handlers unwind hosts)
for t in "${programs[@]}"; do
    check "build $t" gcc -std=c11 "${build[@]}" "tests/api/$t.c" -o "$work/$t" -lringfence -pthread
done
check "build cxx" g++ -std=c++11 "${build[@]}" tests/api/cxx.cc -o "$work/cxx" -lringfence

# on BACKEND PROGRAM ARGUMENT…
on() {
    check "$2 on $1" env RINGFENCE_TEST_BACKEND="$1" LD_PRELOAD="$work/on.so" "$work/$2" "${@:3}"
}
for backend in process none; do
    kind=rf
    if [[ $backend == none ]]; then kind=so; fi
    for t in "${programs[@]}" cxx; do
        case $t in
        dlpolicy) on $backend "$t" "$work/files.rf" ;;
        leaks) on $backend "$t" "$work/registers.rf" ;;
        batch) on $backend "$t" "$work/readme.$kind" ;;
        added) on $backend "$t" "$work/basic.$kind" "$work/plugin.$kind" ;;
        policy) on $backend "$t" "$work/program.rf" "$work/readme.rf" ;;
        hosts) for deed in longjmp vfork threads pthread_exit init; do on $backend "$t" $deed "$work/basic.$kind"; done ;;
        readme)
            # The example divides by zero, and says nothing of back ends.
            if [[ $backend == process ]]; then
                on $backend "$t" "$work/readme.$kind"
            else
                echo "none readme.c:main: faults as error values" >>"${RINGFENCE_TEST_LEFT_OUT:-/dev/null}"
            fi
            ;;
        *) on $backend "$t" "$work/basic.$kind" ;;
        esac
    done
done
# What each back end answers, whatever the tests run on; and what may happen to a process.
for t in backends process; do
    check "build $t" gcc -std=c11 "${build[@]}" "tests/api/$t.c" -o "$work/$t" -lringfence -pthread
    check "$t" "$work/$t" "$work/basic.rf" "$work/basic.so"
done

totals
