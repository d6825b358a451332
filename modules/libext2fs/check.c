/* A file system in memory by an io_manager: files and directories made, cut, linked, removed, and read again; the image goes to a file. */
#include "rfcheck.h"

#include <sys/types.h>

#include <ext2fs/ext2fs.h>
#include <string.h>

enum { BLOCK = 1024, BLOCKS = 8192, NOW = 1700000000 };

static unsigned char image[BLOCK * BLOCKS];
static errcode_t opened(const char *name, int flags, io_channel *channel);

static errcode_t closed(io_channel channel)
{
	if (--channel->refcount > 0)
		return 0;
	ext2fs_free_mem(&channel->name);
	return ext2fs_free_mem(&channel);
}

static errcode_t sized(io_channel channel, int size)
{
	channel->block_size = size;
	return 0;
}

static void *place(io_channel channel, unsigned long long block, int count, size_t *size)
{
	*size = count < 0 ? (size_t)-(long)count : (size_t)count * channel->block_size;
	return image + block * channel->block_size;
}

static errcode_t got(io_channel channel, unsigned long long block, int count, void *to)
{
	size_t size;
	void *at = place(channel, block, count, &size);
	memcpy(to, at, size);
	return 0;
}

static errcode_t put(io_channel channel, unsigned long long block, int count, const void *from)
{
	size_t size;
	void *at = place(channel, block, count, &size);
	memcpy(at, from, size);
	return 0;
}

static errcode_t got32(io_channel channel, unsigned long block, int count, void *to) { return got(channel, block, count, to); }
static errcode_t put32(io_channel channel, unsigned long block, int count, const void *from) { return put(channel, block, count, from); }
static errcode_t nothing(io_channel channel) { return 0; }

static struct struct_io_manager memory = {
	.magic = EXT2_ET_MAGIC_IO_MANAGER, .name = "memory", .open = opened, .close = closed, .set_blksize = sized, .read_blk = got32,
	.write_blk = put32, .flush = nothing, .read_blk64 = got, .write_blk64 = put,
};

static errcode_t opened(const char *name, int flags, io_channel *channel)
{
	io_channel own;
	errcode_t e = ext2fs_get_memzero(sizeof *own, &own);
	if (e || (e = ext2fs_get_memzero(strlen(name) + 1, &own->name)))
		return e;
	strcpy(own->name, name);
	own->magic = EXT2_ET_MAGIC_IO_CHANNEL;
	own->manager = &memory;
	own->block_size = BLOCK;
	own->refcount = 1;
	*channel = own;
	return 0;
}

static void must(const char *what, errcode_t e)
{
	if (e) {
		printf("%s: error %ld\n", what, (long)e);
		exit(1);
	}
}

static void format(void)
{
	struct ext2_super_block p;
	ext2_filsys fs;
	memset(&p, 0, sizeof p);
	ext2fs_blocks_count_set(&p, BLOCKS);
	p.s_rev_level = EXT2_DYNAMIC_REV;
	p.s_inode_size = 128;
	ext2fs_set_feature_filetype(&p);
	must("initialize", ext2fs_initialize("image", EXT2_FLAG_64BITS, &p, &memory, &fs));
	fs->now = NOW;
	memset(fs->super->s_uuid, 7, sizeof fs->super->s_uuid);
	must("tables", ext2fs_allocate_tables(fs));
	must("root", ext2fs_mkdir(fs, EXT2_ROOT_INO, EXT2_ROOT_INO, 0));
	for (ext2_ino_t i = EXT2_BAD_INO; i < EXT2_FIRST_INODE(fs->super); i++)
		if (i != EXT2_ROOT_INO)
			ext2fs_inode_alloc_stats2(fs, i, +1, 0);
	must("lost+found", ext2fs_mkdir(fs, EXT2_ROOT_INO, 0, "lost+found"));
	must("close", ext2fs_close_free(&fs));
}

static void file(ext2_filsys fs, ext2_ino_t in, const char *name, unsigned size)
{
	static char piece[5000];
	struct ext2_inode inode;
	ext2_ino_t node;
	ext2_file_t f;
	unsigned n;
	must("new inode", ext2fs_new_inode(fs, in, LINUX_S_IFREG | 0644, NULL, &node));
	errcode_t e = ext2fs_link(fs, in, name, node, EXT2_FT_REG_FILE);
	if (e == EXT2_ET_DIR_NO_SPACE) {
		must("expand", ext2fs_expand_dir(fs, in));
		e = ext2fs_link(fs, in, name, node, EXT2_FT_REG_FILE);
	}
	must("link", e);
	ext2fs_inode_alloc_stats2(fs, node, +1, 0);
	memset(&inode, 0, sizeof inode);
	inode.i_mode = LINUX_S_IFREG | 0644;
	inode.i_links_count = 1;
	inode.i_atime = inode.i_ctime = inode.i_mtime = NOW;
	must("write inode", ext2fs_write_new_inode(fs, node, &inode));
	must("open", ext2fs_file_open(fs, node, EXT2_FILE_WRITE, &f));
	for (unsigned left = size; left; left -= n) {
		n = left < sizeof piece ? left : sizeof piece;
		memset(piece, 'a' + left % 26, n);
		must("write", ext2fs_file_write(f, piece, n, &n));
	}
	if (size > 100000)
		must("cut", ext2fs_file_set_size2(f, size / 3));
	must("close file", ext2fs_file_close(f));
}

static int show(struct ext2_dir_entry *entry, int at, int size, char *block, void *context)
{
	struct ext2_inode inode;
	must("inode", ext2fs_read_inode(context, entry->inode, &inode));
	printf("%.*s %o %u\n", ext2fs_dirent_name_len(entry), entry->name, inode.i_mode, inode.i_size);
	return 0;
}

int main(int argc, char **argv)
{
	ext2_filsys fs;
	ext2_ino_t directory;
	char name[60];
	FILE *to = argc > 1 ? fopen(argv[1], "wb") : NULL;
	format();
	must("open", ext2fs_open("image", EXT2_FLAG_RW | EXT2_FLAG_64BITS, 0, 0, &memory, &fs));
	fs->now = NOW;
	must("bitmaps", ext2fs_read_bitmaps(fs));
	must("mkdir", ext2fs_mkdir(fs, EXT2_ROOT_INO, 0, "directory"));
	must("lookup", ext2fs_lookup(fs, EXT2_ROOT_INO, "directory", 9, NULL, &directory));
	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof name, "a file with quite a long name and the number %d", i);
		file(fs, directory, name, (unsigned)(i * i * 150));
	}
	must("symlink", ext2fs_symlink(fs, directory, 0, "link", "somewhere else"));
	must("list", ext2fs_dir_iterate(fs, directory, 0, NULL, show, fs));
	must("close", ext2fs_close_free(&fs));
	if (!to || fwrite(image, 1, sizeof image, to) != sizeof image || fclose(to) != 0)
		return 1;
	return 0;
}
