/* What an application adds to SQLite, and what gets the faults: a file system of two files (the database and its journal) on the
 * host's storage, and a function in SQL that an index rests on. Each request is a transaction. */
#include "lab.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { SECTOR = 4096, FILE_ROOM = 1 << 20, MAGIC = 0x6c61621a };

struct head {
    unsigned magic;
    struct {
        unsigned there;
        sqlite3_int64 size;
    } file[2];
};

struct lab_file {
    sqlite3_file base;
    int which;
};

static unsigned long place(int which, sqlite3_int64 at)
{
    return SECTOR + (unsigned long)which * FILE_ROOM + (unsigned long)at;
}

static int load(struct head *head)
{
    if (lab_read(0, head, sizeof *head) != 0)
        return SQLITE_IOERR;
    if (head->magic == 0) {
        memset(head, 0, sizeof *head);
        head->magic = MAGIC;
    }
    return head->magic == MAGIC ? SQLITE_OK : SQLITE_IOERR;
}

static int store(const struct head *head)
{
    return lab_write(0, head, sizeof *head) == 0 ? SQLITE_OK : SQLITE_IOERR;
}

static int file_close(sqlite3_file *file)
{
    (void)file;
    return SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *to, int size, sqlite3_int64 at)
{
    int which = ((struct lab_file *)file)->which;
    struct head head;
    sqlite3_int64 there;

    if (load(&head) != SQLITE_OK)
        return SQLITE_IOERR_READ;
    there = head.file[which].size > at ? head.file[which].size - at : 0;
    if (there > size)
        there = size;
    if (there > 0 && lab_read(place(which, at), to, (unsigned long)there) != 0)
        return SQLITE_IOERR_READ;
    memset((char *)to + there, 0, (size_t)(size - there));
    return there == size ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *from, int size, sqlite3_int64 at)
{
    int which = ((struct lab_file *)file)->which;
    struct head head;

    if (at + size > FILE_ROOM)
        return SQLITE_FULL;
    if (load(&head) != SQLITE_OK || lab_write(place(which, at), from, (unsigned long)size) != 0)
        return SQLITE_IOERR_WRITE;
    if (at + size <= head.file[which].size)
        return SQLITE_OK;
    head.file[which].size = at + size;
    return store(&head);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct head head;

    if (load(&head) != SQLITE_OK)
        return SQLITE_IOERR_TRUNCATE;
    head.file[((struct lab_file *)file)->which].size = size;
    return store(&head);
}

static int file_sync(sqlite3_file *file, int flags)
{
    (void)file, (void)flags;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    struct head head;

    if (load(&head) != SQLITE_OK)
        return SQLITE_IOERR_FSTAT;
    *size = head.file[((struct lab_file *)file)->which].size;
    return SQLITE_OK;
}

/* One connection at a time: nobody else is kept out. */
static int file_lock(sqlite3_file *file, int level)
{
    (void)file, (void)level;
    return SQLITE_OK;
}

static int file_reserved(sqlite3_file *file, int *is)
{
    (void)file;
    *is = 0;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int what, void *argument)
{
    (void)file, (void)what, (void)argument;
    return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *file)
{
    (void)file;
    return SECTOR;
}

static int file_device(sqlite3_file *file)
{
    (void)file;
    return 0;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_lock,
    .xCheckReservedLock = file_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_device,
};

enum { DATABASE, JOURNAL, NEITHER };

/* Which file has that name. There are two; SQLite asks for a third, its other kind of journal. */
static int which_file(const char *name)
{
    if (!name)
        return NEITHER;
    return strcmp(name, "lab.db") == 0 ? DATABASE : strcmp(name, "lab.db-journal") == 0 ? JOURNAL : NEITHER;
}

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *given)
{
    struct lab_file *own = (struct lab_file *)file;
    struct head head;

    (void)vfs;
    own->which = which_file(name);
    if (own->which == NEITHER || load(&head) != SQLITE_OK)
        return SQLITE_CANTOPEN;
    if (!head.file[own->which].there) {
        head.file[own->which].there = 1;
        head.file[own->which].size = 0;
        if (store(&head) != SQLITE_OK)
            return SQLITE_CANTOPEN;
    }
    own->base.pMethods = &methods;
    if (given)
        *given = flags;
    return SQLITE_OK;
}

static int disk_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    struct head head;

    (void)vfs, (void)sync;
    if (which_file(name) == NEITHER)
        return SQLITE_IOERR_DELETE_NOENT;
    if (load(&head) != SQLITE_OK)
        return SQLITE_IOERR_DELETE;
    head.file[which_file(name)].there = 0;
    return store(&head);
}

static int disk_access(sqlite3_vfs *vfs, const char *name, int flags, int *is)
{
    struct head head;

    (void)vfs, (void)flags;
    if (load(&head) != SQLITE_OK)
        return SQLITE_IOERR_ACCESS;
    *is = which_file(name) != NEITHER && head.file[which_file(name)].there;
    return SQLITE_OK;
}

static int disk_full_name(sqlite3_vfs *vfs, const char *name, int room, char *to)
{
    (void)vfs;
    return snprintf(to, (size_t)room, "%s", name) < room ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int disk_randomness(sqlite3_vfs *vfs, int size, char *to)
{
    (void)vfs;
    memset(to, 7, (size_t)size);
    return size;
}

static int disk_sleep(sqlite3_vfs *vfs, int microseconds)
{
    (void)vfs;
    return microseconds;
}

static int disk_time(sqlite3_vfs *vfs, double *now)
{
    (void)vfs;
    *now = 2460000.5;
    return SQLITE_OK;
}

static sqlite3_vfs disk = {
    .iVersion = 1,
    .szOsFile = sizeof(struct lab_file),
    .mxPathname = 64,
    .zName = "lab",
    .xOpen = disk_open,
    .xDelete = disk_delete,
    .xAccess = disk_access,
    .xFullPathname = disk_full_name,
    .xRandomness = disk_randomness,
    .xSleep = disk_sleep,
    .xCurrentTime = disk_time,
};

/* digest(text): a number by which words are found. */
static void digest(sqlite3_context *context, int count, sqlite3_value **values)
{
    const unsigned char *text = count == 1 ? sqlite3_value_text(values[0]) : NULL;
    sqlite3_int64 n = 5381;

    for (; text && *text; text++)
        n = (n * 33 + *text) & 0xffffff;
    sqlite3_result_int64(context, n);
}

static sqlite3 *open_database(void)
{
    sqlite3 *db = NULL;

    if (sqlite3_vfs_register(&disk, 1) != SQLITE_OK)
        return NULL;
    if (sqlite3_open_v2("lab.db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "lab") != SQLITE_OK ||
        sqlite3_create_function(db, "digest", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, digest, NULL, NULL) != SQLITE_OK) {
        sqlite3_close(db);
        return NULL;
    }
    return db;
}

static int insert(sqlite3 *db, unsigned request, const unsigned char *in, long size)
{
    sqlite3_stmt *s = NULL;
    int status = sqlite3_prepare_v2(db, "insert into note (body) values (?)", -1, &s, NULL);

    for (long i = 0; status == SQLITE_OK && i < 40; i++) {
        long at = ((long)request * 4001 + i * 97) % (size - 64);

        sqlite3_bind_text(s, 1, (const char *)in + at, 16 + (int)(i % 48), SQLITE_STATIC);
        status = sqlite3_step(s) == SQLITE_DONE ? sqlite3_reset(s) : SQLITE_ERROR;
    }
    sqlite3_finalize(s);
    return status;
}

static long answer(sqlite3 *db, const char *sql, unsigned char *out, long room)
{
    sqlite3_stmt *s = NULL;
    long n = -1;

    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        n = snprintf((char *)out, (size_t)room, "%s", (const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    return n;
}

long lab_work(unsigned request, const unsigned char *in, long size, unsigned char *out, long room)
{
    sqlite3 *db = open_database();
    long n = -2;

    if (!db)
        return -1;
    if (sqlite3_exec(db, "begin; create table if not exists note (id integer primary key, body text);"
                         "create index if not exists found on note (digest(body))", NULL, NULL, NULL) == SQLITE_OK &&
        insert(db, request, in, size) == SQLITE_OK &&
        sqlite3_exec(db, "update note set body = body || id where id % 7 = 3; delete from note where id % 11 = 5; commit", NULL, NULL, NULL) ==
            SQLITE_OK)
        n = answer(db, "select count(*) || ' ' || sum(digest(body)) || ' ' || group_concat(body) from note", out, room);
    if (sqlite3_close(db) != SQLITE_OK)
        return -3;
    return n;
}

long lab_check(void)
{
    static unsigned char text[256];
    sqlite3 *db = open_database();
    long n = db ? answer(db, "pragma integrity_check", text, sizeof text) : -1;

    sqlite3_close(db);
    return n == 2 && memcmp(text, "ok", 2) == 0 ? 0 : -1;
}
