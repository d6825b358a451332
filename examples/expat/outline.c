/* The outline of an XML document: elements by depth, with the text that they begin with, and where it is damaged. */
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct outline {
    XML_Parser parser;
    int depth, elements;
    char text[24];
};

static void flush(struct outline *o) {
    if (o->text[0])
        printf("%*s\"%s\"\n", 2 * o->depth, "", o->text);
    o->text[0] = 0;
}

static void start(void *context, const XML_Char *name, const XML_Char **attributes) {
    struct outline *o = context;
    flush(o);
    printf("%*s%s", 2 * o->depth++, "", name);
    for (; *attributes; attributes += 2)
        printf(" %s='%s'", attributes[0], attributes[1]);
    printf(" (line %lu)\n", (unsigned long)XML_GetCurrentLineNumber(o->parser));
    o->elements++;
}

static void end(void *context, const XML_Char *name) {
    struct outline *o = context;
    (void)name;
    flush(o);
    o->depth--;
}

static void characters(void *context, const XML_Char *text, int length) {
    struct outline *o = context;
    size_t room = sizeof o->text - 1 - strlen(o->text);
    while (length > 0 && room > 0 && (o->text[0] || (unsigned char)*text > ' ')) {
        strncat(o->text, text++, 1);
        length--, room--;
    }
}

int main(int argc, char **argv) {
    static char bytes[1 << 20];
    FILE *file = argc > 1 ? fopen(argv[1], "r") : stdin;
    struct outline o = { XML_ParserCreate(NULL), 0, 0, "" };
    size_t n;
    int good = 1;

    if (!file || !o.parser)
        return perror(argc > 1 ? argv[1] : "expat"), 1;
    XML_SetUserData(o.parser, &o);
    XML_SetElementHandler(o.parser, start, end);
    XML_SetCharacterDataHandler(o.parser, characters);
    while (good && (n = fread(bytes, 1, sizeof bytes, file)) > 0)
        good = XML_Parse(o.parser, bytes, (int)n, feof(file) != 0) == XML_STATUS_OK;
    if (good)
        printf("%d elements\n", o.elements);
    else
        printf("line %lu, column %lu: %s\n", (unsigned long)XML_GetCurrentLineNumber(o.parser),
               (unsigned long)XML_GetCurrentColumnNumber(o.parser), XML_ErrorString(XML_GetErrorCode(o.parser)));
    XML_ParserFree(o.parser);
    return !good;
}
