#!/usr/bin/env bash
# The demonstration's page (demo/page.c), in a browser without a window: what it shows of a form, of markup typed into it, of a second
# visit, and of a crash.
#   page.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
passed=0 failed=0
# shellcheck source=/dev/null
source "$here/../../../scripts/browser.sh"
needs_browser httpd-page

"$here/../tree.sh" make
out=$("$here/../tree.sh" out)
work=$(mktemp -d)
trap '"$here/../server.py" stop page 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$out/modules"
"$out/library/fenced-cc" -g -o "$out/modules/demo.rf" "$here/../demo/page.c"
cp "$here/../demo/page.conf" "$work/page.conf"
port=$("$here/../server.py" start page event "$work/page.conf")
demo=http://127.0.0.1:$port/demo

page "a name" "$demo?name=Ada" '^Hello, Ada\. You are here for the first time\. A crash: 500\. Afterwards: 200\.$'
page "the next visit has the cookie" "$demo?name=Ada" '^Hello, Ada\. Welcome back, Ada\. A crash: 500\. Afterwards: 200\.$'
page "markup is text" "$demo?name=%3Cscript%3Ealert(1)%3C/script%3E" '^Hello, <script>alert\(1\)</script>\. Welcome back, Ada\. '
page "no name" "$demo" '^Hello, nobody\. '
echo "httpd-page: $passed passed, $failed failed"
((failed == 0))
