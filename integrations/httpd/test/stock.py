#!/usr/bin/env python3
"""Tests of fenced stock modules: what a server with them answers is what one without the fence answers.

  stock.py MODULES [NAME...]     MODULES: the directory of stock.sh's files. Only tests whose name contains one of NAME
"""

import base64
import contextlib
import gzip
import hashlib
import http.client
import os
import pathlib
import re
import sys
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from server import MODULES, Server, free_port, most_memory, tree  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PAGES = HERE / "stock"
CONFIG = (PAGES / "httpd.conf").read_text()
LETTERS = str.maketrans("0123456789", "ghijklmnop")  # ports are no part of them
FILES = {
    "index.html": "<h1>index</h1>\n",
    "a.txt": "text\n" * 10,
    "page.html": "<p>page</p>\n",
    "large.txt": "0123456789abcde\n" * 20000,
    "sub/index.html": "<p>sub</p>\n",
    "bare/one.txt": "1\n",
    "bare/two.html": "<title>Two</title>\n",
    "bare/.hidden": "no\n",
    "ht/.htaccess": "Header set X-Ht yes\nSetEnvIf User-Agent Probe ht=1\nAddType text/x-ht .txt\nExpiresDefault A5\n",
    "ht/a.txt": "in ht\n",
    "lang/page.html.de": "<p>deutsch</p>\n",
    "lang/page.html.en": "<p>english</p>\n",
    "arch.tar.gz": "not really\n",
    "bare/three.txt.old": "3\n",
    "bare/HEADER.html": "<p>above</p>\n",
    "bare/README": "below\n",
    "bare/plain/x.txt": "x\n",
    "tracked/a.txt": "tracked\n",
    "loud.shout": "not seen\n",
    "only/a.txt": "only\n",
    "www/a.txt": "www\n",
    "spell/Page.html": "<p>spelled</p>\n",
    "menu.map": "base referer\npoly /page.html 0,0 10,0 10,10\nrect /a.txt 20,20 30,30 \"text\"\ndefault /none\n",
    "meta/a.txt": "meta\n",
    "meta/.web/a.txt.meta": "X-Meta: yes\n",
    "local/a.txt": "local\n",
    "far/a.txt": "far\n",
    "secret/a.txt": "secret\n",
    "valid/a.txt": "valid\n",
    "multi/page.html.de": "<p>deutsch</p>\n",
    "multi/page.html.en": "<p>english</p>\n",
    "multi/page.txt.gz": "not packed\n",
    "multi/index.html.de": "<p>de</p>\n",
    "multi/other.unknown.html": "<p>other</p>\n",
    "multi/maps.var": "URI: page.html.de\nContent-type: text/html\nContent-language: de\n\n"
    "URI: page.html.en\nContent-type: text/html; qs=0.5\nContent-language: en\n",
    "passed/a.txt": "<!--#echo var='STOCK_PASSED' --> <!--#echo var='STOCK_SECRET' --> <!--#echo var='PATH' -->\n",
    "program.cgi": "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nexec head -c 67108864 /dev/zero\n",
    "map.var": "URI: map\n\nURI: multi/page.html.de\nContent-type: text/html\nContent-language: de\n\n"
    "URI: multi/page.html.en\nContent-type: text/html; qs=0.5\nContent-language: en\n",
    "pages.map": "one a.txt\ntwo page.html\n",
    "below/new.txt": "new\n",
    "below/ht/.htaccess": "RewriteEngine On\nRewriteCond %{REQUEST_URI} txt$\nRewriteRule ^gone(.*) ../new$1 [L]\nRequire all granted\n",
    "zip/a.txt": "text to be packed\n" * 4000,
    "zip/page.html": "<p>packed</p>\n" * 100,
    "zip/none.txt": "",
    "zip/large.txt": "".join(hashlib.sha1(b"%d" % i).hexdigest().translate(LETTERS) + "\n" for i in range(20000)),
    "smart/a.txt": "text\n" * 500,
    "smart/page.html": "<p>page</p>\n" * 500,
    "smart/some.tar": "not packed\n" * 500,
    "unzip/a.txt.gz": "",
    "ssi/a.shtml": "<!--#set var='x' value='1 & 2' --><!--#echo var='x' --> <!--#echo encoding='none' var='QUERY_STRING' -->\n"
    "<!--#include virtual='/a.txt' -->|<!--#include file='b.shtml' -->|<!--#fsize file='b.shtml' --> <!--#flastmod virtual='/a.txt' -->\n"
    "<!--#if expr='v(\"x\") == \"1 & 2\" && %{REQUEST_METHOD} == \"GET\"' -->yes<!--#else -->no<!--#endif -->\n"
    "<!--#config sizefmt='bytes' timefmt='%Y' errmsg='[wrong]' --><!--#fsize file='b.shtml' --> <!--#flastmod file='b.shtml' --> <!--#bad -->\n"
    "<!--#include virtual='/none' --><!--#include virtual='/sub/' --><!--#include file='../a.txt' --><!--#echo var='HTTP_USER_AGENT' -->\n",
    "ssi/b.shtml": "inner <!--#echo var='x' --> <!--#echo var='DOCUMENT_NAME' --> <!--#echo var='DOCUMENT_URI' -->",
    "ssi/large.shtml": ("line\n" * 3000 + "<!--#echo var='REQUEST_URI' -->") * 20,
    "ssi/old/a.shtml": "<!--#if expr='\"$QUERY_STRING\" = /b=(.)/' -->c is $1: <!--#echo var='1' --><!--#elif expr='! $none' -->none<!--#endif -->",
    "ssi/loop.shtml": "<!--#include virtual='loop.shtml' -->",
    "ssi/cut.shtml": "text <!--#echo var=",
    "both/a.txt": "both\n",
    "either/a.txt": "either\n",
    "merged/a.txt": "merged\n",
    "bad/a.txt": "bad\n",
    "others": "carol:{SHA}" + base64.b64encode(hashlib.sha1(b"sing").digest()).decode() + "\nmallory:{SHA}"
    + base64.b64encode(hashlib.sha1(b"bad").digest()).decode() + "\n",
    "users": "alice:{SHA}" + base64.b64encode(hashlib.sha1(b"wonder").digest()).decode() + "\nbob:{SHA}none\n",
}
# What is asked for: method, path, headers.
REQUESTS = [
    ("GET", path, headers)
    for path in [
        *["/", "/a.txt", "/page.html", "/large.txt", "/sub", "/sub/", "/sub?x=1", "/none", "/none.html", "/arch.tar.gz", "/ht/a.txt", "/ht/"],
        *["/alias/a.txt", "/alias/none", "/match/page", "/old", "/old/x?y=1", "/gone", "/temp/one%20two", "/seeother", "/env", "/a.txt?b=c"],
        *["/a%2etxt", "//a.txt", "/./sub/../a.txt", "/%61.txt", "/loc/x", "/fallback/any", "/lang/page.html.de", "/lang/page.html.en"],
    ]
    for headers in [
        {},
        {"User-Agent": "Probe/1.0", "X-In": "in", "Cookie": "a=b"},
        {"Accept-Language": "de", "Range": "bytes=1-3"},
        {"Referer": "http://elsewhere/", "If-Modified-Since": "Mon, 01 Jan 2029 00:00:00 GMT"},
    ]
] + [
    (method, path, {})
    for method in ["HEAD", "POST", "OPTIONS", "PUT"]
    for path in ["/", "/a.txt", "/sub", "/old", "/gone", "/none", "/only/a.txt", "/bare/", "/far/a.txt"]
]
REQUESTS += [
    ("GET", path, headers)
    for path in [
        *["/bare/", "/bare/?C=M;O=D", "/bare/?C=N;O=A;F=1;P=*.txt", "/bare/plain/", "/bare", "/tracked/a.txt"],
        *["/loud.shout?x", "/only/a.txt", "/spell/page.html", "/spell/Pge.html", "/spell/other.html"],
        *["/menu.map", "/menu.map?5,3", "/menu.map?25,25", "/menu.map?100,100", "/meta/a.txt", "/local/a.txt", "/far/a.txt"],
    ]
    for headers in [{}, {"Accept-Language": "de;q=0.9, en;q=0.1", "Accept": "text/html, */*;q=0.1"}, {"Accept-Language": "fr", "Accept": "text/html"}]
]
REQUESTS += [
    ("GET", path, headers)
    for path in ("/multi/page", "/multi/page.html", "/multi/", "/multi/other", "/multi/none", "/multi/page.de", "/map.var", "/map.var?x")
    for headers in [
        *[{}, {"Accept-Language": "de"}, {"Accept-Language": "en;q=0.2, de;q=0.1"}, {"Accept-Language": "fr"}, {"Accept": "image/png"}],
        *[{"Accept-Encoding": "gzip"}, {"Accept": "text/plain", "Accept-Encoding": "identity"}, {"Negotiate": "trans", "Accept-Language": "de"}],
    ]
]
REQUESTS += [("GET", "/ht/a.txt", {f"X-Large-{i}": str(i) * size for i in range(count)}) for count, size in ((10, 8000), (90, 700), (2, 1))]
REQUESTS += [("GET", "/a.txt", {"Host": host}) for host in ("www.v.example", "none.v.example", "localhost")]
REQUESTS += [
    ("GET", path, {"Host": host})
    for host in ("localhost", "LOCALHOST:8080", "other.example", "other.example:443", "www.v.example:81")
    for path in ("/script/none", "/script/canonical/none", "/script/port/none", "/script/canonical/none?x")
]
REQUESTS += [("GET", "/multi/maps", {"Accept-Language": language}) for language in ("de", "en", "fr")] + [("GET", "/passed/a.txt", {})]
REQUESTS += [("GET", path, {}) for path in ("/multi/page?a=b", "/multi/maps?a=b", "/multi/page")]
REQUESTS += [
    ("GET", path, {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()} if user else {})
    for path in ("/secret/a.txt", "/valid/a.txt", "/valid/none")
    for user in ("", "alice:wonder", "alice:wrong", "bob:none", "nobody:x", "guest:me@example.org", "guest:nothing")
]
REQUESTS += [
    ("GET", path, headers)
    for path in [
        *["/rw/a.txt", "/rw/none", "/rw/sub", "/rr/a%20b?c=d", "/rf/x", "/rg/x", "/r405/x", "/rc/a.txt", "/rc/page.html?x", "/rm/one", "/rm/two"],
        *["/rm/three", "/rs/A.TXT", "/rt/x", "/rl/a.txt", "/rl/none", "/rd/x", "/ralias/a.txt", "/rw/sub/../a.txt", "/rw/a%0ab"],
        *["/below/old.txt", "/below/old.txt?x=y", "/below/up/a.txt", "/below/up/none", "/below/out", "/below/no", "/below/typed", "/below/ht/gone.txt"],
    ]
    for headers in [{}, {"User-Agent": "Probe/1.0"}, {"Referer": "http://elsewhere/x"}]
]
REQUESTS += [
    (method, path, headers)
    for path in ["/zip/a.txt", "/zip/page.html", "/zip/none.txt", "/zip/large.txt", "/zip/none", "/smart/a.txt", "/smart/page.html", "/smart/some.tar"]
    for method in ("GET", "HEAD", "POST")
    for headers in [{}, {"Accept-Encoding": "gzip"}, {"Accept-Encoding": "gzip", "Range": "bytes=0-99"}, {"Accept-Encoding": "deflate"}]
]
REQUESTS += [("GET", "/unzip/a.txt.gz", headers) for headers in ({}, {"Accept-Encoding": "gzip"})]
REQUESTS += [
    (method, path, headers)
    for path in ["/ssi/a.shtml?a=<b", "/ssi/b.shtml", "/ssi/large.shtml", "/ssi/old/a.shtml?b=c", "/ssi/old/a.shtml", "/ssi/loop.shtml", "/ssi/cut.shtml"]
    for method in ("GET", "HEAD")
    for headers in [{}, {"Accept-Encoding": "gzip", "User-Agent": "Probe/1.0"}, {"If-Modified-Since": "Mon, 01 Jan 2029 00:00:00 GMT"}]
]
REQUESTS += [
    (method, path, {"Authorization": "Basic " + base64.b64encode(user.encode()).decode(), "User-Agent": agent} if user else {"User-Agent": agent})
    for path in ("/both/a.txt", "/either/a.txt", "/merged/a.txt", "/bad/a.txt")
    for method in ("GET", "OPTIONS")
    for user in ("", "alice:wonder", "carol:sing", "carol:wrong", "mallory:bad", "nobody", "a:b:c")
    for agent in ("", "Probe/1.0")
] + [("GET", "/both/a.txt", {"Authorization": value}) for value in ("Digest x", "Basic", "Basic ====", "")]
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def ask(server, method, path, headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path, body=b"x=1" if method in ("POST", "PUT") else None, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()


def plain(answer, server, without):
    """What has to be equal: all but the time of day, the port, and the order of methods, which the server makes up at its start."""
    status, headers, body = answer

    def same(text):
        text = re.sub(r"\d\d:\d\d:\d\d GMT", "TIME", text.replace(str(server.port), "PORT"))
        text = re.sub(r"Track=[^;]*", "Track=SOME", text)
        return re.sub(r"max-age=\d{6,}", "max-age=LONG", text)  # from a modification that is now

    headers = [(name, ",".join(sorted(value.split(","))) if name == "Allow" else same(value)) for name, value in headers if name not in without]
    return status, headers, body.replace(str(server.port).encode(), b"PORT")


def fill(server):
    for name, text in FILES.items():
        path = server.dir / "docs" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    (server.dir / "docs/program.cgi").chmod(0o755)
    (server.dir / "docs/unzip/a.txt.gz").write_bytes(gzip.compress(b"packed\n" * 1000, mtime=0))
    # The server's tags tell of what is younger than a second: of files, and of folders whose variants are negotiated.
    for path in [server.dir / "docs", *(server.dir / "docs").rglob("*")]:
        os.utime(path, (1_700_000_000, 1_700_000_000))


class Pair:
    """Two servers over the same files, one with fenced modules."""

    def __init__(self, mpm, files, extra=(), size=None):
        names = [path.stem[4:] for path in files]
        more = [name for name in names if name not in MODULES]
        native = [name for name in more if name not in extra]
        self.bare = Server(f"bare-{mpm}", mpm, CONFIG, size, more=native)
        fill(self.bare)
        config = CONFIG.replace("{dir}/docs", f"{self.bare.dir}/docs") + f"\nDocumentRoot {self.bare.dir}/docs\n"
        self.fenced = Server(f"fenced-{mpm}", mpm, config, size, more=more, fenced={path.stem[4:]: path for path in files})

    def __enter__(self):
        self.bare.start()
        self.fenced.start()
        return self

    def __exit__(self, *_):
        self.bare.stop()
        self.fenced.stop()

    def compare(self, method, path, headers, without=("Date",)):
        one = plain(ask(self.bare, method, path, headers), self.bare, without)
        try:
            two = plain(ask(self.fenced, method, path, headers), self.fenced, without)
        except http.client.HTTPException as error:
            raise AssertionError(f"{method} {path} {headers}: {error}\n{self.fenced.log()[-2000:]}") from error
        for a, b in zip(one, two, strict=True):
            assert a == b, f"{method} {path} {headers}\nunfenced: {str(a)[:2000]}\nfenced:   {str(b)[:2000]}\n{self.fenced.log()[-2000:]}"


def counters(server):
    text = ask(server, "GET", "/fenced-status?auto", {})[2].decode()
    return {name: int(value) for name, value in re.findall(r"^fenced\.(\S+): (\d+)$", text, re.M)}


@test
def answers_are_the_same(pair):
    for method, path, headers in REQUESTS:
        pair.compare(method, path, headers)
    assert not re.search(r"\[(crit|alert|emerg)\]|fenced \w+:", pair.fenced.log()), pair.fenced.log()


@test
def the_status_is_told(pair):
    """The page of mod_status, but for numbers, times and processes, which differ."""
    pages = []
    for server in (pair.bare, pair.fenced):
        status, headers, body = ask(server, "GET", "/server-status?auto", {})
        assert status == 200, (status, server.log()[-2000:])
        names = [line.split(":")[0] for line in body.decode().splitlines()]
        # These are told once there is something to divide; the page of fenced modules is the other server's alone.
        pages.append([name for name in names if not re.match(r"CPU|\w+Per(Sec|Req)|fenced\.|127\.0\.0\.1|localhost", name)])
        page = ask(server, "GET", "/server-status", {})[2]
        assert b"<h1>Apache Server Status" in page and b"requests currently being processed" in page, page
    assert pages[0] == pages[1], pages


@test
def the_log_level_of_a_fenced_module(pair):
    """A module is found by its symbol, too."""
    text = pair.fenced.config + "\nLogLevel rewrite:trace1 headers_module:info\n"
    server = Server("level", pair.fenced.mpm, text, more=pair.fenced.more, fenced=pair.fenced.fenced)
    assert server.check()[0] == 0, server.check()


@test
def at_once(pair):
    """From many threads, which meet in the modules' domains."""
    wrong = []

    def client():
        try:
            for method, path, headers in REQUESTS[::3]:
                pair.compare(method, path, headers)
        except Exception as error:  # noqa: BLE001
            wrong.append(error)

    threads = [threading.Thread(target=client) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]


@test
def crossings_are_counted(pair):
    before = counters(pair.fenced)
    for _ in range(10):
        ask(pair.fenced, "GET", "/a.txt", {})
    after = counters(pair.fenced)
    for name in ("headers", "setenvif", "expires"):
        calls = after[f"{name}_module.calls"] - before[f"{name}_module.calls"]
        questions = after[f"{name}_module.questions"] - before[f"{name}_module.questions"]
        # Two pass brigades on; what the third needs is in its domain.
        assert calls >= 10 and (questions == 0 if name == "setenvif" else questions >= 10), (name, calls, questions)
        assert after[f"{name}_module.faults"] == 0, name


@test
def calls_of_hooks_that_decline_are_spared(pair):
    """Once a process has seen some requests; not those of hooks that see what others have changed."""
    for _ in range(300):
        pair.compare("GET", "/a.txt", {})
    before = counters(pair.fenced)
    for _ in range(50):
        pair.compare("GET", "/a.txt", {})
    after = counters(pair.fenced)
    spared = {name: after[f"{name}_module.spared"] - before[f"{name}_module.spared"] for name in pair.fenced.fenced}
    assert sum(spared.values()) >= 500 and min(spared[name] for name in ("imagemap", "cern_meta", "speling", "usertrack")) >= 25, spared
    assert ask(pair.fenced, "GET", "/a.txt?refuse", {})[0] == 200
    assert any(ask(pair.fenced, "GET", "/a.txt", {})[0] == 403 for _ in range(1000)), "its change of mind is not seen"
    for _ in range(20):
        pair.compare("GET", "/a.txt", {"User-Agent": "Probe/1.0"})


@test
def a_module_that_fails_costs_its_request(pair):
    crashes = "crash stack status op from length hook memory scribble image entries filter-crash insert-crash"
    forgeries = "filter-bucket filter-part bucket pass input begin line unparsed vector section inner-running inner-joined"
    for query in f"{crashes} {forgeries}".split():
        status, _, body = ask(pair.fenced, "GET", f"/a.txt?{query}", {})
        assert status == 500 and b"text\n" not in body, (query, status, pair.fenced.log()[-2000:])
        pair.compare("GET", "/a.txt", {"User-Agent": "Probe/1.0"})
    assert re.search(r"fenced hostile_module: .*bad write at 0x\w+ in fixups \(\S*mod_hostile.c:\d+\)", pair.fenced.log())


@test
def what_the_server_keeps_of_a_request_is_bounded(pair):
    """Texts that a module changes again and again are in the request's memory until its end: a module that goes on costs its request."""
    for what in "type set add merge filter table language text root url redirect".split():
        before, seen = most_memory(pair.fenced.children()), len(pair.fenced.log())
        status, _, body = ask(pair.fenced, "GET", f"/a.txt?hoard-{what}", {})
        grown = most_memory(pair.fenced.children()) - before
        # What it redirects to is answered until then.
        assert status == 500 and b"text\n" not in body or what == "redirect", (what, status)
        logged(pair.fenced, "more of the request than the server keeps|no room for the request", since=seen)
        # The image of requests has up to 48 MiB.
        assert grown < 128 << 10, (what, f"{grown} KiB more")
        pair.compare("GET", "/a.txt", {"User-Agent": "Probe/1.0"})


@test
def bodies_are_not_hoarded_by_a_filter(pair):
    """What a module reads ahead of a body is there until its call ends, which it may put off."""
    before, seen = most_memory(pair.fenced.children()), len(pair.fenced.log())
    connection = http.client.HTTPConnection("127.0.0.1", pair.fenced.port, timeout=60)
    with contextlib.suppress(OSError, http.client.HTTPException):  # the server need not read it all
        connection.request("POST", "/a.txt?input-all", body=bytes(64 << 20))
        assert connection.getresponse().status >= 400
    connection.close()
    logged(pair.fenced, "more of the request than the server keeps", since=seen)
    grown = most_memory(pair.fenced.children()) - before
    assert grown < 32 << 10, f"{grown} KiB more"
    pair.compare("GET", "/a.txt", {"User-Agent": "Probe/1.0"})


@test
def filters_of_connections_are_the_servers(pair):
    assert ask(pair.fenced, "GET", "/a.txt?filter-of-connection", {})[0] == 200
    pair.compare("GET", "/a.txt", {"User-Agent": "Probe/1.0"})


@test
def answers_without_end_take_no_memory(pair):
    """What a filter has read of a program's output is not kept, however much comes."""
    before = most_memory(pair.fenced.children())
    status, _, body = ask(pair.fenced, "GET", "/program", {"Accept-Encoding": "gzip"})
    assert (status, gzip.decompress(body)) == (200, bytes(64 << 20)), (status, len(body))
    grown = most_memory(pair.fenced.children()) - before
    assert grown < 32 << 10, f"{grown} KiB more"


def logged(server, text, count=1, since=0):
    for _ in range(600):  # the client may be quicker than the log
        if len(re.findall(text, server.log()[since:])) >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"{text}: {server.log()[-2000:]}")


@test
def ends_of_requests_are_told(pair):
    """To a module that waits for them, before anybody else asks for anything."""
    before = pair.fenced.log().count("a request is over: 1")
    for i in range(1, 4):
        assert ask(pair.fenced, "GET", "/a.txt?cleanup", {})[0] == 200
        logged(pair.fenced, "a request is over: 1", before + i)
    assert "a request is over: 2" not in pair.fenced.log()


@test
def a_brigade_is_passed_on_once(pair):
    """The answer has gone when the module is ended."""
    assert ask(pair.fenced, "GET", "/a.txt?filter-twice", {})[2] == FILES["a.txt"].encode()
    logged(pair.fenced, "it passes on what it was not given, or not any more")
    pair.compare("GET", "/a.txt", {"User-Agent": "Probe/1.0"})


@test
def a_module_changes_what_it_may(pair):
    """The file, the user and the status are not what the module says; its other requests, and servers, are its own."""
    for query in "name user number keep kept server notes free".split():
        status, _, body = ask(pair.fenced, "GET", f"/a.txt?{query}", {})
        assert (status, body) == (200, FILES["a.txt"].encode()) or (status == 500 and b"root:" not in body), (query, status, body)
        assert query not in ("name", "user", "number") or status == 200, (query, status)
        for path in ("/a.txt", "/sub/", "/old"):
            pair.compare("GET", path, {"User-Agent": "Probe/1.0"})
    assert ask(pair.fenced, "GET", "/a.txt?header", {})[0] == 500
    assert not [value for name, value in ask(pair.fenced, "GET", "/a.txt?header", {})[1] if name == "Set-Cookie"]


@test
def modules_of_others_find_what_they_look_for(pair):
    """What modules do that are not the server's own: mod_xsendfile, say."""
    pair.compare("GET", "/a.txt?core", {"User-Agent": "Probe/1.0"})
    status, _, body = ask(pair.fenced, "GET", "/a.txt?die", {})
    assert status == 402 and b"402 Payment Required" in body, (status, body)
    assert ask(pair.fenced, "GET", "/a.txt?die-badly", {})[0] == 500


@test
def an_endless_loop_ends(pair):
    assert ask(pair.fenced, "GET", "/a.txt?loop", {})[0] == 500
    pair.compare("GET", "/a.txt", {})


@test
def restarts(pair):
    for _ in range(3):
        pair.fenced.graceful()
        for _ in range(20):
            # A process that is to end closes its connections.
            pair.compare("GET", "/a.txt", {"User-Agent": "Probe/1.0"}, ("Date", "Connection"))


def configuration_errors(files):
    """What is wrong is told when the configuration is read."""
    headers = next(path for path in files if path.stem == "mod_headers")
    for fenced, config, said in [
        ({"headers": "/none/mod_headers.rf"}, "", "make the file with stock.sh"),
        ({"expires": headers}, "", "FencedLoadModule expires_module"),
        # One that was made before its library and the server's module were changed.
        ({"older": pathlib.Path(tree("out")) / "modules/older.rf"}, "", "made for another version of mod_fenced; make the file"),
        ({"headers": headers}, "Header wrong", "Syntax error"),
        ({"headers": headers}, 'Header set X "%{bad"', "Syntax error"),
        ({"headers": headers}, f"FencedLoadModule headers_module {headers}", "it has been loaded already"),
    ]:
        server = Server("wrong", "event", config.replace("{", "{{").replace("}", "}}"), more=list(fenced), fenced=fenced)
        status, text = server.check()
        assert status != 0 and said in text, (config, text)


def failures_of_the_start(files):
    """A hook that crashes has given no answer, and one that refuses has: the log tells the two apart."""
    hostile = next(path for path in files if path.stem == "mod_hostile")
    for what, said, unsaid in [
        ("crash", "bad write", "own answer"),
        ("refuse", "that is the module's own answer", "bad write"),
    ]:
        server = Server("start", "event", f"HostileStart {what}\n", more=["hostile"], fenced={"hostile": hostile})
        server.port = free_port()
        server.write()
        status, text = server.apache("-k", "start")
        log = text + server.log()
        assert status != 0 and said in log and "a hook of the server's start has failed" in log and unsaid not in log, (what, status, log)


def filters_that_cannot_be(files):
    """Those of connections, and under the names of others'."""
    hostile = next(path for path in files if path.stem == "mod_hostile")
    for what in ("HOSTILE_CONNECTION", "HOSTILE_NAME"):
        server = Server("start", "event", "", more=["hostile"], fenced={"hostile": hostile})
        server.port = free_port()
        server.write()
        status, text = server.apache("-D", what, "-k", "start")
        log = text + server.log()
        assert status != 0 and "it registers a filter that cannot be" in log, (what, status, log)


def main():
    modules, words = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    os.environ |= {"STOCK_PASSED": "told", "STOCK_SECRET": "untold"}
    files = sorted(path for path in modules.glob("mod_*.rf"))
    passed = failed = 0

    def run(function, name, *arguments):
        nonlocal passed, failed
        try:
            function(*arguments)
            passed += 1
        except Exception:  # noqa: BLE001
            failed += 1
            print(f"FAILED  {name}\n{traceback.format_exc()}")

    def wanted(name):
        return not words or any(word in name for word in words)

    for one in (configuration_errors, failures_of_the_start, filters_that_cannot_be):
        if wanted(one.__name__):
            run(one, one.__name__, files)
    for mpm in ("event", "prefork"):
        tests = [one for one in TESTS if wanted(one.__name__)]
        if not tests:
            continue
        with Pair(mpm, files, extra=("hostile",)) as pair:
            for one in tests:
                run(one, f"{mpm} {one.__name__}", pair)
    print(f"httpd stock modules ({len(files) - 1}): {passed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
