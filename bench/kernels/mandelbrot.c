/* The Mandelbrot set: floating-point arithmetic in registers. */
#include "kernel.h"

WORKLOAD(mandelbrot)
{
    const int size = 1500, limit = 400;
    uint64_t sum = 0;
    for (int y = 0; y < (int)part(size, permille); y++)
        for (int x = 0; x < size; x++) {
            double cr = 3.0 * x / size - 2.2, ci = 2.4 * y / size - 1.2, r = 0, i = 0;
            int n = 0;
            while (n < limit && r * r + i * i < 4) {
                double t = r * r - i * i + cr;
                i = 2 * r * i + ci;
                r = t;
                n++;
            }
            sum += (uint64_t)n;
        }
    return sum;
}
