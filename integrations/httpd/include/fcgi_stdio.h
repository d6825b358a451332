/* fcgi_stdio.h - for programs that were written for FastCGI, compiled by fenced-cc --program.
 *
 * The standard streams are the request's: nothing of <stdio.h> has another name here. For each request main runs once, and
 * FCGI_Accept succeeds once in it. */
#ifndef FCGI_STDIO_H
#define FCGI_STDIO_H

#include <stdio.h>
#include <stdlib.h>

#include "fcgiapp.h"

typedef FILE FCGI_FILE;

#define FCGI_stdin stdin
#define FCGI_stdout stdout
#define FCGI_stderr stderr
#define FCGI_fopen fopen
#define FCGI_fclose fclose
#define FCGI_fflush fflush
#define FCGI_fread fread
#define FCGI_fwrite fwrite
#define FCGI_fgets fgets
#define FCGI_fputs fputs
#define FCGI_fgetc fgetc
#define FCGI_fputc fputc
#define FCGI_getc getc
#define FCGI_getchar getchar
#define FCGI_putc putc
#define FCGI_putchar putchar
#define FCGI_puts puts
#define FCGI_ungetc ungetc
#define FCGI_printf printf
#define FCGI_fprintf fprintf
#define FCGI_vprintf vprintf
#define FCGI_vfprintf vfprintf
#define FCGI_feof feof
#define FCGI_ferror ferror
#define FCGI_clearerr clearerr
#define FCGI_perror perror
#define FCGI_ToFILE(file) (file)
#define FCGI_ToFcgiStream(file) (file)

#ifdef __cplusplus
extern "C" {
#endif

/* 0 once for each request, then -1. */
int FCGI_Accept(void);
void FCGI_Finish(void);
void FCGI_SetExitStatus(int status);
int FCGI_StartFilterData(void);

#ifdef __cplusplus
}
#endif
#endif
