/* FastCGI's functions. The streams are the standard ones, which are the request's. */
#include "fcgi_stdio.h"
#include "program.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

int FCGI_Accept(void)
{
    if (fenced_accepted)
        return -1;
    fenced_accepted = 1;
    return 0;
}

void FCGI_Finish(void)
{
    fflush(stdout);
}

void FCGI_SetExitStatus(int status)
{
    (void)status;
}

int FCGI_StartFilterData(void)
{
    return -1;
}

int FCGX_IsCGI(void)
{
    return 0;
}

int FCGX_Init(void)
{
    return 0;
}

int FCGX_OpenSocket(const char *path, int backlog)
{
    (void)path, (void)backlog;
    return 0;
}

int FCGX_InitRequest(FCGX_Request *request, int socket, int flags)
{
    (void)socket, (void)flags;
    memset(request, 0, sizeof *request);
    return 0;
}

int FCGX_Accept(FCGX_Stream **in, FCGX_Stream **out, FCGX_Stream **err, FCGX_ParamArray *envp)
{
    if (FCGI_Accept() != 0)
        return -1;
    *in = stdin;
    *out = stdout;
    *err = stderr;
    *envp = environ;
    return 0;
}

int FCGX_Accept_r(FCGX_Request *request)
{
    request->requestId = 1;
    request->role = FCGI_RESPONDER;
    return FCGX_Accept(&request->in, &request->out, &request->err, &request->envp);
}

void FCGX_Finish(void)
{
    fflush(stdout);
}

void FCGX_Finish_r(FCGX_Request *request)
{
    (void)request;
    fflush(stdout);
}

void FCGX_Free(FCGX_Request *request, int close)
{
    (void)request, (void)close;
}

void FCGX_ShutdownPending(void)
{
}

void FCGX_SetExitStatus(int status, FCGX_Stream *stream)
{
    (void)status, (void)stream;
}

char *FCGX_GetParam(const char *name, FCGX_ParamArray envp)
{
    size_t length = strlen(name);

    for (; envp && *envp; envp++)
        if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=')
            return *envp + length + 1;
    return NULL;
}

int FCGX_GetChar(FCGX_Stream *stream)
{
    return getc(stream);
}

int FCGX_UnGetChar(int c, FCGX_Stream *stream)
{
    return ungetc(c, stream);
}

int FCGX_GetStr(char *to, int length, FCGX_Stream *stream)
{
    return length > 0 ? (int)fread(to, 1, (size_t)length, stream) : 0;
}

char *FCGX_GetLine(char *to, int length, FCGX_Stream *stream)
{
    return fgets(to, length, stream);
}

int FCGX_HasSeenEOF(FCGX_Stream *stream)
{
    return feof(stream) ? EOF : 0;
}

int FCGX_PutChar(int c, FCGX_Stream *stream)
{
    return putc(c, stream);
}

int FCGX_PutStr(const char *from, int length, FCGX_Stream *stream)
{
    size_t written = length > 0 ? fwrite(from, 1, (size_t)length, stream) : 0;

    return ferror(stream) ? EOF : (int)written;
}

int FCGX_PutS(const char *text, FCGX_Stream *stream)
{
    return FCGX_PutStr(text, (int)strlen(text), stream);
}

int FCGX_VFPrintF(FCGX_Stream *stream, const char *format, va_list arguments)
{
    return vfprintf(stream, format, arguments);
}

int FCGX_FPrintF(FCGX_Stream *stream, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vfprintf(stream, format, arguments);
    va_end(arguments);
    return length;
}

int FCGX_FFlush(FCGX_Stream *stream)
{
    return fflush(stream);
}

int FCGX_FClose(FCGX_Stream *stream)
{
    return fflush(stream);
}

int FCGX_GetError(FCGX_Stream *stream)
{
    return ferror(stream);
}

void FCGX_ClearError(FCGX_Stream *stream)
{
    clearerr(stream);
}
