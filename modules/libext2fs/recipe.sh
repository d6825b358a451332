# libext2fs, the library of Debian's e2fsprogs, without what asks the system: its user brings the storage (an io_manager).
ext2=$out/libext2fs/source
[ -d "$ext2/e2fsprogs/lib/ext2fs" ] ||
	"$root/scripts/debian_source.py" "$ext2" e2fsprogs e2fsprogs '*/lib/*' '*/version.h' >/dev/null ||
	die "libext2fs: no source of e2fsprogs"
src=$ext2/e2fsprogs/lib/ext2fs
cflags=(-w "-I$gen" "-I$gen/ext2fs" "-I$src" "-I$src/.." -DHAVE_CONFIG_H)
library=(alloc.c alloc_sb.c alloc_stats.c alloc_tables.c badblocks.c bb_inode.c bitmaps.c bitops.c blkmap64_ba.c blkmap64_rb.c
	blknum.c block.c bmap.c check_desc.c closefs.c crc16.c crc32c.c csum.c dblist.c dirblock.c dirhash.c dir_iterate.c
	expanddir.c ext_attr.c extent.c fallocate.c fileio.c freefs.c gen_bitmap.c gen_bitmap64.c get_num_dirs.c
	hashmap.c i_block.c icount.c ind_block.c initialize.c inline.c inline_data.c inode.c io_manager.c ismounted.c link.c lookup.c mkdir.c mkjournal.c mmp.c
	namei.c native.c newdir.c nls_utf8.c openfs.c orphan.c progress.c punch.c rbtree.c read_bb.c res_gdt.c rw_bitmaps.c sha512.c swapfs.c
	symlink.c unlink.c valid_blk.c ../et/com_err.c ../et/error_message.c ../et/et_name.c "$gen/ext2_err.c")
programs=(check)
program_check=(@check.c)

# What its configure and compile_et would make.
prepare() {
	local et=$src/../et
	[ ! -e "$gen/config.h" ] || return 0
	mkdir -p "$gen/ext2fs"
	sed -e 's/@[A-Z_]*_HEADER@//' -e 's/@SIZEOF_SHORT@/2/g' -e 's/@SIZEOF_INT@/4/g' -e 's/@SIZEOF_LONG@/8/g' -e 's/@SIZEOF_LONG_LONG@/8/g' \
		"$src/ext2_types.h.in" >"$gen/ext2fs/ext2_types.h"
	sed 's/@E2FSPROGS_VERSION@/here/' "$src/ext2_err.et.in" >"$gen/ext2_err.et"
	awk -f "$et/et_h.awk" "outfile=$gen/ext2fs/ext2_err.h" outfn=ext2_err.h "$gen/ext2_err.et"
	awk -f "$et/et_c.awk" "outfile=$gen/ext2_err.c" outfn=ext2_err.c "$gen/ext2_err.et"
	gcc -w -I"$gen" "$src/gen_crc32ctable.c" -o "$gen/crc32ctable"
	"$gen/crc32ctable" >"$gen/crc32c_table.h"
	printf '#define HAVE_%s 1\n' ERRNO_H STDINT_H STDLIB_H STRINGS_H STRING_H SYS_STAT_H SYS_TYPES_H SYS_TIME_H UNISTD_H INTTYPES_H \
		TYPE_SSIZE_T >"$gen/config.h"
}
check() {
	run check image
	"$(command -v e2fsck || echo /sbin/e2fsck)" -fn image | sed 's/^e2fsck .*//'
}
