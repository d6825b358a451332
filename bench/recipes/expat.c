/* An XML document in one piece, every handler set, with and without namespaces. */
#include "kernel.h"
#include "rfcheck.h"
#include <expat.h>

static char text[400000];
static size_t length;
static uint64_t trail;

static void add(const char *s)
{
    size_t n = strlen(s);
    REQUIRE(length + n < sizeof text);
    memcpy(text + length, s, n + 1);
    length += n;
}

static void note(char kind, const char *s, size_t n)
{
    trail = mix(trail, (uint8_t)kind);
    for (size_t i = 0; i < n; i++)
        trail = trail * 33 + (uint8_t)s[i];
}

static void start(void *u, const XML_Char *name, const XML_Char **attributes)
{
    (void)u;
    note('<', name, strlen(name));
    for (; *attributes; attributes++)
        note('a', *attributes, strlen(*attributes));
}
static void end(void *u, const XML_Char *name)
{
    (void)u;
    note('>', name, strlen(name));
}
static void characters(void *u, const XML_Char *s, int n)
{
    (void)u;
    note('t', s, (size_t)n);
}
static void comment(void *u, const XML_Char *s)
{
    (void)u;
    note('c', s, strlen(s));
}

static void prepare(void)
{
    if (length)
        return;
    uint64_t seed = 31;
    add("<?xml version='1.0' encoding='UTF-8'?>\n<!DOCTYPE root [<!ENTITY greeting 'hello &#228;'><!ATTLIST item kind CDATA 'plain'>]>\n"
        "<root xmlns='urn:one' xmlns:two='urn:two'>\n");
    for (int i = 0; i < AMOUNT(3000, 20); i++) {
        char line[200];
        uint64_t r = rf_random(&seed);
        snprintf(line, sizeof line, "<item id=\"%u\"%s><two:name>n%x</two:name>&greeting; &lt;%u&gt;<![CDATA[<%u>]]></item>%s\n", (unsigned)i,
                 r & 1 ? " kind='odd \t kind'" : "", (unsigned)(r >> 8) & 0xFFFF, (unsigned)(r >> 24) & 0xFF, (unsigned)(r >> 32) & 0xFF,
                 r % 7 ? "" : "<!-- remark -->");
        add(line);
    }
    add("</root>");
}

static uint64_t parse(int namespaces, uint64_t rounds)
{
    prepare();
    trail = 1;
    for (uint64_t round = 0; round < rounds; round++) {
        XML_Parser x = namespaces ? XML_ParserCreateNS(NULL, '|') : XML_ParserCreate(NULL);
        REQUIRE(x);
        XML_SetElementHandler(x, start, end);
        XML_SetCharacterDataHandler(x, characters);
        XML_SetCommentHandler(x, comment);
        XML_SetHashSalt(x, 12345);
        REQUIRE(XML_Parse(x, text, (int)length, 1) == XML_STATUS_OK);
        XML_ParserFree(x);
    }
    return trail;
}

WORKLOAD(parse) { return parse(0, part(90, permille)); }

WORKLOAD(parse_namespaces) { return parse(1, part(70, permille)); }
