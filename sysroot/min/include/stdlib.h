#ifndef RF_MIN_STDLIB_H
#define RF_MIN_STDLIB_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#define RF_NORETURN __attribute__((noreturn))
#else
#define RF_NORETURN _Noreturn
#endif
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 0x7fffffff
void *malloc(size_t) __attribute__((malloc, alloc_size(1)));
void *calloc(size_t, size_t) __attribute__((malloc, alloc_size(1, 2)));
void *realloc(void *, size_t) __attribute__((alloc_size(2)));
void *aligned_alloc(size_t, size_t) __attribute__((malloc, alloc_size(2)));
void free(void *);
RF_NORETURN void abort(void);
RF_NORETURN void exit(int);
RF_NORETURN void _Exit(int);
int atexit(void (*)(void));
void qsort(void *, size_t, size_t, int (*)(const void *, const void *));
void *bsearch(const void *, const void *, size_t, size_t, int (*)(const void *, const void *));
int abs(int);
long labs(long);
long long llabs(long long);
typedef struct { int quot, rem; } div_t;
typedef struct { long quot, rem; } ldiv_t;
typedef struct { long long quot, rem; } lldiv_t;
div_t div(int, int);
ldiv_t ldiv(long, long);
int atoi(const char *);
long atol(const char *);
long strtol(const char *, char **, int);
unsigned long strtoul(const char *, char **, int);
long long strtoll(const char *, char **, int);
unsigned long long strtoull(const char *, char **, int);
int rand(void);
void srand(unsigned);
char *getenv(const char *);
#define alloca __builtin_alloca
#ifdef __cplusplus
}
#endif
#endif
