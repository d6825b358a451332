/* Multiplication of dense matrices, the plain three loops. */
#include "kernel.h"

#define N AMOUNT(320, 24)
static double a[N][N], b[N][N], c[N][N];

WORKLOAD(matrix)
{
    uint64_t state = 11, sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (double)(next_random(&state) >> 40);
            b[i][j] = (double)(next_random(&state) >> 40);
        }
    for (int round = 0; round < (int)part(32, permille); round++) {
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                double s = 0;
                for (int k = 0; k < N; k++)
                    s += a[i][k] * b[k][j];
                c[i][j] = s;
            }
        for (int i = 0; i < N; i++)
            a[round % N][i] = c[i][round % N] * 1e-9;
    }
    for (int i = 0; i < N; i += 7)
        for (int j = 0; j < N; j += 7)
            sum = mix_double(sum, c[i][j]);
    return sum;
}
