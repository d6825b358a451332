#!/usr/bin/env bash
# The memory and string functions against those of the native libc, from 16 bytes to 1 MiB: fenced over native, medians of rounds in which
# both take turns, first with aligned operands, then with shifted ones.
#   sysroot/tests/string_bench.sh [ROUNDS]
# Ends with the places that are above 1.10 ×; below 1 ns a call the clock is what is measured, and they are left out.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
target=${CARGO_TARGET_DIR:-$root/target}/release
RINGFENCE=${RINGFENCE:-$target/ringfence}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=(-O2 -fno-builtin -Wall -Wextra "$here/string_bench.c")
"$RINGFENCE" cc --sysroot-rf "$root/build/sysroot" -shared "${flags[@]}" -o "$work/fenced.rf"
soname=$(readelf -d "$target/libringfence_c.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
ln -s "$target/libringfence_c.so" "$work/$soname"
gcc -DHOST -I"$root/include" "${flags[@]}" "$work/$soname" -Wl,-rpath,"$work" -o "$work/native"
"$work/native" "$work/fenced.rf" "${1:-25}" >"$work/times.txt"
awk '
	{ key = $1 " " $2 " " $3; native[key] = $4; fenced[key] = $5
	  if (!($1 in function_seen)) { function_seen[$1] = 1; functions[++f] = $1 }
	  if (!($2 in size_seen)) { size_seen[$2] = 1; sizes[++s] = $2 } }
	END {
		for (shift = 0; shift <= 5; shift += 5) {
			printf "%-9s", shift ? "shifted" : "aligned"
			for (j = 1; j <= f; j++) printf " %8s", functions[j]
			print ""
			for (i = 1; i <= s; i++) {
				printf "%-9d", sizes[i]
				for (j = 1; j <= f; j++) {
					key = functions[j] " " sizes[i] " " shift
					ratio = fenced[key] / native[key]
					printf " %8.2f", ratio
					if (ratio > 1.1 && native[key] >= 1)
						above[++n] = sprintf("%s of %d bytes%s: %.2f (%.1f ns over %.1f ns)", functions[j], sizes[i],
							shift ? ", shifted" : "", ratio, fenced[key], native[key])
				}
				print ""
			}
		}
		printf "%d of %d above 1.10\n", n, 2 * f * s
		for (i = 1; i <= n; i++) print "  " above[i]
	}' "$work/times.txt"
