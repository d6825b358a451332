/* fcgiapp.h - FastCGI's other interface, for programs that are compiled by fenced-cc --program. See fcgi_stdio.h. */
#ifndef FCGIAPP_H
#define FCGIAPP_H

#include <stdarg.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef FILE FCGX_Stream;
typedef char **FCGX_ParamArray;

typedef struct FCGX_Request {
    int requestId;
    int role;
    FCGX_Stream *in, *out, *err;
    char **envp;
} FCGX_Request;

#define FCGI_RESPONDER 1
#define FCGI_FAIL_ACCEPT_ON_INTR 1

int FCGX_IsCGI(void); /* 0 */
int FCGX_Init(void);
int FCGX_OpenSocket(const char *path, int backlog);
int FCGX_InitRequest(FCGX_Request *request, int socket, int flags);
int FCGX_Accept(FCGX_Stream **in, FCGX_Stream **out, FCGX_Stream **err, FCGX_ParamArray *envp);
int FCGX_Accept_r(FCGX_Request *request); /* 0 once for each request, then -1 */
void FCGX_Finish(void);
void FCGX_Finish_r(FCGX_Request *request);
void FCGX_Free(FCGX_Request *request, int close);
void FCGX_ShutdownPending(void);
void FCGX_SetExitStatus(int status, FCGX_Stream *stream);
char *FCGX_GetParam(const char *name, FCGX_ParamArray envp);

int FCGX_GetChar(FCGX_Stream *stream);
int FCGX_UnGetChar(int c, FCGX_Stream *stream);
int FCGX_GetStr(char *to, int length, FCGX_Stream *stream);
char *FCGX_GetLine(char *to, int length, FCGX_Stream *stream);
int FCGX_HasSeenEOF(FCGX_Stream *stream);
int FCGX_PutChar(int c, FCGX_Stream *stream);
int FCGX_PutStr(const char *from, int length, FCGX_Stream *stream);
int FCGX_PutS(const char *text, FCGX_Stream *stream);
int FCGX_FPrintF(FCGX_Stream *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
int FCGX_VFPrintF(FCGX_Stream *stream, const char *format, va_list arguments);
int FCGX_FFlush(FCGX_Stream *stream);
int FCGX_FClose(FCGX_Stream *stream);
int FCGX_GetError(FCGX_Stream *stream);
void FCGX_ClearError(FCGX_Stream *stream);

#ifdef __cplusplus
}
#endif
#endif
