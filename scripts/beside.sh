#!/usr/bin/env bash
# Installs into an empty TREE what an integration's package has beside the package ringfence.
#   beside.sh RELEASE_DIR TREE INSTALL...
# Runs `INSTALL TREE /usr` over what ringfence installs, which it is built against, and takes that out again.
set -euo pipefail
release=$1 tree=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$(dirname "$0")/install.sh" "$release" "$tree" /usr >/dev/null
find "$tree" ! -type d | sort >"$work/ringfence"
"$@" "$tree" /usr >/dev/null
comm -12 <(find "$tree" ! -type d | sort) "$work/ringfence" | xargs -d '\n' rm
find "$tree" -depth -type d -empty -delete
