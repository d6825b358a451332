#!/usr/bin/env bash
# Installs what is missing to build, test or measure Ringfence on Debian 12.
#   scripts/setup.sh [build|test|farm|bench|docs|functions|transcode|postgresql|httpd]
# Does nothing, quickly and without a network, when everything is there.
set -euo pipefail

need_rust=1.88
what=${1:-build}

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# rust_ok COMMAND: is it there, and new enough?
rust_ok() {
    local version
    version=$("$1" --version 2>/dev/null | awk '{ print $2 }') || return 1
    [[ -n $version ]] && printf '%s\n%s\n' "$need_rust" "$version" | sort -V -C
}

[[ $(uname -sm) == "Linux x86_64" ]] || die "Ringfence needs Linux on x86-64; this is $(uname -sm)"

missing=()
want() { # COMMAND PACKAGE
    have "$1" || missing+=("$2")
}

want gcc gcc
want g++ g++
want make make
want ld binutils
want python3 python3
want xz xz-utils
want pkg-config pkg-config
python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
[[ -e /usr/include/stdio.h ]] || missing+=(libc6-dev)
[[ -e /etc/ssl/certs/ca-certificates.crt ]] || missing+=(ca-certificates)
rust_ok rustc || missing+=(rustc-web)
rust_ok cargo || missing+=(cargo-web)

case $what in
build) ;;
bench)
    # the peers: a toolchain for WebAssembly, wasm2c, and what builds Wasmtime. Their absence is no failure.
    peers=()
    have clang-19 || peers+=(clang-19)
    have wasm-ld-19 || peers+=(lld-19)
    have wasm2c || peers+=(wabt)
    [[ -e /usr/lib/wasm32-wasi/libc.a ]] || peers+=(wasi-libc)
    [[ -e /usr/lib/wasm32-wasi/libc++.a || -e /usr/lib/llvm-19/lib/wasm32-wasi/libc++.a ]] || peers+=(libc++-19-dev-wasm32 libc++abi-19-dev-wasm32)
    compgen -G '/usr/lib/llvm-19/lib/clang/19/lib/*/libclang_rt.builtins*wasm32*' >/dev/null ||
        peers+=(libclang-rt-19-dev-wasm32)
    ;;
test)
    want git git
    want shellcheck shellcheck
    want csmith csmith
    want cmake cmake # builds one of the decoders that the verifier's is compared with; with the next two, recipes of docs/porting.md
    want meson meson
    want autoconf autoconf
    want aclocal automake
    want libtoolize libtool
    want dpkg-source dpkg-dev
    [[ -x /sbin/e2fsck ]] || missing+=(e2fsprogs) # judges file systems that faults were put into (make lab)
    want ip iproute2 # interfaces that the packet filter captures from
    [[ -x /usr/sbin/debootstrap ]] || missing+=(debootstrap) # a Debian to install the package in
    python3 -m ensurepip --version >/dev/null 2>&1 || missing+=(python3-venv)
    [[ -e /usr/include/csmith/csmith.h ]] || missing+=(libcsmith-dev)
    have rustfmt || missing+=(rustfmt-web)
    have cargo-clippy || missing+=(rust-web-clippy)
    ;;
farm)
    # what the builds of Debian's packages call
    want autoconf autoconf
    want aclocal automake
    want libtoolize libtool
    want cmake cmake
    want meson meson
    want dpkg-source dpkg-dev
    want bison bison
    want flex flex
    want msgfmt gettext
    want makeinfo texinfo
    ;;
docs | functions | transcode | postgresql | httpd) ;;
*) die "usage: setup.sh [build|test|farm|bench|docs|functions|transcode|postgresql|httpd]" ;;
esac

# what compiles expressions of packet filters
if [[ $what == test || $what == functions ]]; then
    [[ -e /usr/lib/x86_64-linux-gnu/libpcap.so.0.8 ]] || missing+=(libpcap0.8)
fi

# a browser without a window, for the page of the image server
if [[ $what == test || $what == transcode ]]; then
    want chromium chromium
fi
# what assembles libjpeg-turbo's loops for vector units; without it they are C
if [[ $what == test || $what == bench || $what == transcode ]]; then
    want nasm nasm
fi
# what loads the image server, whose absence fails no test: for `make bench-transcode`
if [[ $what == transcode ]]; then
    peers=()
    have wrk || peers+=(wrk)
fi

# the server, its headers, and the command that runs it as its own user
if [[ $what == test || $what == postgresql ]]; then
    [[ -x /usr/lib/postgresql/15/bin/postgres ]] || missing+=(postgresql-15)
    [[ -e /usr/include/postgresql/15/server/postgres.h ]] || missing+=(postgresql-server-dev-15)
fi
# its other languages, whose absence is no failure: for `make bench-postgresql`
if [[ $what == postgresql ]]; then
    peers=()
    for language in plpython3 plperl pltcl; do
        [[ -e /usr/lib/postgresql/15/lib/$language.so ]] || peers+=("postgresql-$language-15")
    done
fi

# the web server, what compiles its modules, and a client that speaks HTTP/2
if [[ $what == test || $what == httpd ]]; then
    [[ -x /usr/sbin/apache2 ]] || missing+=(apache2-bin)
    want apxs apache2-dev
    want curl curl
    want bzip2 bzip2 # unpacks APR's source
    want wrk wrk # what loads a server
    # for Apache's own tests
    perl -e 'use LWP' 2>/dev/null || missing+=(libwww-perl)
    perl -e 'use DateTime' 2>/dev/null || missing+=(libdatetime-perl)
fi
# other ways to make a page, whose absence is no failure: for `make bench-httpd`
if [[ $what == httpd ]]; then
    peers=()
    have uwsgi-core || peers+=(uwsgi-core)
    [[ -e /usr/lib/apache2/modules/mod_fcgid.so ]] || peers+=(libapache2-mod-fcgid)
    [[ -e /usr/include/fcgi_stdio.h ]] || peers+=(libfcgi-dev)
fi

as_root=()
need_root() {
    [[ $(id -u) == 0 ]] && return
    have sudo || return 1
    as_root=(sudo)
}

if ((${#missing[@]})); then
    list=${missing[*]}
    have apt-get || die "missing: $list (no apt-get here; install them by the means of this system)"
    case " $list " in
    *" rustc-web "* | *" cargo-web "*)
        # Debian's packages refuse to stand beside rustup's, and an old toolchain that comes first in PATH would win
        if have rustup; then
            die "rustc and cargo are older than $need_rust: run 'rustup update stable' and try again"
        fi
        ;;
    esac
    need_root || die "missing: $list; run this as root, or install them: apt-get install $list"
    say "installing $list"
    export DEBIAN_FRONTEND=noninteractive
    install() { "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/tmp/ringfence-setup.$$ 2>&1; }
    if ! install; then
        # most often the package lists are absent or old
        "${as_root[@]}" apt-get update -qq || die "cannot update the package lists; missing: $list"
        install || { cat /tmp/ringfence-setup.$$ >&2; rm -f /tmp/ringfence-setup.$$; die "apt-get could not install: $list"; }
    fi
    rm -f /tmp/ringfence-setup.$$
    hash -r
    if ! rust_ok rustc || ! rust_ok cargo; then
        die "rustc and cargo >= $need_rust are needed; found $(rustc --version 2>&1 | head -1) at $(command -v rustc). Debian 12's updates have them as rustc-web and cargo-web"
    fi
fi

major=$(gcc -dumpversion)
[[ ${major%%.*} -ge 12 ]] || die "gcc 12 or newer is needed; found $major"

if [[ ${peers[*]:-} ]]; then
    say "installing ${peers[*]}"
    fetch_peers() { "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${peers[@]}" >/dev/null 2>&1; }
    if ! have apt-get || ! need_root ||
        ! { fetch_peers || { "${as_root[@]}" apt-get update -qq && fetch_peers; }; }; then
        say "cannot install ${peers[*]}: what needs them is left out"
    fi
fi

# mdBook makes the book: the Rust project's own tool, with search. Debian 12 has no package of it.
mdbook=0.5.4
# mdbook KIND OPTION…: in build/tools/KIND
mdbook() {
    local root=build/tools/$1
    shift
    [[ $("$root/bin/mdbook" --version 2>/dev/null) != "mdbook v$mdbook" ]] || return 0
    say "building mdBook $mdbook (once)"
    cargo install --quiet --locked --version "=$mdbook" --no-default-features "$@" --root "$root" mdbook
}
case $what in
docs) mdbook search --features search ;;
# to check links with, and soon built
test) mdbook plain --debug ;;
esac
