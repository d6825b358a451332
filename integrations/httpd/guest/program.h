/* program.h - what main's caller and FastCGI's functions share. */
#ifndef FENCED_PROGRAM_H
#define FENCED_PROGRAM_H

/* Whether the program has accepted the request: a loop of FCGI_Accept runs once. */
extern int fenced_accepted;

#endif
