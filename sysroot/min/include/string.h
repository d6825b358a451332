#ifndef RF_MIN_STRING_H
#define RF_MIN_STRING_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#define restrict __restrict
#endif
void *memcpy(void *restrict, const void *restrict, size_t);
void *mempcpy(void *restrict, const void *restrict, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
int memcmp(const void *, const void *, size_t);
void *memchr(const void *, int, size_t);
void *memrchr(const void *, int, size_t);
size_t strlen(const char *);
size_t strnlen(const char *, size_t);
int strcmp(const char *, const char *);
int strncmp(const char *, const char *, size_t);
int strcoll(const char *, const char *);
char *strcpy(char *restrict, const char *restrict);
char *stpcpy(char *restrict, const char *restrict);
char *strncpy(char *restrict, const char *restrict, size_t);
char *strcat(char *restrict, const char *restrict);
char *strncat(char *restrict, const char *restrict, size_t);
char *strchr(const char *, int);
char *strchrnul(const char *, int);
char *strrchr(const char *, int);
char *strstr(const char *, const char *);
size_t strspn(const char *, const char *);
size_t strcspn(const char *, const char *);
char *strpbrk(const char *, const char *);
char *strdup(const char *);
char *strerror(int);
int bcmp(const void *, const void *, size_t);
#ifdef __cplusplus
#undef restrict
}
#endif
#endif
