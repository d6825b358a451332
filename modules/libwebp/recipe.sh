# libwebp, as the crate libwebp-sys carries it. Its cpu.c asks the processor; fenced, ours answers from the header page.
crate=(libwebp-sys 0.14.4 6b3a87b44e34d17161e4f17d92a463d596cb13825dcd1758ed18fd3a721e189c)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/vendor
cflags=(-w "-I$src" -DWEBP_HAVE_SSE2)
wasm_cflags=(-UWEBP_HAVE_SSE2)
mapfile -t library < <(cd "$src" && printf '%s\n' src/dec/*.c src/demux/*.c src/dsp/*.c src/enc/*.c src/mux/*.c src/utils/*.c sharpyuv/*.c |
	grep -v -e neon -e mips -e msa -e sse41 -e avx2)
fenced_library=()
for file in "${library[@]}"; do
	case $file in
	src/dsp/cpu.c) fenced_library+=(@cpu.c) ;;
	sharpyuv/sharpyuv_cpu.c) ;;
	*) fenced_library+=("$file") ;;
	esac
done
programs=(check)
program_check=(@check.c)
check() { run check; }
bench() { run check bench; }
