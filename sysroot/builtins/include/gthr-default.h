/* The unwinder keeps no state between calls: no threads to guard it from. */
#include "gthr-single.h"
