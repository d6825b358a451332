/* A libc in a module that many threads enter at once: what it shares between lanes, and what each lane has for itself. Needs
 * the sysroot's C library. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static long counter, onces;
static volatile long inside;
static _Thread_local long own = 5;

static void initialize(void) {
    pthread_mutexattr_t a;
    onces++;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &a);
    pthread_key_create(&key, NULL);
}

static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Blocks of all sizes, each filled with what only this lane writes. */
static int heap(unsigned id, int rounds) {
    enum { SLOTS = 64 };
    unsigned char *p[SLOTS] = { 0 };
    size_t n[SLOTS] = { 0 };
    unsigned seed = id * 7919 + 1;
    for (int i = 0; i < rounds; i++) {
        int s = rand_r(&seed) % SLOTS;
        for (size_t k = 0; k < n[s]; k++)
            if (p[s][k] != (unsigned char)(id + s))
                return 1;
        size_t size = (size_t)rand_r(&seed) % (i % 50 ? 600 : 100000);
        if (rand_r(&seed) % 3 == 0) {
            free(p[s]);
            p[s] = malloc(size);
        } else {
            p[s] = realloc(p[s], size);
        }
        if (!p[s] && size)
            return 2;
        n[s] = p[s] ? size : 0;
        if (p[s])
            memset(p[s], (int)(id + (unsigned)s), size);
    }
    for (int s = 0; s < SLOTS; s++)
        free(p[s]);
    return 0;
}

/* What this lane does in `rounds` rounds; 0, or the number of what was wrong. */
int work(unsigned id, int rounds) {
    char text[64], again[64];
    pthread_once(&once, initialize);
    if (onces != 1)
        return 10;
    own += id;
    pthread_setspecific(key, &own);
    for (int i = 0; i < rounds; i++) {
        /* errno is each lane's own, and survives what others do */
        errno = 0;
        if (close(1000 + (int)id) != -1 || errno != EBADF)
            return 11;
        errno = (int)id + 1;
        int wrong = heap(id + (unsigned)i * 64, 200);
        if (wrong)
            return wrong;
        if (errno != (int)id + 1)
            return 12;

        if (pthread_mutex_lock(&mutex))
            return 13;
        if (inside++ != 0)
            return 14;
        long seen = counter;
        for (volatile int k = 0; k < 50; k++) {
        }
        counter = seen + 1;
        inside--;
        if (pthread_mutex_unlock(&mutex))
            return 15;
        if (pthread_mutex_lock(&recursive) || pthread_mutex_trylock(&recursive) || pthread_mutex_unlock(&recursive) ||
            pthread_mutex_unlock(&recursive))
            return 16;

        double x = id + i / 16.0;
        snprintf(text, sizeof text, "%u:%d:%.4f", id, i, x);
        if (strtod(strrchr(text, ':') + 1, NULL) != x)
            return 17;
        snprintf(again, sizeof again, "%s", text);
        char *save, *first = strtok_r(again, ":", &save);
        if (strtoul(first, NULL, 10) != id)
            return 18;
        int numbers[32];
        unsigned seed = id + (unsigned)i;
        for (int k = 0; k < 32; k++)
            numbers[k] = rand_r(&seed) % 1000;
        qsort(numbers, 32, sizeof *numbers, by_value);
        for (int k = 1; k < 32; k++)
            if (numbers[k - 1] > numbers[k])
                return 19;
        /* one stream for all: a line is a line */
        if (printf("<%u %d %s>\n", id, i, "0123456789012345678901234567890123456789") < 0)
            return 20;
        if (own != 5 + (long)id || pthread_getspecific(key) != &own)
            return 21;
    }
    pthread_t t;
    if (pthread_create(&t, NULL, NULL, NULL) != EAGAIN)
        return 22;
    own -= id;
    return 0;
}

long total(void) {
    fflush(stdout);
    return counter;
}
