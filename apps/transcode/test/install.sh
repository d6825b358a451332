#!/usr/bin/env bash
# An installation serves pictures from wherever it was moved to, without the repository.
#   install.sh RELEASE_DIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
release=$(cd "$1" && pwd)
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server"; rm -rf "$work"' EXIT
fail() {
	echo "install: $*" >&2
	exit 1
}

"$here/../install.sh" "$release" "$work/stage" /opt/pictures >"$work/log"
[[ $(find "$work/stage" -maxdepth 1 -mindepth 1) == "$work/stage/opt" ]] || fail "something is outside of PREFIX"
mv "$work/stage/opt/pictures" "$work/moved"
cd "$work"
printf 'P6 2 2 255\nabcdefghijkl' >in.ppm
begin() { # OPTION…
	env -i "$work/moved/bin/ringfence-transcode" --listen 127.0.0.1:0 "$@" >"$work/out" 2>"$work/err" &
	server=$!
	until grep -q listening out; do
		kill -0 "$server" 2>/dev/null || fail "the server did not start: $(cat err)"
		sleep 0.1
	done
	address=$(sed -n 's|.*//||p' out)
}
for backend in window process; do
	begin --backend "$backend"
	python3 - "$address" <<-'PY'
		import http.client, sys
		c = http.client.HTTPConnection(sys.argv[1], timeout=60)
		c.request("POST", "/pictures?through=crop(0,0,1,1)&format=pnm", open("in.ppm", "rb").read())
		answer = c.getresponse()
		body = answer.read()
		assert answer.status == 200 and body == b"P6\n1 1\n255\nabc", (answer.status, body)
		c.request("GET", "/")
		assert b"<html" in c.getresponse().read().lower()
	PY
	kill "$server"
	wait "$server" || true
	server=
done
# Without the module it says how there comes to be one.
rm moved/lib/ringfence/pictures.rf
! env -i moved/bin/ringfence-transcode --listen 127.0.0.1:0 2>err || fail "it started without a module"
grep -q 'build.sh builds the module, --module names it' err || fail "no advice: $(cat err)"
echo "install: 2 back ends serve"
