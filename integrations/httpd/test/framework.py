#!/usr/bin/env python3
"""Apache's own tests, by a server with its own modules and by one whose stock modules are fenced: the results are the same, test by test.

  framework.py fetch DIR                                 the tests, from Debian's source package
  framework.py run DIR MODULES [--quick | FILE...]       MODULES: the directory of stock.sh's files
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parents[2] / "scripts"))
from debian_source import NoSource, Sources  # noqa: E402
from server import APACHE, free_port, tree  # noqa: E402

# Besides the fenced ones, what the tests' configuration needs, and what their pages are made by; the same in both servers.
OTHERS = """mpm_event access_compat asis auth_digest auth_form authz_owner brotli bucketeer buffer case_filter case_filter_in cgid data echo
ext_filter info log_debug lbmethod_byrequests macro proxy proxy_balancer proxy_http ratelimit reflector remoteip request reqtimeout sed session
session_cookie slotmem_shm socache_shmcb substitute unique_id userdir""".split()
WHOLE = ["t/modules", "t/apache", "t/filter", "t/http11", "t/protocol", "t/security"]
QUICK = [f"t/modules/{name}.t" for name in """aaa actions alias allowmethods autoindex2 deflate dir env expires filter headers include negotiation
rewrite speling usertrack vhost_alias""".split()]
QUICK += ["t/apache/errordoc.t", "t/apache/if_sections.t", "t/apache/mergeslashes.t", "t/http11/basicauth.t"]
ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C", "APACHE_TEST_HOSTNAME": "test.host.name", "APACHE_TEST_HOSTTYPE": "z80"}


def fetch(place):
    if (place / "perl-framework").exists():
        return
    query = subprocess.run(["dpkg-query", "-W", "-f", "${source:Version}", "apache2-bin"], capture_output=True, text=True, check=False)
    place.mkdir(parents=True, exist_ok=True)
    dsc, _ = Sources(place / "packages").fetch("apache2", query.stdout)
    archive = next(dsc.parent.glob("*.debian.tar.*"))
    new = place / "new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", new, "--strip-components=1", "debian/perl-framework"], check=True)
    (new / "perl-framework").rename(place / "perl-framework")


def known():
    return subprocess.run([HERE.parent / "stock.sh", "list"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()


class Side:
    """A copy of the tests with a server: `modules` is where the fenced ones are, None for the server's own."""

    def __init__(self, place, name, modules):
        self.dir, self.modules = place / name, modules
        # Tests refuse to run as root.
        self.user = ["setpriv", "--reuid=www-data", "--regid=www-data", "--clear-groups"] if os.geteuid() == 0 else []
        self.environment = {**ENVIRONMENT, "HOME": str(self.dir)}
        self.source = place / "perl-framework"
        self.stop()

    def copy(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.copytree(self.source, self.dir)
        # A function that another module adds to expressions, which fenced ones do not get: both ask the same without it.
        extra = self.dir / "t/conf/extra.conf.in"
        text, function = extra.read_text(), "util_strlen(%{REQUEST_FILENAME}) -le @limitrequestlinex2@"
        if function not in text:
            raise RuntimeError(f"{extra} has no {function}: look whether the tests need it still")
        extra.write_text(text.replace(function, "! (%{REQUEST_FILENAME} =~ /^.{257}/)"))
        # Both run at once: a socket that a test makes is nobody else's.
        for file in ("t/modules/proxy.t", "t/conf/extra.conf.in"):
            path = self.dir / file
            path.write_text(path.read_text().replace("/tmp/test-ptf.sock", f"/tmp/test-ptf-{os.getpid()}-{self.dir.name}.sock"))

    def run(self, *words, limit=600):
        return subprocess.run([*self.user, *words], cwd=self.dir, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False, timeout=limit)

    def configure(self):
        self.copy()
        where = pathlib.Path(subprocess.run(["apxs", "-q", "LIBEXECDIR"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
        names = [name for name in [*OTHERS, *known()] if (where / f"mod_{name}.so").exists()]
        inherited = self.dir / "inherited.conf"
        shutil.copy("/etc/mime.types", self.dir / "mime.types")
        load = "".join(f"LoadModule {name}_module {where}/mod_{name}.so\n" for name in names)
        inherited.write_text(f"{load}TypesConfig {self.dir}/mime.types\n")
        if self.user:
            subprocess.run(["chown", "-R", "www-data:www-data", self.dir], check=True)
        apxs = shutil.which("apxs")
        for words in (["perl", "Makefile.PL", "-apxs", apxs, "-httpd_conf", inherited], ["perl", "t/TEST", "-configure", "-port", str(free_port())]):
            done = self.run(*map(str, words))
            if done.returncode or not (self.dir / "Makefile").exists():
                raise RuntimeError(f"{words}: {done.stdout[-2000:]}")
        # The generated servers are nobody else's.
        for conf in (self.dir / "t/conf").rglob("*.conf"):
            text = re.sub(r"(?m)^(\s*Listen\s+)0\.0\.0\.0:", r"\g<1>127.0.0.1:", conf.read_text(errors="surrogateescape"))
            if other := re.search(r"(?m)^\s*Listen\s+(?!127\.0\.0\.1:|\s).*", text):
                raise RuntimeError(f"{conf}: {other[0].strip()}: that is not this machine alone")
            conf.write_text(text, errors="surrogateescape")
        self.conf = self.dir / "t/conf/httpd.conf"
        # Each request's way through each module is nothing that the tests look at.
        text = self.conf.read_text().replace("LogLevel trace8", "LogLevel debug")
        if self.modules:
            text = self.fence(text)
        self.conf.write_text(text)

    def fence(self, text):
        """The same configuration, with FencedLoadModule in place of LoadModule. They read files of the tests, and no others."""
        fenced, count = set(known()), 0

        def line(found):
            nonlocal count
            if found[1] not in fenced:
                return found[0]
            count += 1
            return f"FencedLoadModule {found[1]}_module {self.modules}/mod_{found[1]}.rf {self.dir}"

        text = re.sub(r'LoadModule (\w+)_module "[^"]*"', line, text)
        if count < len(fenced):
            raise RuntimeError(f"{count} modules of {len(fenced)} are fenced")
        # Fenced modules start no programs: what asks for them stays unanswered (framework-differences.txt).
        extra = self.dir / "t/conf/extra.conf"
        extra.write_text(re.sub(r"(?m)^ *RewriteMap \S+ \"?prg:.*\n", "", extra.read_text()))
        return f"LoadModule fenced_module {tree('out')}/mod_fenced.so\n{text}"

    def apache(self, *words):
        return self.run(APACHE, "-d", str(self.dir / "t"), "-f", str(self.conf), "-D", "APACHE2", "-D", "APACHE2_4", *words)

    def start(self):
        """Configures and starts it. It takes a block of ports above the one that it is given: another, if somebody else has one of them."""
        for _ in range(3):
            self.configure()
            said = self.apache("-k", "start").stdout
            for _ in range(200):
                if self.pid():
                    return
                if "could not bind" in said + self.log():
                    break
                time.sleep(0.05)
            said += self.log()
            if "could not bind" not in said:
                break
        raise RuntimeError(f"the server does not start: {said[-4000:]}")

    def pid(self):
        try:
            return int((self.dir / "t/logs/httpd.pid").read_text())
        except (OSError, ValueError):
            return 0

    def log(self):
        log = self.dir / "t/logs/error_log"
        return log.read_text(errors="replace") if log.exists() else ""

    def stop(self):
        pid = self.pid()
        try:
            if not pid or str(self.dir).encode() not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                return
            os.kill(pid, 15)
            for _ in range(400):
                os.kill(pid, 0)
                time.sleep(0.05)
        except OSError:
            return

    def results(self, files):
        """{(file, number): "ok", "not ok" or "skip"}; number 0: how the file ended."""
        said = self.dir / "results.txt"
        with said.open("w") as to:
            subprocess.run([*self.user, "perl", "t/TEST", "-no-httpd", "-verbose", *files], cwd=self.dir, env=self.environment, stdin=subprocess.DEVNULL,
                           stdout=to, stderr=subprocess.STDOUT, check=False, timeout=3000)
        found, file = {}, None
        for line in said.read_text(errors="replace").splitlines():
            if begin := re.match(r"(t/\S+\.t) \.+ ?(.*)", line):
                file = begin[1]
                found[file, 0] = "skip" if "skipped" in begin[2] else "began"
            elif (one := re.match(r"(not ok|ok) (\d+)(.*)", line)) and file:
                found[file, int(one[2])] = "skip" if re.search(r"# *skip", one[3], re.I) else one[1]
            elif line.startswith(("ok", "Failed", "Dubious", "No subtests", "skipped")) and file and found[file, 0] == "began":
                found[file, 0] = "plan" if line.startswith(("ok", "Failed")) else line.split(",")[0]
        return found


def compare(bare, fenced, excused):
    """What differs, and is in no list: (file, number, what the one says, what the other)."""
    wrong = []
    for key in sorted({*bare, *fenced}):
        if bare.get(key) != fenced.get(key) and not any(key[0] == file and key[1] in numbers for file, numbers in excused):
            wrong.append((*key, bare.get(key, "none"), fenced.get(key, "none")))
    return wrong


def stale(bare, fenced, excused):
    """Tests that the list calls different, and that are not: (file, number), of the files that both have run."""
    ran = {file for file, number in bare if number == 0 and bare[file, 0] != "skip" and (file, 0) in fenced}
    return sorted((file, number) for file, numbers in excused if file in ran for number in numbers if bare.get((file, number)) == fenced.get((file, number)))


def excuses():
    """framework-differences.txt: files with the numbers of tests, `3` or `3-5`, and behind # why. 0: how the file ends."""
    found = []
    for line in (HERE / "framework-differences.txt").read_text().splitlines():
        file, *numbers = line.split("#")[0].split() or [None]
        which = set()
        for one in numbers:
            first, _, last = one.partition("-")
            which.update(range(int(first), int(last or first) + 1))
        found.append((file, which))
    return found


def run(place, modules, options):
    files = [o for o in options if not o.startswith("-")] or (QUICK if "--quick" in options else WHOLE)
    sides = [Side(place, "bare", None), Side(place, "fenced", modules)]
    failures, results = [], [None, None]

    def one(number):
        side = sides[number]
        try:
            side.start()
            results[number] = side.results(files)
        except Exception as error:  # noqa: BLE001
            failures.append(f"{side.dir.name}: {error}")
        finally:
            side.stop()

    threads = [threading.Thread(target=one, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    crashed = [line for line in sides[1].log().splitlines() if "exit signal" in line]
    if failures:
        sys.exit("framework: " + "; ".join(failures))
    bare, fenced = results
    wrong = compare(bare, fenced, excuses())
    for file, number, one_says, other_says in wrong:
        print(f"{file} {number}: {one_says} by the server's own modules, {other_says} by the fenced ones")
    old = stale(bare, fenced, excuses())
    for file, number in old:
        print(f"{file} {number}: framework-differences.txt calls it different, and it is not: take it out there")
    for line in crashed:
        print(line)
    of = {what: sum(1 for (_, number), said in bare.items() if number and said == what) for what in ("ok", "not ok", "skip")}
    left_out = sorted(file for (file, number), said in bare.items() if number == 0 and said == "skip")
    print(f"{len({file for file, _ in bare})} files, {sum(of.values())} tests, of which the server's own modules pass {of['ok']}, fail {of['not ok']} and skip {of['skip']}")
    if left_out:
        print("left out by themselves: " + " ".join(left_out))
    same = sum(1 for key in bare if key[1] and bare[key] == fenced.get(key))
    failed = len(wrong) + len(old) + len(crashed)
    print(f"httpd-framework: {same} passed, {failed} failed")
    return failed != 0 or of["ok"] == 0


def main():
    if sys.argv[1:2] == ["fetch"] and len(sys.argv) == 3:
        try:
            fetch(pathlib.Path(sys.argv[2]))
        except NoSource as error:
            sys.exit(f"framework: {error}; is the archive reachable?")
    elif sys.argv[1:2] == ["run"] and len(sys.argv) > 3:
        sys.exit(run(pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve(), sys.argv[4:]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
