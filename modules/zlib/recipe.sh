# zlib, as the crate libz-sys carries it.
crate=(libz-sys 1.1.31 ff20308ecabd635a2dc1dd5834a86c462cca20efba1d5d3ddab1f8aea3455cb2)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/src/zlib
cflags=(-DHAVE_UNISTD_H -DHAVE_STDARG_H "-I$src")
library=(adler32.c compress.c crc32.c deflate.c gzclose.c gzlib.c gzread.c gzwrite.c infback.c inffast.c
	inflate.c inftrees.c trees.c uncompr.c zutil.c)
programs=(check)
program_check=(@check.c)
check() { run check; }
bench() { run check bench; }
