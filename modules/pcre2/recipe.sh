# PCRE2, as the crate pcre2-sys carries it, without its compiler to machine code, which makes code at run time.
crate=(pcre2-sys 0.2.10 18b9073c1a2549bd409bf4a32c94d903bb1a09bf845bc306ae148897fa0760a4)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/upstream
cflags=(-w -DPCRE2_CODE_UNIT_WIDTH=8 -DHAVE_STDLIB_H=1 -DHAVE_MEMMOVE=1 -DHAVE_CONFIG_H=1 -DPCRE2_STATIC=1 -DSTDC_HEADERS=1
	-DSUPPORT_PCRE2_8=1 -DSUPPORT_UNICODE=1 "-I$src/src" "-I$src/deps" "-I$src/include")
# pcre2_ucptables.c is a part of pcre2_tables.c
mapfile -t library < <(cd "$src" && printf '%s\n' src/*.c | grep -v -e pcre2_jit_match -e pcre2_jit_misc -e pcre2_ucptables)
programs=(check)
program_check=(@check.c)
check() { run check; }
bench() { run check bench; }
