# libjpeg's interface as MozJPEG has it, without its assembly, as the crate mozjpeg-sys carries it.
crate=(mozjpeg-sys 2.2.3 7f0dc668bf9bf888c88e2fb1ab16a406d2c380f1d082b20d51dd540ab2aa70c1)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/vendor
cflags=(-w -DMOZJPEG "-I$gen" "-I$src")
library=(jaricom.c jcapimin.c jcapistd.c jcarith.c jccoefct.c jccolor.c jcdctmgr.c jcext.c jchuff.c jcicc.c jcinit.c jcmainct.c
	jcmarker.c jcmaster.c jcomapi.c jcparam.c jcphuff.c jcprepct.c jcsample.c jctrans.c jdapimin.c jdapistd.c jdarith.c
	jdatadst.c jdatasrc.c jdcoefct.c jdcolor.c jddctmgr.c jdhuff.c jdicc.c jdinput.c jdmainct.c jdmarker.c jdmaster.c
	jdmerge.c jdphuff.c jdpostct.c jdsample.c jdtrans.c jerror.c jfdctflt.c jfdctfst.c jfdctint.c jidctflt.c jidctfst.c
	jidctint.c jidctred.c jmemmgr.c jmemnobs.c jquant1.c jquant2.c jsimd_none.c jutils.c)
programs=(check)
program_check=(@check.c)
prepare() { # what its CMake writes on this machine
	[ ! -e "$gen/jversion.h" ] || return 0
	cat >"$gen/jconfig.h" <<-'H'
		#define JPEG_LIB_VERSION 62
		#define LIBJPEG_TURBO_VERSION 0
		#define BITS_IN_JSAMPLE 8
		#define STDC_HEADERS 1
		#define NO_GETENV 1
		#define NO_PUTENV 1
		#define HAVE_STDLIB_H 1
		#define HAVE_UNSIGNED_CHAR 1
		#define HAVE_UNSIGNED_SHORT 1
		#define MEM_SRCDST_SUPPORTED 1
		#define C_ARITH_CODING_SUPPORTED 1
		#define D_ARITH_CODING_SUPPORTED 1
	H
	cat >"$gen/jconfigint.h" <<-'H'
		#define BUILD "recipe"
		#define INLINE inline __attribute__((always_inline))
		#define HIDDEN __attribute__((visibility("hidden")))
		#define THREAD_LOCAL __thread
		#define SIZEOF_SIZE_T 8
		#define HAVE_BUILTIN_CTZL 1
		#define FALLTHROUGH
		#define PACKAGE_NAME "mozjpeg"
		#define VERSION "4"
	H
	cat >"$gen/jversion.h" <<-'H'
		#define JVERSION "4"
		#define JCOPYRIGHT "The libjpeg-turbo Project, Mozilla, and many others"
		#define JCOPYRIGHT_SHORT JCOPYRIGHT
	H
}
check() { run check; }
bench() { run check bench; }
