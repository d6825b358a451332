#!/usr/bin/env bash
# Everything that tests, demonstration and measurements need of mod_fenced, in a directory of its own: nothing of the system is touched.
#
#   tree.sh make        builds mod_fenced.so and the library of pages
#   tree.sh out         the directory with everything that is made
#
# Ringfence is expected below RINGFENCE_PREFIX (which this script fills if it is not set). HTTPD_OUT: another directory, which builds for tests
# leave alone. server.py starts servers.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${HTTPD_OUT:-$root/build/httpd}

# A server that is started as root runs as www-data, which has to get at its files.
if [[ -z ${HTTPD_OUT:-} ]] && [[ $(id -u) == 0 ]] && ! setpriv --reuid=www-data --regid=www-data --clear-groups test -x "$root"; then
    out=/var/tmp/ringfence-httpd-$(cksum <<<"$root" | cut -d ' ' -f 1)
fi
prefix=${RINGFENCE_PREFIX:-$out/prefix}

make_tree() {
    mkdir -p "$out"
    chmod 755 "$out"
    if [[ -z ${RINGFENCE_PREFIX:-} ]]; then
        make --no-print-directory -C "$root" install PREFIX="$prefix" >/dev/null
    fi
    make --no-print-directory -C "$here" RINGFENCE_PREFIX="$prefix" OUT="$out" >/dev/null
    RINGFENCE=$prefix/bin/ringfence sh "$here/guest/build.sh" "$out/library"
}

case ${1:-} in
make) make_tree ;;
out) echo "$out" ;;
*) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
