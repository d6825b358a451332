/* apr_private.h - what APR's own configure would find out, for the sources that fenced modules are linked with. */
#ifndef STOCK_APR_PRIVATE_H
#define STOCK_APR_PRIVATE_H

#define APR_ALLOCATOR_USES_MMAP 0
#define HAVE_ARPA_INET_H 1
#define HAVE_CALLOC 1
#define HAVE_CTYPE_H 1
#define HAVE_ERRNO_H 1
#define HAVE_FCNTL_H 1
#define HAVE_GMTOFF 1
#define HAVE_LIMITS_H 1
#define HAVE_LOCALTIME_R 1
#define HAVE_MEMCHR 1
#define HAVE_MEMMOVE 1
#define HAVE_NETINET_IN_H 1
#define HAVE_STDDEF_H 1
#define HAVE_STDINT_H 1
#define HAVE_STDIO_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRCASECMP 1
#define HAVE_STRDUP 1
#define HAVE_STRFTIME 1
#define HAVE_STRING_H 1
#define HAVE_STRNCASECMP 1
#define HAVE_STRSTR 1
#define HAVE_STRTOLL 1
#define HAVE_STRUCT_TM_TM_GMTOFF 1
#define HAVE_SYS_SOCKET_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_SYS_UIO_H 1
#define HAVE_TIME_H 1
#define HAVE_UNISTD_H 1
#define HAVE_WRITEV 1
#define HAVE_STRUCT_STAT_ST_MTIM_TV_NSEC 1
#define TIME_R_USABLE 1
#define HAVE_GMTIME_R 1
#define DIRENT_INODE d_ino
#define DIRENT_TYPE d_type
#define APR_INT64_STRFN strtol
#define APR_OFF_T_STRFN strtol
#define USE_ATOMICS_GENERIC 1


#endif
