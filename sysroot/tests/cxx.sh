#!/usr/bin/env bash
# Builds the programs under tests/cxx with g++ and with `ringfence c++`, at two levels, and compares what they print and
# return. Needs the sysroot; variable RINGFENCE as for build.sh.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
RINGFENCE=${RINGFENCE:-${CARGO_TARGET_DIR:-$root/target}/release/ringfence}
out=$root/build/test/cxx
mkdir -p "$out"

passed=0 failed=0
verdict() { # NAME STATUS
	if [ "$2" = 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED $1"
	fi
}

# A program's output and status, in FILE.
run() { # FILE COMMAND...
	local file=$1 status=0
	shift
	"$@" <"$here/cxx/language.cc" >"$file" 2>&1 || status=$?
	echo "status $status" >>"$file"
}

compare() { # NAME FLAG
	local base=$out/$1$2 flags=("$2" -std=c++17 -Wall -Wextra -Werror)
	g++ "${flags[@]}" "$here/cxx/$1.cc" -o "$base.native" || return 1
	"$RINGFENCE" c++ "${flags[@]}" "$here/cxx/$1.cc" -o "$base.rf" || return 1
	run "$base.expected" "$base.native"
	run "$base.out" "$RINGFENCE" run "$base.rf"
	diff -u "$base.expected" "$base.out"
}

for program in language library exceptions endings streams; do
	levels=(-O0 -O2)
	[ "${RINGFENCE_SOAK:-0}" = 0 ] || levels=(-O0 -O1 -O2 -O3)
	for level in "${levels[@]}"; do
		status=0
		compare "$program" "$level" || status=1
		verdict "$program $level" $status
	done
done

# Nobody catches: the end that was promised, and not another.
ends() {
	"$RINGFENCE" c++ -O2 "$here/cxx/throws.cc" -o "$out/throws.rf" || return 1
	run "$out/throws.out" "$RINGFENCE" run "$out/throws.rf"
	local line
	for line in before "terminate called after throwing an instance of 'std::out_of_range'" \
		"  what():  vector::_M_range_check: __n (which is 7) >= this->size() (which is 3)" \
		"uncaught exception of type std::out_of_range" "status 134"; do
		grep -qF "$line" "$out/throws.out" || {
			cat "$out/throws.out"
			return 1
		}
	done
}
status=0
ends || status=1
verdict throws $status

# Every header by itself, in the newest standard that the compiler knows.
headers() {
	local header bad=0 dir
	dir=$(dirname "$("$RINGFENCE" c++ -E -x c++ -include cstddef /dev/null | sed -n 's/^# 1 "\(.*\)\/cstddef".*/\1/p' | head -1)/x")
	for header in "$dir"/*; do
		[ -f "$header" ] || continue
		echo "#include <$(basename "$header")>"
	done >"$out/headers.cc"
	[ "$(wc -l <"$out/headers.cc")" -gt 80 ] || bad=1
	"$RINGFENCE" c++ -std=c++20 -w -fsyntax-only "$out/headers.cc" || bad=1
	return $bad
}
status=0
headers || status=1
verdict headers $status

echo "$passed passed, $failed failed"
((failed == 0))
