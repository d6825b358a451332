#ifndef RF_MIN_STRINGS_H
#define RF_MIN_STRINGS_H
#include <string.h>
#endif
