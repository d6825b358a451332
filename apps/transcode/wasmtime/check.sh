#!/usr/bin/env bash
# The server in Wasmtime with a decoder that fails in all ways (apps/transcode/tests/modules/hostile.c): traps, endless loops and
# answers that are none get their status, instances come back, and no request finds what another one has left. build.sh goes first.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
server=$target/bench-wasmtime/release/ringfence-transcode-wasmtime
[[ -x $server ]] || {
	echo "check: there is no $server (apps/transcode/wasmtime/build.sh builds it)" >&2
	exit 2
}

scratch=$(mktemp -d)
pid=
trap '[[ -z $pid ]] || kill "$pid"; rm -rf "$scratch"' EXIT
# Address 24 is memory like any other there.
sed 's/(volatile int \*)24/(volatile int *)0xffffff00u/' "$here/../tests/modules/hostile.c" >"$scratch/hostile.c"
clang-19 --target=wasm32-wasi -O2 -w -fvisibility=hidden "-I$root/include" -mexec-model=reactor \
	-Wl,-z,stack-size=1048576 -Wl,--stack-first -Wl,--export-dynamic -Wl,--allow-undefined "$scratch/hostile.c" -o "$scratch/hostile.wasm"

mkfifo "$scratch/said"
# Fewer instances than failures.
"$server" --listen 127.0.0.1:0 --requests 3 --time-limit 100ms --module "$scratch/hostile.wasm" >"$scratch/said" &
pid=$!
read -r line <"$scratch/said"
address=${line##*//}

failed=0
expect() { # INPUT STATUS TEXT
	local status
	status=$(printf %s "$1" | curl -s -o "$scratch/body" -w '%{http_code}' --data-binary @- "http://$address/pictures")
	if [[ $status != "$2" ]] || ! grep -qaxF -- "$3" "$scratch/body"; then
		echo "check: $1: $status $(head -c 200 "$scratch/body"), not $2 $3" >&2
		failed=1
	fi
}
expect O 200 abc
for _ in 1 2 3 4 5; do expect F 500 'hostile.wasm: wasm trap: out of bounds memory access'; done
for _ in 1 2 3 4; do expect L 504 'hostile.wasm: it took too long'; done
expect P 200 abc
expect S 422 'found:'
expect A 500 'hostile.wasm: it answered 77'
expect O 200 abc
((failed == 0)) && echo "check: traps, loops and wrong answers got their status, and the server went on"
