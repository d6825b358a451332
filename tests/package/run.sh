#!/usr/bin/env bash
# Makes the Debian package, unpacks it into a root of its own, and follows docs/start.md there to the letter.
#   tests/package/run.sh
# Needs neither root nor mounts: what a package manager would do besides (dependencies, ldconfig) is not seen. Ends with "N passed, M failed".
# shellcheck disable=SC2016 # the shells inside expand these
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$PWD/${CARGO_TARGET_DIR:-target}/release
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source tests/checks.sh

check "package" scripts/deb.sh "$target" "$work"
package=$(echo "$work"/ringfence_*_amd64.deb)
check "fields" bash -c '[ "$(dpkg-deb --field "$1" Package Architecture | tr "\n" " ")" = "Package: ringfence Architecture: amd64 " ]' - "$package"
root=$work/root
check "unpack" dpkg-deb -x "$package" "$root"
check "owners" bash -c '! dpkg-deb --contents "$1" | grep -v "root/root"' - "$package"
check "nothing of this tree" bash -c '! grep -rIl "$1" "$2"' - "$PWD/target" "$root/usr/lib/pkgconfig" "$root/usr/lib/cmake" "$root/usr/share"

# As installed: what stands below / is looked for below the root.
unset RINGFENCE RINGFENCE_SYSROOT
export PATH=$root/usr/bin:$PATH LD_LIBRARY_PATH=$root/usr/lib
export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
check "pkg-config" pkg-config --exists ringfence
check "command" bash -c '[ "$(command -v ringfence)" = "$1/usr/bin/ringfence" ] && ringfence --version' - "$root"

# A capture without packets, by a filter that needs no libpcap.
printf '\324\303\262\241\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0' >"$work/none.pcap"
check "rfdump" bash -c '[ "$(command -v rfdump)" = "$1/usr/bin/rfdump" ] && [ "$(rfdump -r "$2" --count)" = 0 ]' - "$root" "$work/none.pcap"

# The page's commands, from its second section on; the last block of each section that shows output begins with "words:".
awk '/^## / { section++ } section > 1 && /^    / { sub(/^    /, ""); if (!/^words: /) print }' docs/start.md >"$work/start.sh"
check "docs/start.md" bash -c 'cd "$1" && bash -euo pipefail start.sh >out 2>err' - "$work"
check "plain and fenced print the same" bash -c '[ "$(grep -c "^3 words, each 33 per cent" "$1/out")" = 2 ] && [ "$(grep -c "^the first is three" "$1/out")" = 2 ]' - "$work"
check "the fault is told, with its line" grep -E '^words: .*words_share.*words.c:14' "$work/err"
tail -n 30 "$work/out" "$work/err"

# A project of CMake's finds it.
if command -v cmake >/dev/null; then
    mkdir "$work/project"
    printf 'cmake_minimum_required(VERSION 3.13)\nproject(p C)\nfind_package(Ringfence REQUIRED)\nadd_executable(p p.c)\ntarget_link_libraries(p Ringfence::ringfence)\n' >"$work/project/CMakeLists.txt"
    printf '#include <ringfence.h>\nint main(void) { return !rf_version(); }\n' >"$work/project/p.c"
    check "find_package" cmake -S "$work/project" -B "$work/project/b" -DCMAKE_PREFIX_PATH="$root/usr"
    check "find_package: build" cmake --build "$work/project/b"
    check "find_package: run" "$work/project/b/p"
else
    skip "find_package" "there is no cmake"
fi

totals
