# Expat, as the crate expat-sys carries it, with upstream's own test suite.
crate=(expat-sys 2.1.6 658f19728920138342f68408b7cf7644d90d4784353d8ebc32e7e8663dbe45fa)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/expat
cflags=(-w -DHAVE_MEMMOVE -DXML_NS -DXML_DTD -DXML_CONTEXT_BYTES=1024 -DBYTEORDER=1234 -DHAVE_EXPAT_CONFIG_H "-I$gen" "-I$src/lib" "-I$src/tests")
library=(lib/xmlparse.c lib/xmlrole.c lib/xmltok.c)
programs=(runtests check)
program_runtests=(tests/runtests.c tests/chardata.c tests/minicheck.c)
program_check=(@check.c)
prepare() {
	[ -e "$gen/expat_config.h" ] || echo '#define PACKAGE_STRING "expat"' >"$gen/expat_config.h"
}
check() {
	run runtests
	run check
}
bench() { run check bench; }
