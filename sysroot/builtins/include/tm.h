#include "tconfig.h"
