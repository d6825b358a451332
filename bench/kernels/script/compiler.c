/* From source to byte code in one pass. What is wrong in a program ends the run. */
#include "script.h"

int32_t code[MOST_CODE];
int code_size;
struct function functions[MOST_FUNCTIONS];
int function_count;

static struct {
    const char *name;
    size_t length;
} locals[MOST_LOCALS];
static int local_count;

static void expression(int level);

static int emit(int32_t word)
{
    REQUIRE(code_size < MOST_CODE);
    code[code_size] = word;
    return code_size++;
}

static int take(const char *text)
{
    if (!token_is(text))
        return 0;
    next_token();
    return 1;
}

static void expect(const char *text)
{
    REQUIRE(take(text));
}

/* A function may be called before it is defined. */
int function_named(const char *name, size_t length)
{
    int i = 0;
    while (i < function_count && (functions[i].length != length || memcmp(functions[i].name, name, length)))
        i++;
    if (i == function_count) {
        REQUIRE(function_count < MOST_FUNCTIONS);
        functions[function_count++] = (struct function){name, length, -1, -1, 0};
    }
    return i;
}

static int local_named(const char *name, size_t length)
{
    int i = 0;
    while (i < local_count && (locals[i].length != length || memcmp(locals[i].name, name, length)))
        i++;
    if (i == local_count) {
        REQUIRE(local_count < MOST_LOCALS);
        locals[local_count].name = name;
        locals[local_count++].length = length;
    }
    return i;
}

static int arguments(void)
{
    int count = 0;
    if (take(")"))
        return 0;
    do {
        expression(0);
        count++;
    } while (take(","));
    expect(")");
    return count;
}

static void call(const char *name, size_t length)
{
    static const struct {
        const char *name;
        int count;
        enum opcode operation;
    } known[] = {{"cons", 2, CONS}, {"head", 1, HEAD}, {"tail", 1, TAIL}, {"pair", 1, IS_PAIR}, {"not", 1, NOT}};
    int count = arguments();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == length && !memcmp(known[i].name, name, length)) {
            REQUIRE(count == known[i].count);
            emit(known[i].operation);
            return;
        }
    emit(CALL);
    emit(function_named(name, length));
    emit(count);
}

static void primary(void)
{
    if (token == NUMBER) {
        emit(PUSH);
        emit((int32_t)token_number);
        next_token();
    } else if (take("(")) {
        expression(0);
        expect(")");
    } else if (take("nil")) {
        emit(PUSH_NIL);
    } else {
        REQUIRE(token == NAME);
        const char *name = token_text;
        size_t length = token_length;
        next_token();
        if (take("(")) {
            call(name, length);
        } else {
            emit(LOCAL);
            emit(local_named(name, length));
        }
    }
}

static void expression(int level)
{
    static const struct {
        const char *sign;
        int level;
        enum opcode operation;
    } operators[] = {{"<", 0, LESS},     {"==", 0, EQUAL},   {"+", 1, ADD},
                     {"-", 1, SUBTRACT}, {"*", 2, MULTIPLY}, {"%", 2, REMAINDER}};
    if (level == 3) {
        primary();
        return;
    }
    expression(level + 1);
    for (size_t i = 0; i < sizeof operators / sizeof *operators;) {
        if (operators[i].level == level && take(operators[i].sign)) {
            expression(level + 1);
            emit(operators[i].operation);
            i = 0;
        } else {
            i++;
        }
    }
}

static void block(void);

static void statement(void)
{
    if (take("return")) {
        expression(0);
        emit(RETURN);
        expect(";");
    } else if (take("while")) {
        int start = code_size;
        expression(0);
        emit(JUMP_UNLESS);
        int out = emit(0);
        block();
        emit(JUMP);
        emit(start);
        code[out] = code_size;
    } else if (take("if")) {
        expression(0);
        emit(JUMP_UNLESS);
        int out = emit(0);
        block();
        if (take("else")) {
            emit(JUMP);
            int end = emit(0);
            code[out] = code_size;
            block();
            out = end;
        }
        code[out] = code_size;
    } else {
        REQUIRE(token == NAME);
        int local = local_named(token_text, token_length);
        next_token();
        expect("=");
        expression(0);
        emit(SET_LOCAL);
        emit(local);
        expect(";");
    }
}

static void block(void)
{
    expect("{");
    while (!take("}"))
        statement();
}

void compile(const char *source)
{
    code_size = function_count = 0;
    for (lex(source); token != END;) {
        expect("fn");
        struct function *function = &functions[function_named(token_text, token_length)];
        next_token();
        local_count = 0;
        expect("(");
        while (!take(")")) {
            local_named(token_text, token_length);
            next_token();
            take(",");
        }
        function->address = code_size;
        function->parameters = local_count;
        block();
        emit(PUSH_NIL);
        emit(RETURN);
        function->locals = local_count;
    }
    for (int i = 0; i < function_count; i++)
        REQUIRE(functions[i].address >= 0);
}
