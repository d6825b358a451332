#!/usr/bin/env bash
# Installs the image server: the program, and its module with decoders and encoders, which it finds from its own place. Its standard
# functions and its page are in the program.
#   install.sh RELEASE_DIR DESTDIR PREFIX
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
release=$1 destdir=${2:-} prefix=${3:-/usr/local}
[[ $prefix == /* ]] || { echo "install: PREFIX must be an absolute path, not '$prefix'" >&2; exit 1; }
to=$destdir$prefix
install -D -m 755 "$release/ringfence-transcode" "$to/bin/ringfence-transcode"
# What `--backend process` runs domains in.
install -D -m 755 "$release/ringfence-worker" "$to/libexec/ringfence/ringfence-worker"
install -D -m 644 "$here/../../build/transcode/pictures.rf" "$to/lib/ringfence/pictures.rf"
# To begin a function of one's own with.
install -D -m 644 -t "$to/share/ringfence/transcode" "$here"/functions/*
echo "installed below $to: bin/ringfence-transcode, lib/ringfence/pictures.rf, share/ringfence/transcode"
