#!/usr/bin/env bash
# Builds what the image server is compared with: build/transcode/pictures.wasm, the libraries and the module as WebAssembly, and the
# server that runs it in Wasmtime. Exits with 3, and says what is missing, where there is no toolchain for it (scripts/setup.sh bench).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
out=$root/build/transcode
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
export RINGFENCE=${RINGFENCE:-$target/release/ringfence}

absent() { # WHAT
	echo "transcode: there is no $1, so no Wasmtime to compare with (scripts/setup.sh bench installs it)" >&2
	exit 3
}
for need in clang-19 wasm-ld-19; do
	[[ -x $(command -v "$need") ]] || absent "$need"
done
[[ -e /usr/lib/wasm32-wasi/libc.a ]] || absent wasi-libc
compgen -G '/usr/lib/llvm-19/lib/clang/19/lib/*/libclang_rt.builtins*wasm32*' >/dev/null || absent libclang-rt-19-dev-wasm32
[[ $(printf '%s\n' 1.95 "$(rustc --version | cut -d' ' -f2)" | sort -V | head -n1) == 1.95 ]] || absent "rustc 1.95, which Wasmtime needs"
cargo fetch --quiet --locked --manifest-path "$here/Cargo.toml" || absent "way to the sources of Wasmtime"

mkdir -p "$out/wasm"
exec 9>"$out/wasm/.lock"
flock 9

# Each source with the flags of its recipe, and all flags for the module's own.
sources=() headers=()
flush() { # what a recipe has said
	[[ ${#wasm[@]} == 0 ]] || usual=("${wasm[@]}")
	for source in "${usual[@]}"; do sources+=("$source ${group[*]}"); done
	group=() usual=() wasm=()
}
group=() usual=() wasm=()
while read -r kind rest; do
	case $kind in
	group) flush ;;
	flag | wasm-flag) group+=("$rest") && headers+=("$rest") ;;
	source) usual+=("$rest") ;;
	wasm-source) wasm+=("$rest") ;;
	esac
done < <(for recipe in libjpeg-turbo libpng libwebp; do "$root/modules/make.sh" sources "$recipe"; done)
flush

cc=(clang-19 --target=wasm32-wasi -O3 -msimd128 -w -fvisibility=hidden "-I$here/include")
newer() { # FILE THAN…: whether FILE is newer than all of them
	local file=$1 than
	[[ -e $file ]] || return 1
	for than in "${@:2}"; do
		[[ $file -nt $than ]] || return 1
	done
}
common=("$here"/include/* "$here"/../module/*.h "$here"/../functions/* "$root"/modules/{libjpeg-turbo,libpng,libwebp}/recipe.sh)
jobs=() objects=()
add() { # SOURCE FLAGS…
	local source=$1 name=${1//\//_}
	local object=$out/wasm/${name#_}.o
	objects+=("$object")
	newer "$object" "$source" "$0" "${common[@]}" || jobs+=("$(printf '%q ' "${cc[@]}" "${@:2}" -c "$source" -o "$object")")
}
for line in "${sources[@]}"; do
	# shellcheck disable=SC2086 # flags are words
	add $line
done
for source in "$here"/../module/*.c; do
	add "$source" "${headers[@]}" "-I$root/include"
done
((${#jobs[@]} == 0)) || printf '%s\0' "${jobs[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c '{}'
clang-19 --target=wasm32-wasi -O2 -mexec-model=reactor -Wl,-z,stack-size=1048576 -Wl,--stack-first -Wl,--export-dynamic -Wl,--allow-undefined \
	"${objects[@]}" -o "$out/pictures.wasm.new"
mv "$out/pictures.wasm.new" "$out/pictures.wasm"
CARGO_TARGET_DIR=$target/bench-wasmtime cargo build --release --quiet --locked --manifest-path "$here/Cargo.toml"
