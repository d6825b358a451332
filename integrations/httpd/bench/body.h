/* body.h - the answer that all shapes give: `n=BYTES` of text, in pieces of at most 8000. */
#include <stdlib.h>
#include <string.h>

static void make_body(const char *query, void (*put)(void *to, const char *from, size_t length), void *to)
{
    static const char line[] = "The quick brown fox jumps over the lazy dog.\n";
    size_t left = query && strncmp(query, "n=", 2) == 0 ? strtoul(query + 2, NULL, 10) : 1000, used = 0;
    char piece[8000];

    while (left) {
        size_t n = sizeof line - 1 < left ? sizeof line - 1 : left;

        if (used + n > sizeof piece) {
            put(to, piece, used);
            used = 0;
        }
        memcpy(piece + used, line, n);
        used += n;
        left -= n;
    }
    put(to, piece, used);
}
