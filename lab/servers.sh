#!/usr/bin/env bash
# What subjects that live in a server need. Prints lines: `flag FLAG` (of C, natively), `source FILE` (what gets the faults),
# `cc COMMAND` (links a module), and places, each by its name.
#   servers.sh postgresql      the extension fuzzystrmatch of the installed PostgreSQL, and plfenced
#   servers.sh httpd           a page of Apache, and mod_fenced
#   servers.sh source NAME     fetches the source of what gets the faults only, if it is not here
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

# Where the extension's source is; fetches it, if it is not here.
extension() {
    local out package source
    out=$(integrations/postgresql/tree.sh out)
    package=postgresql-$(pg_config --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
    source=$out/source/contrib/fuzzystrmatch # where the test of the extensions has it
    [[ -d $source ]] || source=$out/lab/$package/contrib/fuzzystrmatch
    [[ -d $source ]] || scripts/debian_source.py "$out/lab" "$package" "$package" '*/contrib/fuzzystrmatch/*' >/dev/null
    echo "$source"
}

postgresql() {
    local tree=$root/integrations/postgresql/tree.sh out source
    "$tree" make
    out=$("$tree" out)
    source=$(extension)
    printf '%s\n' "flag -I$(pg_config --includedir-server)" "flag -I$out/library/include" \
        "source $source/fuzzystrmatch.c" "source $source/dmetaphone.c" \
        "cc $("$tree" library)/plfenced-cc" "tree $tree" "out $out" "program $("$tree" path)/psql"
}

httpd() {
    local tree=$root/integrations/httpd/tree.sh out flag
    "$tree" make
    out=$("$tree" out)
    for flag in $(apxs -q CPPFLAGS) $(apxs -q EXTRA_CPPFLAGS) "-I$(apxs -q INCLUDEDIR)" "-I$(apxs -q APR_INCLUDEDIR)" \
        "-I$(apxs -q APU_INCLUDEDIR)" "-I$out/library/include"; do
        echo "flag $flag"
    done
    printf '%s\n' "source $root/lab/subjects/page.c" "cc $out/library/fenced-cc" "out $out" "modules $(apxs -q LIBEXECDIR)" \
        "program $(PATH=$PATH:/usr/sbin command -v apache2)"
}

case ${1:-} in
postgresql | httpd) "$1" ;;
source) if [[ ${2:-} == postgresql ]]; then extension >/dev/null; fi ;;
*) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
