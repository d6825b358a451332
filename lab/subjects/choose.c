/* Which of the faults that were built in happens: 0 is none. */
#include "lab.h"

unsigned lab_chosen;

void lab_choose(unsigned which)
{
    lab_chosen = which;
}
