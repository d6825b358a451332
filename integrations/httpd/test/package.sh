#!/usr/bin/env bash
# Makes the Debian packages of Ringfence and of mod_fenced, unpacks both, switches the module on by a2enmod, and asks a page of a private
# server.
#   package.sh
# Needs neither root nor mounts: what a package manager would do besides (dependencies, ldconfig) is not seen. Ends with "N passed, M failed".
# shellcheck disable=SC2016 # the shells inside expand these
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../.."

command -v apxs >/dev/null || { echo "package.sh: no apxs: install apache2 and apache2-dev" >&2; exit 1; }
release=$PWD/${CARGO_TARGET_DIR:-target}/release
work=$(mktemp -d)
chmod 755 "$work"
server=$(command -v apache2 || echo /usr/sbin/apache2)
trap '[[ ! -e $work/run/httpd.pid ]] || kill "$(cat "$work/run/httpd.pid")" || true; rm -rf "$work"' EXIT
source tests/checks.sh

check "package of the library" scripts/deb.sh "$release" "$work"
check "package of the module" integrations/httpd/deb.sh "$release" "$work"
library=$(echo "$work"/ringfence_*_amd64.deb)
package=$(echo "$work"/libapache2-mod-fenced_*_amd64.deb)
root=$work/root
check "unpack" bash -c 'dpkg-deb -x "$1" "$3" && dpkg-deb -x "$2" "$3"' - "$library" "$package" "$root"
check "no file is in both" bash -c '! comm -12 <(dpkg-deb --contents "$1" | grep -v "/$" | awk "{ print \$6 }" | sort) <(dpkg-deb --contents "$2" | grep -v "/$" | awk "{ print \$6 }" | sort) | grep .' - "$library" "$package"
check "the server gives what it depends on" bash -c 'api=$(dpkg-deb --field "$1" Depends | cut -d , -f 1) && [[ $(dpkg-query -W -f "\${Provides}" apache2-bin) == *"$api"* ]]' - "$package"
check "its configuration is kept by upgrades" bash -c 'diff <(dpkg-deb --info "$1" conffiles | sort) <(printf "/etc/apache2/mods-available/fenced.%s\n" conf load)' - "$package"
check "nothing of this tree" bash -c '! grep -rIl "$1" "$2"' - "$work/" "$root/usr"

# The server's own script for that, which is in a package that need not be installed.
enable=$(command -v a2enmod || true)
if [[ -z $enable ]] && (cd "$work" && apt-get download -qq apache2 && dpkg-deb -x apache2_*.deb apache2) >"$work/log" 2>&1; then
    enable=$work/apache2/usr/sbin/a2enmod
fi
config=$root/etc/apache2
mkdir -p "$config/mods-enabled" "$work/run" "$work/docs"
if [[ -n $enable ]]; then
    check "a2enmod" env APACHE_CONFDIR="$config" APACHE_STATE_DIRECTORY="$work/state" "$enable" fenced
else
    skip "a2enmod" "the package apache2 cannot be had"
    [[ ${CI:-} != true ]]
    ln -s ../mods-available/fenced.load ../mods-available/fenced.conf "$config/mods-enabled"
fi

# As installed, but below the root.
export LD_LIBRARY_PATH=$root/usr/lib RINGFENCE=$root/usr/bin/ringfence
unset RINGFENCE_SYSROOT
modules=$(apxs -q LIBEXECDIR)
cat >"$work/hello.c" <<'END'
#include <fenced.h>

int fenced_handle(const fenced_request *r) { return r->query[0] ? *(volatile int *)8 : fenced_printf("hello\n"); }
END
check "compile a page" "$root/usr/bin/fenced-cc" -o "$work/docs/hello.rf" "$work/hello.c"
# The server's processes are another user's, if root starts it.
chmod -R go+rX "$work"
sed "s| /| $root/|" "$config/mods-enabled/fenced.load" >"$work/fenced.load"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$work/httpd.conf" <<END
ServerRoot "$work"
DefaultRuntimeDir "$work/run"
PidFile "$work/run/httpd.pid"
Listen 127.0.0.1:$port
ServerName localhost
$([[ $(id -u) != 0 ]] || printf 'User www-data\nGroup www-data')
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule authz_host_module $modules/mod_authz_host.so
ErrorLog "$work/error.log"
Include "$work/fenced.load"
Include "$config/mods-enabled/fenced.conf"
FencedModule hello "$work/docs/hello.rf"
<Location /hello>
  SetHandler fenced:hello
</Location>
END
# answer PATH PATTERN: the server's answer has to match
cat >"$work/answer" <<END
#!/bin/sh
exec curl -s -w ' %{http_code}' "http://127.0.0.1:$port\$1" | tr '\n' ' ' | grep -E "\$2"
END
chmod +x "$work/answer"
check "configtest" "$server" -d "$work" -f "$work/httpd.conf" -t
check "start" "$server" -d "$work" -f "$work/httpd.conf" -k start
check "answers" bash -c 'for _ in $(seq 200); do curl -s -o "$2" "$1" && exit; sleep 0.1; done; exit 1' - "http://127.0.0.1:$port/" "$work/first"
check "a page" "$work/answer" /hello '^hello  200$'
check "a crash" "$work/answer" '/hello?crash' ' 500$'
check "the next one" "$work/answer" /hello '^hello  200$'
check "the status page" "$work/answer" '/fenced-status?auto' 'fenced.hello.faults: 1 .* 200$'
totals
