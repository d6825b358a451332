/* Tokens. */
#include "script.h"

enum token token;
const char *token_text;
size_t token_length;
int64_t token_number;

static const char *place;

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

void next_token(void)
{
    while (*place == ' ' || *place == '\n')
        place++;
    token_text = place;
    if (!*place) {
        token = END;
    } else if (is_letter(*place)) {
        token = NAME;
        while (is_letter(*place) || is_digit(*place))
            place++;
    } else if (is_digit(*place)) {
        token = NUMBER;
        for (token_number = 0; is_digit(*place); place++)
            token_number = token_number * 10 + (*place - '0');
    } else {
        token = SIGN;
        place += place[0] == '=' && place[1] == '=' ? 2 : 1;
    }
    token_length = (size_t)(place - token_text);
}

void lex(const char *source)
{
    place = source;
    next_token();
}

int token_is(const char *text)
{
    return strlen(text) == token_length && !memcmp(text, token_text, token_length);
}
