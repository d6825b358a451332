/* A module that has nothing to do with pictures. */
int answer(void) { return 42; }
