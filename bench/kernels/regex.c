/* A backtracking matcher for . * + ? ^ $ and classes, over lines of text. */
#include "kernel.h"

static int match_here(const char *re, const char *text);

static const char *skip_atom(const char *re)
{
    if (*re == '[')
        while (*re && *re != ']')
            re++;
    return re + 1;
}

static int match_one(const char *re, char c)
{
    if (c == 0)
        return 0;
    if (*re == '.')
        return 1;
    if (*re != '[')
        return *re == c;
    for (re++; *re != ']'; re++)
        if (re[1] == '-' && re[2] != ']') {
            if (c >= re[0] && c <= re[2])
                return 1;
            re += 2;
        } else if (*re == c)
            return 1;
    return 0;
}

static int match_repeat(const char *atom, const char *rest, const char *text, int least)
{
    const char *t = text;
    while (match_one(atom, *t))
        t++;
    for (; t - text >= least; t--)
        if (match_here(rest, t))
            return 1;
    return 0;
}

static int match_here(const char *re, const char *text)
{
    for (;;) {
        if (*re == 0)
            return 1;
        if (*re == '$' && re[1] == 0)
            return *text == 0;
        const char *next = skip_atom(re);
        switch (*next) {
        case '*':
            return match_repeat(re, next + 1, text, 0);
        case '+':
            return match_repeat(re, next + 1, text, 1);
        case '?':
            if (match_one(re, *text) && match_here(next + 1, text + 1))
                return 1;
            re = next + 1;
            continue;
        default:
            if (!match_one(re, *text))
                return 0;
            re = next;
            text++;
        }
    }
}

static int match(const char *re, const char *text)
{
    if (*re == '^')
        return match_here(re + 1, text);
    do
        if (match_here(re, text))
            return 1;
    while (*text++);
    return 0;
}

#define LINES AMOUNT(2000, 8)
static char lines[LINES][80];

WORKLOAD(regex)
{
    static const char *const patterns[] = {"[a-z]+@[a-z]+.com", "^[0-9]*x.*y$", "a.*b.*c.*d", "colou?r", "[aeiou][aeiou]+z?"};
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789 @.";
    uint64_t state = 41, sum = 0;
    for (int i = 0; i < LINES; i++)
        for (int j = 0; j < 79; j++)
            lines[i][j] = alphabet[next_random(&state) % (sizeof alphabet - 1)];
    for (int round = 0; round < (int)part(70, permille); round++)
        for (int i = 0; i < LINES; i++)
            for (int p = 0; p < 5; p++)
                sum = sum * 3 + (uint64_t)match(patterns[p], lines[i]);
    return sum;
}
