/* What requests mean: counters of a connection, and how long bodies are. */
#include "protocol.h"

uint64_t requests, broken_requests, keep_alive, bodies, chunks, header_total;
uint64_t requests_by_method[8];
uint32_t headers_in_request, length_hash, coding_hash, connection_hash;
int is_chunked, has_length;
uint64_t session_sum;

static uint32_t method_hashes[8];
static uint64_t content_length;

void session_start(void)
{
    requests = broken_requests = keep_alive = bodies = chunks = header_total = 0;
    session_sum = bytes_seen = lines_seen = body_left = body_sum = 0;
    parser_state = START;
    memset(requests_by_method, 0, sizeof requests_by_method);
    memset(actions_done, 0, sizeof actions_done);
    length_hash = name_hash("Content-Length");
    coding_hash = name_hash("Transfer-Encoding");
    connection_hash = name_hash("Connection");
    for (unsigned i = 0; i < method_count; i++)
        method_hashes[i] = name_hash(known_methods[i]);
}

void request_begin(void)
{
    target_hash = target_length = version_digits = 0;
    header_hash = header_length = headers_in_request = 0;
    is_chunked = has_length = 0;
    content_length = body_sum = 0;
}

void request_line_done(void)
{
    unsigned i = 0;
    while (i < method_count && method_hashes[i] != method_hash)
        i++;
    requests_by_method[i]++;
}

void header_done(void)
{
    headers_in_request++;
    header_total += header_length + value_length;
    if (header_hash == length_hash) {
        has_length = 1;
        content_length = value_number;
    } else if (header_hash == coding_hash) {
        is_chunked = 1;
    } else if (header_hash == connection_hash) {
        keep_alive++;
    } else {
        session_sum += header_hash ^ value_number;
    }
    header_hash = header_length = 0;
}

enum state headers_done(void)
{
    value_number = 0;
    if (is_chunked)
        return CHUNK_SIZE;
    body_left = has_length ? content_length : 0;
    if (body_left)
        return BODY;
    request_done();
    return START;
}

void request_done(void)
{
    requests++;
    bodies += is_chunked || has_length;
    session_sum = mix(session_sum, target_hash + ((uint64_t)headers_in_request << 32));
    session_sum = mix(session_sum, body_sum + version_digits);
}

void request_failed(void)
{
    broken_requests++;
    session_sum = mix(session_sum, bytes_seen);
}
