/* Counts a process's instructions outside the kernel, address by address: it is stepped through them.
 *
 *   steps PID      until standard input ends, when the process is killed. Prints a line for each address, in no order: the address in
 *                  hexadecimal, how often
 *
 * The process has one thread. Instructions that repeat themselves (rep movs) count once for each step. Time stands still for it, so what it
 * does by the clock it does more often. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLACES = 1 << 20 };

static struct {
    uint64_t address, times;
} places[PLACES];
static volatile sig_atomic_t over;

static void end(int signal)
{
    (void)signal;
    over = 1;
}

static void count(uint64_t address)
{
    size_t at = (address * 0x9e3779b97f4a7c15u) >> 44;

    while (places[at].times && places[at].address != address)
        at = (at + 1) % PLACES;
    places[at].address = address;
    places[at].times++;
}

static void fail(const char *what)
{
    fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
    exit(1);
}

int main(int count_of_words, char **words)
{
    pid_t pid = count_of_words == 2 ? atoi(words[1]) : 0, parent = getpid();
    struct sigaction action = { .sa_handler = end }; /* which ends waitpid */
    int status, signal = 0;

    if (pid <= 0) {
        fputs("usage: steps PID\n", stderr);
        return 2;
    }
    sigaction(SIGUSR1, &action, NULL);
    /* Somebody has to wait for the end of the input, and this thread for the process. */
    if (fork() == 0) {
        char byte;

        close(1);
        close(2);
        while (read(0, &byte, 1) > 0)
            ;
        while (getppid() == parent && !kill(parent, SIGUSR1)) /* until it was heard: waitpid may not have been called yet */
            usleep(10000);
        _exit(0);
    }
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) || waitpid(pid, &status, 0) != pid)
        fail("the process cannot be stepped");
    fputs("ready\n", stderr);
    while (!over) {
        struct user_regs_struct registers;

        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(intptr_t)signal))
            fail("step");
        if (waitpid(pid, &status, 0) != pid) {
            if (errno == EINTR)
                break;
            fail("wait");
        }
        if (WIFEXITED(status) || WIFSIGNALED(status))
            break;
        signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        if (ptrace(PTRACE_GETREGS, pid, NULL, &registers))
            fail("registers");
        count(registers.rip);
    }
    kill(pid, SIGKILL); /* let go in the middle of a step, it would die of that */
    for (size_t i = 0; i < PLACES; i++)
        if (places[i].times)
            printf("%" PRIx64 " %" PRIu64 "\n", places[i].address, places[i].times);
    return 0;
}
