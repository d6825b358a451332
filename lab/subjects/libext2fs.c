/* A file system of the host's storage, by libext2fs: the first request makes it, each makes, writes, cuts, renames and removes files and
 * directories, and answers what is there then. */
#include "lab.h"

#include <sys/types.h>

#include <ext2fs/ext2fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024, BLOCKS = 4096, NOW = 1700000000 };

struct answer {
    char *at;
    long used, room;
};

static errcode_t disk_open(const char *name, int flags, io_channel *channel);

static errcode_t disk_close(io_channel channel)
{
    if (--channel->refcount > 0)
        return 0;
    ext2fs_free_mem(&channel->name);
    return ext2fs_free_mem(&channel);
}

static errcode_t disk_block_size(io_channel channel, int size)
{
    channel->block_size = size;
    return 0;
}

/* A negative count is one of bytes. */
static unsigned long bytes(io_channel channel, int count)
{
    return count < 0 ? (unsigned long)-(long)count : (unsigned long)count * (unsigned long)channel->block_size;
}

static errcode_t disk_read64(io_channel channel, unsigned long long block, int count, void *to)
{
    return lab_read(block * (unsigned long)channel->block_size, to, bytes(channel, count)) == 0 ? 0 : EXT2_ET_SHORT_READ;
}

static errcode_t disk_write64(io_channel channel, unsigned long long block, int count, const void *from)
{
    return lab_write(block * (unsigned long)channel->block_size, from, bytes(channel, count)) == 0 ? 0 : EXT2_ET_SHORT_WRITE;
}

static errcode_t disk_read(io_channel channel, unsigned long block, int count, void *to)
{
    return disk_read64(channel, block, count, to);
}

static errcode_t disk_write(io_channel channel, unsigned long block, int count, const void *from)
{
    return disk_write64(channel, block, count, from);
}

static errcode_t disk_flush(io_channel channel)
{
    (void)channel;
    return 0;
}

static errcode_t disk_write_byte(io_channel channel, unsigned long at, int size, const void *from)
{
    (void)channel;
    return lab_write(at, from, (unsigned long)size) == 0 ? 0 : EXT2_ET_SHORT_WRITE;
}

static struct struct_io_manager disk = {
    .magic = EXT2_ET_MAGIC_IO_MANAGER,
    .name = "lab",
    .open = disk_open,
    .close = disk_close,
    .set_blksize = disk_block_size,
    .read_blk = disk_read,
    .write_blk = disk_write,
    .flush = disk_flush,
    .write_byte = disk_write_byte,
    .read_blk64 = disk_read64,
    .write_blk64 = disk_write64,
};

static errcode_t disk_open(const char *name, int flags, io_channel *channel)
{
    io_channel own;
    errcode_t e = ext2fs_get_memzero(sizeof *own, &own);

    (void)flags;
    if (e || (e = ext2fs_get_memzero(strlen(name) + 1, &own->name)))
        return e;
    strcpy(own->name, name);
    own->magic = EXT2_ET_MAGIC_IO_CHANNEL;
    own->manager = &disk;
    own->block_size = BLOCK;
    own->refcount = 1;
    *channel = own;
    return 0;
}

/* An empty file system, as mke2fs makes it. */
static errcode_t format(void)
{
    struct ext2_super_block parameters;
    ext2_filsys fs;
    errcode_t e;

    memset(&parameters, 0, sizeof parameters);
    ext2fs_blocks_count_set(&parameters, BLOCKS);
    parameters.s_inodes_count = 256;
    parameters.s_rev_level = EXT2_DYNAMIC_REV;
    parameters.s_inode_size = 128;
    ext2fs_set_feature_filetype(&parameters);
    if ((e = ext2fs_initialize("lab", EXT2_FLAG_64BITS, &parameters, &disk, &fs)))
        return e;
    fs->now = NOW;
    memset(fs->super->s_uuid, 7, sizeof fs->super->s_uuid);
    if ((e = ext2fs_allocate_tables(fs)))
        return e;
    for (dgrp_t group = 0; group < fs->group_desc_count; group++)
        if ((e = ext2fs_zero_blocks2(fs, ext2fs_inode_table_loc(fs, group), (int)fs->inode_blocks_per_group, NULL, NULL)))
            return e;
    if ((e = ext2fs_mkdir(fs, EXT2_ROOT_INO, EXT2_ROOT_INO, 0)))
        return e;
    for (ext2_ino_t i = EXT2_BAD_INO; i < EXT2_FIRST_INODE(fs->super); i++)
        if (i != EXT2_ROOT_INO)
            ext2fs_inode_alloc_stats2(fs, i, +1, 0);
    if ((e = ext2fs_mkdir(fs, EXT2_ROOT_INO, 0, "lost+found")))
        return e;
    return ext2fs_close_free(&fs);
}

static errcode_t enter(ext2_filsys fs, ext2_ino_t in, const char *name, ext2_ino_t node, int type)
{
    errcode_t e = ext2fs_link(fs, in, name, node, type);

    if (e != EXT2_ET_DIR_NO_SPACE)
        return e;
    e = ext2fs_expand_dir(fs, in);
    return e ? e : ext2fs_link(fs, in, name, node, type);
}

static errcode_t put_file(ext2_filsys fs, ext2_ino_t in, const char *name, const unsigned char *from, unsigned size)
{
    struct ext2_inode inode;
    ext2_ino_t node;
    ext2_file_t file;
    unsigned written = 0;
    errcode_t e = ext2fs_new_inode(fs, in, LINUX_S_IFREG | 0644, NULL, &node);

    if (e || (e = enter(fs, in, name, node, EXT2_FT_REG_FILE)))
        return e;
    ext2fs_inode_alloc_stats2(fs, node, +1, 0);
    memset(&inode, 0, sizeof inode);
    inode.i_mode = LINUX_S_IFREG | 0644;
    inode.i_atime = inode.i_ctime = inode.i_mtime = NOW;
    inode.i_links_count = 1;
    if ((e = ext2fs_write_new_inode(fs, node, &inode)) || (e = ext2fs_file_open(fs, node, EXT2_FILE_WRITE, &file)))
        return e;
    e = ext2fs_file_write(file, from, size, &written);
    if (!e && written != size)
        e = EXT2_ET_SHORT_WRITE;
    errcode_t closed = ext2fs_file_close(file);
    return e ? e : closed;
}

static errcode_t cut(ext2_filsys fs, ext2_ino_t in, const char *name, unsigned size)
{
    ext2_ino_t node;
    ext2_file_t file;
    errcode_t e = ext2fs_lookup(fs, in, name, (int)strlen(name), NULL, &node);

    if (e || (e = ext2fs_file_open(fs, node, EXT2_FILE_WRITE, &file)))
        return e;
    e = ext2fs_file_set_size2(file, size);
    errcode_t closed = ext2fs_file_close(file);
    return e ? e : closed;
}

/* Files, and directories that are empty. */
static errcode_t take_away(ext2_filsys fs, ext2_ino_t in, const char *name)
{
    struct ext2_inode inode;
    ext2_ino_t node;
    errcode_t e = ext2fs_lookup(fs, in, name, (int)strlen(name), NULL, &node);

    if (e || (e = ext2fs_unlink(fs, in, name, node, 0)) || (e = ext2fs_read_inode(fs, node, &inode)))
        return e;
    int directory = LINUX_S_ISDIR(inode.i_mode);
    inode.i_links_count = directory ? 0 : inode.i_links_count - 1;
    if (inode.i_links_count == 0) {
        inode.i_dtime = NOW;
        if (ext2fs_inode_has_valid_blocks2(fs, &inode) && (e = ext2fs_punch(fs, node, &inode, NULL, 0, ~0ULL)))
            return e;
        ext2fs_inode_alloc_stats2(fs, node, -1, directory);
    }
    if ((e = ext2fs_write_inode(fs, node, &inode)) || !directory)
        return e;
    if ((e = ext2fs_read_inode(fs, in, &inode)))
        return e;
    inode.i_links_count--;
    return ext2fs_write_inode(fs, in, &inode);
}

static errcode_t rename_file(ext2_filsys fs, ext2_ino_t in, const char *from, const char *to)
{
    ext2_ino_t node;
    errcode_t e = ext2fs_lookup(fs, in, from, (int)strlen(from), NULL, &node);

    if (e || (e = enter(fs, in, to, node, EXT2_FT_REG_FILE)))
        return e;
    return ext2fs_unlink(fs, in, from, node, 0);
}

struct walk {
    ext2_filsys fs;
    struct answer *to;
    errcode_t error;
};

/* An entry's name, its inode's kind, links and size, and a sum of what a file has. */
static int look(ext2_ino_t in, int which, struct ext2_dir_entry *entry, int at, int block_size, char *block, void *context)
{
    struct walk *w = context;
    struct ext2_inode inode;
    unsigned char piece[1500];
    unsigned sum = 5381, got = 0;
    ext2_file_t file;

    (void)in, (void)which, (void)at, (void)block_size, (void)block;
    if ((w->error = ext2fs_read_inode(w->fs, entry->inode, &inode)))
        return DIRENT_ABORT;
    if (LINUX_S_ISREG(inode.i_mode)) {
        if ((w->error = ext2fs_file_open(w->fs, entry->inode, 0, &file)))
            return DIRENT_ABORT;
        while (!(w->error = ext2fs_file_read(file, piece, sizeof piece, &got)) && got)
            for (unsigned i = 0; i < got; i++)
                sum = sum * 33 + piece[i];
        ext2fs_file_close(file);
        if (w->error)
            return DIRENT_ABORT;
    }
    int n = snprintf(w->to->at + w->to->used, (size_t)(w->to->room - w->to->used), "%.*s %o %u %u %u\n", ext2fs_dirent_name_len(entry),
                     entry->name, inode.i_mode, inode.i_links_count, inode.i_size, sum);
    if (n < 0 || n >= w->to->room - w->to->used) {
        w->error = EXT2_ET_NO_MEMORY;
        return DIRENT_ABORT;
    }
    w->to->used += n;
    return 0;
}

static errcode_t list(ext2_filsys fs, ext2_ino_t directory, struct answer *to)
{
    struct walk w = {.fs = fs, .to = to};
    errcode_t e = ext2fs_dir_iterate2(fs, directory, 0, NULL, look, &w);

    return e ? e : w.error;
}

static errcode_t change(ext2_filsys fs, unsigned request, const unsigned char *in, long size, struct answer *to)
{
    char name[40], other[40];
    ext2_ino_t directory;
    errcode_t e;

    snprintf(name, sizeof name, "request-%u", request);
    if ((e = ext2fs_mkdir(fs, EXT2_ROOT_INO, 0, name)) || (e = ext2fs_lookup(fs, EXT2_ROOT_INO, name, (int)strlen(name), NULL, &directory)))
        return e;
    for (unsigned i = 0; i < 6; i++) {
        unsigned length = (i * 3 + request) * 1311 % 20000;

        snprintf(name, sizeof name, "a file with the number %u", i);
        if ((e = put_file(fs, directory, name, in + (request * 997 + i * 131) % (unsigned)(size / 4), length)))
            return e;
    }
    if ((e = cut(fs, directory, "a file with the number 1", 700)) || (e = cut(fs, directory, "a file with the number 2", 15000)) ||
        (e = take_away(fs, directory, "a file with the number 3")) ||
        (e = rename_file(fs, directory, "a file with the number 4", "another name")) ||
        (e = ext2fs_symlink(fs, directory, 0, "a link", "another name")))
        return e;
    if (request % 2 && ((e = ext2fs_mkdir(fs, directory, 0, "empty")) || (e = take_away(fs, directory, "empty"))))
        return e;
    /* The last request's files go: their blocks are used again. */
    if (request > 1) {
        snprintf(other, sizeof other, "request-%u", request - 2);
        if ((e = ext2fs_lookup(fs, EXT2_ROOT_INO, other, (int)strlen(other), NULL, &directory)) ||
            (e = take_away(fs, directory, "another name")) || (e = take_away(fs, directory, "a file with the number 5")))
            return e;
    }
    for (unsigned i = request > 2 ? request - 2 : 0; i <= request; i++) {
        snprintf(name, sizeof name, "request-%u", i);
        if ((e = ext2fs_lookup(fs, EXT2_ROOT_INO, name, (int)strlen(name), NULL, &directory)) || (e = list(fs, directory, to)))
            return e;
    }
    return list(fs, EXT2_ROOT_INO, to);
}

long lab_work(unsigned request, const unsigned char *in, long size, unsigned char *out, long room)
{
    struct answer to = {.at = (char *)out, .room = room};
    ext2_filsys fs = NULL;
    errcode_t e;

    if (request == 0 && format() != 0)
        return -1;
    if (ext2fs_open("lab", EXT2_FLAG_RW | EXT2_FLAG_64BITS, 0, 0, &disk, &fs) != 0)
        return -2;
    fs->now = NOW;
    if ((e = ext2fs_read_bitmaps(fs)) || (e = change(fs, request, in, size, &to))) {
        ext2fs_free(fs);
        return -3;
    }
    return ext2fs_close_free(&fs) == 0 ? to.used : -4;
}
