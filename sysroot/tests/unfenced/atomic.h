#define a_crash() __builtin_trap()
