"""The commands that configure, build and test a project, by the recipes of docs/porting.md, and how they are run."""

import os
import shutil
import signal
import subprocess
import threading
import time
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
STEPS = ("configure", "build", "tests")


def stale(folder):
    """Whether Autoconf has to be run, as in each build of Debian's: what the patches have changed is newer than what was made of it."""
    pairs = [(folder / "configure.ac", folder / "configure"), *((am, am.with_suffix(".in")) for am in folder.rglob("Makefile.am"))]
    newer = lambda source, made: source.exists() and made.exists() and source.stat().st_mtime > made.stat().st_mtime
    return not (folder / "configure").exists() or any(newer(*pair) for pair in pairs)


def commands(project, source, fenced):
    """What the three steps run, in the directory to build in."""
    cc, cxx = ("ringfence-cc --wrapper", "ringfence-c++ --wrapper") if fenced else ("gcc", "g++")
    compilers = f'CC="{cc}" CXX="{cxx}"'
    quoted = lambda text: text.replace("{cc}", f'"{cc}"').replace("{cxx}", f'"{cxx}"')
    options = "".join(f" {quoted(o)}" for o in project.options)
    folder = source / project.directory
    test = quoted(project.test) if project.test else None
    match project.system:
        case "autoconf":
            make = "autoreconf -fi && " if stale(folder) else ""
            # Automake's test programs are part of the build, so that the time of the tests is theirs.
            build = "make && { ! grep -q '^AUTOMAKE = ' Makefile || make -k check TESTS= || true; }"
            # In the environment, too: makefiles that configure does not write take them from there.
            steps = f"{make}./configure {compilers} --disable-shared{options}", build, test or "make -k check"
            return tuple(f"export {compilers}; {step}" for step in steps)
        case "script":
            return f"{compilers} ./configure{options}", "make", test or "make -k check"
        case "cmake":
            file = f" -DCMAKE_TOOLCHAIN_FILE={ROOT}/share/ringfence.cmake" if fenced else ""
            test = test or "ctest --output-junit farm.xml"
            return f"cmake -S . -B farm-build{file} -DBUILD_SHARED_LIBS=OFF{options}", "make -C farm-build", f"cd farm-build && {test}"
        case "meson":
            file = f" --cross-file {ROOT}/share/ringfence.meson" if fenced else ""
            test = test or "meson test"
            return f"meson setup farm-build{file} -Ddefault_library=static{options}", "ninja -j1 -C farm-build", f"cd farm-build && {test}"
        case _:
            return "true", f"make {compilers}{options}", test or f"make -k check {compilers}{options}"


@cache
def cage():
    """A command in front of others that gives them no network, and ends all that they started; nothing where that is forbidden."""
    spaces = ["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    for own in ([], ["--user", "--map-root-user"]):
        command = ["unshare", *own, *spaces]
        if shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    return []


def run(command, where, log, limit, env):
    """Runs a command with everything it starts: its exit status (None: out of time), and processor seconds."""
    with open(log, "ab") as out:
        out.write(f"$ {command}\n".encode())
        out.flush()
        # A file may have 4 GiB. Programs that talk to themselves need the loopback device.
        shell = ["bash", "-c", f"ulimit -f 4194304; ip link set lo up 2>/dev/null; {command}"]
        child = subprocess.Popen(
            [*cage(), *shell], cwd=where, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env, start_new_session=True
        )
        late = threading.Event()

        def end():
            late.set()
            os.killpg(child.pid, signal.SIGKILL)

        timer = threading.Timer(limit, end)
        timer.start()
        # It is waited for below; until then its number is nobody else's.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        timer.cancel()
        timer.join()
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return None if late.is_set() else child.returncode, round(used.ru_utime + used.ru_stime, 2)


def environment(tools, home):
    """What the commands see: the machine's programs, the fenced compilers, a home of their own."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "tmp").mkdir(exist_ok=True)
    kept = {k: os.environ[k] for k in ("USER", "LOGNAME", "RINGFENCE_SYSROOT") if k in os.environ}
    path = os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    return kept | {
        "PATH": f"{tools}:{path}",
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "RINGFENCE": str(tools / "ringfence"),
    }


def build(project, source, place, fenced, limit, env):
    """Configures, builds and tests a project in `place`/work: each step's status and seconds, up to the first that fails."""
    # The same name for both kinds: paths are in what tests print.
    work = place / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(source, work, symlinks=True)
    found = {}
    for step, command in zip(STEPS, commands(project, work, fenced)):
        log = place / f"{'fenced' if fenced else 'native'}-{step}.log"
        log.unlink(missing_ok=True)
        begin = time.monotonic()
        status, seconds = run(command, work / project.directory, log, limit, env)
        found[step] = {"status": status, "seconds": seconds, "elapsed": round(time.monotonic() - begin, 1)}
        if status != 0:
            break
    return found


def test_again(project, place, limit, env):
    """Runs the native tests once more, in what `build` has left; where their output went."""
    log = place / "native-tests-again.log"
    log.unlink(missing_ok=True)
    run(commands(project, place / "work", False)[-1], place / "work" / project.directory, log, limit, env)
    return log
