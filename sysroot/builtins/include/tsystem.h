#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "tconfig.h"

#define gcc_assert(what) ((void)(!(what) ? (abort(), 0) : 0))
#define gcc_unreachable() abort()
