#!/usr/bin/env bash
# Functions typed in, called, replaced, deleted; then filters over a capture, beside libpcap.
#   demo.sh [DIRECTORY WITH ringfence AND rfdump]
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-${CARGO_TARGET_DIR:-target}/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec 2>&1

say() { printf '\n== %s\n' "$*"; }

say "A dialogue: functions are typed in, called, replaced, deleted (ringfence plug)"
cat >"$work/lines" <<'END'
long area(long a, long b) { return a * b; }
area(6, 7)
long area(long, long); long volume(long a, long b, long c) { return area(a, b) * c; }
volume(2, 3, 4)
long area(long a, long b) { return 100 * a * b; }
volume(2, 3, 4)
long wild(long at) { return *(long *)at; }
wild(1234)
area(1, 1)
long wrong(long n) { return m; }
delete area
volume(2, 3, 4)
END
# each line before what comes of it, as on a terminal; what goes wrong here is meant to
while IFS= read -r line; do
    printf '> %s\n' "$line"
    printf '%s\n' "$line" >&3
    sleep 0.1
done 3> >("$bin/ringfence" plug 2>&1 || true) <"$work/lines"
sleep 0.3

say "The same from a file, with times"
cat >"$work/grey.c" <<'END'
unsigned char grey(unsigned char red, unsigned char green, unsigned char blue)
{
	return (77 * red + 150 * green + 29 * blue) >> 8;
}
END
"$bin/ringfence" plug "$work/grey.c" --time --call grey 255 128 0

say "A capture of 20,000 packets, through the fence and through libpcap"
"$bin/examples/capture" "$work/all.pcap" 20000
for expression in 'tcp port 80' 'host 10.0.0.1 and not arp' 'vlan and ip6' 'ip[8] < 64 and udp'; do
    ours=$("$bin/rfdump" -r "$work/all.pcap" --count "$expression")
    theirs=$("$bin/examples/capture" "$work/all.pcap" count "$expression")
    printf '%-28s rfdump %6s   libpcap %6s\n' "$expression" "$ours" "$theirs"
    if [[ $ours != "$theirs" ]]; then echo "demo.sh: they are not the same" && exit 1; fi
done
"$bin/rfdump" -r "$work/all.pcap" 'tcp port 80 and src host 10.0.0.1' >"$work/packets"
head -n 4 "$work/packets"

say "A filter in C, which counts: every tenth packet of a port"
cat >"$work/tenth.c" <<'END'
static unsigned seen[65536];
int filter(const unsigned char *packet, unsigned length, unsigned wire)
{
	if (length < 36 || packet[12] != 8 || packet[13] != 0 || packet[23] != 6)
		return 0;
	return ++seen[packet[34] << 8 | packet[35]] % 10 == 0;
}
END
"$bin/rfdump" -r "$work/all.pcap" -f "$work/tenth.c" >"$work/packets"
printf '%s packets, the first of them\n' "$(wc -l <"$work/packets")"
head -n 3 "$work/packets"

say "Files that are cut, and expressions that do not parse"
head -c 100000 "$work/all.pcap" >"$work/cut.pcap"
"$bin/rfdump" -r "$work/cut.pcap" --count || true
"$bin/rfdump" -r "$work/all.pcap" 'tcp port' || true
echo
echo "demo-functions: done"
