/* The check of jpeg, for one kind of loops: `check JSIMD_FORCENONE` takes those in C, JSIMD_FORCESSE2 those for SSE2. */
#define main check
#include "../jpeg/check.c"
#undef main

int main(int argc, char **argv)
{
	if (argc > 1 && !strncmp(argv[1], "JSIMD_", 6))
		return setenv(argv[1], "1", 1) || check(1, argv);
	return check(argc, argv);
}
