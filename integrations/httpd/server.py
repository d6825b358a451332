#!/usr/bin/env python3
"""Private servers with mod_fenced, on ports of the loopback interface that are free.

  server.py start DIR MPM FILE...    a server in DIR; the files are parts of its configuration. Prints its port
  server.py stop DIR
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
APACHE = shutil.which("apache2", path=os.environ.get("PATH", "") + ":/usr/sbin")
BASE = """\
ServerRoot "{dir}"
DefaultRuntimeDir "{dir}"
PidFile httpd.pid
Listen 127.0.0.1:{port}
ServerName localhost
{user}
LoadModule mpm_{mpm}_module {modules}/mod_mpm_{mpm}.so
LoadModule fenced_module {out}/mod_fenced.so
{load}
TypesConfig /dev/null
DocumentRoot docs
<Directory />
  AllowOverride None
</Directory>
ErrorLog error.log
LogLevel warn
ErrorLogFormat "[%l] %E: %M"
KeepAlive On
MaxKeepAliveRequests 0
Timeout 60
GracefulShutdownTimeout 30
{size}
"""
SIZES = {
    "prefork": "StartServers 4\nMinSpareServers 4\nMaxSpareServers 8\nServerLimit 16\nMaxRequestWorkers 16",
    "worker": "StartServers 2\nServerLimit 4\nThreadsPerChild 8\nMaxRequestWorkers 32\nMinSpareThreads 8\nMaxSpareThreads 32",
}
SIZES["event"] = SIZES["worker"]


def tree(what):
    return subprocess.run([HERE / "tree.sh", what], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def most_memory(pids):
    """KiB that the largest of these processes had at its most."""
    found = [0]
    for pid in pids:
        with contextlib.suppress(OSError):
            found += [int(n) for n in re.findall(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())]
    return max(found)


MODULES = ["authz_core", "alias", "env", "mime", "status"]


class Server:
    """A server in a directory of its own; `config` comes behind what each of them has. `more` modules are loaded besides MODULES; those in
    `fenced` are fenced: their names, and the files of stock.sh."""

    def __init__(self, name, mpm, config, size=None, more=(), fenced=None):
        self.more, self.fenced = more, fenced or {}
        self.out = pathlib.Path(tree("out"))
        self.dir, self.mpm, self.config = self.out / name, mpm, config
        self.size = SIZES[mpm] if size is None else size
        self.port = None
        os.umask(0o022)  # the server's user reads what is made here
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)
        (self.dir / "docs").mkdir(parents=True)

    def write(self):
        modules = subprocess.run(["apxs", "-q", "LIBEXECDIR"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        user = "User www-data\nGroup www-data" if os.geteuid() == 0 else ""
        load = [
            f"FencedLoadModule {name}_module {self.fenced[name]} {self.out}" if name in self.fenced else f"LoadModule {name}_module {modules}/mod_{name}.so"
            for name in [*MODULES, *self.more]
        ]
        text = BASE.format(
            dir=self.dir, port=self.port, user=user, mpm=self.mpm, modules=modules, out=self.out, size=self.size, load="\n".join(load)
        )
        (self.dir / "httpd.conf").write_text(text + self.config.format(out=self.out, modules=modules, dir=self.dir))

    def apache(self, *words):
        command = [APACHE, "-d", self.dir, "-f", self.dir / "httpd.conf", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def check(self):
        """What configtest says: its status and text."""
        self.port = self.port or free_port()
        self.write()
        return self.apache("-t")

    def start(self):
        for _ in range(10):
            self.port = free_port()
            self.write()
            status, text = self.apache("-k", "start")
            if status == 0 and self.answers():
                return self
            if "could not bind" not in text + self.log():
                raise RuntimeError(f"the server does not start: {text}{self.log()}")
        raise RuntimeError("no port is free")

    def answers(self):
        for _ in range(600):
            # The file comes after the socket.
            with contextlib.suppress(OSError, ValueError):
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                self.pid()
                return True
            time.sleep(0.05)
        return False

    def graceful(self):
        status, text = self.apache("-k", "graceful")
        if status:
            raise RuntimeError(text)

    def pid(self):
        return int((self.dir / "httpd.pid").read_text())

    def children(self):
        of = pathlib.Path(f"/proc/{self.pid()}/task/{self.pid()}/children")
        return [int(n) for n in of.read_text().split()]

    def log(self):
        with contextlib.suppress(OSError):
            return (self.dir / "error.log").read_text(errors="replace")
        return ""

    def stop(self):
        with contextlib.suppress(OSError, ValueError):
            pid = self.pid()
            if str(self.dir).encode() not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                return
            os.kill(pid, signal.SIGTERM)
            for _ in range(600):
                os.kill(pid, 0)
                time.sleep(0.05)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


def main():
    if sys.argv[1:2] == ["start"] and len(sys.argv) > 3:
        config = "\n".join(pathlib.Path(f).read_text() for f in sys.argv[4:])
        print(Server(sys.argv[2], sys.argv[3], config).start().port)
    elif sys.argv[1:2] == ["stop"] and len(sys.argv) == 3:
        server = Server.__new__(Server)
        server.dir = pathlib.Path(tree("out")) / sys.argv[2]
        server.stop()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
