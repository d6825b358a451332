/* What wheel.py calls: guest.rf. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int host_next(int value, const char *text);

int add(int a, int b) { return a + b; }
int divide(int a, int b) { return a / b; }
double mix(float a, signed char b, unsigned long long c, _Bool d) { return (double)a + b + c + d; }
int sum(const int *values, unsigned count) {
    int all = 0;
    for (unsigned i = 0; i < count; i++)
        all += values[i];
    return all;
}
const char *name(void) { return "guest"; }
int ask(int value) { return host_next(value, "asked") + 1; }
void spin(void) {
    for (volatile int i = 0;; i++) {
    }
}
int say(int number) { return printf("number %d\n", number) + fflush(stdout); }
int look(const char *path) {
    FILE *f = fopen(path, "r");
    int c = f ? fgetc(f) : -1;
    if (f)
        fclose(f);
    return c;
}
