/* Flags of SSE arithmetic are not seen, so that there is none to put back. */
#include <math.h>

double nearbyint(double x) { return rint(x); }
float nearbyintf(float x) { return rintf(x); }
