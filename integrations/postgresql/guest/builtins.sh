#!/bin/sh
# builtins.sh BKI HEADER: writes C source that defines each of the server's builtin functions as a call of the server.
# BKI is the server's postgres.bki (names and OIDs), HEADER its utils/fmgrprotos.h (what modules may name).
set -eu

cat <<'TEXT'
#include "guest.h"

Datum plf_forward(FunctionCallInfo fcinfo, Oid function);

#define BUILTIN(name, oid)                        \
	Datum name(FunctionCallInfo fcinfo);      \
	Datum name(FunctionCallInfo fcinfo)       \
	{                                         \
		return plf_forward(fcinfo, oid);  \
	}

TEXT
# Functions of number.c are left out: calls of these stay inside the fence.
awk -v own=" float4in float8in " '
FNR == NR {
	if (match($0, /^extern Datum [a-z0-9_]+\(PG_FUNCTION_ARGS\)/))
		declared[substr($3, 1, index($3, "(") - 1)] = 1
	next
}
/^create / { column = 0; inside = ($2 == "pg_proc"); listed = inside; next }
listed && /^\)/ { listed = 0; next }
listed && $2 == "=" || listed && $3 == "=" {
	column++
	name = $1
	place[name] = column
	next
}
/^close / { inside = 0 }
inside && /^insert \(/ {
	line = substr($0, index($0, "(") + 1)
	n = 0
	while (match(line, /^ *(\047([^\047]|\047\047)*\047|[^ ]+)/)) {
		word = substr(line, 1, RLENGTH)
		sub(/^ */, "", word)
		line = substr(line, RLENGTH + 1)
		field[++n] = word
	}
	source = field[place["prosrc"]]
	if (field[place["prolang"]] == 12 && source in declared && !(source in done) && index(own, " " source " ") == 0) {
		done[source] = 1
		print "BUILTIN(" source ", " field[place["oid"]] ")"
	}
}' "$2" "$1"
