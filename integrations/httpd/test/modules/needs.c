/* A page that needs what no server gives. */
#include <fenced.h>

RF_IMPORT(int, nobody_has, (int x))

int fenced_handle(const fenced_request *r) { return nobody_has((int)r->header_count); }
