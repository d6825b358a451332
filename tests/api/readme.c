/* A module called in plain C: cc readme.c $(pkg-config --cflags --libs ringfence) && ./a.out readme.rf */
#include <ringfence.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *module = rf_dlopen(argc > 1 ? argv[1] : "readme.rf", 0);
    int (*add)(int, int) = RF_DLSYM(module, int, add, (int, int));
    int (*divide)(int, int) = RF_DLSYM(module, int, divide, (int, int));
    if (!add || !divide)
        return fprintf(stderr, "%s\n", rf_error()->message), 1;

    printf("2 + 3 = %d\n", add(2, 3));
    divide(1, 0); /* would have killed the process */
    if (rf_error())
        printf("%s\n", rf_error()->message);

    rf_domain_reset(rf_dldomain(module));
    printf("7 / 2 = %d\n", divide(7, 2));
    return rf_dlclose(module);
}
