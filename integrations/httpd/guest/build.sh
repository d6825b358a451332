#!/bin/sh
# build.sh DIRECTORY: builds what pages for mod_fenced are linked with, and puts the compiler's script beside it.
# Environment: RINGFENCE, the command (default: ringfence).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
into=$1
ringfence=${RINGFENCE:-ringfence}
objects=$into/objects

mkdir -p "$objects" "$into/include"
cp "$here"/../include/*.h "$into/include/"
rm -f "$into/libfenced.a" "$objects"/*.o
# A page exports its own functions only; what it does not use of the library is dropped.
for source in "$here"/*.c; do
	"$ringfence" cc -O2 -Wall -Wextra -fvisibility=hidden -ffunction-sections -fdata-sections -I"$into/include" \
		-c "$source" -o "$objects/$(basename "$source" .c).o"
done
mv "$objects/program.o" "$into/fenced_program.o"
ar rcs "$into/libfenced.a" "$objects"/*.o
rm -rf "$objects"
sed -e "s|@RINGFENCE@|$ringfence|" "$here/fenced-cc" > "$into/fenced-cc"
chmod +x "$into/fenced-cc"
