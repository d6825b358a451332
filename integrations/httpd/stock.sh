#!/usr/bin/env bash
# Stock modules of Apache, unmodified, as files for FencedLoadModule.
#   stock.sh fetch             the sources of the installed server, and of the libraries that go into each module, from Debian
#   stock.sh build [NAME...]   compiles modules, all that are known to work by default, or files of one's own; prints where they are
#   stock.sh list              their names
# RINGFENCE: the command (default: that of RINGFENCE_PREFIX, of build/httpd/prefix, or of the path). STOCK_OUT: where things go. STOCK_CFLAGS: for
# the modules.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${STOCK_OUT:-$("$here/tree.sh" out)/stock}
ringfence=${RINGFENCE:-${RINGFENCE_PREFIX:-$(dirname "$out")/prefix}/bin/ringfence}
[[ -n ${RINGFENCE:-} || -n ${RINGFENCE_PREFIX:-} || -x $ringfence ]] || ringfence=$(command -v ringfence || true)
src=$out/source
known=(expires headers setenvif env alias dir mime autoindex actions allowmethods vhost_alias speling imagemap cern_meta usertrack
    authz_host authz_user authn_anon authn_file negotiation authz_core authn_core auth_basic rewrite filter deflate include status
    authz_groupfile)

# What of the libraries goes into modules.
parts=(
    apr/strings/{apr_strings,apr_cstr,apr_cpystrn,apr_strtok,apr_strnatcmp,apr_fnmatch,apr_snprintf}.c apr/encoding/apr_escape.c
    apr/tables/apr_hash.c apr/time/unix/{time,timestr}.c
    apr/locks/unix/{thread_mutex,thread_cond,thread_rwlock}.c apr/threadproc/unix/thread.c apr/misc/unix/{start,errorcodes}.c
    apr/network_io/unix/{sockaddr,inet_ntop,inet_pton}.c
    apr/file_io/unix/{buffer,dir,fileacc,filepath,filestat,fullrw,open,readwrite,seek}.c
    apr-util/buckets/{apr_brigade,apr_buckets,apr_buckets_eos,apr_buckets_file,apr_buckets_flush,apr_buckets_heap}.c
    apr-util/buckets/{apr_buckets_mmap,apr_buckets_pool,apr_buckets_refcount,apr_buckets_simple}.c
    apr-util/strmatch/apr_strmatch.c apr-util/uri/apr_uri.c apr-util/encoding/apr_base64.c
    apr-util/crypto/{apr_passwd,apr_md5,apr_sha1,crypt_blowfish}.c
    apache2/server/{util,util_pcre,util_script,util_md5,util_time,util_expr_parse,util_expr_scan}.c
    pcre2/src/pcre2_{auto_possess,compile,config,context,error,extuni,find_bracket,match,match_data,newline,ord2utf}.c
    zlib/{adler32,crc32,deflate,inffast,inflate,inftrees,trees,zutil}.c
    pcre2/src/pcre2_{pattern_info,script_run,string_utils,study,substring,tables,ucd,valid_utf,xclass,jit_compile}.c
)
includes=(-I"$out/generated" -I"$here/stock" -I"$here/include" -I"$src/apr" -I"$src/apr/include/arch/unix" -I"$src/apr/include"
    -I"$src/apr-util/crypto" -I"$src/apr/include/private" -I"$src/pcre2/src" -I"$src/apache2"
    -I"$src/apache2/server" -I"$src/zlib" -I"$(apxs -q APR_INCLUDEDIR)" -I"$(apxs -q APU_INCLUDEDIR)" -I"$(apxs -q INCLUDEDIR)")
# The server's own flags, as its headers expect them; the functions that are
# named otherwise are questions to the server (stock/server.c), or lack something here (stock/system.c).
flags=(-O2 -g -w -D_GNU_SOURCE -DLINUX -D_REENTRANT -ffunction-sections -fdata-sections -Dgetenv=stock_getenv)
library=(-fvisibility=hidden -DHAVE_PCRE2 -DPCRE2_CODE_UNIT_WIDTH=8 -DSUPPORT_UNICODE -DHAVE_CONFIG_H
    -Dap_get_sload=util_get_sload -Dap_get_loadavg=util_get_loadavg -Dstrftime=stock_strftime)

# Their loads and stores tell of themselves (stock/observe.c).
watched=(-fsanitize=thread --param=tsan-instrument-func-entry-exit=0)

fetch() {
    mkdir -p "$src"
    while read -r source installed; do
        [[ -d $src/$source ]] || "$here/../../scripts/debian_source.py" "$src" "$source" "$installed"
    done <<<"apache2 apache2-bin
apr libapr1
apr-util libaprutil1
pcre2 libpcre2-8-0
zlib zlib1g"
}

# What their own builds would generate.
generate() {
    mkdir -p "$out/generated" "$out/objects" "$out/modules"
    gcc -O1 -w -D_GNU_SOURCE "${includes[@]}" -o "$out/generated/gen_test_char" "$src/apache2/server/gen_test_char.c"
    "$out/generated/gen_test_char" >"$out/generated/test_char.h"
    gcc -O1 -w -D_GNU_SOURCE "${includes[@]}" -o "$out/generated/gen_escapes" "$src/apr/tools/gen_test_char.c"
    "$out/generated/gen_escapes" >"$out/generated/apr_escape_test_char.h"
    cp "$src/pcre2/src/config.h.generic" "$out/generated/config.h"
    cp "$src/pcre2/src/pcre2.h.generic" "$out/generated/pcre2.h"
    cp "$src/pcre2/src/pcre2_chartables.c.dist" "$out/generated/pcre2_chartables.c"
}

# Puts together what requests run (stock/often.txt, from profiles): each page of code that one touches costs.
gather() {
    local name object
    local -a words=()

    while read -r name; do words+=(--rename-section ".text.$name=.text.hot.$name"); done <"$here/stock/often.txt"
    for object in "$out"/objects/*.o; do objcopy "${words[@]}" "$object"; done
}

# What looks at requests: modules, and what of the library does it for them.
compile_watched() { # SOURCE OBJECT FLAGS...
    local source=$1 object=$2
    local -a own

    shift 2
    read -ra own <<<"$("$ringfence" cc --print-flags | sed -n 's/^compile: *//p')"
    gcc "${own[@]}" "$@" "${watched[@]}" -S "$source" -o - | awk -f "$here/stock/watched.awk" >"$object.s"
    "$ringfence" cc -c "$object.s" -o "$object"
    rm "$object.s"
}

is_newer() { # FILE THAN...
    local file=$1 than
    shift
    for than; do [[ $file -nt $than ]] || return 1; done
}

build_library() {
    local part object flag

    generate
    for part in "${parts[@]/#/$src/}" "$out/generated/pcre2_chartables.c"; do
        object=$out/objects/$(basename "$part" .c).o
        if is_newer "$object" "$ringfence" "$here/stock.sh" "$here/stock/watched.awk" "$here/stock/often.txt"; then continue; fi
        if [[ $part == */server/util*.c || $part == */apr_uri.c ]]; then
            compile_watched "$part" "$object" "${flags[@]}" "${library[@]}" "${includes[@]}"
            continue
        fi
        "$ringfence" cc "${flags[@]}" "${library[@]}" "${includes[@]}" -c "$part" -o "$object"
    done
    for part in "$here"/stock/*.c; do
        object=$out/objects/$(basename "$part" .c).o
        flag=-Wall
        if is_newer "$object" "$ringfence" "$here/stock.sh" "$here/stock/watched.awk" "$here/stock/often.txt" "$part" "$here"/stock/*.h "$here"/include/stock*.h; then continue; fi
        # They include sources of APR's.
        if [[ $part == */table.c || $part == */pool.c || $part == */expression.c ]]; then flag=-w; fi
        if [[ $part == */core.c || $part == */server.c || $part == */system.c || $part == */provider.c || $part == */expression.c ]]; then
            compile_watched "$part" "$object" "${flags[@]/-w/$flag}" -fvisibility=hidden "${includes[@]}"
            continue
        fi
        "$ringfence" cc "${flags[@]/-w/$flag}" -fvisibility=hidden "${includes[@]}" -c "$part" -o "$object"
    done
    if is_newer "$out/libstock.a" "$out"/objects/*.o; then return; fi
    gather
    rm -f "$out/libstock.a"
    find "$out/objects" -name '*.o' ! -name enter.o -print0 | xargs -0 ar rcs "$out/libstock.a"
}

build_module() { # NAME or FILE
    local source=$1 name
    local -a dirs=() own_headers=()

    if [[ $1 != *.c ]]; then source=$(find "$src/apache2/modules" -name "mod_$1.c"); fi
    [[ -n $source ]] || { echo "stock.sh: the server has no module $1" >&2; return 1; }
    for name in "$src"/apache2/modules/*/; do dirs+=(-I"$name"); done
    name=$(basename "$source" .c)
    # A module of the server's knows nothing of these headers.
    if [[ $1 == *.c ]]; then own_headers=("$here"/include/stock*.h); fi
    if ! is_newer "$out/modules/$name.o" "$source" "$ringfence" "$here/stock.sh" "$here/stock/watched.awk" "${own_headers[@]}" ||
        [[ $(cat "$out/modules/$name.flags" 2>/dev/null) != "${STOCK_CFLAGS:-}" ]]; then
        # shellcheck disable=SC2086 # several flags
        compile_watched "$source" "$out/modules/$name.o" "${flags[@]}" ${STOCK_CFLAGS:-} "${dirs[@]}" "${includes[@]}"
        echo "${STOCK_CFLAGS:-}" >"$out/modules/$name.flags"
    fi
    if is_newer "$out/modules/$name.rf" "$out/modules/$name.o" "$out/libstock.a" "$out/objects/enter.o"; then return; fi
    "$ringfence" cc -shared "$out/modules/$name.o" "$out/objects/enter.o" -L"$out" -lstock -Wl,--gc-sections \
        -Wl,--wrap=__rf_syscall5 -Wl,--wrap=__rf_syscall6 -o "$out/modules/$name.rf"
}

build() { # NAME...
    local name
    local -a running=()

    [[ -d $src/apache2 ]] || { echo "stock.sh: no sources: run stock.sh fetch" >&2; exit 1; }
    [[ -x $ringfence ]] || { echo "stock.sh: no command ringfence: make install, or set RINGFENCE_PREFIX" >&2; exit 1; }
    build_library
    for name; do
        build_module "$name" &
        running+=($!)
        if ((${#running[@]} == $(nproc))); then
            wait "${running[0]}"
            running=("${running[@]:1}")
        fi
    done
    for name in "${running[@]}"; do wait "$name"; done
    echo "$out/modules"
}

command=${1:-}
if (($# > 0)); then shift; fi
case $command in
fetch) fetch ;;
build)
    if (($# == 0)); then set -- "${known[@]}"; fi
    build "$@"
    ;;
list) printf '%s\n' "${known[@]}" ;;
*) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
