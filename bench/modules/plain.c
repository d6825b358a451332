/* The same functions without a fence: what a plug-in costs today. */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>

void nothing(void)
{
}

int64_t add(int64_t a, int64_t b)
{
    return a + b;
}

void reverse(uint8_t *s, uint64_t length)
{
    for (uint8_t *end = s + length; s < end--; s++) {
        uint8_t c = *s;
        *s = *end;
        *end = c;
    }
}

static sigjmp_buf back;

static void on_fault(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

/* faults `count` times and comes back by a jump out of the handler, as unprotected programs do it at best */
void faults(int64_t count)
{
    struct sigaction mine = {.sa_handler = on_fault}, old;
    sigaction(SIGSEGV, &mine, &old);
    for (volatile int64_t i = 0; i < count; i++)
        if (!sigsetjmp(back, 1))
            *(volatile int *)16 = 0;
    sigaction(SIGSEGV, &old, 0);
}
