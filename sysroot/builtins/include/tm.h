#include "tconfig.h"

#define DWARF_REG_TO_UNWIND_COLUMN(register) (register)
