/* What handlers may use besides the server's functions. */
#include "fenced.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int fenced_printf(const char *format, ...)
{
    char small[1024], *text = small;
    va_list arguments;
    int length, result;

    va_start(arguments, format);
    length = vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof small) {
        text = malloc((size_t)length + 1);
        if (!text)
            return -1;
        va_start(arguments, format);
        vsnprintf(text, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    result = length < 0 ? -1 : fenced_write(text, (size_t)length);
    if (text != small)
        free(text);
    return result;
}

const char *fenced_find_header(const fenced_request *request, const char *name)
{
    for (uint64_t i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, name) == 0)
            return request->headers[i].value;
    return NULL;
}

const char *fenced_find_variable(const fenced_request *request, const char *name)
{
    size_t length = strlen(name);

    for (char *const *one = request->environment; *one; one++)
        if (strncmp(*one, name, length) == 0 && (*one)[length] == '=')
            return *one + length + 1;
    return NULL;
}
