/* ringfence/host/rights.h - what may be done with memory, or with a directory. */
#ifndef RINGFENCE_HOST_RIGHTS_H
#define RINGFENCE_HOST_RIGHTS_H

/* RF_RIGHTS_WRITE includes reading. */
typedef enum rf_rights { RF_RIGHTS_NONE = 0, RF_RIGHTS_READ = 1, RF_RIGHTS_WRITE = 2 } rf_rights;

#endif
