/* A small language: functions, integers and pairs. A compiler to byte code, a machine with a stack, and a collector. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "kernel.h"

/* An integer with its lowest bit set, a cell's address, or nil. */
typedef int64_t value;
#define NIL ((value)0)
#define INTEGER(n) ((value)((uint64_t)(n) << 1 | 1))

static inline int64_t integer_of(value v)
{
    REQUIRE(v & 1);
    return v >> 1;
}

enum opcode {
    PUSH, PUSH_NIL, LOCAL, SET_LOCAL, ADD, SUBTRACT, MULTIPLY, REMAINDER, LESS, EQUAL, NOT, JUMP, JUMP_UNLESS,
    CALL, RETURN, CONS, HEAD, TAIL, IS_PAIR
};

enum { MOST_CODE = 4096, MOST_FUNCTIONS = 32, MOST_LOCALS = 32, STACK = 1 << 14, FRAMES = 1 << 11 };

struct function {
    const char *name;
    size_t length;
    int address, parameters, locals;
};

/* compiler.c */
extern int32_t code[MOST_CODE];
extern int code_size;
extern struct function functions[MOST_FUNCTIONS];
extern int function_count;
void compile(const char *source);
int function_named(const char *name, size_t length);

/* lexer.c */
enum token { END, NUMBER, NAME, SIGN };
extern enum token token;
extern const char *token_text;
extern size_t token_length;
extern int64_t token_number;
void lex(const char *source);
void next_token(void);
int token_is(const char *text);

/* machine.c */
extern value stack[STACK];
extern int stack_top;
extern uint64_t instructions_run;
value call_function(int function, const value *arguments, int count);

/* collector.c */
struct cell {
    value head, tail;
};
extern uint64_t collections, cells_freed;
void heap_reset(void);
value cell_new(value head, value tail);
struct cell *cell_of(value v);
int is_cell(value v);

#endif
