#!/usr/bin/env bash
# Shows mod_fenced with a private server: a page from C source, a crash and an endless loop in it, an old CGI program, the status page.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
say() { printf '\n== %s\n' "$*"; }

say "Apache with mod_fenced, on a port of its own"
"$here/tree.sh" make
out=$("$here/tree.sh" out)
mkdir -p "$out/demo.src"
cd "$out/demo.src"

say "A page in C"
cat >hello.c <<'SOURCE'
#include <fenced.h>
#include <string.h>

static int served;

int fenced_handle(const fenced_request *r) {
    fenced_set_header("Content-Type", "text/plain");
    if (strcmp(r->query, "crash") == 0)
        *(volatile int *)8 = 1;
    if (strcmp(r->query, "spin") == 0)
        for (;;) __asm__ volatile("");
    fenced_printf("Hello, %s! I have served %d request(s).\n", r->remote, ++served);
    return 0;
}
SOURCE
sed 's/^/    /' hello.c
"$out/library/fenced-cc" -g -o hello.rf hello.c

say "A CGI program that knows of nothing"
cat >old.c <<'SOURCE'
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    printf("Content-Type: text/plain\r\n\r\n");
    printf("%s from %s\n", getenv("REQUEST_METHOD"), getenv("REMOTE_ADDR"));
    return 0;
}
SOURCE
sed 's/^/    /' old.c
"$out/library/fenced-cc" --program -g -o old.rf old.c

say "The configuration"
cat >demo.conf <<'CONFIG'
FencedModule hello {out}/demo.src/hello.rf
FencedModule old {out}/demo.src/old.rf
FencedTimeLimit 200ms
<Location /hello>
  SetHandler fenced:hello
</Location>
<Location /old>
  SetHandler fenced:old
</Location>
<Location /fenced-status>
  SetHandler fenced-status
</Location>
CONFIG
sed 's/^/    /' demo.conf
port=$("$here/server.py" start demo event demo.conf)
trap '"$here/server.py" stop demo' EXIT
get() {
    printf '$ curl http://127.0.0.1:%s%s\n' "$port" "$1"
    curl -sS -o answer.txt -w '%{http_code}: ' "http://127.0.0.1:$port$1"
    grep -v '^<!\|^</\?html\|^</\?body' answer.txt | head -n "${2:-2}"
}

say "Each request finds the module as it was at the start"
get /hello
get /hello
get /old

say "A crash costs one request, and so does an endless loop"
get '/hello?crash'
get '/hello?spin'
get /hello
grep -h 'fenced:' "$out/demo/error.log"

say "What the modules have done"
get '/fenced-status?auto' 20
