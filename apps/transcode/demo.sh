#!/usr/bin/env bash
# The image server in half a minute: a picture before and after, a function that is typed in, pictures and functions that go wrong.
#   demo.sh [DIRECTORY WITH ringfence AND ringfence-transcode]
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-${CARGO_TARGET_DIR:-target}/release}
RINGFENCE=$(realpath "$bin")/ringfence
export RINGFENCE
apps/transcode/build.sh >/dev/null
cargo build --release --quiet -p ringfence-transcode
work=$(mktemp -d)
pid=
trap '[[ -z $pid ]] || kill "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
exec 2>&1

say() { printf '\n== %s\n' "$*"; }

mkdir "$work/pictures"
python3 apps/transcode/pictures.py 640 400 "$work/pictures/hills.png"
head -c 20000 "$work/pictures/hills.png" >"$work/pictures/cut.png"
"$bin/ringfence-transcode" --listen 127.0.0.1:0 --pictures "$work/pictures" --client me:my-own-key --time-limit 500ms >"$work/log" &
pid=$!
until address=$(sed -n 's/^listening on //p' "$work/log") && [[ -n $address ]]; do
    kill -0 "$pid"
    sleep 0.05
done

# ask METHOD PATH [BODY]: what came is in $work/answer; its status and times are printed
ask() {
    python3 - "$address" "$work/answer" "$@" <<'PY'
import sys, urllib.error, urllib.request

address, into, method, path = sys.argv[1:5]
body = sys.argv[5].encode() if len(sys.argv) > 5 else None
request = urllib.request.Request(address + path, body, {"Authorization": "Bearer my-own-key"}, method=method)
try:
    answer = urllib.request.urlopen(request)
except urllib.error.HTTPError as failure:
    answer = failure
data = answer.read()
open(into, "wb").write(data)
timing = answer.headers.get("Server-Timing", "").replace(";dur=", " ")
print(f"{method} {path[:70]}: {answer.status}, {len(data)} bytes" + (f" ({timing} ms)" if timing else ""))
if answer.headers.get("Content-Type", "").startswith("text/plain"):
    print("    " + data.decode().rstrip().replace("\n", "\n    "))
PY
}

# show: the answer, a PNM picture, in characters
show() {
    python3 - "$work/answer" <<'PY'
import sys

data = open(sys.argv[1], "rb").read()
kind, width, height, _ = data.split(None, 4)[:4]
width, height = int(width), int(height)
step = 3 if kind == b"P6" else 1
pixels = data[-width * height * step:]
for y in range(0, height, 2):
    line = [sum(pixels[(y * width + x) * step:(y * width + x + 1) * step]) / step for x in range(width)]
    print("    " + "".join(" .:-=+*#%@"[9 - int(value) * 9 // 255] for value in line))
PY
}

say "A picture of 640 x 400, before"
ask GET '/pictures/hills.png?width=72&format=pnm'
show

say "A function is typed in, and the picture goes through it"
ask PUT /functions/edges 'int edges(struct picture *p)
{
	for (int y = 0; y < p->height - 1; y++) {
		unsigned char *at = p->pixels + y * p->stride;
		for (long x = 0; x < (p->width - 1) * p->channels; x++, at++) {
			int over = at[p->channels] - at[0], down = at[p->stride] - at[0];
			int edge = 8 * ((over < 0 ? -over : over) + (down < 0 ? -down : down));
			at[0] = 255 - (edge > 255 ? 255 : edge);
		}
	}
	return 0;
}'
ask GET '/pictures/hills.png?width=72&through=grey,edges&format=pnm'
show

say "The same picture for a page: smaller, grey, with a mark, as JPEG and as WebP"
ask GET '/pictures/hills.png?width=320&through=grey,watermark(120)&format=jpeg'
ask GET '/pictures/hills.png?width=320&through=grey,watermark(120)&format=webp'

say "What goes wrong is told, and the server goes on"
ask GET '/pictures/cut.png?width=72'
ask PUT /functions/wrong 'int wrong(struct picture *p) { return p->depth; }'
ask PUT /functions/wild 'int wild(struct picture *p) { return *(int *)16; }'
ask GET '/pictures/hills.png?through=wild'
ask PUT /functions/endless 'int endless(struct picture *p) { for (;;) p->width++; return 0; }'
ask GET '/pictures/hills.png?through=endless'
ask GET '/pictures/hills.png?width=320&through=grey&format=jpeg'
echo
echo "demo-transcode: done"
