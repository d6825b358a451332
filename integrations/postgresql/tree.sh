#!/usr/bin/env bash
# A private copy of the installed PostgreSQL with the extension in it, and clusters of it: nothing of the system is touched.
#
#   tree.sh make                    builds the extension and the library of modules, and installs both into the tree
#   tree.sh copy                    copies the server only
#   tree.sh start DIR [SETTING...]  a cluster in DIR, listening on a socket in DIR only
#   tree.sh stop DIR
#   tree.sh home DIR                a directory of the server's user
#   tree.sh psql DIR [ARGS...]
#   tree.sh run PROGRAM [ARGS...]   another of the server's programs, as the server's user
#   tree.sh as COMMAND [ARGS...]    any command, likewise
#   tree.sh path                    the tree's bin directory
#   tree.sh out                     the directory with everything that is made
#   tree.sh library                 the directory with plfenced-cc and the library of modules
#
# Ringfence is expected below RINGFENCE_PREFIX (build/prefix of the repository, which this script fills if it is not set). PLFENCED_TREE:
# the copy's place, if it is another.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/build/postgresql

# The server does not run as root; what runs it has to get at its files.
as=()
if [[ $(id -u) == 0 ]]; then
    id postgres >/dev/null 2>&1 || { echo "tree.sh: no user postgres: install postgresql-15" >&2; exit 1; }
    as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
    "${as[@]}" test -x "$root" || out=/var/tmp/ringfence-postgresql-$(cksum <<<"$root" | cut -d ' ' -f 1)
fi
tree=${PLFENCED_TREE:-$out/tree}
prefix=${RINGFENCE_PREFIX:-$out/prefix}

config=$(command -v "${PG_CONFIG:-pg_config}") || { echo "tree.sh: no pg_config: install postgresql-server-dev-15" >&2; exit 1; }
bin=$tree$("$config" --bindir)

copy_server() {
    local dir
    for dir in "$("$config" --bindir)" "$("$config" --pkglibdir)" "$("$config" --sharedir)"; do
        mkdir -p "$tree$dir"
        # With their times: a server that was upgraded is newer than the copy.
        cp -ru --preserve=timestamps "$dir/." "$tree$dir/"
    done
}

make_tree() {
    mkdir -p "$out"
    chmod 755 "$out"
    if [[ -z ${RINGFENCE_PREFIX:-} ]]; then
        make --no-print-directory -C "$root" install PREFIX="$prefix" >/dev/null
    fi
    copy_server
    make --no-print-directory -C "$here" -j"$(nproc)" RINGFENCE_PREFIX="$prefix" PG_CONFIG="$config" >/dev/null
    make --no-print-directory -C "$here" RINGFENCE_PREFIX="$prefix" PG_CONFIG="$config" DESTDIR="$tree" install >/dev/null
    RINGFENCE=$prefix/bin/ringfence PG_CONFIG=$config sh "$here/guest/build.sh" "$out/library"
}

home() { # DIR
    mkdir -p "$1"
    if ((${#as[@]})); then chown postgres "$1"; fi
}

start() { # DIR SETTING...
    local dir=$1 setting
    shift
    home "$dir"
    dir=$(cd "$dir" && pwd)
    if [[ ! -d $dir/data ]]; then
        "${as[@]}" "$bin/initdb" -D "$dir/data" -U postgres -A trust --no-locale -E UTF8 --no-sync >"$dir/initdb.log"
        cat >>"$dir/data/postgresql.conf" <<-END
			listen_addresses = ''
			unix_socket_directories = '$dir'
			fsync = off
			max_connections = 30
		END
    fi
    for setting; do echo "$setting" >>"$dir/data/postgresql.conf"; done
    "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w start >/dev/null
}

case ${1:-} in
make) make_tree ;;
copy) copy_server ;;
start) shift && start "$@" ;;
stop) "${as[@]}" "$bin/pg_ctl" -D "$2/data" -m fast -w stop >/dev/null ;;
psql) dir=$(cd "$2" && pwd) && shift 2 && exec "$bin/psql" -h "$dir" -U postgres -X -q "$@" ;;
home) home "$2" ;;
run) program=$2 && shift 2 && exec "${as[@]}" "$bin/$program" "$@" ;;
out) echo "$out" ;;
as) shift && exec "${as[@]}" "$@" ;;
path) echo "$bin" ;;
library) echo "$out/library" ;;
*) sed -n '2,18s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
