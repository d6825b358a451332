#!/usr/bin/env bash
# The memory and string functions against those of the native libc, from 16 bytes to 1 MiB: fenced over native, medians of
# interleaved rounds, first with aligned operands, then with shifted ones. (Not the best: some virtual machines' clocks now and then
# tell half of what a round took.)
#   sysroot/tests/string_bench.sh [ROUNDS]
# Ends with the places that are above 1.10 ×; below 1 ns a call the clock is what is measured, and they are left out.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
rounds=${1:-5}
RINGFENCE=${RINGFENCE:-${CARGO_TARGET_DIR:-$root/target}/release/ringfence}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

gcc -O2 -fno-builtin -Wall -Wextra "$here/string_bench.c" -o "$work/native"
"$RINGFENCE" cc --sysroot-rf "$root/build/sysroot" -O2 -fno-builtin -Wall -Wextra "$here/string_bench.c" -o "$work/fenced.rf"
for ((i = 0; i < rounds; i++)); do
	"$work/native" >>"$work/native.txt"
	"$RINGFENCE" run "$work/fenced.rf" >>"$work/fenced.txt"
done
awk '
	{ key = $1 " " $2 " " $3; fenced = FILENAME ~ /fenced/
	  at = ++count[fenced, key]
	  for (; at > 1 && time[fenced, key, at - 1] > $4; at--) time[fenced, key, at] = time[fenced, key, at - 1]
	  time[fenced, key, at] = $4 + 0
	  if (!($1 in function_seen)) { function_seen[$1] = 1; functions[++f] = $1 }
	  if (!($2 in size_seen)) { size_seen[$2] = 1; sizes[++s] = $2 } }
	function median(fenced, key) { return time[fenced, key, int((count[fenced, key] + 1) / 2)] }
	END {
		for (shift = 0; shift <= 5; shift += 5) {
			printf "%-9s", shift ? "shifted" : "aligned"
			for (j = 1; j <= f; j++) printf " %8s", functions[j]
			print ""
			for (i = 1; i <= s; i++) {
				printf "%-9d", sizes[i]
				for (j = 1; j <= f; j++) {
					key = functions[j] " " sizes[i] " " shift
					ratio = median(1, key) / median(0, key)
					printf " %8.2f", ratio
					if (ratio > 1.1 && median(0, key) >= 1)
						above[++n] = sprintf("%s of %d bytes%s: %.2f (%.1f ns over %.1f ns)", functions[j], sizes[i],
							shift ? ", shifted" : "", ratio, median(1, key), median(0, key))
				}
				print ""
			}
		}
		printf "%d of %d above 1.10\n", n, 2 * f * s
		for (i = 1; i <= n; i++) print "  " above[i]
	}' "$work/native.txt" "$work/fenced.txt"
