/* The machine. */
#include "script.h"

value stack[STACK];
int stack_top;
uint64_t instructions_run;

static struct {
    int return_to, base;
} frames[FRAMES];

static void push(value v)
{
    REQUIRE(stack_top < STACK);
    stack[stack_top++] = v;
}

static value pop(void)
{
    return stack[--stack_top];
}

/* The arguments are on the stack. Gives where the function's locals are. */
static int enter(const struct function *function, int count)
{
    int base = stack_top - count;
    REQUIRE(count == function->parameters);
    for (int i = count; i < function->locals; i++)
        push(NIL);
    return base;
}

static int is_true(value v)
{
    return v != NIL && v != INTEGER(0);
}

static value run(int address, int base)
{
    const int32_t *at = code + address;
    int depth = 0;
    value a, b;
    for (;;) {
        instructions_run++;
        switch ((enum opcode)*at++) {
        case PUSH:
            push(INTEGER(*at++));
            break;
        case PUSH_NIL:
            push(NIL);
            break;
        case LOCAL:
            push(stack[base + *at++]);
            break;
        case SET_LOCAL:
            stack[base + *at++] = pop();
            break;
        case ADD:
            b = pop(), a = pop();
            push(INTEGER((uint64_t)integer_of(a) + (uint64_t)integer_of(b)));
            break;
        case SUBTRACT:
            b = pop(), a = pop();
            push(INTEGER((uint64_t)integer_of(a) - (uint64_t)integer_of(b)));
            break;
        case MULTIPLY:
            b = pop(), a = pop();
            push(INTEGER((uint64_t)integer_of(a) * (uint64_t)integer_of(b)));
            break;
        case REMAINDER:
            b = pop(), a = pop();
            REQUIRE(integer_of(b) > 0);
            push(INTEGER(integer_of(a) % integer_of(b)));
            break;
        case LESS:
            b = pop(), a = pop();
            push(INTEGER(integer_of(a) < integer_of(b)));
            break;
        case EQUAL:
            b = pop(), a = pop();
            push(INTEGER(a == b));
            break;
        case NOT:
            push(INTEGER(!is_true(pop())));
            break;
        case JUMP:
            at = code + *at;
            break;
        case JUMP_UNLESS:
            at = is_true(pop()) ? at + 1 : code + *at;
            break;
        case CALL:
            REQUIRE(depth < FRAMES);
            frames[depth].return_to = (int)(at - code) + 2;
            frames[depth++].base = base;
            base = enter(&functions[at[0]], at[1]);
            at = code + functions[at[0]].address;
            break;
        case RETURN:
            a = pop();
            stack_top = base;
            if (!depth)
                return a;
            push(a);
            at = code + frames[--depth].return_to;
            base = frames[depth].base;
            break;
        case CONS:
            a = cell_new(stack[stack_top - 2], stack[stack_top - 1]);
            stack_top -= 2;
            push(a);
            break;
        case HEAD:
            push(cell_of(pop())->head);
            break;
        case TAIL:
            push(cell_of(pop())->tail);
            break;
        case IS_PAIR:
            push(INTEGER(is_cell(pop())));
            break;
        }
    }
}

value call_function(int function, const value *arguments, int count)
{
    stack_top = 0;
    for (int i = 0; i < count; i++)
        push(arguments[i]);
    return run(functions[function].address, enter(&functions[function], count));
}
