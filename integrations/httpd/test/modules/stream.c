/* The same by FastCGI's other interface. */
#include "fcgiapp.h"

int main(void)
{
    FCGX_Request request;

    FCGX_Init();
    FCGX_InitRequest(&request, 0, 0);
    while (FCGX_Accept_r(&request) == 0) {
        char line[100];

        FCGX_FPrintF(request.out, "Content-type: text/plain\r\n\r\nmethod %s, ", FCGX_GetParam("REQUEST_METHOD", request.envp));
        while (FCGX_GetLine(line, sizeof line, request.in))
            FCGX_PutS(line, request.out);
        FCGX_PutS("end\n", request.out);
        FCGX_Finish_r(&request);
    }
    return 0;
}
