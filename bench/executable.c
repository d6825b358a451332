/* The main of a program whose workloads are measured as users build them: an executable. It answers requests on its
 * standard streams, as bench/src/peer.rs has them: "SYMBOL THOUSANDTHS" with "CHECKSUM SECONDS". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void)
{
    char line[200], name[100];
    unsigned long long permille;
    // As for the shared objects: what is freed is kept.
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%99s %llu", name, &permille) != 2)
            return 1;
        uint64_t (*run)(uint64_t) = (uint64_t (*)(uint64_t))dlsym(RTLD_DEFAULT, name);
        if (!run) {
            printf("error no such workload\n");
        } else {
            double start = thread_seconds();
            uint64_t sum = run(permille);
            printf("%llx %.9f\n", (unsigned long long)sum, thread_seconds() - start);
        }
        fflush(stdout);
    }
    return 0;
}
