# shellcheck shell=bash
# For tests of pages in a browser without a window; sourced. The test sets `work`, a directory of its own, counts in
# `passed` and `failed`, and calls needs_browser first.

# needs_browser TEST: ends the test, visibly, where there is no browser; that is a failure on a build machine
needs_browser() {
    chromium=$(command -v chromium || true)
    [[ -z $chromium ]] || return 0
    echo "$1: skipped, there is no chromium (scripts/setup.sh test installs it)"
    [[ ${CI:-} != true ]]
    exit
}

# page WHAT ADDRESS PATTERN: the page's result has to match, with its scripts run
page() {
    local text place=${work:?}
    # Virtual time: the browser goes on as soon as nothing is left to wait for.
    HOME=$place timeout 120 "$chromium" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$place/profile" \
        --virtual-time-budget=20000 --dump-dom "$2" >"$place/dom" 2>"$place/browser" || true
    text=$(python3 -c 'import re, sys, html; print(html.unescape("".join(re.findall(r"<output id=\"result\"[^>]*>(.*?)</output>", sys.stdin.read(), re.S))))' <"$place/dom")
    if grep -qE "$3" <<<"$text"; then
        passed=$((${passed:?} + 1))
        echo "ok: $1: $text"
    else
        failed=$((${failed:?} + 1))
        echo "FAIL: $1: the page says '$text', not $3"
        tail -n 5 "$place/browser"
    fi
}
