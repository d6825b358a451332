/* A module that makes system calls: the libc's streams, files in an opened directory, the clock, the environment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int own_number(void);

/* Reads /data/in.txt and writes it in reverse to /data/out.txt. The length, or -errno. */
int reverse(void) {
    char text[64], back[64];
    FILE *in = fopen("/data/in.txt", "r");
    if (!in)
        return -errno;
    size_t length = fread(text, 1, sizeof text, in);
    fclose(in);
    for (size_t i = 0; i < length; i++)
        back[i] = text[length - 1 - i];
    FILE *out = fopen("/data/out.txt", "w");
    if (!out)
        return -errno;
    if (fwrite(back, 1, length, out) != length || fclose(out))
        return -errno;
    return (int)length;
}

/* 1 if a path outside of what was opened cannot be read. */
int confined(void) { return !fopen("/etc/passwd", "r") && !fopen("/data/../../etc/passwd", "r"); }

int say(int number) {
    int n = printf("number %d\n", number);
    return fflush(stdout) ? -errno : n;
}

/* Seconds, or -errno. */
long now(void) {
    struct timespec t;
    return clock_gettime(CLOCK_REALTIME, &t) ? -errno : (long)t.tv_sec;
}

int number_of_host(void) { return own_number(); }

/* What happens when the module ends: a stream that is not closed, and a function that writes to it. */
static FILE *log_file;
static int broken;
static void at_end(void) {
    fprintf(log_file, "end of %d\n", own_number());
    if (broken)
        *(volatile int *)16 = 1;
}
int log_to(int fault) {
    broken = fault;
    log_file = fopen("/data/out.txt", "w");
    return !log_file || fputs("begin\n", log_file) < 0 || atexit(at_end);
}
