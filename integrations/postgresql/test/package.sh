#!/usr/bin/env bash
# Makes the Debian packages of Ringfence and of plfenced, unpacks both, and uses the language from a copy of the server.
#   package.sh
# Needs neither root nor mounts: what a package manager would do besides (dependencies, ldconfig) is not seen. Ends with "N passed, M failed".
# shellcheck disable=SC2016 # the shells inside expand these
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../.."

command -v pg_config >/dev/null || { echo "package.sh: no pg_config: install postgresql-15 and postgresql-server-dev-15" >&2; exit 1; }
release=$PWD/${CARGO_TARGET_DIR:-target}/release
work=$(mktemp -d)
chmod 755 "$work"
tree=$here/../tree.sh
cluster=$work/cluster
trap '"$tree" stop "$cluster" 2>/dev/null || true; rm -rf "$work"' EXIT
source tests/checks.sh

major=$(pg_config --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
check "package of the library" scripts/deb.sh "$release" "$work"
check "package of the language" integrations/postgresql/deb.sh "$release" "$work"
library=$(echo "$work"/ringfence_*_amd64.deb)
package=$(echo "$work/postgresql-$major"-plfenced_*_amd64.deb)
root=$work/root
check "unpack" bash -c 'dpkg-deb -x "$1" "$3" && dpkg-deb -x "$2" "$3"' - "$library" "$package" "$root"
check "no file is in both" bash -c '! comm -12 <(dpkg-deb --contents "$1" | grep -v "/$" | awk "{ print \$6 }" | sort) <(dpkg-deb --contents "$2" | grep -v "/$" | awk "{ print \$6 }" | sort) | grep .' - "$library" "$package"
check "what it depends on" bash -c '[[ $(dpkg-deb --field "$1" Depends) == "postgresql-$2, ringfence (= $(dpkg-deb --field "$3" Version))" ]]' - "$package" "$major" "$library"
check "nothing of this tree" bash -c '! grep -rIl "$1" "$2"' - "$work/" "$root/usr"

# As installed: what stands below / is looked for below the root, and in a copy of the server.
export LD_LIBRARY_PATH=$root/usr/lib RINGFENCE=$root/usr/bin/ringfence PLFENCED_TREE=$root
unset RINGFENCE_SYSROOT
check "a copy of the server" "$tree" copy
check "compile a module" "$root/usr/bin/plfenced-cc" -g -o "$work/basics.rf" "$here/modules/basics.c"
check "start" "$tree" start "$cluster" "shared_preload_libraries = 'plfenced'"
check "create the extension" "$tree" psql "$cluster" -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION plfenced'
check "a function of a module" bash -c '[[ $("$1" psql "$2" -At -v ON_ERROR_STOP=1 -v module="$3" -f -) == *42 ]]' - "$tree" "$cluster" "$work/basics.rf" <<'END'
SELECT fenced.install('basics', pg_read_binary_file(:'module'));
CREATE FUNCTION inc(int) RETURNS int AS 'basics:inc' LANGUAGE plfenced STRICT;
SELECT inc(41);
END
check "a function from text" bash -c '[[ $("$1" psql "$2" -At -v ON_ERROR_STOP=1 -f -) == 49 ]]' - "$tree" "$cluster" <<'END'
CREATE FUNCTION square(int) RETURNS int LANGUAGE plfenced STRICT AS 'int square(int x) { return x * x; }';
SELECT square(7);
END
totals
