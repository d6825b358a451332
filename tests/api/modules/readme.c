/* ringfence cc -g -o readme.rf readme.c */
int add(int a, int b) { return a + b; }
int divide(int a, int b) { return a / b; }
