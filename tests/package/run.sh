#!/usr/bin/env bash
# The ways to get Ringfence, each gone to its end: the Debian package in a root of its own, the Python wheel, cargo install.
#   tests/package/run.sh
# Each part ends with "N passed, M failed".
# shellcheck disable=SC2016 # the shells inside expand these
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$PWD/${CARGO_TARGET_DIR:-target}/release
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source tests/checks.sh

check "package" scripts/deb.sh "$target" "$work"
package=$(echo "$work"/ringfence_*_amd64.deb)
check "fields" bash -c '[ "$(dpkg-deb --field "$1" Package Architecture | tr "\n" " ")" = "Package: ringfence Architecture: amd64 " ]' - "$package"
check "owners" bash -c '! dpkg-deb --contents "$1" | grep -v "root/root"' - "$package"
root=$work/root
check "unpack" dpkg-deb -x "$package" "$root"
check "nothing of this tree" bash -c '! grep -rIl "$1" "$2"' - "$PWD/target" "$root/usr/lib/pkgconfig" "$root/usr/lib/cmake" "$root/usr/share"

# follow SHELL-WORD…: use.sh and the page, with the words in front; its own lines and totals are shown
follow() {
    mkdir -p "$root/tmp/use"
    cp tests/package/use.sh tests/checks.sh docs/start.md "$root/tmp/use"
    "$@" || failed=$((failed + 1))
}

# A Debian of its own, with nothing in it but what the package asks for. Mounts are not needed, so that nothing has to be undone.
clean() {
    local mirror log=$work/debootstrap.log
    mirror=$(sed -n 's/^URIs: *//p; s/^deb \(http[^ ]*\) .*/\1/p' /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null | grep -v security | head -1)
    rm -rf "$root"
    debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "${mirror:-http://deb.debian.org/debian}" >"$log" 2>&1 ||
        { tail -n 5 "$log"; return 1; }
    cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
    cp "$package" "$root/tmp/"
}

if [[ $(id -u) == 0 ]] && command -v debootstrap >/dev/null && unshare -m true 2>/dev/null; then
    if clean; then
        inside=(unshare -m bash -c 'mount --make-rprivate /; mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" env -i ${http_proxy:+"http_proxy=$http_proxy"} HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"' "$root")
        limit=600 check "install, with what it depends on" "${inside[@]}" bash -c 'apt-get update -qq && apt-get install -y -qq "$@"' - "/tmp/$(basename "$package")"
        # For projects of CMake's; pkg-config comes with the package.
        limit=600 check "cmake" "${inside[@]}" apt-get install -y -qq --no-install-recommends cmake make
        follow "${inside[@]}" bash /tmp/use/use.sh /usr /tmp/use/start.md
        check "remove" "${inside[@]}" bash -c 'dpkg -L ringfence | while read -r f; do [ -d "$f" ] || echo "$f"; done >/tmp/files; apt-get remove -y -qq ringfence; while read -r f; do [ ! -e "$f" ] || { echo "$f stays"; exit 1; }; done </tmp/files'
    else
        failed=$((failed + 1))
    fi
else
    skip "a Debian of its own" "that takes root, debootstrap and mounts; the package is unpacked and used from there"
    # As installed: what stands below / is looked for below the root.
    follow env -u RINGFENCE -u RINGFENCE_SYSROOT PATH="$root/usr/bin:$PATH" LD_LIBRARY_PATH="$root/usr/lib" \
        PKG_CONFIG_PATH="$root/usr/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root" CMAKE_PREFIX_PATH="$root/usr" \
        bash "$root/tmp/use/use.sh" "$root/usr" "$root/tmp/use/start.md"
fi
rm -rf "$root"

# The wheel, in an environment of its own.
export RINGFENCE_SYSROOT=${RINGFENCE_SYSROOT:-$PWD/build/sysroot}
check "wheel" scripts/wheel.sh "$target" "$work/wheel"
check "venv" python3 -m venv "$work/venv"
python=$work/venv/bin/python
check "pip install" "$python" -m pip install --quiet --disable-pip-version-check --no-index "$work"/wheel/ringfence-*.whl
check "guest" "$target/ringfence" cc -g -O1 -shared --import=host_next tests/package/guest.c -o "$work/guest.rf"
echo x >"$work/letter"
check "structs" bash -c '"$1" tests/package/wheel.py --structs >"$2/structs.c"' - "$python" "$work"
# The flags are those of the package: a compiled program needs nothing else.
check "structs: compile" bash -c 'gcc $("$1" -m ringfence --cflags) "$2/structs.c" $("$1" -m ringfence --libs) -o "$2/structs"' - "$python" "$work"
check "structs: as in C" "$work/structs"
check "import ringfence" env -C "$work" "$python" "$PWD/tests/package/wheel.py" "$work/guest.rf" "$work"
# A library's binding finds the host library in the package.
check "binding" "$target/ringfence" bind tests/bind/kinds.h --notes tests/bind/kinds.bind --lang c,python -o "$work"
check "binding: module" "$target/ringfence" cc -O1 -g -shared -Itests/bind tests/bind/kinds.c -o "$work/kinds.rf"
check "binding: compile" bash -c 'gcc -shared -fPIC -I"$2" -I"$3" $("$1" -m ringfence --cflags) "$2/kinds_fenced.c" $("$1" -m ringfence --libs) -o "$2/libkinds_fenced.so"' - \
    "$python" "$work" "$PWD/tests/bind"
check "binding: call" env -u LD_LIBRARY_PATH "$python" tests/bind/host.py "$work" "$work/kinds.rf"

# cargo install brings the command; it builds what modules are linked with. Built where the tree is built, so that this is soon done.
unset RINGFENCE_SYSROOT
for room in crates/cli crates/backends/process; do
    limit=900 check "cargo install --path $room" cargo install --quiet --locked --path "$room" --root "$work/cargo" --target-dir "${CARGO_TARGET_DIR:-target}"
done
export PATH=$work/cargo/bin:$PATH
printf '#include <stdio.h>\nint main(void) { return puts("fenced") < 0; }\n' >"$work/hello.c"
check "without libraries it says what to do" bash -c '! ringfence cc "$1/hello.c" -o "$1/hello.rf" 2>"$1/said"; grep -q "ringfence setup" "$1/said" || { cat "$1/said"; exit 1; }' - "$work"
limit=900 check "ringfence setup" env RINGFENCE_SOURCES="$PWD/build/sources" ringfence setup builtins libc
check "ringfence setup again" bash -c '! ringfence setup libc 2>"$1/said" && grep -q -- --again "$1/said"' - "$work"
check "a program" bash -c 'ringfence cc -O2 "$1/hello.c" -o "$1/hello.rf" && [ "$(ringfence run "$1/hello.rf")" = fenced ]' - "$work"
check "its own processes" bash -c '[ "$(ringfence run --backend process "$1/hello.rf")" = fenced ]' - "$work"

totals
