/* Parses a JSON document that it wrote itself. */
#include "kernel.h"

static char document[AMOUNT(1 << 20, 1 << 12)];
static size_t length;

static void put(const char *s)
{
    while (*s)
        document[length++] = *s++;
}
static void put_number(uint64_t n)
{
    char digits[24];
    int i = 24;
    digits[--i] = 0;
    do
        digits[--i] = (char)('0' + n % 10);
    while ((n /= 10) != 0);
    put(digits + i);
}

struct parser {
    const char *at, *end;
    uint64_t sum;
    int depth;
};

/* The cursor lives in a register in each loop: through memory, the time between its store and the next load is what the
 * loop takes, and that differs with the instructions in between. */
static void skip(struct parser *p)
{
    const char *at = p->at;
    while (at < p->end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
        at++;
    p->at = at;
}

static int string(struct parser *p)
{
    uint64_t h = 5381;
    const char *at = p->at + 1;
    for (; at < p->end && *at != '"'; at++) {
        char c = *at;
        if (c == '\\' && ++at < p->end)
            c = *at == 'n' ? '\n' : *at;
        h = h * 33 + (uint8_t)c;
    }
    p->sum = mix(p->sum, h);
    p->at = at + 1;
    return at < p->end;
}

static int number(struct parser *p)
{
    double value = 0, scale = 1;
    const char *at = p->at;
    int negative = *at == '-';
    at += negative;
    for (; at < p->end && *at >= '0' && *at <= '9'; at++)
        value = value * 10 + (*at - '0');
    if (at < p->end && *at == '.')
        for (at++; at < p->end && *at >= '0' && *at <= '9'; at++)
            value += (*at - '0') * (scale /= 10);
    p->at = at;
    p->sum = mix_double(p->sum, negative ? -value : value);
    return 1;
}

static int value(struct parser *p)
{
    if (++p->depth > 64)
        return 0;
    int ok = 1;
    skip(p);
    switch (p->at < p->end ? *p->at : 0) {
    case '{':
        for (p->at++; ok;) {
            skip(p);
            if (*p->at == '}')
                break;
            ok = string(p);
            skip(p);
            ok = ok && *p->at++ == ':' && value(p);
            skip(p);
            if (*p->at == ',')
                p->at++;
        }
        p->at++;
        break;
    case '[':
        for (p->at++; ok;) {
            skip(p);
            if (*p->at == ']')
                break;
            ok = value(p);
            skip(p);
            if (*p->at == ',')
                p->at++;
        }
        p->at++;
        break;
    case '"':
        ok = string(p);
        break;
    case 't':
        p->at += 4, p->sum = mix(p->sum, 1);
        break;
    case 'f':
        p->at += 5, p->sum = mix(p->sum, 2);
        break;
    case 'n':
        p->at += 4, p->sum = mix(p->sum, 3);
        break;
    default:
        ok = number(p);
    }
    p->depth--;
    return ok;
}

WORKLOAD(json)
{
    uint64_t state = 31, sum = 0;
    length = 0;
    put("[");
    while (length < sizeof document - 512) {
        if (length > 1)
            put(",\n  ");
        put("{\"id\": ");
        put_number(next_random(&state) % 100000);
        put(", \"name\": \"item \\\"");
        put_number(next_random(&state) % 1000);
        put("\\\"\\n\", \"tags\": [\"red\", \"green\", null, true, false], \"price\": -");
        put_number(next_random(&state) % 1000);
        put(".");
        put_number(next_random(&state) % 100);
        put(", \"nested\": {\"a\": [1, 2, [3, {\"b\": []}]]}}");
    }
    put("]");
    for (int round = 0; round < (int)part(420, permille); round++) {
        struct parser p = {document, document + length, sum, 0};
        if (!value(&p))
            return 0;
        sum = p.sum;
    }
    return sum;
}
