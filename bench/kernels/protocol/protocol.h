/* A parser of requests in text, byte by byte: tables, machine and session share their state in globals. */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include "kernel.h"

enum state {
    START, METHOD, TARGET, VERSION, LINE_END, HEADER_START, NAME, BEFORE_VALUE, VALUE, VALUE_END, LAST_END, BODY,
    CHUNK_SIZE, CHUNK_SIZE_END, CHUNK_DATA, CHUNK_DATA_END, BROKEN, STATES
};

enum class { OTHER, LETTER, DIGIT, SPACE, COLON, RETURN, NEWLINE, PUNCTUATION, CLASSES };

enum action {
    SKIP, BEGIN, METHOD_BYTE, TARGET_BYTE, TARGET_DONE, VERSION_BYTE, NAME_BYTE, NAME_DONE, VALUE_BYTE, VALUE_DONE,
    HEADERS_DONE, SIZE_BYTE, CHUNK_BEGIN, CHUNK_END, FAIL, ACTIONS
};

/* tables.c */
extern uint8_t class_of[256];
extern uint8_t next_state[STATES][CLASSES];
extern uint8_t action_of[STATES][CLASSES];
extern const char *const known_methods[];
extern unsigned method_count;
void build_tables(void);
uint32_t name_hash(const char *text);

/* machine.c */
extern enum state parser_state;
extern uint64_t bytes_seen, lines_seen;
extern uint64_t actions_done[ACTIONS];
extern uint32_t method_hash, target_hash, header_hash, value_number, version_digits;
extern uint32_t target_length, header_length, value_length;
extern uint64_t body_left, body_sum;
void feed(const uint8_t *data, size_t size);

/* session.c */
extern uint64_t requests, broken_requests, keep_alive, bodies, chunks, header_total;
extern uint64_t requests_by_method[8];
extern uint32_t headers_in_request, length_hash, coding_hash, connection_hash;
extern int is_chunked, has_length;
extern uint64_t session_sum;
void session_start(void);
void request_begin(void);
void request_line_done(void);
void header_done(void);
enum state headers_done(void);
void request_done(void);
void request_failed(void);

#endif
