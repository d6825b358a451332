/* A module that means harm. Every function tries one thing that a plug-in in the host's own address space
 * could do, with the very pointers that the host was careless enough to hand over. */
#include <stddef.h>
#include <stdint.h>

/* Reads what lies at a host address. */
uint64_t wild_read(const uint64_t *secret)
{
    return *secret;
}

/* Writes there. */
void wild_write(volatile uint64_t *secret)
{
    *secret = 0xDEADBEEF;
}

/* Calls a host function that it was never given. */
void jump_into_host(void (*function)(void))
{
    function();
}

/* Overflows a buffer on its stack, far enough to run over every return address there would be. */
__attribute__((noinline)) static void overflow(volatile char *buffer, size_t length)
{
    for (size_t i = 0; i < length; i++)
        buffer[i] = 'A';
}

int smash_return_address(void)
{
    volatile char buffer[16];
    overflow(buffer, 1 << 20);
    return buffer[0];
}

/* Recurses without end. */
__attribute__((noinline)) uint64_t recurse(uint64_t n)
{
    volatile uint64_t local = n;
    if (local == UINT64_MAX)
        return 0;
    return recurse(local + 1) + local;
}

/* Never returns. */
void loop_forever(void)
{
    for (volatile uint64_t i = 0;; i++)
        ;
}

/* Behaves: the host calls it between the attacks. */
int add(int a, int b)
{
    return a + b;
}
