/* A small stack machine with computed goto: indirect jumps that depend on data. */
#include "kernel.h"

enum { PUSH, ADD, SUB, MUL, DUP, SWAP, LOAD, STORE, JUMP_IF, JUMP, XOR, SHIFT, LESS, HALT };

/* for (i = 0; i != n; i++) { x = x * 6364136223846793005 + i; if ((x >> 33) & 1 < 1) y ^= x; else y -= i } */
static const int64_t program[] = {
    PUSH, 0, STORE, 0,                                  /* 0: i = 0 */
    LOAD, 1, PUSH, 25214903917, MUL, LOAD, 0, ADD, STORE, 1, /* 4: x */
    LOAD, 1, PUSH, 33, SHIFT, PUSH, 1, LESS, JUMP_IF, 34, /* 14 */
    LOAD, 2, LOAD, 0, SUB, STORE, 2, JUMP, 41,           /* 24 .. 32 */
    HALT,                                               /* 33 */
    LOAD, 2, LOAD, 1, XOR, STORE, 2,                     /* 34 */
    LOAD, 0, PUSH, 1, ADD, DUP, STORE, 0,                /* 41 */
    LOAD, 3, LESS, JUMP_IF, 4,                           /* 49 */
    HALT,                                               /* 54 */
};

static int64_t interpret(const int64_t *code, int64_t *vars)
{
    static const void *const labels[] = {&&push, &&add, &&sub, &&mul, &&dup, &&swap, &&load, &&store,
                                         &&jump_if, &&jump, &&xor, &&shift, &&less, &&halt};
    int64_t stack[16], *sp = stack;
    const int64_t *pc = code;
#define NEXT goto *labels[*pc++]
    NEXT;
push:
    *sp++ = *pc++;
    NEXT;
add:
    sp--, sp[-1] = (int64_t)((uint64_t)sp[-1] + (uint64_t)sp[0]);
    NEXT;
sub:
    sp--, sp[-1] = (int64_t)((uint64_t)sp[-1] - (uint64_t)sp[0]);
    NEXT;
mul:
    sp--, sp[-1] = (int64_t)((uint64_t)sp[-1] * (uint64_t)sp[0]);
    NEXT;
dup:
    sp[0] = sp[-1], sp++;
    NEXT;
swap : {
    int64_t t = sp[-1];
    sp[-1] = sp[-2], sp[-2] = t;
    NEXT;
}
load:
    *sp++ = vars[*pc++];
    NEXT;
store:
    vars[*pc++] = *--sp;
    NEXT;
jump_if:
    pc = *--sp ? code + *pc : pc + 1;
    NEXT;
jump:
    pc = code + *pc;
    NEXT;
xor:
    sp--, sp[-1] ^= sp[0];
    NEXT;
shift:
    sp--, sp[-1] = sp[-1] >> (sp[0] & 63) & 3;
    NEXT;
less:
    sp--, sp[-1] = sp[-1] < sp[0];
    NEXT;
halt:
    return vars[2];
}

WORKLOAD(interpreter)
{
    int64_t vars[4] = {0, 42, 0, (int64_t)part(AMOUNT(20000000, 500000), permille)};
    int64_t result = interpret(program, vars);
    return mix((uint64_t)result, (uint64_t)vars[1]);
}
