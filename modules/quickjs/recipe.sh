# QuickJS-ng, a JavaScript engine, as the crate rquickjs-sys carries it, with its shell and upstream's tests.
crate=(rquickjs-sys 0.14.0 cee271d0eeba64f0915b846cb7ae02e16faf3dfdffdca91731101d9d30fe3423)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/quickjs
cflags=(-w -std=gnu11 -D_GNU_SOURCE "-I$src")
library=(quickjs.c libregexp.c libunicode.c dtoa.c)
programs=(qjs)
program_qjs=(qjs.c quickjs-libc.c gen/repl.c gen/standalone.c)
check() {
	local test
	cp "$src"/tests/*.js .
	# Those that need no option of upstream's test runner.
	for test in test_{language,closure,loop,bigint,array_to_gc,base64,queue_microtask,string_exports}.js bug*.js typedarray-*.js; do
		case $test in bug1354.js | bug1661.js | bug648.js | bug775.js | bug776.js) continue ;; esac
		echo "== $test"
		run qjs "$test"
	done
}
bench() {
	cp "$here/quickjs/bench.js" .
	run qjs bench.js
}
