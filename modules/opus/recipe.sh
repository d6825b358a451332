# Opus, an audio codec, in fixed point, as the crate audiopus_sys carries it: its results do not depend on the libc's
# logarithms.
crate=(audiopus_sys 0.2.2 62314a1546a2064e033665d658e88c620a62904be945f8147e6b16c3db9f8651)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/opus
cflags=(-w -DOPUS_BUILD -DVAR_ARRAYS -DFIXED_POINT -DDISABLE_FLOAT_API "-I$src/include" "-I$src/celt" "-I$src/silk" "-I$src/silk/fixed")
# the lists that upstream's makefiles have
opus_sources() { # VARIABLE FILE
	awk -v name="$1" '$1 == name { on = 1; next } on { print $1; if ($NF != "\\") exit }' "$src/$2_sources.mk"
}
mapfile -t library < <(opus_sources CELT_SOURCES celt && opus_sources SILK_SOURCES silk && opus_sources SILK_SOURCES_FIXED silk &&
	opus_sources OPUS_SOURCES opus)
programs=(check)
program_check=(@check.c)
check() { run check; }
bench() { run check bench; }
