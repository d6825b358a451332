/* Reading and writing the binary form of values. Integers are in the network's byte order. */
#include "guest.h"

#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"

#include <string.h>

void pq_begintypsend(StringInfo buffer)
{
	initStringInfo(buffer);
	appendBinaryStringInfo(buffer, "\0\0\0\0", VARHDRSZ);
}

bytea *pq_endtypsend(StringInfo buffer)
{
	bytea *result = (bytea *) buffer->data;

	SET_VARSIZE(result, buffer->len);
	return result;
}

void pq_sendbytes(StringInfo buffer, const char *data, int length)
{
	appendBinaryStringInfoNT(buffer, data, length);
}

void pq_sendtext(StringInfo buffer, const char *text, int length)
{
	char *converted = pg_server_to_client(text, length);

	appendBinaryStringInfo(buffer, converted, converted == text ? length : (int) strlen(converted));
}

void pq_sendstring(StringInfo buffer, const char *text)
{
	char *converted = pg_server_to_client(text, (int) strlen(text));

	appendBinaryStringInfoNT(buffer, converted, (int) strlen(converted) + 1);
}

void pq_send_ascii_string(StringInfo buffer, const char *text)
{
	for (; *text != '\0'; text++)
		appendStringInfoChar(buffer, IS_HIGHBIT_SET(*text) ? '?' : *text);
	appendStringInfoChar(buffer, '\0');
}

void pq_sendcountedtext(StringInfo buffer, const char *text, int length, bool counts_itself)
{
	char *converted = pg_server_to_client(text, length);

	if (converted != text)
		length = (int) strlen(converted);
	pq_sendint32(buffer, (uint32) (length + (counts_itself ? 4 : 0)));
	appendBinaryStringInfoNT(buffer, converted, length);
}

void pq_sendfloat4(StringInfo buffer, float4 value)
{
	uint32 bits;

	memcpy(&bits, &value, sizeof bits);
	pq_sendint32(buffer, bits);
}

void pq_sendfloat8(StringInfo buffer, float8 value)
{
	uint64 bits;

	memcpy(&bits, &value, sizeof bits);
	pq_sendint64(buffer, bits);
}

static void refuse_short(void)
{
	ereport(ERROR, (errcode(ERRCODE_PROTOCOL_VIOLATION), errmsg("insufficient data left in message")));
}

const char *pq_getmsgbytes(StringInfo message, int length)
{
	const char *result = message->data + message->cursor;

	if (length < 0 || length > message->len - message->cursor)
		refuse_short();
	message->cursor += length;
	return result;
}

void pq_copymsgbytes(StringInfo message, char *into, int length)
{
	memcpy(into, pq_getmsgbytes(message, length), length);
}

int pq_getmsgbyte(StringInfo message)
{
	if (message->cursor >= message->len)
		ereport(ERROR, (errcode(ERRCODE_PROTOCOL_VIOLATION), errmsg("no data left in message")));
	return (unsigned char) message->data[message->cursor++];
}

unsigned int pq_getmsgint(StringInfo message, int width)
{
	uint16 two;
	uint32 four;

	switch (width) {
	case 1:
		return (unsigned char) *pq_getmsgbytes(message, 1);
	case 2:
		pq_copymsgbytes(message, (char *) &two, 2);
		return pg_ntoh16(two);
	case 4:
		pq_copymsgbytes(message, (char *) &four, 4);
		return pg_ntoh32(four);
	default:
		elog(ERROR, "unsupported integer size %d", width);
	}
}

int64 pq_getmsgint64(StringInfo message)
{
	uint64 bits;

	pq_copymsgbytes(message, (char *) &bits, sizeof bits);
	return (int64) pg_ntoh64(bits);
}

float4 pq_getmsgfloat4(StringInfo message)
{
	uint32 bits = pq_getmsgint(message, 4);
	float4 value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

float8 pq_getmsgfloat8(StringInfo message)
{
	int64 bits = pq_getmsgint64(message);
	float8 value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

char *pq_getmsgtext(StringInfo message, int raw_length, int *length)
{
	const char *raw = pq_getmsgbytes(message, raw_length);
	char *converted = pg_client_to_server(raw, raw_length);

	if (converted == raw)
		converted = pnstrdup(raw, raw_length);
	*length = (int) strlen(converted);
	return converted;
}

const char *pq_getmsgrawstring(StringInfo message)
{
	const char *result = message->data + message->cursor;
	int length = (int) strnlen(result, message->len - message->cursor);

	if (message->cursor + length >= message->len)
		ereport(ERROR, (errcode(ERRCODE_PROTOCOL_VIOLATION), errmsg("invalid string in message")));
	message->cursor += length + 1;
	return result;
}

const char *pq_getmsgstring(StringInfo message)
{
	const char *raw = pq_getmsgrawstring(message);

	return pg_client_to_server(raw, (int) strlen(raw));
}

void pq_getmsgend(StringInfo message)
{
	if (message->cursor != message->len)
		ereport(ERROR, (errcode(ERRCODE_PROTOCOL_VIOLATION), errmsg("invalid message format")));
}
