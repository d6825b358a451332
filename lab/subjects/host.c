/* The host of the laboratory: serves requests by a subject, natively (linked with it) or fenced (-DFENCED, a module), and
 * tells what became of each. With -DWORDS also, the module works on the host's own objects: it may read the input and write the
 * answer, and the host's own data lies beside them.
 *
 *   host INPUT EXPECTED IMAGE REQUESTS CHOICE FLAGS [MODULE]
 *   host INPUT EXPECTED IMAGE check               only natively: exits with 0 if the storage is whole
 *
 * EXPECTED is written if it is not there. IMAGE is the storage, changed in place; "-" for none. CHOICE is the fault that happens.
 * FLAGS has a `p` if the subject works on the storage where it lies, a `t` if it has threads. Each line of the output is
 * `ok`, `error N`, `wrong`, `fault WHAT`, `over` (not asked again, because it ran out of time); then `recovered NANOSECONDS`
 * where a domain was reset; at the end `heap ok` or `heap wrong`, whether the host's own data is as it was, and `end`.
 *
 * Storage that a subject works on where it lies is the host's own memory natively, a region that the domain may write as a whole
 * where it is fenced, and an object of the arena with rights to words: those of the bytes that were asked for last. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef FENCED
#include <ringfence.h>
#else
#include "lab.h"
#pragma weak lab_check
#endif

enum { ROOM = 1 << 18, BLOCKS = 256, BLOCK = 4096, CHANGES = 4096 };

static unsigned char *image;
static size_t image_size;
static const char *image_path;

/* What a request overwrote, to be put back if it does not end well. */
static struct change {
    size_t at, size;
    unsigned char *was;
} changes[CHANGES];
static size_t change_count;

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static int inside(unsigned long at, unsigned long size)
{
    return at <= image_size && size <= image_size - at;
}

/* Keeps what stands there. -1 if the request changes too much. */
static int keep(size_t at, size_t size)
{
    struct change *c = &changes[change_count];

    if (change_count == CHANGES || !(c->was = malloc(size)))
        return -1;
    c->at = at;
    c->size = size;
    memcpy(c->was, image + at, size);
    change_count++;
    return 0;
}

static void settle(int undo)
{
    while (change_count) {
        struct change *c = &changes[--change_count];

        if (undo)
            memcpy(image + c->at, c->was, c->size);
        free(c->was);
    }
}

static unsigned char *file(const char *name, size_t *size)
{
    struct stat s;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    unsigned char *bytes;

    if (fd < 0 || fstat(fd, &s) < 0 || !(bytes = malloc((size_t)s.st_size + 1)) || read(fd, bytes, (size_t)s.st_size) != s.st_size)
        die(name);
    close(fd);
    *size = (size_t)s.st_size;
    return bytes;
}

#ifdef FENCED
/* Reads or writes the file of the storage as a whole. */
static void pass(int writes)
{
    int fd = open(image_path, (writes ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : writes ? write(fd, image, image_size) : read(fd, image, image_size);

    if (n != (ssize_t)image_size || close(fd) < 0)
        die(image_path);
}

static rf_domain *domain;
#ifdef WORDS
static rf_arena *arena;
/* What the module may reach of the storage now. */
static struct {
    unsigned char *at;
    size_t size;
} open_words;

static void shut(void)
{
    if (open_words.size)
        rf_arena_give(arena, NULL, domain, open_words.at, open_words.size, RF_RIGHTS_NONE);
    open_words.size = 0;
}
#else
static rf_region *region;
#endif

static void import_read(rf_caller *caller, void *context)
{
    unsigned long at = rf_caller_arg_int(caller, 0), size = rf_caller_arg_int(caller, 2);
    int ok = inside(at, size) && rf_memory_write(domain, (void *)rf_caller_arg_int(caller, 1), image + at, size) == RF_OK;

    (void)context;
    rf_caller_return_int(caller, ok ? 0 : (unsigned long)-1);
}

static void import_write(rf_caller *caller, void *context)
{
    unsigned long at = rf_caller_arg_int(caller, 0), size = rf_caller_arg_int(caller, 2);
    int ok = inside(at, size) && keep(at, size) == 0 &&
             rf_memory_read(domain, (const void *)rf_caller_arg_int(caller, 1), image + at, size) == RF_OK;

    (void)context;
    rf_caller_return_int(caller, ok ? 0 : (unsigned long)-1);
}

static void import_map(rf_caller *caller, void *context)
{
    unsigned long at = rf_caller_arg_int(caller, 0), size = rf_caller_arg_int(caller, 1);
    int writes = (int)rf_caller_arg_int(caller, 2), ok = inside(at, size) && (!writes || keep(at, size) == 0);
    unsigned long given = 0;

    (void)context;
#ifdef WORDS
    shut();
    if (ok && size) {
        open_words.at = image + (at & ~3UL);
        open_words.size = ((at + size + 3) & ~3UL) - (at & ~3UL);
        ok = rf_arena_give(arena, NULL, domain, open_words.at, open_words.size, writes ? RF_RIGHTS_WRITE : RF_RIGHTS_READ) == RF_OK;
    }
    given = (unsigned long)image + at;
#else
    if (region)
        given = (unsigned long)rf_region_address(region, domain) + at;
#endif
    rf_caller_return_int(caller, ok ? given : 0);
}
#else
int lab_read(unsigned long at, void *to, unsigned long size)
{
    if (!inside(at, size))
        return -1;
    memcpy(to, image + at, size);
    return 0;
}

int lab_write(unsigned long at, const void *from, unsigned long size)
{
    if (!inside(at, size) || keep(at, size) < 0)
        return -1;
    memcpy(image + at, from, size);
    return 0;
}

void *lab_map(unsigned long at, unsigned long size, int writes)
{
    return inside(at, size) && (!writes || keep(at, size) == 0) ? image + at : NULL;
}
#endif

#ifdef WORDS
static void *room(size_t size)
{
    return rf_arena_alloc(arena, NULL, size);
}

/* A domain for the module; the host and it have the arena. */
static rf_domain *load(const char *path, rf_domain_options *options)
{
    rf_module *module = NULL;

    options->arena = arena;
    if (rf_module_create(path, RF_LOAD_ALLOW_WORDS, &module) != RF_OK || rf_domain_create(module, options, &domain) != RF_OK)
        return NULL;
    return domain;
}

/* Calls `lab_work` with rights to its objects, which end with the call. */
static long work_by_words(unsigned request, void *given, size_t size, void *out)
{
    rf_value arguments[] = {rf_value_u32(request), rf_value_ptr(given), rf_value_i64((int64_t)size), rf_value_ptr(out), rf_value_i64(ROOM)};
    rf_value result = rf_value_i64(-1);
    int ok = rf_arena_give(arena, NULL, domain, given, (size + 3) & ~(size_t)3, RF_RIGHTS_READ) == RF_OK &&
             rf_arena_give(arena, NULL, domain, out, ROOM, RF_RIGHTS_WRITE) == RF_OK &&
             rf_domain_call(domain, "lab_work", arguments, 5, &result) == RF_OK;

    return ok ? (long)result.as.i64 : -1;
}
#else
static void *room(size_t size)
{
    return malloc(size);
}
#endif

#ifdef FENCED
/* Whether the module ran out of time. It is not asked again then. */
static int over;

/* What the pending error tells. */
static const char *failed(char *text, size_t room)
{
    over = rf_error()->status == RF_FAULT_TIME || rf_error()->status == RF_ERROR_LIMIT;
    snprintf(text, room, "%s", rf_error()->message);
    return text;
}

/* Resets the domain, when threads of its own that were ended have left it. */
static rf_status again(void)
{
    rf_status status = rf_domain_reset(domain);

    for (int i = 0; status == RF_ERROR_BUSY && i < 2000; i++) {
        rf_domain_interrupt(domain);
        usleep(1000);
        status = rf_domain_reset(domain);
    }
    return status;
}
#endif

int main(int argc, char **argv)
{
    size_t input_size, expected_size = 0, at = 0;
    unsigned char *blocks[BLOCKS], *expected = NULL;
    int record, heap_ok = 1;

    if (argc < 5 || (argc < 7 && strcmp(argv[4], "check") != 0))
        return fprintf(stderr, "usage: host INPUT EXPECTED IMAGE REQUESTS CHOICE FLAGS [MODULE]\n"), 2;
#ifdef FENCED
    const char *flags = argc > 6 ? argv[6] : "";
#endif
    unsigned choice = argc > 6 ? (unsigned)atoi(argv[5]) : 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    unsigned char *input = file(argv[1], &input_size);
    record = access(argv[2], R_OK) != 0;
    FILE *to = record ? fopen(argv[2], "wb") : NULL;
    if (!record)
        expected = file(argv[2], &expected_size);
    else if (!to)
        die(argv[2]);
    if (strcmp(argv[3], "-") != 0) {
        struct stat s;
        int fd = open(argv[3], O_RDWR | O_CLOEXEC);

        if (fd < 0 || fstat(fd, &s) < 0)
            die(argv[3]);
        image_size = (size_t)s.st_size;
        image_path = argv[3];
#ifdef FENCED
        if (!strchr(flags, 'p'))
#endif
            if ((image = mmap(NULL, image_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED)
                die(argv[3]);
        close(fd);
    }
#ifdef WORDS
    if (rf_arena_create((size_t)64 << 20, 0, &arena) != RF_OK)
        return printf("refused %s\n", rf_error()->message), 3;
    unsigned char *given = room(input_size + 3), *answer = room(ROOM);
    if (!given || !answer)
        die("arena");
    memcpy(given, input, input_size);
    if (image_path && !image) {
        if (!(image = room(image_size)))
            die("arena");
        pass(0);
    }
#elif defined FENCED
    if (image_path && !image) {
        if (rf_region_create(image_size, NULL, &region) != RF_OK || !(image = rf_region_host_address(region)))
            return printf("refused %s\n", rf_error()->message), 3;
        pass(0);
    }
#endif
    /* The host's own data, where a stray store finds it. */
    for (int i = 0; i < BLOCKS; i++)
        if (!(blocks[i] = room(BLOCK)))
            die("malloc");
        else
            memset(blocks[i], i, BLOCK);

#ifndef FENCED
    if (strcmp(argv[4], "check") == 0)
        return lab_check && lab_check() == 0 ? 0 : 1;
#endif
#ifdef FENCED
    rf_import imports[] = {{.name = "lab_read", .callback = import_read},
                           {.name = "lab_write", .callback = import_write},
                           {.name = "lab_map", .callback = import_map}};
    rf_domain_options options = RF_DOMAIN_OPTIONS_INIT;
    options.imports = imports;
    options.import_count = 3;
    /* A loop ends by the time that it takes from the processor, a wait for ever by the clock. */
    options.processor_time = 500000000;
    options.time_limit = 5000000000;
    rf_policy *policy = NULL;
    if (strchr(flags, 't') && (rf_policy_create(&policy) != RF_OK || rf_policy_threads(policy, 8) != RF_OK))
        return printf("refused %s\n", rf_error()->message), 3;
    options.policy = policy;
    options.memory_limit = 256 << 20;
#ifdef WORDS
    domain = argc > 7 ? load(argv[7], &options) : NULL;
    if (!domain)
        return printf("refused %s\n", rf_error() ? rf_error()->message : "no module"), 3;
#else
    void *module = argc > 7 ? rf_dlopen_with(argv[7], 0, &options) : NULL;
    domain = module ? rf_dldomain(module) : NULL;
    long (*work)(unsigned, const void *, long, void *, long) =
        domain ? RF_DLSYM(module, long, lab_work, (unsigned, const void *, long, void *, long)) : NULL;
    if (!work)
        return printf("refused %s\n", rf_error() ? rf_error()->message : "no module"), 3;
    if (region && rf_region_give(region, NULL, domain, RF_RIGHTS_WRITE) != RF_OK)
        return printf("refused %s\n", rf_error()->message), 3;
    unsigned char *answer = malloc(ROOM);
    if (!answer)
        die("malloc");
#endif
#else
    unsigned char *given = malloc(input_size), *answer = malloc(ROOM);
    if (!given || !answer)
        die("malloc");
    memcpy(given, input, input_size);
#endif

    for (unsigned request = 0, most = (unsigned)atoi(argv[4]); request < most; request++) {
        const char *fault = NULL;
        char text[200];
        long n = -1;
#ifdef FENCED
        if (over) {
            puts("over");
            continue;
        }
        rf_value chosen = rf_value_u32(choice);
        /* A thread that the module has left behind may have faulted since the last request, and the domain with it. */
        if (rf_domain_call(domain, "lab_choose", &chosen, 1, NULL) != RF_OK)
            fault = failed(text, sizeof text);
#else
        lab_choose(choice);
#endif
#ifdef WORDS
        if (!fault) {
            n = work_by_words(request, given, input_size, answer);
            if (rf_error()) {
                fault = failed(text, sizeof text);
                n = -1;
            } else if (n > ROOM) {
                n = -1;
            }
        }
        /* The host looks at the answer, and at its storage, when nobody else may change it. */
        rf_arena_revoke(arena, NULL, answer, ROOM);
        shut();
#elif defined FENCED
        void *given = rf_memory_alloc(domain, input_size + 1), *out = rf_memory_alloc(domain, ROOM);

        if (!fault && (!given || !out || rf_memory_write(domain, given, input, input_size) != RF_OK))
            fault = "memory";
        if (!fault) {
            n = work(request, given, (long)input_size, out, ROOM);
            if (rf_error()) {
                fault = failed(text, sizeof text);
                n = -1;
            } else if (n > ROOM || (n > 0 && rf_memory_read(domain, out, answer, (size_t)n) != RF_OK)) {
                n = -1;
            }
        }
#else
        n = lab_work(request, given, (long)input_size, answer, ROOM);
        if (n > ROOM)
            n = -1;
        (void)text;
#endif
        if (record && n >= 0) {
            fwrite(&n, sizeof n, 1, to);
            fwrite(answer, 1, (size_t)n, to);
        }
        size_t length = 0;
        if (expected && at + sizeof length <= expected_size) {
            memcpy(&length, expected + at, sizeof length);
            at += sizeof length;
        }
        settle(n < 0);
        if (fault)
            printf("fault %s\n", fault);
        else if (n < 0)
            printf("error %ld\n", n);
        else
            puts(record || ((size_t)n == length && memcmp(answer, expected + at, length) == 0) ? "ok" : "wrong");
        at += length;
#ifdef FENCED
        struct timespec begin, end;
        rf_error_clear();
#ifndef WORDS
        if (!fault) {
            rf_memory_free(domain, given);
            rf_memory_free(domain, out);
        }
#endif
        clock_gettime(CLOCK_MONOTONIC, &begin);
        if (fault && !over && again() != RF_OK)
            return printf("lost %s\n", rf_error()->message), 4;
        clock_gettime(CLOCK_MONOTONIC, &end);
        if (fault && !over)
            printf("recovered %lld\n", (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec);
#endif
    }
    for (int i = 0; i < BLOCKS; i++)
        for (int k = 0; k < BLOCK; k++)
            heap_ok &= blocks[i][k] == (unsigned char)i;
#ifdef FENCED
    if (image_path && strchr(flags, 'p'))
        pass(1);
#endif
    puts(heap_ok ? "heap ok" : "heap wrong");
    if (to && fclose(to) != 0)
        die(argv[2]);
    puts("end");
    return 0;
}
