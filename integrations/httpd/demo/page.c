/* The page of the demonstration: greets by a form, knows visitors again by a cookie, and crashes on demand, which its script asks for. */
#include <fenced.h>

#include <stdlib.h>
#include <string.h>

/* The value of `name` in the query, decoded. */
static void find(const char *query, const char *name, char *to, size_t capacity)
{
    size_t length = strlen(name), used = 0;

    for (; *query; query += strcspn(query, "&"), query += *query == '&')
        if (strncmp(query, name, length) == 0 && query[length] == '=') {
            for (query += length + 1; *query && *query != '&' && used + 1 < capacity; query++) {
                char digits[3] = "";

                if (*query == '%')
                    strncpy(digits, query + 1, 2);
                if (strlen(digits) == 2 && strspn(digits, "0123456789abcdefABCDEF") == 2) {
                    to[used++] = (char)strtol(digits, NULL, 16);
                    query += 2;
                } else {
                    to[used++] = *query == '+' ? ' ' : *query;
                }
            }
            break;
        }
    to[used] = 0;
}

static void put_text(const char *text)
{
    for (; *text; text++)
        if (strchr("<>&\"'", *text))
            fenced_printf("&#%d;", *text);
        else
            fenced_write(text, 1);
}

int fenced_handle(const fenced_request *r)
{
    char name[100], before[100];

    if (strcmp(r->query, "crash") == 0)
        return *(volatile int *)8;
    find(r->query, "name", name, sizeof name);
    fenced_set_header("Content-Type", "text/html; charset=utf-8");
    fenced_set_header("Content-Security-Policy", "default-src 'self' 'unsafe-inline'");
    /* Names with other bytes than a cookie may have are not kept. */
    if (*name)
        fenced_set_cookie("name", name, "Max-Age=3600; HttpOnly; SameSite=Strict; Path=/demo");
    fenced_printf("<!DOCTYPE html><html><head><title>A fenced page</title></head><body><h1>A fenced page</h1>"
                  "<form><label>Your name <input name=\"name\"></label> <button>Greet</button></form><p><output id=\"result\">Hello, ");
    put_text(*name ? name : "nobody");
    fenced_printf(". ");
    if (fenced_find_cookie(r, "name", before, sizeof before) >= 0) {
        fenced_printf("Welcome back, ");
        put_text(before);
        fenced_printf(". ");
    } else {
        fenced_printf("You are here for the first time. ");
    }
    fenced_printf("</output></p><script>const out = document.getElementById('result');"
                  "fetch('?crash').then(a => { out.append('A crash: ' + a.status + '. '); return fetch('?name='); })"
                  ".then(a => out.append('Afterwards: ' + a.status + '.'));</script></body></html>\n");
    return 0;
}
