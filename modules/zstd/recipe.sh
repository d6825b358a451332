# Zstandard, as the crate zstd-sys carries it. Its detection of BMI2 asks the processor, which fenced code cannot.
crate=(zstd-sys 2.1.2+zstd.1.5.7 481ada9c543b2323cbb7bbdbb5249177fbf0188ed959ed2c15e4b22421c84ed3)
src=$("$root/sysroot/fetch.sh" crate "${crate[@]}")/zstd/lib
cflags=(-O3 -w "-I$src" "-I$src/common" -DZSTD_DISABLE_ASM -DDYNAMIC_BMI2=0 -DZSTD_LEGACY_SUPPORT=5 "-I$src/legacy" -DXXH_NAMESPACE=ZSTD_)
fenced_cflags=(-DZSTD_COMMON_CPU_H -include "$here/zstd/cpu_shim.h")
mapfile -t library < <(cd "$src" && printf '%s\n' common/*.c compress/*.c decompress/*.c dictBuilder/*.c legacy/zstd_v0[567].c)
programs=(check)
program_check=(@check.c)
check() { run check; }
bench() { run check bench; }
