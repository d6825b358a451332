#!/usr/bin/env bash
# The demonstration's page (demo/page.c), in a browser without a window: what it shows of a form, of markup typed into it, of a second
# visit, and of a crash.
#   page.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
chromium=$(command -v chromium || true)
if [[ -z $chromium ]]; then
    echo "httpd-page: skipped, there is no chromium (scripts/setup.sh test installs it)"
    [[ ${CI:-} != true ]]
    exit
fi

"$here/../tree.sh" make
out=$("$here/../tree.sh" out)
work=$(mktemp -d)
trap '"$here/../server.py" stop page 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$out/modules"
"$out/library/fenced-cc" -g -o "$out/modules/demo.rf" "$here/../demo/page.c"
cp "$here/../demo/page.conf" "$work/page.conf"
port=$("$here/../server.py" start page event "$work/page.conf")

passed=0 failed=0
# page WHAT ADDRESS PATTERN: the page's result has to match, with its scripts run
page() {
    local text
    HOME=$work timeout 120 "$chromium" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$work/profile" \
        --virtual-time-budget=20000 --dump-dom "http://127.0.0.1:$port/demo$2" >"$work/dom" 2>"$work/browser" || true
    text=$(python3 -c 'import re, sys, html; print(html.unescape("".join(re.findall(r"<output id=\"result\"[^>]*>(.*?)</output>", sys.stdin.read(), re.S))))' <"$work/dom")
    if grep -qE "$3" <<<"$text"; then
        passed=$((passed + 1))
        echo "ok: $1: $text"
    else
        failed=$((failed + 1))
        echo "FAIL: $1: the page says '$text', not $3"
        tail -n 5 "$work/browser"
    fi
}

page "a name" "?name=Ada" '^Hello, Ada\. You are here for the first time\. A crash: 500\. Afterwards: 200\.$'
page "the next visit has the cookie" "?name=Ada" '^Hello, Ada\. Welcome back, Ada\. A crash: 500\. Afterwards: 200\.$'
page "markup is text" '?name=%3Cscript%3Ealert(1)%3C/script%3E' '^Hello, <script>alert\(1\)</script>\. Welcome back, Ada\. '
page "no name" "" '^Hello, nobody\. '
echo "httpd-page: $passed passed, $failed failed"
((failed == 0))
