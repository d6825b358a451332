#include "config/i386/sfp-machine.h"
