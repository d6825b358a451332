/* In the place of a C library's: WebAssembly of wasi-libc has no jumps. A step that gives up is ended by the host, which drops the
 * instance afterwards; for it `transcode_stop` fails with the number of the step's end. */
#ifndef TRANSCODE_SETJMP_H
#define TRANSCODE_SETJMP_H

typedef int jmp_buf[1];

void transcode_stop(int) __attribute__((noreturn));

#define setjmp(place) ((void)(place), 0)
#define longjmp(place, number) ((void)(place), transcode_stop(number))

#endif
