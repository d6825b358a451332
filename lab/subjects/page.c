/* A page: how often each word of a text is in it, as a table of HTML. `put` takes its pieces. */
#include "page.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 64, WORD = 32 };

struct word {
    struct word *next;
    unsigned count;
    char text[WORD];
};

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of a parameter, decoded; NULL if it is not there. The caller frees it. */
static char *parameter(const char *query, const char *name)
{
    size_t length = strlen(name);
    const char *from = query;

    while (from && !(strncmp(from, name, length) == 0 && from[length] == '='))
        from = (from = strchr(from, '&')) ? from + 1 : NULL;
    if (!from)
        return NULL;
    from += length + 1;
    size_t room = strcspn(from, "&"), used = 0;
    char *to = malloc(room + 1);
    for (size_t i = 0; to && i < room; i++) {
        if (from[i] == '%' && i + 2 < room && digit(from[i + 1]) >= 0 && digit(from[i + 2]) >= 0) {
            to[used++] = (char)(digit(from[i + 1]) * 16 + digit(from[i + 2]));
            i += 2;
        } else {
            to[used++] = from[i] == '+' ? ' ' : from[i];
        }
    }
    if (to)
        to[used] = 0;
    return to;
}

static unsigned hash(const char *text, size_t length)
{
    unsigned n = 5381;

    for (size_t i = 0; i < length; i++)
        n = n * 33 + (unsigned char)text[i];
    return n % BUCKETS;
}

static int count(struct word **table, const char *text, size_t length)
{
    struct word **at = &table[hash(text, length)], *w;

    for (w = *at; w; w = w->next)
        if (strlen(w->text) == length && memcmp(w->text, text, length) == 0) {
            w->count++;
            return 0;
        }
    w = calloc(1, sizeof *w);
    if (!w)
        return -1;
    memcpy(w->text, text, length);
    w->count = 1;
    w->next = *at;
    *at = w;
    return 1;
}

static int by_count(const void *a, const void *b)
{
    const struct word *x = *(struct word *const *)a, *y = *(struct word *const *)b;

    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->text, y->text);
}

static size_t escape(char *to, size_t room, const char *from)
{
    size_t used = 0;

    for (; *from && used + 6 < room; from++) {
        const char *as = *from == '<' ? "&lt;" : *from == '>' ? "&gt;" : *from == '&' ? "&amp;" : NULL;

        if (as) {
            memcpy(to + used, as, strlen(as));
            used += strlen(as);
        } else {
            to[used++] = *from;
        }
    }
    to[used] = 0;
    return used;
}

static void print(struct word **words, size_t n, page_put put, void *to)
{
    char line[256], safe[8 * WORD];
    unsigned all = 0;

    put(to, "<table>\n", 8);
    for (size_t i = 0; i < n; i++) {
        all += words[i]->count;
        escape(safe, sizeof safe, words[i]->text);
        int length = snprintf(line, sizeof line, "<tr><td>%zu<td>%s<td>%u\n", i + 1, safe, words[i]->count);
        put(to, line, (size_t)length);
    }
    int length = snprintf(line, sizeof line, "</table>\n%zu different of %u\n", n, all);
    put(to, line, (size_t)length);
}

int page(const char *query, page_put put, void *to)
{
    struct word *table[BUCKETS] = {0}, **words, *w, *next;
    char *text = parameter(query, "text");
    size_t n = 0, used = 0;

    if (!text)
        return -1;
    for (const char *at = text; *at;) {
        size_t gap = strspn(at, " .,;\n"), length = strcspn(at + gap, " .,;\n");

        at += gap;
        if (length > 0 && length < WORD) {
            int fresh = count(table, at, length);

            if (fresh < 0)
                return -1;
            n += (size_t)fresh;
        }
        at += length;
    }
    words = malloc((n + 1) * sizeof *words);
    if (!words)
        return -1;
    for (int i = 0; i < BUCKETS; i++)
        for (w = table[i]; w; w = w->next)
            words[used++] = w;
    qsort(words, n, sizeof *words, by_count);
    print(words, n, put, to);
    for (int i = 0; i < BUCKETS; i++)
        for (w = table[i]; w; w = next) {
            next = w->next;
            free(w);
        }
    free(words);
    free(text);
    return 0;
}
