/* A large document, in pieces, with every handler; damaged documents. */
#include "rfcheck.h"
#include <expat.h>

static char *text;
static size_t length, room;
static uint64_t trail;
static unsigned long events;

static void add(const char *s)
{
	size_t n = strlen(s);
	if (length + n + 1 > room)
		text = realloc(text, room = (length + n) * 2);
	memcpy(text + length, s, n + 1);
	length += n;
}

static void note(const char *kind, const char *s, size_t n)
{
	events++;
	trail = (trail * 31 + rf_digest(kind, 1)) ^ rf_digest(s, n);
}

static void start(void *u, const XML_Char *name, const XML_Char **attributes)
{
	(void)u;
	note("<", name, strlen(name));
	for (; *attributes; attributes++)
		note("a", *attributes, strlen(*attributes));
}
static void end(void *u, const XML_Char *name)
{
	(void)u;
	note(">", name, strlen(name));
}
static void characters(void *u, const XML_Char *s, int n)
{
	(void)u;
	for (int i = 0; i < n; i++) /* pieces depend on the buffer, characters do not */
		trail = trail * 33 + (unsigned char)s[i];
}
static void comment(void *u, const XML_Char *s)
{
	(void)u;
	note("c", s, strlen(s));
}
static void instruction(void *u, const XML_Char *target, const XML_Char *data)
{
	(void)u;
	note("t", target, strlen(target));
	note("d", data, strlen(data));
}

static int parse(const char *p, size_t n, size_t piece, int namespaces)
{
	XML_Parser x = namespaces ? XML_ParserCreateNS(NULL, '|') : XML_ParserCreate(NULL);
	RF_REQUIRE(x);
	XML_SetElementHandler(x, start, end);
	XML_SetCharacterDataHandler(x, characters);
	XML_SetCommentHandler(x, comment);
	XML_SetProcessingInstructionHandler(x, instruction);
	XML_SetHashSalt(x, 12345);
	trail = events = 0;
	int status = XML_STATUS_OK;
	for (size_t at = 0; status == XML_STATUS_OK && at < n; at += piece)
		status = XML_Parse(x, p + at, (int)(n - at < piece ? n - at : piece), at + piece >= n);
	int error = status == XML_STATUS_OK ? 0 : XML_GetErrorCode(x);
	if (error)
		printf("line %lu: %s\n", (unsigned long)XML_GetCurrentLineNumber(x), XML_ErrorString(XML_GetErrorCode(x)));
	XML_ParserFree(x);
	return error;
}

int main(int argc, char **argv)
{
	(void)argv;
	add("<?xml version='1.0' encoding='UTF-8'?>\n<!DOCTYPE root [<!ENTITY greeting 'hello &#228;'><!ATTLIST item kind CDATA 'plain'>]>\n"
	    "<root xmlns='urn:one' xmlns:two='urn:two'>\n");
	uint64_t seed = 31;
	for (int i = 0; i < 20000; i++) {
		char line[200];
		uint64_t r = rf_random(&seed);
		snprintf(line, sizeof line, "<item id=\"%u\"%s><two:name>n%x</two:name>&greeting; &lt;%u&gt;<![CDATA[<%u>]]></item>%s\n", (unsigned)i,
			 r & 1 ? " kind='odd \t kind'" : "", (unsigned)(r >> 8) & 0xFFFF, (unsigned)(r >> 24) & 0xFF, (unsigned)(r >> 32) & 0xFF,
			 r % 7 ? "" : "<!-- remark --><?go now?>");
		add(line);
	}
	add("</root>");
	if (argc > 1) {
		RF_BENCH("parse", 10, RF_REQUIRE(!parse(text, length, 65536, 0)));
		RF_BENCH("parse-ns", 10, RF_REQUIRE(!parse(text, length, 65536, 1)));
		return 0;
	}
	for (int namespaces = 0; namespaces < 2; namespaces++)
		for (size_t piece = 3; piece < 2 * length; piece = piece * 9 + 1) {
			RF_REQUIRE(!parse(text, length, piece, namespaces));
			printf("pieces of %zu: %lu events %016llx\n", piece, events, (unsigned long long)trail);
		}
	for (int i = 0; i < 300; i++) {
		size_t at = rf_random(&seed) % 5000;
		char old = text[at];
		text[at] = (char)rf_random(&seed);
		printf("damage: %d ", parse(text, 6000, 700, i & 1));
		printf("%lu %016llx\n", events, (unsigned long long)trail);
		text[at] = old;
	}
	return 0;
}
