#!/usr/bin/env bash
# Builds the examples twice, plain and fenced by `ringfence bind`, and compares what they print.
#   examples/run.sh
# The sources are the same: fenced, another header comes first and another library is linked. Ends with "N passed, M failed".
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}/release
export RINGFENCE=$PWD/$target/ringfence RINGFENCE_SYSROOT=${RINGFENCE_SYSROOT:-$PWD/build/sysroot}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source tests/checks.sh

mkdir "$work/lib"
soname=$(readelf -d "$target/libringfence_c.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
cp "$target/libringfence_c.so" "$work/lib/$soname"
ln -s "$soname" "$work/lib/libringfence.so"
export LD_LIBRARY_PATH=$work/lib
warnings=(-std=gnu11 -O1 -g -Wall -Wextra -Werror -Iinclude)

modules/make.sh build sqlite expat jpeg

# example RECIPE PROGRAM HEADER FLAG…: $work/PROGRAM and $work/PROGRAM-fenced
example() {
    local recipe=$1 program=$2 header=$3 name
    shift 3
    name=$(basename "$header" .h)
    check "$program: bind" "$RINGFENCE" bind "$header" --notes examples/"$recipe"/*.bind --module "build/modules/$recipe.rf" \
        -o "$work" -- "$@"
    check "$program: build" gcc "${warnings[@]}" "$@" "examples/$recipe/$program.c" "build/modules/$recipe/native/lib$recipe.a" \
        -lm -o "$work/$program"
    check "$program: build, fenced" gcc "${warnings[@]}" "$@" -include "$work/${name}_fenced.h" "examples/$recipe/$program.c" \
        -DRFB_MODULE="\"$PWD/build/modules/$recipe.rf\"" "$work/${name}_fenced.c" -L"$work/lib" -lringfence -pthread -o "$work/$program-fenced"
}

# same NAME PROGRAM ARGUMENT…: both print the same and end alike
same() {
    local name=$1 program=$2
    shift 2
    # shellcheck disable=SC2016 # the shell inside expands these
    check "$name" bash -c 'cd "$1"; program=$2; shift 2
        plain=0 fenced=0
        "./$program" "$@" >plain.out 2>plain.err || plain=$?
        "./$program-fenced" "$@" >fenced.out 2>fenced.err || fenced=$?
        cmp plain.out fenced.out && diff plain.err fenced.err && [ $plain = $fenced ] && [ -s plain.out -o -s plain.err ]' - "$work" "$program" "$@"
}

source=$(sysroot/fetch.sh crate sqlite3-src 0.7.1 2739bac4e1ca6527391698167b1392332d00123c9fc11eca16311291db6829f3)/source
example sqlite books "$source/sqlite3.h" -I"$source"
same "books" books

source=$(sysroot/fetch.sh crate expat-sys 2.1.6 658f19728920138342f68408b7cf7644d90d4784353d8ebc32e7e8663dbe45fa)/expat/lib
example expat outline "$source/expat.h" -I"$source"
cat >"$work/good.xml" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<shop name="Ring &amp; Fence"><book id="1" year='1968'>Sorting and searching<note>rare</note></book>
  <book id="2">K&#228;fer</book>
</shop>
XML
sed 's/<.note>//' "$work/good.xml" >"$work/bad.xml"
same "outline" outline good.xml
same "outline: a damaged document" outline bad.xml

source=$(sysroot/fetch.sh crate mozjpeg-sys 2.2.3 7f0dc668bf9bf888c88e2fb1ab16a406d2c380f1d082b20d51dd540ab2aa70c1)/vendor
example jpeg shrink "$source/jpeglib.h" -include stddef.h -include stdio.h -I"$PWD/build/modules/jpeg/gen" -I"$source"
check "a picture" gcc -O1 -w -I"$PWD/build/modules/jpeg/gen" -I"$source" examples/jpeg/picture.c \
    build/modules/jpeg/native/libjpeg.a -lm -o "$work/picture"
"$work/picture" >"$work/good.jpg"
head -c 2000 "$work/good.jpg" >"$work/bad.jpg"
head -c 100 "$work/good.xml" >"$work/none.jpg"
same "shrink" shrink good.jpg
same "shrink: half of a picture" shrink bad.jpg
same "shrink: no picture" shrink none.jpg

totals
