/* The functions of ../functions as part of the module: for back ends to which no text comes. */
#include "../functions/picture.h"

void *transcode_room(unsigned long);
__attribute__((visibility("hidden"))) void *room(unsigned long n) { return transcode_room(n); }

#pragma GCC visibility push(default)
#include "../functions/crop.c"
#include "../functions/grey.c"
#include "../functions/quantise.c"
#include "../functions/scale.c"
#include "../functions/watermark.c"
