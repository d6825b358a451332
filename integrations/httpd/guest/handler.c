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

/* The bytes of a cookie's value that RFC 6265 allows, and those of its name (a token). */
static int is_cookie_octet(char c)
{
    return c > ' ' && c < 0x7f && !strchr("\",;\\", c);
}

static int is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", text[i]))
            return 0;
    return length != 0;
}

/* The cookie in one header. */
static long find_cookie(const char *at, const char *name, char *to, size_t capacity)
{
    size_t wanted = strlen(name);

    while (*at) {
        size_t length, key;

        at += strspn(at, " \t;");
        length = strcspn(at, ";");
        key = strcspn(at, "=");
        if (key == wanted && key < length && strncmp(at, name, key) == 0) {
            const char *value = at + key + 1, *end = at + length;

            while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
                end--;
            if (end - value >= 2 && *value == '"' && end[-1] == '"') {
                value++;
                end--;
            }
            if ((size_t)(end - value) >= capacity)
                return -1;
            memcpy(to, value, (size_t)(end - value));
            to[end - value] = 0;
            return end - value;
        }
        at += length;
    }
    return -1;
}

long fenced_find_cookie(const fenced_request *request, const char *name, char *to, size_t capacity)
{
    /* HTTP/2 may part them into several headers. */
    for (uint64_t i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, "Cookie") == 0) {
            long length = find_cookie(request->headers[i].value, name, to, capacity);

            if (length >= 0)
                return length;
        }
    return -1;
}

int fenced_set_cookie(const char *name, const char *value, const char *attributes)
{
    char line[8190];
    int length;

    if (!is_token(name, strlen(name)))
        return -1;
    for (const char *c = value; *c; c++)
        if (!is_cookie_octet(*c))
            return -1;
    for (const char *c = attributes ? attributes : ""; *c; c++)
        if (*c < ' ' || *c >= 0x7f)
            return -1;
    length = snprintf(line, sizeof line, "%s=%s%s%s", name, value, attributes && *attributes ? "; " : "", attributes ? attributes : "");
    return length < 0 || length >= (int)sizeof line ? -1 : fenced_add_header("Set-Cookie", line);
}
