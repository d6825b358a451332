# libstdc++: sources of gcc, unmodified but for one function, configured as gcc configures them for a static library on musl
# (os/generic, locale model "generic", atomics built in), without the old ABI's symbol versions. Included by the sysroot's
# Makefile.

CXX := $(RINGFENCE) c++ --twin
LIBSTDCXX := $(GCC)/libstdc++-v3
CXX_HERE := $(HERE)/cxx
CXX_INCLUDE := $(DEST)/include/c++/12
CXX_HOST := $(CXX_INCLUDE)/x86_64-linux-musl

# --- headers -----------------------------------------------------------------------------------------------

# The release's date, which __GLIBCXX__ is.
CXX_DATE := 20220819
CXX_UPPER := [ABCDEFGHIJKLMNOPQRSTUVWXYZ_]
# What libstdc++'s own Makefile does to the header of libgcc that tells which threads there are.
CXX_GTHR := -e 's/\(UNUSED\)/_GLIBCXX_\1/g' -e 's/\(GCC$(CXX_UPPER)*_H\)/_GLIBCXX_\1/g' \
	-e 's/SUPPORTS_WEAK/__GXX_WEAK__/g' -e 's/\($(CXX_UPPER)*USE_WEAK\)/_GLIBCXX_\1/g'

$(CXX_INCLUDE)/.done: $(CXX_HERE)/cxx.mk $(CXX_HERE)/config.h $(DEST)/include/.done
	rm -rf $(@D)
	mkdir -p $(CXX_HOST)/bits $(CXX_HOST)/ext $(OBJ)/cxx/include/bits
	cd $(LIBSTDCXX)/include && cp -R std/. c_global/. $(@D)/
	cd $(LIBSTDCXX)/include && cp -R backward bits debug decimal experimental ext parallel pstl tr1 tr2 $(@D)/
	cd $(LIBSTDCXX)/include/c_compatibility && cp complex.h fenv.h math.h stdatomic.h stdlib.h tgmath.h $(@D)/
	cd $(LIBSTDCXX)/libsupc++ && cp compare cxxabi.h exception initializer_list new typeinfo $(@D)/
	cd $(LIBSTDCXX)/libsupc++ && cp atomic_lockfree_defines.h cxxabi_forced.h cxxabi_init_exception.h exception.h \
		exception_defines.h exception_ptr.h hash_bytes.h nested_exception.h $(@D)/bits/
	cd $(LIBSTDCXX)/config && cp os/generic/ctype_base.h os/generic/ctype_inline.h os/generic/os_defines.h \
		os/generic/error_constants.h cpu/generic/atomic_word.h cpu/generic/cpu_defines.h cpu/generic/cxxabi_tweaks.h \
		cpu/i486/opt/bits/opt_random.h locale/generic/c++locale_internal.h locale/generic/messages_members.h \
		locale/generic/time_members.h $(CXX_HOST)/bits/
	cp $(LIBSTDCXX)/config/cpu/i486/opt/ext/opt_random.h $(CXX_HOST)/ext/
	cp $(LIBSTDCXX)/config/io/basic_file_stdio.h $(CXX_HOST)/bits/basic_file.h
	cp $(LIBSTDCXX)/config/io/c_io_stdio.h $(CXX_HOST)/bits/c++io.h
	cp $(LIBSTDCXX)/config/allocator/new_allocator_base.h $(CXX_HOST)/bits/c++allocator.h
	cp $(LIBSTDCXX)/config/locale/generic/c_locale.h $(CXX_HOST)/bits/c++locale.h
	cp $(LIBSTDCXX)/include/precompiled/*.h $(CXX_HOST)/bits/
	sed -e '/^#pragma/b' -e '/^#/s/\($(CXX_UPPER)$(CXX_UPPER)*\)/_GLIBCXX_\1/g' \
		-e 's/_GLIBCXX_SUPPORTS_WEAK/__GXX_WEAK__/g' -e 's,^#include "\(.*\)",#include <bits/\1>,g' \
		$(GCC)/libgcc/gthr.h >$(CXX_HOST)/bits/gthr.h
	sed $(CXX_GTHR) $(GCC)/libgcc/gthr-single.h >$(CXX_HOST)/bits/gthr-single.h
	sed $(CXX_GTHR) $(GCC)/libgcc/gthr-posix.h >$(CXX_HOST)/bits/gthr-posix.h
	sed $(CXX_GTHR) -e 's,^#include "\(.*\)",#include <bits/\1>,g' $(GCC)/libgcc/gthr-posix.h >$(CXX_HOST)/bits/gthr-default.h
	sed -e 's,define __GLIBCXX__,define __GLIBCXX__ $(CXX_DATE),' -e 's,define _GLIBCXX_RELEASE,define _GLIBCXX_RELEASE 12,' \
		-e 's,define _GLIBCXX_INLINE_VERSION,define _GLIBCXX_INLINE_VERSION 0,' \
		-e 's,define _GLIBCXX_HAVE_ATTRIBUTE_VISIBILITY,define _GLIBCXX_HAVE_ATTRIBUTE_VISIBILITY 1,' \
		-e 's,define _GLIBCXX_EXTERN_TEMPLATE$$,define _GLIBCXX_EXTERN_TEMPLATE 1,' \
		-e 's,define _GLIBCXX_USE_DUAL_ABI,define _GLIBCXX_USE_DUAL_ABI 1,' \
		-e 's,define _GLIBCXX_USE_CXX11_ABI,define _GLIBCXX_USE_CXX11_ABI 1,' \
		-e 's,define _GLIBCXX_USE_ALLOCATOR_NEW,define _GLIBCXX_USE_ALLOCATOR_NEW 1,' \
		-e 's,define _GLIBCXX_USE_FLOAT128,define _GLIBCXX_USE_FLOAT128 1,' \
		-e 's,^#undef _GLIBCXX_VERBOSE_ASSERT$$,#define _GLIBCXX_VERBOSE_ASSERT 1,' \
		$(LIBSTDCXX)/include/bits/c++config >$(CXX_HOST)/bits/c++config.h
	cat $(CXX_HERE)/config.h >>$(CXX_HOST)/bits/c++config.h
	echo '#endif // _GLIBCXX_CXX_CONFIG_H' >>$(CXX_HOST)/bits/c++config.h
	: >$(OBJ)/cxx/include/bits/largefile-config.h # nothing is needed for large files; not installed
	rm $(@D)/bits/c++config
	touch $@

# --- the library -------------------------------------------------------------------------------------------

# By directory and standard, as libstdc++'s Makefiles have them. Left out: what keeps old binaries running
# (compatibility-*.cc), transactional memory, and the verbose handler of terminate(): ours tells the runtime.
CXX_SUPC := array_type_info atexit_thread bad_alloc bad_array_length bad_array_new bad_cast bad_typeid class_type_info \
	del_op del_ops del_opnt del_opv del_opvs del_opvnt dyncast eh_alloc eh_aux_runtime eh_call eh_catch eh_exception \
	eh_globals eh_personality eh_ptr eh_term_handler eh_terminate eh_throw eh_tm eh_type eh_unex_handler enum_type_info \
	function_type_info fundamental_type_info guard guard_error hash_bytes nested_exception new_handler new_op new_opnt new_opvnt new_opant \
	new_opvant \
	new_opv new_opa new_opva del_opa del_opant del_opsa del_opva del_opvant del_opvsa \
	pbase_type_info pmem_type_info pointer_type_info pure si_class_type_info tinfo tinfo2 vec vmi_class_type_info
CXX_98 := bitmap_allocator pool_allocator mt_allocator codecvt complex_io globals_io hash_tr1 hashtable_tr1 ios_failure \
	ios_init ios_locale list list-aux list-aux-2 list_associated list_associated-2 locale locale_facets \
	math_stubs_float math_stubs_long_double stdexcept strstream tree istream istream-string streambuf valarray \
	cow-istream-string compatibility allocator-inst concept-inst ext-inst misc-inst
CXX_11 := chrono codecvt condition_variable cow-stdexcept ctype debug functexcept functional futex future hash_c++0x \
	hashtable_c++0x ios limits mutex placeholders random regex shared_ptr snprintf_lite system_error thread \
	cow-locale_init cow-shim_facets cxx11-hash_tr1 cxx11-ios_failure cxx11-shim_facets cxx11-stdexcept \
	cow-fstream-inst cow-sstream-inst cow-string-inst cow-string-io-inst cow-wstring-inst cow-wstring-io-inst \
	cxx11-locale-inst cxx11-wlocale-inst sso_string ext11-inst fstream-inst ios-inst iostream-inst istream-inst \
	locale-inst ostream-inst sstream-inst streambuf-inst string-inst string-io-inst wlocale-inst wstring-inst \
	wstring-io-inst
CXX_17 := floating_from_chars floating_to_chars fs_dir fs_ops fs_path memory_resource ostream-inst string-inst \
	cow-string-inst
CXX_20 := sstream-inst
# Of the locale model, and built once more for the strings of the old ABI, which messages of exceptions are.
CXX_LOCALE := codecvt_members collate_members ctype_members messages_members monetary_members numeric_members time_members
CXX_COW := collate_members messages_members monetary_members numeric_members

CXX_OBJ := $(OBJ)/cxx
CXX_OBJS := $(patsubst %,$(CXX_OBJ)/supc/%.o,$(CXX_SUPC)) $(patsubst %,$(CXX_OBJ)/98/%.o,$(CXX_98) locale_init localename) \
	$(patsubst %,$(CXX_OBJ)/11/%.o,$(CXX_11)) $(patsubst %,$(CXX_OBJ)/17/%.o,$(CXX_17)) \
	$(patsubst %,$(CXX_OBJ)/20/%.o,$(CXX_20)) $(patsubst %,$(CXX_OBJ)/locale/%.o,$(CXX_LOCALE) c_locale ctype_configure_char) \
	$(patsubst %,$(CXX_OBJ)/cow/%.o,$(CXX_COW)) $(CXX_OBJ)/basic_file.o $(CXX_OBJ)/atomicity.o \
	$(CXX_OBJ)/cp-demangle.o \
	$(patsubst $(CXX_HERE)/%.cc,$(CXX_OBJ)/rf/%.o,$(wildcard $(CXX_HERE)/*.cc))

# The directories are named because the command looks for a sysroot elsewhere, or finds none yet.
CXX_FLAGS := -O2 -w -ffunction-sections -fdata-sections -fno-implicit-templates -nostdinc -isystem $(CXX_INCLUDE) \
	-isystem $(CXX_HOST) -isystem $(CXX_INCLUDE)/backward -isystem $(DEST)/include -isystem $(GCC_INCLUDE) -I$(CXX_OBJ)/include \
	-I$(LIBSTDCXX)/libsupc++ -I$(GCC)/libgcc -I$(GCC)/include
cxx = @mkdir -p $(@D) && $(CXX) $(CXX_FLAGS) $(1) -c $(or $(2),$<) -o $@

$(CXX_OBJS): $(CXX_INCLUDE)/.done
$(CXX_OBJ)/supc/%.o: $(LIBSTDCXX)/libsupc++/%.cc
	$(call cxx,-std=gnu++17)
$(CXX_OBJ)/98/locale_init.o $(CXX_OBJ)/98/localename.o: $(CXX_OBJ)/98/%.o: $(LIBSTDCXX)/src/c++98/%.cc
	$(call cxx,-std=gnu++11 -fchar8_t)
$(CXX_OBJ)/98/%.o: $(LIBSTDCXX)/src/c++98/%.cc
	$(call cxx,-std=gnu++98)
$(CXX_OBJ)/11/hashtable_c++0x.o: $(LIBSTDCXX)/src/c++11/hashtable_c++0x.cc
	$(call cxx,-std=gnu++11 -fimplicit-templates)
$(CXX_OBJ)/11/codecvt.o $(CXX_OBJ)/11/limits.o: $(CXX_OBJ)/11/%.o: $(LIBSTDCXX)/src/c++11/%.cc
	$(call cxx,-std=gnu++11 -fchar8_t)
# They hand numbers on, also long double, which is moved in integer registers then.
$(CXX_OBJ)/11/cow-shim_facets.o $(CXX_OBJ)/11/cxx11-shim_facets.o: $(CXX_OBJ)/11/%.o: $(LIBSTDCXX)/src/c++11/%.cc
	$(call cxx,-std=gnu++11 -mno-80387)
$(CXX_OBJ)/11/%.o: $(LIBSTDCXX)/src/c++11/%.cc
	$(call cxx,-std=gnu++11)
$(CXX_OBJ)/17/%.o: $(LIBSTDCXX)/src/c++17/%.cc
	$(call cxx,-std=gnu++17 -fimplicit-templates)
$(CXX_OBJ)/20/%.o: $(LIBSTDCXX)/src/c++20/%.cc
	$(call cxx,-std=gnu++20 -fimplicit-templates)
# Without what reads a long double, which is in convert.cc.
$(CXX_OBJ)/c_locale.cc: $(LIBSTDCXX)/config/locale/generic/c_locale.cc
	@mkdir -p $(@D)
	sed -z -e 's/  template<>\n    void\n    __convert_to_v(const char\* __s, long double& __v.*\n    }\n\n  void\n  locale::facet/  void\n  locale::facet/' $< >$@
	! grep -n 'long double' $@
	[ $$(grep -c '__convert_to_v(' $@) = 2 ]
$(CXX_OBJ)/locale/c_locale.o: $(CXX_OBJ)/c_locale.cc
	$(call cxx,-std=gnu++98 -fimplicit-templates)
$(CXX_OBJ)/locale/ctype_configure_char.o: $(LIBSTDCXX)/config/os/generic/ctype_configure_char.cc
	$(call cxx,-std=gnu++11)
$(CXX_OBJ)/locale/%.o: $(LIBSTDCXX)/config/locale/generic/%.cc
	$(call cxx,-std=gnu++98)
$(CXX_OBJ)/cow/%.o: $(LIBSTDCXX)/config/locale/generic/%.cc
	$(call cxx,-std=gnu++98 -D_GLIBCXX_USE_CXX11_ABI=0 -fimplicit-templates)
$(CXX_OBJ)/basic_file.o: $(LIBSTDCXX)/config/io/basic_file_stdio.cc
	$(call cxx,-std=gnu++98)
$(CXX_OBJ)/atomicity.o: $(LIBSTDCXX)/config/cpu/generic/atomicity_builtins/atomicity.h
	$(call cxx,-std=gnu++17,-x c++ $<)
# __cxa_demangle, from libiberty.
$(CXX_OBJ)/cp-demangle.o: $(GCC)/libiberty/cp-demangle.c
	@mkdir -p $(@D)
	$(CC) -O2 -w -ffunction-sections -nostdinc -isystem $(DEST)/include -isystem $(GCC_INCLUDE) -I$(GCC)/include \
		-DIN_GLIBCPP_V3 -DHAVE_STDLIB_H -DHAVE_STRING_H -c $< -o $@
$(CXX_OBJ)/rf/%.o: $(CXX_HERE)/%.cc
	$(call cxx,-std=gnu++17)

# Appended one by one: several directories have a file of the same name.
CXX_LIBS := $(HOSTED:%=%/lib/libstdc++.a)
$(CXX_LIBS): $(CXX_OBJS)
	rm -f $@ && mkdir -p $(@D)
	$(AR) qcs $@ $(members)
$(DEST)/lib/libsupc++.a:
	@mkdir -p $(@D)
	$(AR) rcs $@
.PHONY: cxx
cxx: $(CXX_LIBS) $(DEST)/lib/libsupc++.a
