#!/usr/bin/env bash
# The page, in a browser without a window: what it shows of a picture, of a text that does not compile, and of a damaged picture.
#   page.sh SERVER
set -euo pipefail
cd "$(dirname "$0")/../../.."
server=$1
passed=0 failed=0
# shellcheck source=/dev/null
source scripts/browser.sh
needs_browser page

work=$(mktemp -d)
pid=
trap '[[ -z $pid ]] || kill "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/pictures"
# a plain picture, and one that is cut
python3 apps/transcode/pictures.py 800 200 "$work/pictures/whole.png"
head -c 5000 "$work/pictures/whole.png" >"$work/pictures/cut.png"
"$server" --listen 127.0.0.1:0 --pictures "$work/pictures" --client me:page-test-key >"$work/log" 2>&1 &
pid=$!
for _ in $(seq 200); do
    address=$(sed -n 's/^listening on //p' "$work/log")
    [[ -z $address ]] || break
    sleep 0.05
done
[[ -n $address ]] || { cat "$work/log" && exit 1; }

page "a picture becomes smaller and grey" "$address/?picture=whole.png&through=grey&width=400" \
    '^[0-9]+ bytes became [0-9]+, 400 × 100 pixels, in [0-9.]+ ms \(decode [0-9.]+ ms, function [0-9.]+ ms, encode [0-9.]+ ms\)$'
page "another format" "$address/?picture=whole.png&through=crop(0,0,50,60)&width=&format=webp" '50 × 60 pixels'
page "a damaged picture" "$address/?picture=cut.png&through=grey" '422 the picture ends too early|cannot show this picture'
page "a function that is not there" "$address/?picture=whole.png&through=nothing" '^404 there is no function nothing$'
page "a text without a key" "$address/?picture=whole.png&text=int%20f(struct%20picture%20*p)%20%7B%20return%200;%20%7D" '^401 functions are a client'
page "a text that does not compile" \
    "$address/?picture=whole.png&text=int%20f(struct%20picture%20*p)%20%7B%20return%20q;%20%7D#key=page-test-key" '^422 1:35: error: unknown name .q.'
page "a function that was typed in" \
    "$address/?picture=whole.png&width=&through=f&text=int%20f(struct%20picture%20*p)%20%7B%20p-%3Ewidth%20=%207;%20return%200;%20%7D#key=page-test-key" \
    ' 7 × 200 pixels'
echo "page: $passed passed, $failed failed"
((failed == 0))
