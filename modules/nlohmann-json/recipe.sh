# JSON for Modern C++, headers only: every error is an exception. The library is an instance of its templates.
deb=(nlohmann-json3-dev 3.11.2-2 ec57940def6b6186c30be0e0ee81d1e58f86d11a54a145b28686a1e3e4aae801)
src=$("$root/sysroot/fetch.sh" deb "${deb[@]}")/usr/include
language=c++
cflags=(-std=c++17 -w "-I$src" "-I$here/nlohmann-json")
library=(@json.cc)
programs=(check)
program_check=(@check.cc)
check() { run check; }
bench() { run check bench; }
