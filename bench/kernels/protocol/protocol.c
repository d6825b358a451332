/* A state machine on globals: requests that this file writes, some of them broken, fed in pieces of any length. */
#include "protocol.h"

static uint8_t traffic[AMOUNT(1 << 20, 1 << 13)];
static size_t traffic_size;

static void put(const char *text)
{
    while (*text)
        traffic[traffic_size++] = (uint8_t)*text++;
}

static void put_number(uint64_t n, unsigned base)
{
    char digits[24];
    int i = 24;
    digits[--i] = 0;
    do
        digits[--i] = "0123456789abcdef"[n % base];
    while ((n /= base) != 0);
    put(digits + i);
}

static void put_body(uint64_t size, uint64_t *random)
{
    while (size--)
        traffic[traffic_size++] = (uint8_t)(next_random(random) >> 32);
}

static void put_request(uint64_t *random)
{
    uint64_t r = next_random(random);
    put(known_methods[r % method_count]);
    put(" /shop/item");
    put_number(r >> 20 & 0xffff, 10);
    put(r >> 40 & 1 ? "?colour=red&size=12" : "/index.html");
    put((r >> 41 & 31) == 0 ? " HTTP 1.1\r\n" : " HTTP/1.1\r\n");
    put("Host: www.example.org:8080\r\nUser-Agent: Browser/7.2 (X11; rv:91)\r\n");
    for (unsigned i = 0; i < (r >> 46 & 7); i++) {
        put("X-Field-");
        put_number(i, 10);
        put(": some value, ");
        put_number(next_random(random) >> 40, 10);
        put("\r\n");
    }
    put(r >> 50 & 1 ? "Connection: keep-alive\r\n" : "Accept: text/html;q=0.9, */*\r\n");
    uint64_t size = r >> 52 & 255;
    switch (r >> 60 & 3) {
    case 0:
        put("Content-Length: ");
        put_number(size, 10);
        put("\r\n\r\n");
        put_body(size, random);
        break;
    case 1:
        put("Transfer-Encoding: chunked\r\n\r\n");
        for (; size; size /= 3) {
            put_number(size, 16);
            put("\r\n");
            put_body(size, random);
            put("\r\n");
        }
        put("0\r\n");
        break;
    default:
        put("\r\n");
    }
}

WORKLOAD(protocol)
{
    uint64_t random = 83, sum = 1;
    build_tables();
    traffic_size = 0;
    while (traffic_size + 2048 < sizeof traffic)
        put_request(&random);
    for (uint64_t round = 0; round < part(80, permille); round++) {
        session_start();
        for (size_t at = 0; at < traffic_size;) {
            size_t piece = (next_random(&random) >> 54) + 1;
            if (piece > traffic_size - at)
                piece = traffic_size - at;
            feed(traffic + at, piece);
            at += piece;
        }
        REQUIRE(bytes_seen == traffic_size && requests + broken_requests > 0);
        sum = mix(mix(sum, session_sum), requests + (broken_requests << 32));
        sum = mix(mix(sum, lines_seen + chunks), header_total + keep_alive + bodies);
        for (int i = 0; i < 8; i++)
            sum = mix(sum, requests_by_method[i]);
        for (int i = 0; i < ACTIONS; i++)
            sum = mix(sum, actions_done[i]);
    }
    return sum;
}
