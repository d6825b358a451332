/* A module of one megabyte: what a library of that size has, in its proportions. */
const char constants[600 << 10] = {1};
char variables[360 << 10] = {1};
static int counter = 3;
int *pointer = &counter; /* a relocation */
const char *const names[] = {"a", "b", "c"};
static char zeroed[100 << 10];
long touch(long i)
{
    zeroed[i & 0xFFF]++;
    return i + *pointer + constants[i & 0xFFF] + variables[i & 0xFFF] + names[i % 3][0];
}
long touched(long i) { return zeroed[i & 0xFFF]; }
__attribute__((constructor)) static void construct(void) { counter = 4; }
