# libjpeg-turbo, as the crate turbojpeg-sys carries it, with the interface of libjpeg 6b.
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
programs=(check)
program_check=(@../jpeg/check.c)
prepare() { # what its CMake writes on this machine
	local file
	[ ! -e "$gen/jversion.h" ] || return 0
	for file in "${bits12[@]}"; do
		printf '#define BITS_IN_JSAMPLE 12\n#include "%s"\n' "$file" >"$gen/12-$file"
	done
	for file in "${bits16[@]}"; do
		printf '#define BITS_IN_JSAMPLE 16\n#include "%s"\n' "$file" >"$gen/16-$file"
	done
	sed -e 's/@JPEG_LIB_VERSION@/62/; s/@VERSION@/3.1.0/; s/@LIBJPEG_TURBO_VERSION_NUMBER@/3001000/' \
		-e 's/#cmakedefine \([CD]_ARITH_CODING_SUPPORTED\) 1/#define \1 1/; s/#cmakedefine .*//' \
		"$src/jconfig.h.in" >"$gen/jconfig.h"
	sed -e 's/@BUILD@/recipe/; s/@HIDDEN@/__attribute__((visibility("hidden")))/' \
		-e 's/@INLINE@/inline __attribute__((always_inline))/; s/@THREAD_LOCAL@/__thread/; s/@SIZE_T@/8/' \
		-e 's/@CMAKE_PROJECT_NAME@/libjpeg-turbo/; s/@VERSION@/3.1.0/' \
		-e 's/#cmakedefine \([CD]_ARITH_CODING_SUPPORTED\) 1/#define \1 1/; s/#cmakedefine HAVE_BUILTIN_CTZL/#define HAVE_BUILTIN_CTZL/; s/#cmakedefine .*//' \
		"$src/jconfigint.h.in" >"$gen/jconfigint.h"
	sed -e 's/@COPYRIGHT_YEAR@/1991-2024/' "$src/jversion.h.in" >"$gen/jversion.h"
}
check() { run check; }
bench() { run check bench; }
