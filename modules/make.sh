#!/usr/bin/env bash
# Fetches, builds and checks real libraries: the same unmodified sources natively and fenced.
#
#   modules/make.sh build [NAME...]   build/modules/NAME.rf, and the programs of the recipe both ways
#   modules/make.sh check [NAME...]   the library's own or an equivalent check; what it prints must agree
#   modules/make.sh bench [NAME...]   the recipe's workload, interleaved: fenced over native, median of ROUNDS (5); a table,
#                                     and build/modules/bench.json
#   modules/make.sh library [NAME...] the archives of the library only, both ways
#   modules/make.sh sources NAME      what bench/ builds in ways of its own: a line for each flag and each source
#   modules/make.sh list
#
# A recipe (modules/NAME/recipe.sh) sets
#   crate=(NAME VERSION SHA256)  where the source comes from; $src is its directory afterwards
#   deb=(NAME VERSION SHA256)    the same, for a Debian package of headers
#   language=c++                 for a library in C++; without it, C
#   needs=(RECIPE...)            libraries of other recipes
#   prepare()                    makes generated headers in $gen, if any
#   cflags=(...) fenced_cflags=(...)  flags for both builds, and for the fenced one alone
#   library=(FILE...)            sources of the library, relative to $src; @FILE is relative to the recipe
#   fenced_library=(FILE...)     the same for the fenced build, where it differs
#   wasm_cflags=(...) wasm_library=(FILE...)  the same for WebAssembly, which only the benchmark builds
#   program_NAME=(FILE...)       sources of a program that is linked with the library
#   programs=(NAME...)
#   check()                      runs programs by `run PROGRAM ARGS...` in an empty directory
#   bench()                      runs the workload; prints lines `WHAT NANOSECONDS`
# shellcheck disable=SC2034,SC2154,SC2030,SC2031 # recipes set the variables; subshells are meant
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
out=$root/build/modules
order=(zlib bzip2 lz4 zstd expat lua sqlite libpng libwebp jpeg libjpeg-turbo nlohmann-json pcre2 opus quickjs libext2fs)
rounds=${ROUNDS:-5}

die() {
	echo "make.sh: $*" >&2
	exit 1
}

if [ -z "${RINGFENCE:-}" ]; then
	RINGFENCE=${CARGO_TARGET_DIR:-$root/target}/release/ringfence
fi
[ -x "$RINGFENCE" ] || die "no ringfence command at $RINGFENCE; build it first (make build) or set RINGFENCE"
export RINGFENCE_SYSROOT=${RINGFENCE_SYSROOT:-$root/build/sysroot}
[ -e "$root/build/sysroot/lib/libc.a" ] || RINGFENCE=$RINGFENCE "$root/sysroot/build.sh"

# --- building ------------------------------------------------------------------------------------------------

# Object file for a source: its path, flattened.
object() {
	local name=${1//[\/@]/_}
	echo "${name#_}.o"
}

locate() {
	case $1 in
	@*) echo "$here/$recipe/${1#@}" ;;
	/*) echo "$1" ;;
	*) echo "$src/$1" ;;
	esac
}

# A source is compiled again when it, the recipe, the common header, the sysroot or the compiler is newer than its object.
stale() { # OBJECT SOURCE
	[ ! -e "$1" ] || [ "$2" -nt "$1" ] || [ "$here/$recipe/recipe.sh" -nt "$1" ] || [ "$here/common/rfcheck.h" -nt "$1" ] ||
		{ [ "$variant" = fenced ] && { [ "$RINGFENCE" -nt "$1" ] || [ "$root/build/sysroot/include/.done" -nt "$1" ]; }; }
}

compile_all() { # FILE...
	local file source object commands=() flags=("${cflags[@]}")
	[ "$variant" = native ] || flags+=("${fenced_cflags[@]}")
	for file; do
		source=$(locate "$file")
		object=$dir/$(object "$file")
		stale "$object" "$source" || continue
		commands+=("$(printf '%q ' "${cc[@]}" -I"$here/common" "${flags[@]}" -c "$source" -o "$object")")
	done
	[ ${#commands[@]} = 0 ] || printf '%s\0' "${commands[@]}" | xargs -0 -P "${JOBS:-$(nproc)}" -I{} bash -c '{}' ||
		die "$recipe: the $variant build failed"
}

objects() {
	local file
	for file; do
		echo "$dir/$(object "$file")"
	done
}

load() { # RECIPE
	recipe=$1
	[ -f "$here/$recipe/recipe.sh" ] || die "no recipe '$recipe'; there are: ${order[*]}"
	crate=() deb=() language=c needs=() cflags=() fenced_cflags=() library=() fenced_library=() wasm_cflags=() wasm_library=() programs=()
	prepare() { :; }
	gen=$out/$recipe/gen
	mkdir -p "$gen"
	# shellcheck source=/dev/null
	source "$here/$recipe/recipe.sh"
}

# `group`, then a line for each flag and source; libraries that are needed come first.
sources() { # RECIPE
	local need file
	(
		load "$1"
		for need in "${needs[@]}"; do
			(sources "$need")
		done
		prepare
		echo "group $recipe"
		[ ${#cflags[@]} = 0 ] || printf 'flag %s\n' "${cflags[@]}"
		[ ${#fenced_cflags[@]} = 0 ] || printf 'fenced-flag %s\n' "${fenced_cflags[@]}"
		[ ${#wasm_cflags[@]} = 0 ] || printf 'wasm-flag %s\n' "${wasm_cflags[@]}"
		for file in "${library[@]}"; do echo "source $(locate "$file")"; done
		for file in "${fenced_library[@]}"; do echo "fenced-source $(locate "$file")"; done
		for file in "${wasm_library[@]}"; do echo "wasm-source $(locate "$file")"; done
	)
}

build() { # RECIPE
	local need
	(
		load "$1"
		for need in "${needs[@]}"; do
			(build "$need")
		done
		prepare
		for variant in native fenced; do
			dir=$out/$recipe/$variant
			mkdir -p "$dir"
			archives=()
			for need in "${needs[@]}"; do
				archives+=("$out/$need/$variant/lib$need.a")
			done
			files=("${library[@]}")
			if [ $variant = native ]; then
				cc=(gcc -O2)
				[ $language = c ] || cc=(g++ -O2)
				exe=
			else
				cc=("$RINGFENCE" cc -O2)
				[ $language = c ] || cc=("$RINGFENCE" c++ -O2)
				exe=.rf
				[ ${#fenced_library[@]} = 0 ] || files=("${fenced_library[@]}")
			fi
			compile_all "${files[@]}"
			mapfile -t list < <(objects "${files[@]}")
			# In one step: somebody may be linking with the one that is there.
			rm -f "$dir/lib$recipe.new.a"
			ar rcs "$dir/lib$recipe.new.a" "${list[@]}"
			mv "$dir/lib$recipe.new.a" "$dir/lib$recipe.a"
			[ -z "${library_only:-}" ] || continue
			[ $variant = native ] || "${cc[@]}" -shared "${list[@]}" "${archives[@]}" -o "$out/$recipe.rf"
			for program in "${programs[@]}"; do
				declare -n sources=program_$program
				compile_all "${sources[@]}"
				mapfile -t list < <(objects "${sources[@]}")
				"${cc[@]}" "${list[@]}" "$dir/lib$recipe.a" "${archives[@]}" -lm -o "$dir/$program$exe"
			done
		done
	)
}

# --- running -------------------------------------------------------------------------------------------------

# In a check: runs a program of the recipe in the present variant, with the present directory opened.
run() { # PROGRAM ARGS...
	local program=$1
	shift
	if [ "$variant" = native ]; then
		"$out/$recipe/native/$program" "$@"
	elif [ -n "${RINGFENCE_RUNNER:-}" ]; then
		"$RINGFENCE_RUNNER" "$out/$recipe/fenced/$program.rf" "$@"
	else
		"$RINGFENCE" run --dir "$PWD" --env HOME --memory-limit 2G "$out/$recipe/fenced/$program.rf" -- "$@"
	fi
}

in_scratch() { # FUNCTION
	local scratch=$out/$recipe/work-$variant
	rm -rf "$scratch"
	mkdir -p "$scratch"
	# Not in a condition: there the shell would let every failure inside pass.
	set +e
	(
		set -e
		cd "$scratch"
		export HOME=$scratch # nobody's settings
		"$1"
	)
	status=$?
	set -e
}

check_one() { # RECIPE
	(
		load "$1"
		prepare
		for variant in native fenced; do
			in_scratch check >"$out/$recipe/$variant.out" 2>"$out/$recipe/$variant.err"
			if [ $status != 0 ]; then
				tail -n 20 "$out/$recipe/$variant.out" "$out/$recipe/$variant.err" >&2
				die "$recipe: the $variant check failed"
			fi
		done
		diff -u "$out/$recipe/native.out" "$out/$recipe/fenced.out" >"$out/$recipe/diff" || {
			head -n 40 "$out/$recipe/diff" >&2
			die "$recipe: fenced and native results differ"
		}
		printf '%-10s %5d lines agree\n' "$recipe" "$(wc -l <"$out/$recipe/native.out")"
	)
}

# Adds a line `RECIPE WHAT NATIVE FENCED` (nanoseconds) for each part to bench.txt.
bench_one() { # RECIPE
	(
		set -e
		build "$1"
		load "$1"
		declare -F bench >/dev/null || { echo "$recipe has no benchmark" >&2 && exit; }
		prepare
		rm -f "$out/$recipe"/times.*
		for ((i = 0; i < rounds; i++)); do
			for variant in native fenced; do
				in_scratch bench >>"$out/$recipe/times.$variant"
				[ $status = 0 ] || die "$recipe: the $variant benchmark failed"
			done
		done
		paste -d' ' "$out/$recipe/times.native" "$out/$recipe/times.fenced" | awk -v recipe="$recipe" '
			{ if (!($1 in n)) order[++whats] = $1; n[$1]++; native[$1, n[$1]] = $2; fenced[$1, n[$1]] = $4 }
			function median(list, what,   i, j, k, t, v) {
				k = n[what]
				for (i = 1; i <= k; i++) v[i] = list[what, i] + 0
				for (i = 2; i <= k; i++) for (j = i; j > 1 && v[j - 1] > v[j]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
				return v[int((k + 1) / 2)]
			}
			END {
				for (w = 1; w <= whats; w++) {
					what = order[w]; a = median(native, what); b = median(fenced, what)
					printf "%-10s %-16s native %10.3f ms   fenced %10.3f ms   ratio %.3f\n", recipe, what, a / 1e6, b / 1e6, b / a > "/dev/stderr"
					printf "%s %s %d %d\n", recipe, what, a, b
				}
			}' >>"$out/bench.txt"
	)
}

# What bench.txt says: a table for docs/performance-parts.md, and bench.json.
bench_report() {
	awk -v rounds="$rounds" -v json="$out/bench.json" '
		{
			if (!($1 in n)) order[++recipes] = $1
			ratio = $4 / $3; n[$1]++; sum[$1] += log(ratio); all += log(ratio); parts++
			text[$1] = text[$1] (n[$1] > 1 ? ", " : "") $2 " " sprintf("%.3f", ratio)
			list = list (list ? ",\n" : "") sprintf("    {\"recipe\": \"%s\", \"part\": \"%s\", \"native_ns\": %d, \"fenced_ns\": %d, \"ratio\": %.4f}", $1, $2, $3, $4, ratio)
		}
		END {
			if (!parts) exit 1
			print "| recipe | parts: fenced over native | geometric mean |\n|---|---|---|"
			for (r = 1; r <= recipes; r++) {
				name = order[r]; mean = sum[name] / n[name]; means += mean
				printf "| %s | %s | %.3f |\n", name, text[name], exp(mean)
			}
			printf "\nGeometric mean: of the recipes %.3f, of their parts %.3f.\n", exp(means / recipes), exp(all / parts)
			printf "{\n  \"rounds\": %d,\n  \"geometric_mean_of_recipes\": %.4f,\n  \"geometric_mean_of_parts\": %.4f,\n  \"parts\": [\n%s\n  ]\n}\n", rounds, exp(means / recipes), exp(all / parts), list > json
		}' "$out/bench.txt"
}

[ $# -gt 0 ] || set -- help
command=$1
shift
[ $# -gt 0 ] || set -- "${order[@]}"
case $command in
build) for name; do build "$name"; done ;;
library)
	library_only=1
	for name; do build "$name"; done
	;;
check) for name; do
	build "$name"
	check_one "$name"
done ;;
bench)
	mkdir -p "$out"
	: >"$out/bench.txt"
	failed=()
	for name; do
		# One that fails does not cost the others their figures. Not in a condition: see in_scratch.
		set +e
		bench_one "$name"
		status=$?
		set -e
		[ $status = 0 ] || failed+=("$name")
	done
	bench_report
	[ ${#failed[@]} = 0 ] || die "no figures for ${failed[*]}"
	;;
sources) for name; do sources "$name"; done ;;
list) printf '%s\n' "${order[@]}" ;;
*) sed -n '2,25s/^# \{0,1\}//p' "$0" ;;
esac
