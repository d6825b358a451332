#!/usr/bin/env bash
# Compares filters with libpcap over real captures: those in the source packages of Debian's tcpdump, and with --all of nDPI, too.
#   captures.sh [--all]
# Environment: LIBPCAP=DIR, libpcap's development tree, whose test expressions are compared as well (Debian's packages lack them)
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
captures=$root/build/captures

packages=(tcpdump) rounds=100
if [[ ${1:-} == --all ]]; then packages+=(ndpi) rounds=3000; fi
directories=''
for package in "${packages[@]}"; do
    if [[ ! -d $captures/$package ]] && ! "$root/scripts/debian_source.py" "$captures" "$package" "$package" '*.*cap*'; then
        echo "captures: skipped, the source of $package cannot be had: 0 passed, 0 failed"
        [[ ${CI:-} != true ]]
        exit
    fi
    directories+=:$captures/$package
done
cd "$root"
RINGFENCE_CAPTURES=${directories#:} RINGFENCE_FILTER_ROUNDS=${RINGFENCE_FILTER_ROUNDS:-$rounds} \
    cargo test --release --quiet -p ringfence-packet-filter --test captures -- --nocapture
