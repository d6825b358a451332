#!/bin/sh
# build.sh DIRECTORY: builds what modules for plfenced are linked with, and puts the compiler's script beside it.
# Environment: RINGFENCE, the command (default: ringfence); PG_CONFIG (default: pg_config).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
into=$1
ringfence=${RINGFENCE:-ringfence}
pg_config=${PG_CONFIG:-pg_config}
server=$("$pg_config" --includedir-server)
objects=$into/objects

mkdir -p "$objects" "$into/include"
"$here/builtins.sh" "$("$pg_config" --sharedir)/postgres.bki" "$server/utils/fmgrprotos.h" > "$objects/builtins.c"
cp -R "$here/include/." "$into/include/"
# The module of a function exports its own functions only; what it does not use of the library is dropped.
set -- -O2 -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers \
	-fvisibility=hidden -ffunction-sections -fdata-sections -I"$server" -I"$here" -I"$here/include"
rm -f "$into/libplfenced.a" "$objects"/*.o
for source in "$here"/*.c "$objects/builtins.c"; do
	"$ringfence" cc "$@" -c "$source" -o "$objects/$(basename "$source" .c).o"
done
mv "$objects/start.o" "$into/plfenced_start.o"
ar rcs "$into/libplfenced.a" "$objects"/*.o
rm -rf "$objects"
sed -e "s|@RINGFENCE@|$ringfence|" -e "s|@SERVER@|$server|" "$here/plfenced-cc" > "$into/plfenced-cc"
chmod +x "$into/plfenced-cc"
