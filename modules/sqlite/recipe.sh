# SQLite with its command line shell, as the crate sqlite3-src carries the amalgamation.
crate=(sqlite3-src 0.7.1 2739bac4e1ca6527391698167b1392332d00123c9fc11eca16311291db6829f3)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/source
cflags=(-w "-I$src" -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_RTREE
	-DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_ENABLE_DBSTAT_VTAB -DHAVE_USLEEP=1 -DSQLITE_DEFAULT_MEMSTATUS=0)
library=(sqlite3.c)
programs=(shell check)
program_shell=(shell.c)
program_check=(@check.c)
check() {
	local script
	for script in "$here"/sqlite/tests/*.sql; do
		echo "== $(basename "$script")"
		run shell -batch shell.db <"$script" 2>&1 || echo "status $?"
	done
	run shell -batch shell.db 'pragma integrity_check' .schema 'select count(*), sum(length(body)) from note'
	# A natively written file is read fenced and the other way round: both write the same bytes.
	run shell -batch shell.db 'vacuum into "copy.db"'
	run shell -batch copy.db .dump | sha256sum
	run check
}
bench() { run check bench; }
