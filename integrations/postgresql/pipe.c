/* pipe ROUNDS: nanoseconds of processor time for a question and an answer of eight bytes between two processes, by pipes: what a
 * call costs when the function is in a process of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(int who) {
    struct rusage u;

    getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
    int question[2], answer[2];
    long rounds = argc > 1 ? atol(argv[1]) : 0;
    char bytes[8] = { 0 };
    double before;

    if (rounds <= 0 || pipe(question) != 0 || pipe(answer) != 0) return 2;
    switch (fork()) {
    case -1:
        return 2;
    case 0:
        close(question[1]);
        while (read(question[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
            if (write(answer[1], bytes, sizeof bytes) != (ssize_t)sizeof bytes) break;
        _exit(0);
    }
    before = seconds(RUSAGE_SELF);
    for (long i = 0; i < rounds; i++)
        if (write(question[1], bytes, sizeof bytes) != (ssize_t)sizeof bytes ||
            read(answer[0], bytes, sizeof bytes) != (ssize_t)sizeof bytes)
            return 2;
    before = seconds(RUSAGE_SELF) - before;
    close(question[1]);
    wait(NULL);
    printf("%.0f\n", (before + seconds(RUSAGE_CHILDREN)) * 1e9 / (double)rounds);
    return 0;
}
