#!/usr/bin/env bash
# What a user does with an installed Ringfence: finds it by pkg-config and CMake, and follows docs/start.md to the letter.
#   use.sh PREFIX PAGE
# It has been installed below PREFIX (/usr, or one in a directory that the environment leads to). Ends with "N passed, M failed".
# shellcheck disable=SC2016 # the shells inside expand these
set -euo pipefail

prefix=$1 page=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/checks.sh
source "$(dirname "$0")/checks.sh"

check "command" bash -c '[ "$(command -v ringfence)" = "$1/bin/ringfence" ] && ringfence --version' - "$prefix"
check "doctor" ringfence doctor
# A capture without packets, by a filter that needs no libpcap.
printf '\324\303\262\241\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0' >"$work/none.pcap"
check "rfdump" bash -c '[ "$(command -v rfdump)" = "$1/bin/rfdump" ] && [ "$(rfdump -r "$2" --count)" = 0 ]' - "$prefix" "$work/none.pcap"
check "pkg-config" pkg-config --exists ringfence

# The page's commands, from its second section on; the last block of each section that shows output begins with "words:".
awk '/^## / { section++ } section > 1 && /^    / { sub(/^    /, ""); if (!/^words: /) print }' "$page" >"$work/start.sh"
check "docs/start.md" bash -c 'cd "$1" && bash -euo pipefail start.sh >out 2>err' - "$work"
check "plain and fenced print the same" bash -c '[ "$(grep -c "^3 words, each 33 per cent" "$1/out")" = 2 ] && [ "$(grep -c "^the first is three" "$1/out")" = 2 ]' - "$work"
check "the fault is told, with its line" grep -E '^words: .*words_share.*words.c:14' "$work/err"
tail -n 30 "$work/out" "$work/err"

# A project of CMake's finds it.
if command -v cmake >/dev/null; then
    mkdir "$work/project"
    printf 'cmake_minimum_required(VERSION 3.13)\nproject(p C)\nfind_package(Ringfence REQUIRED)\nadd_executable(p p.c)\ntarget_link_libraries(p Ringfence::ringfence)\n' >"$work/project/CMakeLists.txt"
    printf '#include <ringfence.h>\nint main(void) { return !rf_version(); }\n' >"$work/project/p.c"
    check "find_package" cmake -S "$work/project" -B "$work/project/b"
    check "find_package: build" cmake --build "$work/project/b"
    check "find_package: run" "$work/project/b/p"
else
    skip "find_package" "there is no cmake"
fi

totals
