#ifndef RF_MIN_STDIO_H
#define RF_MIN_STDIO_H
/* Formatted output of integers, characters, strings and pointers to the standard streams and to memory.
 * No files, no buffering, no floating point: modules that need those link the full libc. */
#include <stdarg.h>
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#define restrict __restrict
#endif
typedef struct rf_min_file { int fd; } FILE;
extern FILE *const stdin, *const stdout, *const stderr;
#define stdin stdin
#define stdout stdout
#define stderr stderr
#define EOF (-1)
#define BUFSIZ 1024
int printf(const char *restrict, ...) __attribute__((format(printf, 1, 2)));
int vprintf(const char *restrict, va_list);
int fprintf(FILE *restrict, const char *restrict, ...) __attribute__((format(printf, 2, 3)));
int vfprintf(FILE *restrict, const char *restrict, va_list);
int sprintf(char *restrict, const char *restrict, ...) __attribute__((format(printf, 2, 3)));
int vsprintf(char *restrict, const char *restrict, va_list);
int snprintf(char *restrict, size_t, const char *restrict, ...) __attribute__((format(printf, 3, 4)));
int vsnprintf(char *restrict, size_t, const char *restrict, va_list);
int puts(const char *);
int fputs(const char *restrict, FILE *restrict);
int putchar(int);
int putc(int, FILE *);
int fputc(int, FILE *);
size_t fwrite(const void *restrict, size_t, size_t, FILE *restrict);
int fflush(FILE *);
#ifdef __cplusplus
#undef restrict
}
#endif
#endif
