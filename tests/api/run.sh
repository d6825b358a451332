#!/usr/bin/env bash
# Builds and runs the tests of the C library: C and C++ programs against the shared and the static library, PIE and
# non-PIE, the library opened by a foreign program and by Python, and the documentation's example.
#   tests/api/run.sh [DIRECTORY WITH libringfence_c.so, libringfence_c.a AND ringfence]
# Ends with "N passed, M failed".
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${1:-${CARGO_TARGET_DIR:-target}/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for f in libringfence_c.so libringfence_c.a ringfence; do
    if [[ ! -e $target/$f ]]; then
        echo "run.sh: $target/$f is missing; build the workspace first" >&2
        exit 2
    fi
done

# As an installation has them.
mkdir -p "$work/lib" "$work/static"
soname=$(readelf -d "$target/libringfence_c.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
cp "$target/libringfence_c.so" "$work/lib/$soname"
ln -s "$soname" "$work/lib/libringfence.so"
cp "$target/libringfence_c.a" "$work/static/libringfence.a"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
sed -e "s|@PREFIX@|$work|" -e "s|@VERSION@|$version|" crates/capi/ringfence.pc.in >"$work/ringfence.pc"
private=$(sed -n 's/^Libs.private: //p' "$work/ringfence.pc")

source tests/checks.sh

build() {
    check "build $1.rf" "$target/ringfence" cc -O1 -g -ffreestanding -nostdlib -Iinclude -o "$work/$1.rf" "tests/api/modules/$1.c"
}
build basic
build readme
build program
# The one that looks at registers is made by hand.
check "build registers.rf" "$target/ringfence" cc --no-rewrite -nostdlib -o "$work/registers.rf" crates/runtime/tests/modules/registers.s \
    --import=host_void,host_byte,host_int,host_long,host_float,host_double,host_untyped,host_closure,other,failing
build plugin
check "build arenas.rf" "$target/ringfence" cc -O1 -g -ffreestanding -nostdlib --isolation=words -o "$work/arenas.rf" tests/api/modules/arenas.c
check "build files.rf" "$target/ringfence" cc -O1 -g -shared -o "$work/files.rf" tests/api/modules/files.c --import=own_number
module=$work/basic.rf
export LD_LIBRARY_PATH=$work/lib

check "soname" test "$soname" = "libringfence.so.${version%%.*}"
check "only rf_ names are exported" bash -c \
    "! nm -D --defined-only '$work/lib/libringfence.so' | awk '\$2 != \"A\" { print \$3 }' | grep -v '^rf_'"
check "no executable stack" bash -c "readelf -lW '$work/lib/libringfence.so' | grep GNU_STACK | grep -qv RWE"

check "header, pedantic C11" gcc -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror -Iinclude -fsyntax-only -x c include/ringfence.h
check "header, pedantic C++11" g++ -std=c++11 -Wall -Wextra -Wpedantic -Wconversion -Werror -Iinclude -fsyntax-only -x c++ include/ringfence.h
# Each alone, and next to what a module's source includes.
for header in include/ringfence/host/*.h; do
    check "${header#include/} alone" gcc -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror -Iinclude -fsyntax-only -x c "$header"
    check "${header#include/} alone, C++" g++ -std=c++11 -Wall -Wextra -Wpedantic -Wconversion -Werror -Iinclude -fsyntax-only -x c++ "$header"
done
check "host and module headers together" bash -c \
    'printf "#include <ringfence.h>\n#include <ringfence/module.h>\n" | gcc -std=c11 -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c -'
if command -v python3 >/dev/null; then
    check "names in headers" python3 tests/api/headers.py "$work/lib/$soname"
fi
for std in c++11 c++20; do
    check "C++ header, pedantic $std" g++ -std=$std -Wall -Wextra -Wpedantic -Wconversion -Werror -Iinclude -fsyntax-only -x c++ include/ringfence.hpp
done
# What cannot pass does not compile, and the compiler says why.
# shellcheck disable=SC2016 # the shell inside expands these
check "C++ header, classes by value" bash -c \
    'echo "#include <ringfence.hpp>
struct p { int x; }; auto f = ringfence::dlsym<int(p)>(nullptr, \"f\");" | g++ -std=c++11 -Iinclude -fsyntax-only -x c++ - 2>&1 | grep "does not pass a gate by value"'
check "RF_IMPORT_INIT of another type" bash -c \
    'echo "#include <ringfence.h>
static int f(int a) { return a; } rf_import i = RF_IMPORT_INIT(int, f, (long), f);" | gcc -std=c11 -Iinclude -fsyntax-only -x c - 2>&1 | grep "pointer type mismatch"'

# Not pedantic: a pointer from rf_dlsym is cast to a function's, as with dlsym.
warnings=(-Wall -Wextra -Wstrict-prototypes -Werror)
for t in arenas dl dlpolicy leaks checked batch threads regions many exhaust added policy readme handlers unwind runtime; do
    modules=("$work/basic.rf")
    case $t in
    arenas) modules=("$work/arenas.rf") ;;
    dlpolicy) modules=("$work/files.rf") ;;
    leaks) modules=("$work/registers.rf") ;;
    batch | readme) modules=("$work/readme.rf") ;;
    added) modules+=("$work/plugin.rf") ;;
    policy) modules=("$work/program.rf" "$work/readme.rf") ;;
    esac
    check "$t: compile" gcc -std=c11 -O1 -g "${warnings[@]}" -Iinclude "tests/api/$t.c" -o "$work/$t" -L"$work/lib" -lringfence -pthread
    check "$t" "$work/$t" "${modules[@]}"
    check "$t: compile, non-PIE" gcc -std=c11 -O1 -g -no-pie -fno-pie "${warnings[@]}" -Iinclude "tests/api/$t.c" -o "$work/$t-nopie" \
        -L"$work/lib" -lringfence -pthread
    check "$t, non-PIE" "$work/$t-nopie" "${modules[@]}"
    # word splitting of the private libraries is wanted
    # shellcheck disable=SC2086
    check "$t: compile, static library" gcc -std=c11 -O1 -g -no-pie "${warnings[@]}" -Iinclude "tests/api/$t.c" -o "$work/$t-static" \
        -L"$work/static" -lringfence $private -pthread
    check "$t, static library" "$work/$t-static" "${modules[@]}"
done

# Each allocation of a host fails in turn: one in seventeen here, all in the soak.
check "refused: compile" gcc -std=c11 -O1 -g "${warnings[@]}" -Iinclude tests/api/refused.c -o "$work/refused" -L"$work/lib" -lringfence
check "refused" "$work/refused" "$work/basic.rf" "$([[ ${RINGFENCE_SOAK:-0} == 1 ]] && echo 1 || echo 17)"

# A lower limit on mappings needs mounts of its own, which not everybody may have.
if unshare -m true 2>/dev/null; then
    check "exhaust: mappings" "$work/exhaust" "$work/basic.rf" "$work/limit"
else
    skip "exhaust: mappings" "no mount namespaces here"
fi

# A host with gcc's ThreadSanitizer and the library as it is: windows have room between the sanitizer's areas, limits and interrupts
# end calls although it puts signals off, and what the host does on both sides of a call is no race to it.
check "ThreadSanitizer: compile" gcc -std=c11 -O1 -g -fsanitize=thread "${warnings[@]}" -Iinclude tests/api/threads.c -o "$work/threads-tsan" \
    -L"$work/lib" -lringfence -pthread
check "ThreadSanitizer" env TSAN_OPTIONS=die_after_fork=0:ignore_noninstrumented_modules=1 "$work/threads-tsan" "$work/basic.rf"

module=$work/basic.rf
for std in c++11 c++20; do
    check "cxx: compile as $std" g++ "-std=$std" -O1 -g -Wall -Wextra -Wpedantic -Werror -Iinclude tests/api/cxx.cc -o "$work/cxx" \
        -L"$work/lib" -lringfence
    check "cxx, $std" "$work/cxx" "$module"
done

check "foreign: compile" gcc -std=c11 -O1 -g "${warnings[@]}" -Iinclude tests/api/foreign.c -o "$work/foreign"
check "foreign" env -u LD_LIBRARY_PATH "$work/foreign" "$work/lib/$soname" "$module"
if python=$(command -v python3); then
    check "ctypes" "$python" tests/api/ctypes_test.py "$work/lib/$soname" "$module" "$work/files.rf"
fi

# Two copies in one process: both as libraries, one of them with the library linked into it; in a link name space of its own.
# shellcheck disable=SC2086
check "twice: a library with a copy" gcc -shared -Wl,-Bsymbolic -o "$work/libcopy.so" -Wl,--whole-archive "$work/static/libringfence.a" \
    -Wl,--no-whole-archive $private
check "twice: compile" gcc -std=c11 -O1 -g "${warnings[@]}" -Iinclude tests/api/twice.c -o "$work/twice"
check "twice: shared first" "$work/twice" "$work/lib/$soname" "$work/libcopy.so" "$module"
check "twice: static first" "$work/twice" "$work/libcopy.so" "$work/lib/$soname" "$module"
check "twice: name spaces" "$work/twice" "$work/lib/$soname" "$work/lib/$soname" "$module" namespace
# The escape that two copies were: a handler on a domain's own stack enters the other copy's. Refused; and harmless where a copy is
# blind for the mark.
build copies
check "copies: compile" gcc -std=c11 -O1 -g "${warnings[@]}" -Iinclude tests/api/copies.c -o "$work/copies"
cp "$work/lib/$soname" "$work/libother.so"
check "copies: the same file under another name" "$work/copies" "$work/lib/$soname" "$work/libother.so" "$work/copies.rf"
check "copies: static beside shared" "$work/copies" "$work/libcopy.so" "$work/lib/$soname" "$work/copies.rf"
check "copies: name spaces" "$work/copies" "$work/lib/$soname" "$work/lib/$soname" "$work/copies.rf" namespace
if command -v python3 >/dev/null; then
    check "copies: blind for the mark" python3 tests/api/unmark.py "$work/lib/$soname" "$work/libblind.so"
    check "copies: a blind one second" "$work/copies" "$work/lib/$soname" "$work/libblind.so" "$work/copies.rf" unmarked
    check "copies: a blind one first" "$work/copies" "$work/libblind.so" "$work/lib/$soname" "$work/copies.rf" unmarked
fi
# And programs that mix both up: handles, functions, regions, forks and handlers of one given to the other.
check "crossed: compile" gcc -std=c11 -O1 -g "${warnings[@]}" -Iinclude tests/api/crossed.c -o "$work/crossed" -pthread
check "crossed: the same file under another name" "$work/crossed" "$work/lib/$soname" "$work/libother.so" "$module"
check "crossed: shared beside static" "$work/crossed" "$work/libcopy.so" "$work/lib/$soname" "$module"
check "crossed: name spaces" "$work/crossed" "$work/lib/$soname" "$work/lib/$soname" "$module" namespace
if [[ -e $work/libblind.so ]]; then
    check "crossed: a blind one" "$work/crossed" "$work/lib/$soname" "$work/libblind.so" "$module" unmarked
    check "crossed: a blind one first" "$work/crossed" "$work/libblind.so" "$work/lib/$soname" "$module" unmarked
    check "crossed: a blind one, name spaces" "$work/crossed" "$work/lib/$soname" "$work/libblind.so" "$module" namespace unmarked
fi
check "not unloadable" bash -c "readelf -dW '$work/lib/libringfence.so' | grep -q 'FLAGS_1.*NODELETE'"

# Hosts that jump out of a callback, start processes in one, have small stacks, come and go with threads, throw.
check "hosts: compile" gcc -std=c11 -O1 -g "${warnings[@]}" -Iinclude tests/api/hosts.c -o "$work/hosts" -L"$work/lib" -lringfence -pthread
for deed in longjmp vfork threads pthread_exit init; do
    check "hosts: $deed" "$work/hosts" $deed "$module"
done
echo 'unsigned long getauxval(unsigned long type) { return type & 0; }' >"$work/auxv.c"
check "hosts: an auxiliary vector without FSGSBASE" gcc -shared -fPIC "$work/auxv.c" -o "$work/auxv.so"
check "hosts: no FSGSBASE" env LD_PRELOAD="$work/auxv.so" "$work/hosts" no-fsgsbase "$module"
check "hosts: throw, compile" g++ -O1 -g -Wall -Wextra -Werror -Iinclude tests/api/throw.cc -o "$work/throw" -L"$work/lib" -lringfence
# shellcheck disable=SC2016 # the shell inside expands these
check "hosts: throw" bash -c '"$1" "$2" >"$3" 2>&1; [ $? = 134 ] && grep -q "terminate called.*runtime_error" "$3"' - \
    "$work/throw" "$module" "$work/throw.log"
if command -v gdb >/dev/null; then
    check "gdb: compile" gcc -std=c11 -O1 -g "${warnings[@]}" -Iinclude tests/api/backtrace.c -o "$work/backtrace" -L"$work/lib" -lringfence
    check "gdb: run" bash -c "MODULES='$work' gdb -q -batch -nx -x tests/api/backtrace.gdb --args '$work/backtrace' '$module' >'$work/gdb.log' 2>&1"
    # the frames from a domain's function to main, and from a host function that it calls
    check "gdb: backtraces" bash -c "tr '\n' ' ' <'$work/gdb.log' | grep -E '== in the domain #0 +call_host_add .*__rf_in.* ask .* main .* a = 20 b = 21 .*\
== in the host, called by the domain #0 +host_add .* call_host_add .*basic.c.*__rf_in.* ask .* main .*== back .*backtrace: ok' || { cat '$work/gdb.log'; exit 1; }"
fi

# An installation, as a project outside of this tree meets it.
check "install" scripts/install.sh "$target" "" "$work/inst"
check "ringfence-c++" "$work/inst/bin/ringfence-c++" -O1 -c tests/api/modules/readme.c -o "$work/readme.o"
mkdir -p "$work/outside"
cp tests/api/readme.c "$work/outside/"
cat >"$work/outside/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.13)
project(outside C)
find_package(Ringfence REQUIRED)
foreach(kind ringfence static)
  add_executable(readme_${kind} readme.c)
  target_link_libraries(readme_${kind} Ringfence::${kind})
endforeach()
EOF
outside=(env -u LD_LIBRARY_PATH -C "$work/outside")
export PKG_CONFIG_PATH=$work/inst/lib/pkgconfig
# shellcheck disable=SC2016 # the shell inside expands these
check "pkg-config, outside" "${outside[@]}" bash -euc \
    'gcc readme.c $(pkg-config --cflags --libs ringfence) -Wl,-rpath,"$(pkg-config --variable=libdir ringfence)" -o readme && ./readme "$1"' - "$work/readme.rf"
if command -v cmake >/dev/null; then
    check "cmake, outside" "${outside[@]}" cmake -S . -B b -DCMAKE_PREFIX_PATH="$work/inst"
    check "cmake, outside: build" "${outside[@]}" make -C b
    check "cmake, outside: shared" "${outside[@]}" b/readme_ringfence "$work/readme.rf"
    check "cmake, outside: static" "${outside[@]}" b/readme_static "$work/readme.rf"
    # A project that asks for an old CMake, with the command on PATH only.
    mkdir -p "$work/old"
    printf 'cmake_minimum_required(VERSION 2.8.5)\nproject(old C)\nadd_library(old readme.c)\n' >"$work/old/CMakeLists.txt"
    cp tests/api/modules/readme.c "$work/old/"
    check "toolchain file, old project" env -u RINGFENCE "PATH=$work/inst/bin:$PATH" cmake -S "$work/old" -B "$work/old/b" \
        -DCMAKE_TOOLCHAIN_FILE="$work/inst/share/ringfence/ringfence.cmake"
    check "toolchain file, old project: build" make -C "$work/old/b"
fi

totals
