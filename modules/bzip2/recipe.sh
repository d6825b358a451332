# bzip2, as the crate bzip2-sys carries it; the check is upstream's, with its own program, and ours for the library.
crate=(bzip2-sys 0.1.13+1.0.8 225bff33b2141874fe80d71e07d6eec4f85c5c216453dd96388240f96e1acc14)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/bzip2-1.0.8
cflags=(-D_FILE_OFFSET_BITS=64 -w "-I$src")
library=(blocksort.c huffman.c crctable.c randtable.c compress.c decompress.c bzlib.c)
programs=(bzip2 check)
program_bzip2=(bzip2.c)
program_check=(@check.c)
check() {
	local i
	for i in 1 2 3; do
		run bzip2 "-$i" <"$src/sample$i.ref" >"sample$i.rb2"
		cmp "$src/sample$i.bz2" "sample$i.rb2"
		if [ "$i" = 3 ]; then
			run bzip2 -ds <"$src/sample$i.bz2" >"sample$i.tst"
		else
			run bzip2 -d <"$src/sample$i.bz2" >"sample$i.tst"
		fi
		cmp "$src/sample$i.ref" "sample$i.tst"
		echo "sample $i agrees"
	done
	# Files by name: replaced, their times kept.
	cp "$src/sample1.ref" file
	run bzip2 -9 file
	run bzip2 -t file.bz2
	run bzip2 -d file.bz2
	cmp "$src/sample1.ref" file
	run check
}
bench() { run check bench; }
