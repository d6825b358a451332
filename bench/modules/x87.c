/* A module with x87 instructions: its gate leaves the unit as it found it. */
long double twice(long double x)
{
    return x + x;
}

void nothing(void)
{
}
