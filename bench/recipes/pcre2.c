/* Regular expressions over made-up text: classes and backtracking, back references, alternatives, and Unicode properties. */
#include "kernel.h"
#include "rfcheck.h"
#include <pcre2.h>

#define SIZE AMOUNT(400000, 600)
static unsigned char text[SIZE];

static uint64_t all(const char *pattern, uint32_t options, uint64_t rounds)
{
    int error;
    PCRE2_SIZE at;
    if (!text[0])
        rf_text(text, SIZE, 83);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &error, &at, NULL);
    REQUIRE(code);
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    uint64_t sum = 1;
    for (uint64_t round = 0; round < rounds; round++) {
        at = 0;
        // That the text is UTF-8 is looked at once, not from each match to the end.
        while (pcre2_match(code, text, SIZE, at, at ? PCRE2_NO_UTF_CHECK : 0, data, NULL) > 0) {
            const PCRE2_SIZE *where = pcre2_get_ovector_pointer(data);
            sum = mix(sum, where[0] << 20 ^ where[1]);
            at = where[1] > where[0] ? where[1] : where[1] + 1;
        }
    }
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    return sum;
}

WORKLOAD(classes) { return all("[a-z]+ri[a-z]*", 0, part(10, permille)); }

WORKLOAD(repeated) { return all("\\b(\\w+)\\s+\\1\\b", 0, part(20, permille)); }

WORKLOAD(alternatives) { return all("(?:ta|ri|no|ke|shi|mu)++an", 0, part(22, permille)); }

WORKLOAD(unicode) { return all("\\p{L}+\\p{Nd}*", PCRE2_UTF | PCRE2_UCP, part(30, permille)); }
