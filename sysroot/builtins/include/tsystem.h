#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
