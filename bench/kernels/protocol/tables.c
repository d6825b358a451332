/* The tables that drive the machine, made from a list of rules. */
#include "protocol.h"

uint8_t class_of[256];
uint8_t next_state[STATES][CLASSES];
uint8_t action_of[STATES][CLASSES];
const char *const known_methods[] = {"GET", "PUT", "POST", "HEAD", "DELETE", "OPTIONS"};
unsigned method_count = sizeof known_methods / sizeof *known_methods;

#define IS(class) (1u << (class))
#define WORD (IS(LETTER) | IS(DIGIT) | IS(PUNCTUATION))
#define TEXT (WORD | IS(SPACE) | IS(COLON) | IS(OTHER))

static const struct {
    uint8_t from, classes, to, action;
} rules[] = {
    {START, IS(LETTER), METHOD, BEGIN},
    {START, IS(RETURN) | IS(NEWLINE), START, SKIP},
    {METHOD, IS(LETTER), METHOD, METHOD_BYTE},
    {METHOD, IS(SPACE), TARGET, SKIP},
    {TARGET, WORD | IS(COLON), TARGET, TARGET_BYTE},
    {TARGET, IS(SPACE), VERSION, TARGET_DONE},
    {VERSION, WORD, VERSION, VERSION_BYTE},
    {VERSION, IS(RETURN), LINE_END, SKIP},
    {LINE_END, IS(NEWLINE), HEADER_START, SKIP},
    {HEADER_START, WORD, NAME, NAME_BYTE},
    {HEADER_START, IS(RETURN), LAST_END, SKIP},
    {NAME, WORD, NAME, NAME_BYTE},
    {NAME, IS(COLON), BEFORE_VALUE, NAME_DONE},
    {BEFORE_VALUE, IS(SPACE), BEFORE_VALUE, SKIP},
    {BEFORE_VALUE, TEXT & ~IS(SPACE), VALUE, VALUE_BYTE},
    {BEFORE_VALUE, IS(RETURN), VALUE_END, SKIP},
    {VALUE, TEXT, VALUE, VALUE_BYTE},
    {VALUE, IS(RETURN), VALUE_END, SKIP},
    {VALUE_END, IS(NEWLINE), HEADER_START, VALUE_DONE},
    {LAST_END, IS(NEWLINE), START, HEADERS_DONE},
    {CHUNK_SIZE, IS(DIGIT) | IS(LETTER), CHUNK_SIZE, SIZE_BYTE},
    {CHUNK_SIZE, IS(RETURN), CHUNK_SIZE_END, SKIP},
    {CHUNK_SIZE_END, IS(NEWLINE), CHUNK_DATA, CHUNK_BEGIN},
    {CHUNK_DATA_END, IS(RETURN), CHUNK_DATA_END, SKIP},
    {CHUNK_DATA_END, IS(NEWLINE), CHUNK_SIZE, CHUNK_END},
    {BROKEN, 0xff & ~IS(NEWLINE), BROKEN, SKIP},
    {BROKEN, IS(NEWLINE), START, SKIP},
};

uint32_t name_hash(const char *text)
{
    uint32_t hash = 0;
    while (*text)
        hash = hash * 31 + ((uint8_t)*text++ | 32);
    return hash;
}

void build_tables(void)
{
    for (int c = 0; c < 256; c++) {
        int lower = c | 32;
        class_of[c] = OTHER;
        if (lower >= 'a' && lower <= 'z')
            class_of[c] = LETTER;
        else if (c >= '0' && c <= '9')
            class_of[c] = DIGIT;
        else if (c > 32 && c < 127)
            class_of[c] = PUNCTUATION;
    }
    class_of[' '] = SPACE;
    class_of[':'] = COLON;
    class_of['\r'] = RETURN;
    class_of['\n'] = NEWLINE;
    for (int s = 0; s < STATES; s++)
        for (int c = 0; c < CLASSES; c++) {
            next_state[s][c] = BROKEN;
            action_of[s][c] = FAIL;
        }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (int c = 0; c < CLASSES; c++)
            if (rules[i].classes >> c & 1) {
                next_state[rules[i].from][c] = rules[i].to;
                action_of[rules[i].from][c] = rules[i].action;
            }
}
