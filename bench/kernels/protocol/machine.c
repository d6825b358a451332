/* The machine: a byte at a time, with all that it knows in globals, so that input may come in any pieces. */
#include "protocol.h"

enum state parser_state;
uint64_t bytes_seen, lines_seen;
uint64_t actions_done[ACTIONS];
uint32_t method_hash, target_hash, header_hash, value_number, version_digits;
uint32_t target_length, header_length, value_length;
uint64_t body_left, body_sum;

static void body_byte(uint8_t c)
{
    body_sum = body_sum * 17 + c;
    if (--body_left)
        return;
    if (parser_state == CHUNK_DATA) {
        parser_state = CHUNK_DATA_END;
    } else {
        parser_state = START;
        request_done();
    }
}

void feed(const uint8_t *data, size_t size)
{
    for (const uint8_t *end = data + size; data < end; data++) {
        uint8_t c = *data;
        bytes_seen++;
        if (body_left) {
            body_byte(c);
            continue;
        }
        unsigned class = class_of[c];
        unsigned action = action_of[parser_state][class];
        lines_seen += class == NEWLINE;
        parser_state = next_state[parser_state][class];
        actions_done[action]++;
        switch (action) {
        case BEGIN:
            request_begin();
            method_hash = c | 32u;
            break;
        case METHOD_BYTE:
            method_hash = method_hash * 31 + (c | 32u);
            break;
        case TARGET_BYTE:
            target_hash = target_hash * 33 + c;
            target_length++;
            break;
        case TARGET_DONE:
            request_line_done();
            break;
        case VERSION_BYTE:
            if (class == DIGIT)
                version_digits = version_digits * 10 + (c - '0');
            break;
        case NAME_BYTE:
            header_hash = header_hash * 31 + (c | 32u);
            header_length++;
            break;
        case NAME_DONE:
            value_number = value_length = 0;
            break;
        case VALUE_BYTE:
            value_number = class == DIGIT ? value_number * 10 + (c - '0') : value_number * 31 + (c | 32u);
            value_length++;
            break;
        case VALUE_DONE:
            header_done();
            break;
        case HEADERS_DONE:
            parser_state = headers_done();
            break;
        case SIZE_BYTE:
            value_number = value_number * 16 + (class == DIGIT ? c - '0' : (c | 32) - 'a' + 10) % 16;
            break;
        case CHUNK_BEGIN:
            chunks++;
            body_left = value_number;
            if (!body_left) {
                parser_state = START;
                request_done();
            }
            break;
        case CHUNK_END:
            value_number = 0;
            break;
        case FAIL:
            request_failed();
            break;
        default:
            break;
        }
    }
}
