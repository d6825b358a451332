# Lua 5.4, as the crate lua-src carries it. The crate has the library; the small interpreter is ours.
crate=(lua-src 551.1.0 41d22b201501a536c0f5a96c7589b268b559172b20fb029064434e38ddcecb1f)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/lua-5.4.9
cflags=(-w -std=gnu99 -DLUA_USE_POSIX "-I$src")
mapfile -t library < <(cd "$src" && printf '%s\n' l*.c)
# Without setjmp and a system: an error ends the program, and the libraries that need files stay out.
wasm_cflags=('-Dluai_makeseed(L)=1u' -ULUA_USE_POSIX -D_WASI_EMULATED_SIGNAL "-I$here/lua/wasm" '-Dluai_jmpbuf=int' '-DLUAI_THROW(L,c)=__builtin_trap()' '-DLUAI_TRY(L,c,a)={ a }')
mapfile -t wasm_library < <(cd "$src" && printf '%s\n' l*.c | grep -v -e liolib -e loslib -e linit -e ldblib -e loadlib)
programs=(lua)
program_lua=(@interpreter.c)
check() {
	local script
	for script in "$here"/lua/tests/*.lua; do
		echo "== $(basename "$script")"
		run lua - <"$script"
	done
}
bench() { run lua - <"$here/lua/bench.lua"; }
