/* Planets around a sun; square roots, divisions, little memory. */
#include "kernel.h"

#define BODIES 5
static double pos[BODIES][3], vel[BODIES][3], mass[BODIES];

static void advance(double dt)
{
    for (int i = 0; i < BODIES; i++)
        for (int j = i + 1; j < BODIES; j++) {
            double d[3], square = 0;
            for (int k = 0; k < 3; k++) {
                d[k] = pos[i][k] - pos[j][k];
                square += d[k] * d[k];
            }
            double magnitude = dt / (square * __builtin_sqrt(square));
            for (int k = 0; k < 3; k++) {
                vel[i][k] -= d[k] * mass[j] * magnitude;
                vel[j][k] += d[k] * mass[i] * magnitude;
            }
        }
    for (int i = 0; i < BODIES; i++)
        for (int k = 0; k < 3; k++)
            pos[i][k] += dt * vel[i][k];
}

WORKLOAD(nbody)
{
    uint64_t sum = 0, state = 17;
    for (int i = 0; i < BODIES; i++) {
        mass[i] = i ? 0.001 * i : 39.5;
        for (int k = 0; k < 3; k++) {
            pos[i][k] = i ? (double)(int64_t)(next_random(&state) >> 44) / 40000.0 : 0.0;
            vel[i][k] = i ? (double)(next_random(&state) >> 44) / 4e6 : 0.0;
        }
    }
    for (int step = 0; step < (int)part(AMOUNT(8000000, 200000), permille); step++)
        advance(0.001);
    for (int i = 0; i < BODIES; i++)
        sum = mix_double(sum, pos[i][i % 3]);
    return sum;
}
