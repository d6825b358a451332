/* A five-point stencil over a grid, as heat spreads. */
#include "kernel.h"

#define N AMOUNT(512, 48)
static double grid[2][N][N];

WORKLOAD(stencil)
{
    uint64_t state = 5, sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            grid[0][i][j] = grid[1][i][j] = (double)(next_random(&state) >> 44);
    for (int round = 0; round < (int)part(2200, permille); round++) {
        double(*from)[N] = grid[round & 1], (*to)[N] = grid[~round & 1];
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                to[i][j] = 0.2 * (from[i][j] + from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
    }
    for (int i = 0; i < N; i += 5)
        sum = mix_double(sum, grid[0][i][(i * 7) % N]);
    return sum;
}
