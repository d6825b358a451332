#!/usr/bin/env bash
# Builds the module of the image server: build/transcode/pictures.rf, and the same sources without a fence, pictures.so.
# Environment: RINGFENCE, the command (default: target/release/ringfence)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/build/transcode
recipes=(libjpeg-turbo libpng libwebp)
export RINGFENCE=${RINGFENCE:-${CARGO_TARGET_DIR:-$root/target}/release/ringfence}
export RINGFENCE_SYSROOT=${RINGFENCE_SYSROOT:-$root/build/sysroot}
flags=(-O2 -g1 -Wall -Wextra -fvisibility=hidden -I"$root/include")

mkdir -p "$out"
exec 9>"$out/.lock" # tests may want it at once
flock 9

"$root/modules/make.sh" build "${recipes[@]}"

# The recipes' flags, for the headers; and their sources, each with the flags of its recipe.
headers=() sources=()
while read -r kind rest; do
	case $kind in
	group) group=() ;;
	flag) group+=("$rest") && headers+=("$rest") ;;
	source) sources+=("$rest ${group[*]}") ;;
	esac
done < <(for recipe in "${recipes[@]}"; do "$root/modules/make.sh" sources "$recipe"; done)

newer() { # FILE THAN…: whether FILE is newer than all of them
	local file=$1 than
	[[ -e $file ]] || return 1
	for than in "${@:2}"; do
		[[ $file -nt $than ]] || return 1
	done
}

shape() { # OBJECTS… of the module's own sources into $objects; COMPILER… in $cc
	local source
	objects=()
	for source in "$here"/module/*.c; do
		objects+=("$out/$kind/$(basename "$source" .c).o")
		newer "${objects[-1]}" "$source" "$here"/module/*.h "$here"/functions/* "$0" "${cc[0]}" ||
			"${cc[@]}" "${flags[@]}" "$@" -c "$source" -o "${objects[-1]}"
	done
}

mkdir -p "$out/fenced" "$out/plain" "$out/libraries"

kind=fenced cc=("$RINGFENCE" cc)
shape "${headers[@]}"
archives=("$root"/build/modules/{libjpeg-turbo,libpng,libwebp,zlib}/fenced/lib*.a)
newer "$out/pictures.rf" "${objects[@]}" "${archives[@]}" ||
	"$RINGFENCE" cc -g -shared "${objects[@]}" "${archives[@]}" -lm -o "$out/pictures.rf"

# The same libraries as a shared object wants them.
jobs=() library=()
for line in "${sources[@]}"; do
	source=${line%% *}
	name=${source//\//_}
	object=$out/libraries/${name#_}.o
	library+=("$object")
	newer "$object" "$source" "$0" ||
		jobs+=("gcc -O2 -fPIC -fvisibility=hidden ${line#* } -c $source -o $object")
done
((${#jobs[@]} == 0)) || printf '%s\0' "${jobs[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c '{}'

plain() { # FILE OBJECTS AND LIBRARIES…
	local file=$1
	shift
	gcc -shared -o "$file.new" "$@" -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -lm
	mv "$file.new" "$file"
}
kind=plain cc=(/usr/bin/gcc -fPIC)
shape "${headers[@]}"
newer "$out/pictures.so" "${objects[@]}" "${library[@]}" || plain "$out/pictures.so" "${objects[@]}" "${library[@]}"
