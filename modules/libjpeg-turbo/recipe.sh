# libjpeg-turbo, as the crate turbojpeg-sys carries it, with the interface of libjpeg 6b. Its loops for vector units are NASM's: what nasm
# makes of them becomes assembly for gcc, and the same without r11, r14 and r15 for the fence (gas.py). Without nasm they are left out.
crate=(turbojpeg-sys 1.2.0 49b5a974bc59382d35927e3a07eef2ba9a24fe7227cefe52ec44b508e1b90f86)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/libjpeg-turbo/src
cflags=(-w "-I$gen" "-I$src")
# Some sources are built for each number of bits that a sample may have.
bits16=(jcapistd.c jccolor.c jcdiffct.c jclossls.c jcmainct.c jcprepct.c jcsample.c jdapistd.c jdcolor.c jddiffct.c jdlossls.c
	jdmainct.c jdpostct.c jdsample.c jutils.c)
bits12=("${bits16[@]}" jccoefct.c jcdctmgr.c jdcoefct.c jddctmgr.c jdmerge.c jfdctfst.c jfdctint.c jidctflt.c jidctfst.c
	jidctint.c jidctred.c jquant1.c jquant2.c)
library=("${bits12[@]}" jaricom.c jcapimin.c jcarith.c jchuff.c jcicc.c jcinit.c jclhuff.c jcmarker.c jcmaster.c jcomapi.c
	jcparam.c jcphuff.c jctrans.c jdapimin.c jdarith.c jdatadst.c jdatasrc.c jdhuff.c jdicc.c jdinput.c jdlhuff.c jdmarker.c
	jdmaster.c jdphuff.c jdtrans.c jerror.c jfdctflt.c jmemmgr.c jmemnobs.c jpeg_nbits.c
	"${bits12[@]/#/$gen/12-}" "${bits16[@]/#/$gen/16-}")
wasm_library=("${library[@]}") wasm_cflags=("-iquote$gen/wasm" -DNO_GETENV) # no assembly, its own sizes of types, no environment
if command -v nasm >/dev/null; then
	simd=simd vectors=()
	for file in "$src"/../simd/x86_64/*.asm; do
		[[ $file == *ext-* ]] || vectors+=("$(basename "$file" .asm).s") # those are included by others
	done
	fenced_library=("${library[@]}" ../simd/x86_64/jsimd.c "${vectors[@]/#/$gen/fenced-}")
	library+=(../simd/x86_64/jsimd.c "${vectors[@]/#/$gen/native-}")
else
	simd=c
	echo "libjpeg-turbo: there is no nasm: without loops for vector units" >&2
fi
programs=(check)
program_check=(@check.c)
prepare() { # what its CMake writes on this machine
	local file with=
	[ $simd = c ] || with='s/#cmakedefine WITH_SIMD/#define WITH_SIMD/'
	[ ! -e "$gen/$simd" ] || [ ! -e "$gen/wasm" ] || [ "$here/$recipe/gas.py" -nt "$gen/$simd" ] || return 0
	if [ ! -e "$gen/$simd" ]; then # the first time, or nasm came or went
		rm -rf "$gen" "$out/$recipe/native" "$out/$recipe/fenced"
		mkdir -p "$gen"
	fi
	for file in "${bits12[@]}"; do
		printf '#define BITS_IN_JSAMPLE 12\n#include "%s"\n' "$file" >"$gen/12-$file"
	done
	for file in "${bits16[@]}"; do
		printf '#define BITS_IN_JSAMPLE 16\n#include "%s"\n' "$file" >"$gen/16-$file"
	done
	sed -e 's/@JPEG_LIB_VERSION@/62/; s/@VERSION@/3.1.0/; s/@LIBJPEG_TURBO_VERSION_NUMBER@/3001000/' \
		-e 's/#cmakedefine \([CD]_ARITH_CODING_SUPPORTED\) 1/#define \1 1/; '"$with; s/#cmakedefine .*//" \
		"$src/jconfig.h.in" >"$gen/jconfig.h"
	sed -e 's/@BUILD@/recipe/; s/@HIDDEN@/__attribute__((visibility("hidden")))/' \
		-e 's/@INLINE@/inline __attribute__((always_inline))/; s/@THREAD_LOCAL@/__thread/; s/@SIZE_T@/8/' \
		-e 's/@CMAKE_PROJECT_NAME@/libjpeg-turbo/; s/@VERSION@/3.1.0/' \
		-e 's/#cmakedefine \([CD]_ARITH_CODING_SUPPORTED\) 1/#define \1 1/; s/#cmakedefine HAVE_BUILTIN_CTZL/#define HAVE_BUILTIN_CTZL/; '"$with; s/#cmakedefine .*//" \
		"$src/jconfigint.h.in" >"$gen/jconfigint.h"
	sed -e 's/@COPYRIGHT_YEAR@/1991-2024/' "$src/jversion.h.in" >"$gen/jversion.h"
	if [ $simd = simd ]; then
		for file in "${vectors[@]%.s}"; do
			nasm -f elf64 -DELF -D__x86_64__ -DPIC -D__CET__ -I "$src/../simd/nasm/" -I "$src/../simd/x86_64/" \
				"$src/../simd/x86_64/$file.asm" -o "$gen/$file.o"
			"$here/$recipe/gas.py" "$gen/$file.o" >"$gen/native-$file.s"
			"$here/$recipe/gas.py" --fenced "$gen/$file.o" >"$gen/fenced-$file.s"
		done
	fi
	mkdir -p "$gen/wasm"
	sed '/WITH_SIMD/d' "$gen/jconfig.h" >"$gen/wasm/jconfig.h"
	sed '/WITH_SIMD/d; s/SIZEOF_SIZE_T .*/SIZEOF_SIZE_T 4/' "$gen/jconfigint.h" >"$gen/wasm/jconfigint.h"
	: >"$gen/$simd"
}
check() {
	local kind
	run check | tee best
	# The loops in C and those for SSE2 give the same. In damaged files coefficients overflow, which vectors do otherwise.
	for kind in FORCENONE FORCESSE2; do
		run check "JSIMD_$kind" | grep kind | cmp - <(grep kind best)
	done
}
bench() { run check bench; }
