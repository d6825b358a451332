/* Programs: main, called once for each request with the environment and the streams of CGI. Part of each module that
 * fenced-cc --program links. */
#include "fenced.h"
#include "program.h"

#include <stdio.h>
#include <stdio_ext.h>

int fenced_accepted;
extern char **environ;
int main(int argc, char **argv, char **envp);

RF_EXPORT int fenced_program(const fenced_request *request)
{
    static char name[] = "program";
    char *argv[] = { name, NULL };
    int status;

    /* What a domain that is not reset for each request has left. */
    clearerr(stdin);
    __fpurge(stdin);
    fenced_accepted = 0;
    environ = (char **)request->environment;
    status = main(1, argv, environ);
    fflush(NULL);
    return status;
}
