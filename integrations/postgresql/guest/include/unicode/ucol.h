/* Stands for ICU's header, which utils/pg_locale.h includes where the server was built with ICU: the types that it names.
 * Modules have no ICU; the server's collations are reached through varstr_cmp and str_tolower. */
#ifndef PLFENCED_UCOL_H
#define PLFENCED_UCOL_H

#include <stdint.h>

typedef uint16_t UChar;
typedef struct UCollator UCollator;

#endif
