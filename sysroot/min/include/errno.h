#ifndef RF_MIN_ERRNO_H
#define RF_MIN_ERRNO_H
/* One for the whole domain: this library has no thread-local variables. */
#ifdef __cplusplus
extern "C"
#endif
int *__errno_location(void) __attribute__((const));
#define errno (*__errno_location())
#define ENOENT 2
#define EINTR 4
#define EIO 5
#define EBADF 9
#define EAGAIN 11
#define ENOMEM 12
#define EACCES 13
#define EFAULT 14
#define EEXIST 17
#define EINVAL 22
#define ENOSPC 28
#define EPIPE 32
#define EDOM 33
#define ERANGE 34
#define ENOSYS 38
#define EILSEQ 84
#define EOVERFLOW 75
#endif
