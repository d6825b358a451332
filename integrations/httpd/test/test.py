#!/usr/bin/env python3
"""Tests of mod_fenced: requests to private servers (run.sh builds what they need).

  test.py [NAME...]     only tests whose name contains one of these
"""

import concurrent.futures
import contextlib
import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from server import Server, most_memory  # noqa: E402

CONFIG = """
<Directory "{dir}/docs">
  Require all granted
</Directory>
FencedModule page {out}/modules/page.rf
FencedModule quiet {out}/modules/page.rf
FencedModule program {out}/modules/program.rf
FencedModule loop {out}/modules/loop.rf
FencedModule stream {out}/modules/stream.rf
FencedTimeLimit 20
<Location /page>
  SetHandler fenced:page
  FencedEnv COLOUR red
  FencedEnv SHAPE round
</Location>
<Location /page/inner>
  FencedEnv COLOUR blue
  FencedDir docs /data
</Location>
<Location /writes>
  SetHandler fenced:page
  FencedDir writable /data write
</Location>
<Location /keep>
  SetHandler fenced:page
  FencedReset on-fault
</Location>
<Location /quiet>
  SetHandler fenced:quiet
  FencedLogLimit 4 24h
</Location>
<Location /never>
  SetHandler fenced:page
  FencedReset never
</Location>
<Location /short>
  SetHandler fenced:page
  FencedTimeLimit 1
  FencedMemoryLimit 16M
</Location>
<Location /unlimited>
  SetHandler fenced:page
  FencedTimeLimit 0
</Location>
<Location /program>
  SetHandler fenced:program
</Location>
<Location /loop>
  SetHandler fenced:loop
</Location>
<Location /stream>
  SetHandler fenced:stream
</Location>
<Location /unknown>
  SetHandler fenced:nobody
</Location>
<Location /fenced-status>
  SetHandler fenced-status
</Location>
<Location /server-status>
  SetHandler server-status
</Location>
<IfModule !mpm_prefork_module>
  LoadModule http2_module {modules}/mod_http2.so
  Protocols h2c http/1.1
</IfModule>
"""

TESTS = []


def test(function):
    """A test of a running server."""
    TESTS.append(function)
    return function


class Answer:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.body = response.read()
        self.text = self.body.decode(errors="replace")


class Client:
    """A connection to a server, kept alive."""

    def __init__(self, server):
        self.http = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)

    def get(self, path, **headers):
        return self.ask("GET", path, None, headers)

    def ask(self, method, path, body=None, headers=None, chunked=False):
        headers = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        self.http.request(method, path, body=body, headers=headers, encode_chunked=chunked)
        return Answer(self.http.getresponse())

    def close(self):
        self.http.close()


def get(server, path, **headers):
    client = Client(server)
    try:
        return client.get(path, **headers)
    finally:
        client.close()


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def equal(a, b):
    expect(a == b, repr(a)[:500], "is not", repr(b)[:500])


def raw(server, data, pieces=()):
    """All that comes back on a connection of its own; `pieces` follow with pauses."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as s:
        s.sendall(data)
        for pause, piece in pieces:
            time.sleep(pause)
            s.sendall(piece)
        got = b""
        with contextlib.suppress(ConnectionError):
            while part := s.recv(65536):
                got += part
        return got


def close(path, more=b"", method=b"GET"):
    return method + b" " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + more + b"\r\n"


def wait(what, condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"waited for {what}")


@test
def a_handler_sees_the_request(server):
    a = get(server, "/page/show?a=b%20c", X_One="1", Cookie="k=v")
    equal(a.status, 200)
    lines = a.text.splitlines()
    for line in ("method=GET", "uri=/page/show", "query=a=b%20c", "protocol=HTTP/1.1", "remote=127.0.0.1", "user=", "length=0",
                 "X-One: 1", "Cookie: k=v", "env COLOUR=red", "env SHAPE=round"):
        expect(line in lines, line, "is not in", a.text)
    equal(a.headers["Content-Type"], "text/plain")
    equal(int(a.headers["Content-Length"]), len(a.body))


@test
def settings_of_directories_are_merged(server):
    a = get(server, "/page/inner/show").text.splitlines()
    expect("env COLOUR=blue" in a and "env SHAPE=round" in a and "env COLOUR=red" not in a, a)
    equal(get(server, "/page/inner/file").text, "from a file\n not written\n")
    equal(get(server, "/page/file").text, "none not written\n")
    equal(get(server, "/writes/file").text, "none written\n")


@test
def methods_and_statuses(server):
    client = Client(server)
    for status in (200, 201, 404, 503):
        a = client.get(f"/page/status?{status}")
        equal((a.status, a.text), (status, "body\n"))
    for status in (302, 403, 500, 503):
        equal(client.get(f"/page/error?{status}").status, status)
    for wrong in (1, -1, 100, 600, 1000):
        equal(client.get(f"/page/error?{wrong}").status, 500)
    equal(client.get("/page/nothing").status, 404)
    a = client.ask("HEAD", "/page/count")
    equal((a.status, a.body), (200, b""))
    equal(client.ask("DELETE", "/page/show").text.splitlines()[0], "method=DELETE")
    equal(client.get("/unknown").status, 500)
    expect("there is no FencedModule of that name" in server.log())


def both_ways(server, path, body):
    """What comes back while the body is still being sent: a page that answers as it reads waits for whoever only sends."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as s, concurrent.futures.ThreadPoolExecutor(1) as pool:
        s.sendall(close(path.encode(), f"Content-Length: {len(body)}\r\n".encode(), b"POST"))
        sent = pool.submit(s.sendall, body)
        response = http.client.HTTPResponse(s)
        response.begin()
        equal(response.status, 200)
        got = response.read()
        sent.result()
        return got


@test
def bodies_of_all_sizes(server):
    client = Client(server)
    for path in ("/page/echo", "/program"):
        for size in (0, 1, 100, 4999, 5000, 5001, 65536):
            body = os.urandom(size)
            a = client.ask("POST", path, body, {"Content-Length": str(size)})
            expect(a.status == 200 and a.body == body, path, size, a.status, len(a.body))
        for size in (1 << 20, 20 << 20):
            body = os.urandom(size)
            a = both_ways(server, path, body)
            expect(a == body, path, size, len(a))


@test
def chunked_bodies(server):
    client = Client(server)
    pieces = [os.urandom(n) for n in (1, 10, 8000, 100, 70000)]
    a = client.ask("POST", "/page/echo", iter(pieces), {"Transfer-Encoding": "chunked"}, chunked=True)
    equal((a.status, a.body == b"".join(pieces)), (200, True))
    got = raw(server, close(b"/page/echo", b"Transfer-Encoding: chunked\r\n", b"POST") + b"zz\r\n")
    expect(b"200 OK" not in got and b" 400 " in got, got)


@test
def bodies_in_tiny_pieces_take_no_memory(server):
    """A module that asks for each byte for itself gets it from what the request has anyway."""
    body = os.urandom(2 << 20)
    before = most_memory(server.children())
    a = Client(server).ask("POST", "/unlimited/sip", body, {"Content-Length": str(len(body))})
    equal((a.status, a.text), (200, f"{len(body)} {sum(body)}\n"))
    a = Client(server).ask("POST", "/unlimited/sip", iter([b"ab"] * 10000), {"Transfer-Encoding": "chunked"}, chunked=True)
    equal((a.status, a.text), (200, f"20000 {10000 * (97 + 98)}\n"))
    # Processes may have begun meanwhile.
    grown = most_memory(server.children()) - before
    expect(grown < 32 << 10, "KiB more:", grown)


@test
def large_answers(server):
    client = Client(server)
    for query in ("0", "1", "7999", "8000", "8001", "65536,65536", "65537,100000", "1000000,1", "5000000,100000", "20000000,8000"):
        a = client.get(f"/page/fill?{query}")
        n = int(query.split(",")[0])
        expect(a.status == 200 and len(a.body) == n and a.body == b"x" * n, query, a.status, len(a.body))
    a = client.get("/program?fill")
    equal(a.text, "".join(f"line {i}\n" for i in range(100000)))
    a = client.get("/page/fill?100000", Range="bytes=10-19")
    equal((a.status, a.body), (206, b"x" * 10) if a.status == 206 else (200, b"x" * 100000))


@test
def waits_for_slow_clients_do_not_count(server):
    """The limit is a second, the client takes more."""
    body = [b"%d" % i * 100 for i in range(10)]
    whole = b"".join(body)
    got = raw(server, close(b"/short/echo", b"Content-Length: %d\r\n" % len(whole), b"POST"), [(0.15, b) for b in body])
    expect(got.startswith(b"HTTP/1.1 200") and got.endswith(whole), got)
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as s:
        s.sendall(close(b"/short/fill?20000000,100000"))
        time.sleep(1.5)
        response = http.client.HTTPResponse(s)
        response.begin()
        equal(len(response.read()), 20000000)


@test
def buffers_are_sent_as_they_are(server):
    a = get(server, "/page/buffers?100000,a,1")
    equal((a.status, a.headers["Content-Length"], a.body), (200, "100000", b"a" * 100000))
    equal(get(server, "/page/buffers?1048576,b,3").body, b"b" * 3 * 1048576)
    equal(get(server, "/page/buffers?1,c,1").body, b"c")
    equal(get(server, "/page/around-buffer").text, "before within after\n")
    equal(get(server, "/page/wrong-buffers").body, b"\0" * 50 + b" refused 10\n")
    equal(get(server, "/page/buffers?2000000,a,1").status, 503)
    for what in ("crash-buffer", "beyond-buffer", "declare-buffer"):
        equal((what, get(server, f"/page/{what}").status), (what, 500))
    expect("wrote more than its Content-Length" in server.log(), server.log()[-1000:])
    client = Client(server)
    equal([client.ask("HEAD", "/page/buffers?100000,a,1").body, client.get("/page/buffers?10,b,1").body], [b"", b"b" * 10])
    client.close()


@test
def buffers_keep_nothing(server):
    """Neither a request that went well leaves something for the next one, nor one that failed, behind what it took neither."""
    client = Client(server)
    for i in range(100):
        equal(client.get(f"/page/keep-buffer?secret{i}").text, "was '' ''\n")
        if i % 10 == 0:
            equal(client.get("/page/crash-buffer").status, 500)
            client.close()
    client.close()


@test
def buffers_of_slow_clients_are_their_own(server):
    """A client that does not read keeps what it is to get, whatever the domain's next requests put into the buffer."""
    with contextlib.ExitStack() as stack:
        slow = []
        for letter in b"klmnopqr":
            s = stack.enter_context(socket.socket())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", server.port))
            s.sendall(close(b"/page/buffers?1048576,%c,1" % letter))
            slow.append((letter, s))
        for _ in range(40):
            equal(get(server, "/page/buffers?200000,z,1").body, b"z" * 200000)
        for letter, s in slow:
            response = http.client.HTTPResponse(s)
            response.begin()
            equal(response.read(), bytes([letter]) * 1048576)


@test
def buffers_stay_as_they_were_handed_over(server):
    """Whatever the module does to its memory afterwards, a slow client gets what the server was given; and it cannot take it away."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", server.port))
        s.sendall(close(b"/unlimited/change-buffer"))
        # Either way it is right; most times the module has written over it by then.
        time.sleep(0.2)
        response = http.client.HTTPResponse(s)
        response.begin()
        equal(response.read(), b"a" * 1048576)
    equal(get(server, "/page/unmap-buffer").body, b"a" * 1048576 + b" refused 4")
    equal(get(server, "/page/keep-buffer").text, "was '' ''\n")


@test
def headers_cannot_be_forged(server):
    a = get(server, "/page/inject")
    equal((a.status, a.text), (200, "refused 10\n"))
    expect("X-Injected" not in a.headers, a.headers)
    equal(get(server, "/page/cookies").headers.get_all("Set-Cookie"), ["a=1", "b=2"])
    got = raw(server, close(b"/program?inject"))
    expect(b"\nX-Injected" not in got, got)


@test
def headers_are_not_hoarded(server):
    """All that a request sets, what it replaces too, is no more than 64 KiB of the server's memory."""
    for what in ("add", "set", "type", "cookie", "trailer"):
        a = get(server, f"/page/hoard?{what}")
        equal((what, a.status, a.text), (what, 200, "taken     8\n"))
    equal(get(server, "/page/hoard?length").text, "taken   100\n")


@test
def cookies_are_read_and_set(server):
    a = get(server, "/page/cookie", Cookie='ab=1; b="two words"; long=0123456789; b=3')
    equal(a.text, "9 'two words' -1 -1 refused 4\n")
    equal(a.headers.get_all("Set-Cookie"), ["n=v; Path=/; HttpOnly", "m=w"])
    expect("X-Injected" not in a.headers, a.headers)
    equal(get(server, "/page/cookie", Cookie="b;bb=1;=b").text, "-1 '?' -1 -1 refused 4\n")


@test
def trailers_follow_the_body(server):
    got = raw(server, close(b"/page/trailer"))
    head, _, body = got.partition(b"\r\n\r\n")
    expect(b"\r\nTrailer: X-Sum" in head and body == b"a\r\nrefused 4\n\r\n0\r\nX-Sum: 77\r\n\r\n", got)
    expect(b"X-Injected" not in got, got)
    # A client of HTTP/1.0 has none, and an answer that is cut has no end.
    got = raw(server, b"GET /page/trailer HTTP/1.0\r\n\r\n")
    expect(got.endswith(b"\r\n\r\nrefused 4\n"), got)
    got = raw(server, close(b"/page/trailer?crash"))
    expect(b"refused 4" in got and b"\r\n0\r\n" not in got and b"X-Sum: 77" not in got, got)
    client = Client(server)
    for _ in range(3):
        equal(client.get("/page/trailer").text, "refused 4\n")


@test
def files_are_sent_by_the_server(server):
    large = os.urandom(3 << 20)
    (server.dir / "docs/large.bin").write_bytes(large)
    (server.dir / "secret").write_text("secret")
    for name, to in (("away", "../secret"), ("beside", "file.txt")):
        with contextlib.suppress(FileExistsError):
            (server.dir / "docs" / name).symlink_to(to)
    client = Client(server)
    a = client.get("/page/inner/send?large.bin")
    equal((a.status, a.headers["Content-Length"], a.body == large), (200, str(len(large)), True))
    equal(client.get("/page/inner/send?large.bin,1000,50").body, large[1000:1050])
    equal(client.get("/page/inner/send?file.txt,5").text, "a file\n")
    equal(client.get("/page/inner/send?large.bin", Range="bytes=10-19").body, large[10:20])
    equal(client.get("/page/inner/around").text, "before from after\n")
    for wrong in ("none", "../secret", "/etc/passwd", "away", "beside", ".", "", "file.txt,100", "x/../../secret"):
        equal((wrong, client.get(f"/page/inner/send?{wrong}").status), (wrong, 404))
    # without FencedDir
    equal(client.get("/page/send?file.txt").status, 404)


@test
def the_log_is_not_flooded(server):
    before = server.log()
    for _ in range(5):
        equal(get(server, "/quiet/log").status, 200)
        equal(get(server, "/quiet/crash").status, 500)
    equal(server.log()[len(before):].count("fenced:quiet"), 4)
    auto = get(server, "/fenced-status?auto").text
    equal(int(re.search(r"fenced\.quiet\.log_left_out: (\d+)", auto)[1]), 16)


@test
def announced_lengths_hold(server):
    a = get(server, "/page/declare?5")
    equal((a.status, a.text, a.headers["Content-Length"]), (200, "12345", "5"))
    equal(get(server, "/page/declare?4").status, 500)
    equal(get(server, "/page/declare?9").status, 500)
    a = get(server, "/page/declare-late")
    equal((a.status, a.text, a.headers["Content-Length"]), (200, "12345", "5"))


@test
def faults_are_a_status_and_a_line_of_the_log(server):
    client = Client(server)
    for what, cause in (("crash", "page.c"), ("divide", "divide"), ("wild", "fenced_write: the address is not the module's"),
                        ("wildread", "fenced_read|wait"), ("buffered", "page.c")):
        equal(client.get(f"/page/{what}").status, 500 if what != "wildread" else 200)
        equal(client.get("/page/count").text, "served 1, started 1\n")
        if what != "wildread":
            expect(re.search(rf"fenced:page: .*{cause}", server.log()), what, cause, server.log()[-2000:])
    expect("never seen" not in client.get("/page/count").text)
    expect(re.search(r"fenced:page: .* in divide \(\S*page\.c:\d+\)", server.log()), server.log()[-2000:])


@test
def endless_loops_and_gluttons_end(server):
    client = Client(server)
    equal(client.get("/short/spin").status, 500)
    equal(client.get("/short/count").text, "served 1, started 1\n")
    equal(client.get("/short/eat").status, 500)
    equal(client.get("/short/count").text, "served 1, started 1\n")
    auto = get(server, "/fenced-status?auto").text
    expect(re.search(r"fenced\.page\.time_faults: [1-9]", auto), auto)


@test
def a_cut_answer_is_no_answer(server):
    got = raw(server, close(b"/page/late"))
    expect(b"half of it" in got and not got.endswith(b"0\r\n\r\n"), got)
    got = raw(server, close(b"/program?crash"))
    expect(b" 500 " in got.split(b"\r\n")[0], got)
    client = Client(server)
    try:
        client.get("/page/late")
        raise AssertionError("half an answer was taken for a whole one")
    except http.client.IncompleteRead as e:
        equal(e.partial, b"half of it")


@test
def requests_do_not_see_each_other(server):
    client = Client(server)
    for i in range(50):
        a = client.get(f"/page/mark?m{i}", X_Mark=f"h{i}")
        equal(a.text, f"was '' heap '' own 'm{i}' 'h{i}'\n")


@test
def nor_when_they_are_many_at_once(server):
    def one(number):
        client = Client(server)
        for i in range(150):
            mark = f"t{number}n{i}"
            path = ("/page/mark?", "/page/crash?", "/short/mark?")[i % 7 % 3]
            a = client.get(path + mark, X_Mark=mark)
            if "crash" in path:
                equal(a.status, 500)
            else:
                equal(a.text, f"was '' heap '' own '{mark}' '{mark}'\n")
            body = os.urandom(3000) + mark.encode()
            expect(client.ask("POST", "/program", body).body == body, "another's body")

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(one, range(6)))


@test
def state_is_kept_if_the_configuration_says_so(server):
    client = Client(server)
    # Each thread has a domain, and no server here has as many threads.
    many = 40
    counts = [int(re.search(r"served (\d+)", client.get("/keep/count").text)[1]) for _ in range(many)]
    expect(max(counts) > 1, counts)
    equal({client.get("/keep/crash").status for _ in range(many)}, {500})
    expect(int(re.search(r"served (\d+)", client.get("/keep/count").text)[1]) >= 1)
    statuses = [client.get("/never/crash").status for _ in range(many)]
    equal((statuses[0], set(statuses)), (500, {500, 503}))


@test
def what_a_module_says_is_in_the_log(server):
    equal(get(server, "/page/log").status, 200)
    for line in ("fenced:page says: a line of the module's", "fenced:page says: forged\\n[error] line", "fenced:page says: printed"):
        expect(line in server.log(), line, server.log()[-1000:])


@test
def programs_are_unchanged(server):
    client = Client(server)
    for _ in range(3):
        a = client.get("/program")
        equal((a.status, a.headers["X-Runs"], a.text), (200, "1", "runs 1\n"))
    a = client.get("/program/more/path?env", X_Mark="5")
    lines = a.text.splitlines()
    for line in ("REQUEST_METHOD=GET", "GATEWAY_INTERFACE=CGI/1.1", "HTTP_X_MARK=5", "QUERY_STRING=env", "SCRIPT_NAME=/program",
                 "PATH_INFO=/more/path", "REMOTE_ADDR=127.0.0.1", f"SERVER_PORT={server.port}", "argc 1 argv program"):
        expect(line in lines, line, a.text)
    a = client.get("/program?status")
    equal((a.status, a.text), (404, "nothing\n"))
    equal(client.get("/program?redirect").text, "static\n")
    a = client.get("/program?away")
    equal((a.status, a.headers["Location"]), (302, "http://example.com/"))
    equal(client.get("/program?exit").text, "leaving\nended\n")
    for wrong in ("nothing", "bad", "long", "crash"):
        equal(client.get(f"/program?{wrong}").status, 500)
    equal(client.get("/program?complain").status, 200)
    expect("fenced:program says: a complaint" in server.log())


@test
def fastcgi_programs_are_unchanged(server):
    client = Client(server)
    for body in (b"", b"hello", b"x" * 10000):
        a = client.ask("POST", "/loop", body)
        equal((a.status, a.body), (200, b"request 1 of 127.0.0.1: " + body + b"\n"))
        a = client.ask("POST", "/stream", body)
        equal((a.status, a.body), (200, b"method POST, " + body + b"end\n"))


@test
def the_status_page_counts(server):
    def numbers():
        return {k: int(v) for k, v in re.findall(r"^fenced\.(\S+): (\d+)$", get(server, "/fenced-status?auto").text, re.M)}

    before = numbers()
    get(server, "/page/count")
    get(server, "/page/crash")
    after = numbers()
    equal((after["page.requests"] - before["page.requests"], after["page.faults"] - before["page.faults"]), (2, 1))
    expect(after["page.most_memory"] > 0 and after["page.nanoseconds"] > before["page.nanoseconds"], after)
    for path in ("/fenced-status", "/server-status"):
        a = get(server, path)
        expect("<td>page</td>" in a.text, a.text)
    expect("fenced.page.requests" in get(server, "/server-status?auto").text)


@test
def clients_that_leave_harm_nobody(server):
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.port)) as s:
            s.sendall(close(b"/page/fill?20000000"))
            s.recv(1000)
        with socket.create_connection(("127.0.0.1", server.port)) as s:
            s.sendall(close(b"/page/echo", b"Content-Length: 100000\r\n", b"POST") + b"only this")
    equal(get(server, "/page/count").text, "served 1, started 1\n")


def http_2(server):
    """By curl, which speaks it without TLS."""
    url = f"http://127.0.0.1:{server.port}"

    def curl(*words, **more):
        command = ["curl", "--silent", "--http2-prior-knowledge", "--max-time", "60", "--write-out", "%{http_version} %{http_code}", *words]
        return subprocess.run(command, stdout=subprocess.PIPE, check=False, **more).stdout

    equal(curl(f"{url}/page/count"), b"served 1, started 1\n2 200")
    body = os.urandom(300000)
    equal(curl("--data-binary", "@-", f"{url}/page/echo", input=body), body + b"2 200")
    equal(curl(f"{url}/page/crash", "--output", "/dev/null"), b"2 500")
    trailed = curl(f"{url}/page/trailer", "--dump-header", "-")
    expect(b"refused 4\n" in trailed and b"x-sum: 77" in trailed.partition(b"refused 4\n")[2].lower(), trailed)


def graceful_restarts(server):
    """Requests go on while the server starts again; nothing is left of the earlier ones."""
    over = threading.Event()

    def load():
        done = 0
        while not over.is_set():
            a = get(server, f"/page/mark?x{done}")
            equal((a.status, a.text), (200, f"was '' heap '' own 'x{done}' ''\n"))
            done += 1
        return done

    def sizes():
        # A descriptor or mapping of a module that is not given back stays in the server's first process.
        maps = pathlib.Path(f"/proc/{server.pid()}/maps").read_text()
        return len(os.listdir(f"/proc/{server.pid()}/fd")), maps.count("\n")

    def restart():
        before = server.log().count("resuming normal operations")
        server.graceful()
        wait("a restart", lambda: server.log().count("resuming normal operations") > before)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        loads = [pool.submit(load) for _ in range(2)]
        try:
            # The first restarts may still grow pools.
            restart()
            restart()
            first = sizes()
            for _ in range(4):
                restart()
                time.sleep(0.3)
            wait("as few descriptors and mappings as before",
                 lambda: sizes()[0] <= first[0] and sizes()[1] <= first[1] + 2)
        finally:
            over.set()
        for one in loads:
            expect(one.result() > 0)


def children_of_one_request(server):
    for i in range(10):
        equal(get(server, f"/page/mark?x{i}").text, f"was '' heap '' own 'x{i}' ''\n")
        equal(get(server, "/page/crash").status, 500)


def signals_in_every_state(server):
    """Sent to the first process and to those that serve, while pages wait, run, read and write."""
    states = {
        "idle": None,
        "runs": close(b"/short/spin"),
        "reads": close(b"/page/echo", b"Content-Length: 100000\r\n", b"POST") + b"a part",
        "writes": close(b"/page/fill?20000000"),
    }

    def calls():
        """A process that is about to end may close the connection first."""
        for _ in range(100):
            with contextlib.suppress(OSError, http.client.HTTPException):
                return int(re.search(r"fenced\.page\.started: (\d+)", get(server, "/fenced-status?auto").text)[1])
            time.sleep(0.05)
        raise AssertionError("no answer")

    def restarts():
        return server.log().count("resuming normal operations")

    def answers():
        with contextlib.suppress(OSError, http.client.HTTPException):
            return get(server, "/page/mark?own", X_Mark="own").text == "was '' heap '' own 'own' 'own'\n"
        return False

    # Before that a signal ends the server, as it ends any that has not set its handlers.
    wait("a server that takes signals", lambda: restarts() > 0)
    for to, number in [("first", signal.SIGHUP), ("first", signal.SIGUSR1), ("first", signal.SIGURG), ("all", signal.SIGTERM),
                       ("all", signal.SIGURG), ("all", signal.SIGUSR1), ("all", signal.SIGSEGV), ("all", signal.SIGKILL)]:
        for state, request in states.items():
            with contextlib.ExitStack() as stack:
                if request:
                    before = calls()
                    s = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=120))
                    s.sendall(request)
                    wait(f"a page that {state}", lambda before=before: calls() > before)
                then = restarts()
                for pid in [server.pid()] if to == "first" else server.children():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                if to == "first" and number in (signal.SIGHUP, signal.SIGUSR1):
                    wait("a restart", lambda then=then: restarts() > then)
                wait(f"an answer after {number} to {to} that {state}", answers)
    os.kill(server.pid(), 0)


def processes_of_another_user(server):
    """Root's server serves as a user that may not look at its own page tables, and goes on after faults."""
    if os.geteuid() != 0:
        print("skipped: only root's servers change their user")
        expect(os.environ.get("CI") != "true", "CI has to run this as root")
        return

    def changed():
        # One that has just been made has not yet.
        users = [re.search(r"^Uid:(.*)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1].split() for pid in server.children()]
        return users and not any("0" in one for one in users)

    wait("other users", changed)
    requests_do_not_see_each_other(server)
    equal(get(server, "/page/crash").status, 500)
    requests_do_not_see_each_other(server)


def in_a_root_of_its_own():
    """ChrootDir: modules were opened before, directories are those of the new root."""
    if os.geteuid() != 0:
        print("skipped: only root may change its root")
        expect(os.environ.get("CI") != "true", "CI has to run this as root")
        return
    server = files(Server("jail", "event", CONFIG + 'ChrootDir "{dir}/jail"\n'))
    inside = server.dir / "jail" / str(server.dir).lstrip("/")
    for name in ("docs", "writable"):
        (inside / name).mkdir(parents=True)
    (inside / "docs/file.txt").write_text("from the jail\n")
    with server:
        equal(get(server, "/page/inner/file").text, "from the jail\n not written\n")
        equal(get(server, "/page/inner/send?file.txt").text, "from the jail\n")
        for _ in range(3):
            equal(get(server, "/page/crash").status, 500)
            equal(get(server, "/page/count").text, "served 1, started 1\n")
        requests_do_not_see_each_other(server)


def wrong_configurations():
    """What configtest says."""
    out = Server("wrong", "event", "").out
    (out / "wrong" / "text.rf").write_text("no module")
    page = (out / "modules/page.rf").read_bytes()
    damaged = bytearray(page)
    # Somewhere in the code: what is no instruction of ours is refused, whatever it was.
    at = page.find(b"\x0f\x1f\x80") if b"\x0f\x1f\x80" in page else len(page) // 2
    damaged[at:at + 8] = b"\x0f\x05" * 4
    (out / "damaged.rf").write_bytes(damaged)
    (out / "text.rf").write_text("no module")
    cases = [
        ("FencedModule a /nowhere/a.rf", "give the path of a file"),
        ("FencedModule a {out}/text.rf", "make the file with fenced-cc"),
        ("FencedModule a {out}/damaged.rf", "make it again with fenced-cc|make the file with fenced-cc"),
        ("FencedModule a {out}/modules/none.rf", "has no function fenced_handle"),
        ("FencedModule a {out}/modules/integrity.rf", r"confines stores only \(--isolation=integrity\)"),
        ("FencedModule a {out}/modules/needs.rf", "needs the function nobody_has"),
        ("FencedModule a {out}/modules/page.rf\nFencedModule a {out}/modules/page.rf", "there is one of that name"),
        ("FencedModule a/b {out}/modules/page.rf", "letters, digits"),
        ("<IfModule mod_fenced.c>\nFencedTimeLimit long\n</IfModule>", "is no time"),
        ("<IfModule fenced_module>\nFencedTimeLimit long\n</IfModule>", "is no time"),
        ("FencedMemoryLimit 12", "is not 16M to 4G"),
        ("FencedLogLimit many", "is no number of lines"),
        ("FencedLogLimit 5 never", "is no time"),
        ("FencedReset sometimes", "none of request, on-fault, never"),
        ("FencedDir /nowhere /data", "is no directory"),
        ("FencedDir {dir}/docs data", "begins with no '/'"),
        ("FencedDir {dir}/docs /data all", "neither read nor write"),
        ("FencedEnv A=B c", "no name of a variable"),
    ]
    for config, message in cases:
        server = Server("wrong", "event", config)
        status, text = server.check()
        expect(status != 0 and re.search(message, text), config, "says", text)
    status, text = Server("wrong", "event", CONFIG.replace("FencedDir writable", "FencedDir docs")).check()
    equal((status, text.strip()), (0, "Syntax OK"))


def files(server):
    (server.dir / "docs/static.txt").write_text("static\n")
    (server.dir / "docs/file.txt").write_text("from a file\n")
    (server.dir / "writable").mkdir()
    (server.dir / "writable").chmod(0o777)
    return server


def main():
    wanted = sys.argv[1:]
    passed, failed = 0, 0

    def attempt(name, function, *arguments):
        nonlocal passed, failed
        if wanted and not any(w in name for w in wanted):
            return
        begun = time.monotonic()
        try:
            function(*arguments)
            passed += 1
            print(f"ok {name} ({time.monotonic() - begun:.1f} s)", flush=True)
        except Exception:
            failed += 1
            traceback.print_exc()
            print(f"FAIL {name}", flush=True)
            for one in arguments:
                print(one.log()[-3000:])

    attempt("wrong_configurations", wrong_configurations)
    attempt("in_a_root_of_its_own", in_a_root_of_its_own)
    if not wanted or any(w in "signals_in_every_state" for w in wanted):
        for mpm in ("event", "prefork"):
            with files(Server("signals", mpm, CONFIG)) as server:
                attempt(f"{mpm}: signals_in_every_state", signals_in_every_state, server)
    one_each = "StartServers 2\nServerLimit 8\nMaxRequestWorkers 8\nMaxConnectionsPerChild 1"
    for name, mpm, size, tests in (("event", "event", None, [*TESTS, http_2, processes_of_another_user, graceful_restarts]),
                                   ("prefork", "prefork", None, [*TESTS, processes_of_another_user, graceful_restarts]),
                                   ("once", "prefork", one_each, [children_of_one_request])):
        if wanted and not any(w in f"{name}: {f.__name__}" for f in tests for w in wanted):
            continue
        with files(Server(name, mpm, CONFIG, size)) as server:
            for function in tests:
                attempt(f"{name}: {function.__name__}", function, server)
            if re.search(r"exit signal|seg fault", server.log()):
                failed += 1
                print(f"FAIL {name}: a process of the server crashed\n{server.log()[-2000:]}")
    print(f"httpd: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
