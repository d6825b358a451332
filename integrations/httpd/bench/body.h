/* body.h - the answer that all shapes give: `n=BYTES` of text, in pieces of at most 8000, or as a whole where `to` lies. */
#include <stdlib.h>
#include <string.h>

static inline size_t body_length(const char *query)
{
    return query && strncmp(query, "n=", 2) == 0 ? strtoul(query + 2, NULL, 10) : 1000;
}

static inline void make_whole(char *to, size_t length)
{
    static const char line[] = "The quick brown fox jumps over the lazy dog.\n";

    for (size_t n; length; to += n, length -= n) {
        n = sizeof line - 1 < length ? sizeof line - 1 : length;
        memcpy(to, line, n);
    }
}

static inline void make_body(const char *query, void (*put)(void *to, const char *from, size_t length), void *to)
{
    static const char line[] = "The quick brown fox jumps over the lazy dog.\n";
    size_t left = body_length(query), used = 0;
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
