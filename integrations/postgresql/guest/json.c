/* jsonb is built as text, which the server then reads. */
#include "guest.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include <ctype.h>
#include <string.h>

/* What a JsonbParseState of the server's is to callers: opaque. */
struct builder {
	StringInfoData text;
	int depth;
	bool comma; /* before the next item */
	JsonbValue result;
};

void escape_json(StringInfo into, const char *text)
{
	appendStringInfoCharMacro(into, '"');
	for (; *text != '\0'; text++) {
		switch (*text) {
		case '\b':
			appendStringInfoString(into, "\\b");
			break;
		case '\f':
			appendStringInfoString(into, "\\f");
			break;
		case '\n':
			appendStringInfoString(into, "\\n");
			break;
		case '\r':
			appendStringInfoString(into, "\\r");
			break;
		case '\t':
			appendStringInfoString(into, "\\t");
			break;
		case '"':
			appendStringInfoString(into, "\\\"");
			break;
		case '\\':
			appendStringInfoString(into, "\\\\");
			break;
		default:
			if ((unsigned char) *text < ' ')
				appendStringInfo(into, "\\u%04x", (int) *text);
			else
				appendStringInfoCharMacro(into, *text);
		}
	}
	appendStringInfoCharMacro(into, '"');
}

bool IsValidJsonNumber(const char *text, int length)
{
	const char *p = text, *end = text + length;

#define DIGITS                                                                   \
	do {                                                                     \
		if (p >= end || !isdigit((unsigned char) *p))                    \
			return false;                                            \
		while (p < end && isdigit((unsigned char) *p))                   \
			p++;                                                     \
	} while (0)

	if (p < end && *p == '-')
		p++;
	if (p < end && *p == '0')
		p++;
	else
		DIGITS;
	if (p < end && *p == '.') {
		p++;
		DIGITS;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		DIGITS;
	}
	return p == end;
}

static void put_scalar(StringInfo into, const JsonbValue *value)
{
	NullableDatum argument;
	bool null;

	switch (value->type) {
	case jbvNull:
		appendStringInfoString(into, "null");
		break;
	case jbvBool:
		appendStringInfoString(into, value->val.boolean ? "true" : "false");
		break;
	case jbvString:
		escape_json(into, pnstrdup(value->val.string.val, value->val.string.len));
		break;
	case jbvNumeric:
		argument = (NullableDatum){NumericGetDatum(value->val.numeric), false};
		appendStringInfoString(into, DatumGetCString(plf_server_function(F_NUMERIC_OUT, InvalidOid, 1, &argument, &null)));
		break;
	default:
		elog(ERROR, "unrecognized jsonb value type: %d", value->type);
	}
}

JsonbValue *pushJsonbValue(JsonbParseState **state, JsonbIteratorToken token, JsonbValue *value)
{
	struct builder *b = (struct builder *) *state;

	if (b == NULL) {
		b = palloc0(sizeof *b);
		initStringInfo(&b->text);
		*state = (JsonbParseState *) b;
	}
	if (token != WJB_END_ARRAY && token != WJB_END_OBJECT && token != WJB_VALUE && b->comma)
		appendStringInfoCharMacro(&b->text, ',');
	switch (token) {
	case WJB_BEGIN_ARRAY:
	case WJB_BEGIN_OBJECT:
		appendStringInfoCharMacro(&b->text, token == WJB_BEGIN_ARRAY ? '[' : '{');
		b->depth++;
		b->comma = false;
		return NULL;
	case WJB_KEY:
		put_scalar(&b->text, value);
		appendStringInfoCharMacro(&b->text, ':');
		b->comma = false;
		return NULL;
	case WJB_VALUE:
	case WJB_ELEM:
		put_scalar(&b->text, value);
		b->comma = true;
		return NULL;
	case WJB_END_ARRAY:
	case WJB_END_OBJECT:
		appendStringInfoCharMacro(&b->text, token == WJB_END_ARRAY ? ']' : '}');
		b->comma = true;
		if (--b->depth > 0)
			return NULL;
		b->result.type = jbvBinary;
		b->result.val.binary.len = b->text.len;
		b->result.val.binary.data = (JsonbContainer *) b->text.data;
		*state = NULL;
		return &b->result;
	default:
		elog(ERROR, "unrecognized jsonb sequential processing token");
	}
}

Jsonb *JsonbValueToJsonb(JsonbValue *value)
{
	StringInfoData text;
	NullableDatum argument;
	bool null;

	if (value->type == jbvBinary) {
		argument = (NullableDatum){CStringGetDatum((char *) value->val.binary.data), false};
	} else {
		initStringInfo(&text);
		put_scalar(&text, value);
		argument = (NullableDatum){CStringGetDatum(text.data), false};
	}
	return DatumGetJsonbP(plf_server_function(F_JSONB_IN, InvalidOid, 1, &argument, &null));
}
