# libpng, as the crate libpng-sys carries it, on the recipe's zlib.
crate=(libpng-sys 1.1.11 2e8d56e0541e2b1d73868e7b877624e1f9ce8787a91acdb867c30c579349d38b)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/vendor
zlib=$("$root/sysroot/fetch.sh" crate libz-sys 1.1.31 ff20308ecabd635a2dc1dd5834a86c462cca20efba1d5d3ddab1f8aea3455cb2)/src/zlib
needs=(zlib)
cflags=(-w "-I$gen" "-I$src" "-I$zlib")
wasm_cflags=("-iquote$gen/wasm") # its toolchain has no setjmp: there an error ends the program
library=(png.c pngerror.c pngget.c pngmem.c pngpread.c pngread.c pngrio.c pngrtran.c pngrutil.c pngset.c pngtrans.c
	pngwio.c pngwrite.c pngwtran.c pngwutil.c)
programs=(check)
program_check=(@check.c)
prepare() {
	[ -e "$gen/pnglibconf.h" ] || cp "$src/scripts/pnglibconf.h.prebuilt" "$gen/pnglibconf.h"
	mkdir -p "$gen/wasm"
	[ -e "$gen/wasm/pnglibconf.h" ] || sed -E "/PNG_(SETJMP|SIMPLIFIED)_/d" "$gen/pnglibconf.h" >"$gen/wasm/pnglibconf.h"
}
check() { run check; }
bench() { run check bench; }
