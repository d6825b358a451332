# LZ4, as the crate lz4-sys carries it, with upstream's own test programs.
crate=(lz4-sys 1.11.1+lz4-1.10.0 6bd8c0d6c6ed0cd30b3652886bb8711dc4bb01d637a68105a3d5158039b418e6)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/liblz4
cflags=(-O3 -w "-I$src/lib" "-I$src/programs" "-I$src/tests" -DXXH_NAMESPACE=LZ4_ -DLZ4IO_MULTITHREAD=0)
library=(lib/lz4.c lib/lz4frame.c lib/lz4hc.c lib/lz4file.c lib/xxhash.c)
programs=(frametest roundtrip check)
program_frametest=(tests/frametest.c)
program_roundtrip=(tests/roundTripTest.c)
program_check=(@check.c)
check() {
	# It prints progress and times on stderr; the exit status is what counts. (Upstream's fuzzer takes minutes
	# even for a single round.)
	run frametest -s1234 -i200 -v >frametest.out 2>&1 || { tail frametest.out; return 1; }
	echo "frametest passed"
	cp "$src/lib/lz4.c" input
	run roundtrip input >/dev/null 2>&1
	echo "round trip passed"
	run check
}
bench() { run check bench; }
