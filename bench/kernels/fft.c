/* A radix-2 fast Fourier transform in place. */
#include "kernel.h"

#define LOG AMOUNT(14, 8)
#define N (1 << LOG)
static double re[N], im[N], cosine[N / 2], sine[N / 2];

/* roots of unity by repeated halving of the angle, without a math library */
static void fill_roots(void)
{
    for (int i = 0; i < N / 2; i++) {
        double x = 2 * 3.14159265358979323846 * i / N, s = 0, c = 0, t = 1;
        for (int k = 0; k < 24; k++) {
            if (k & 1)
                s += (k & 2) ? -t : t;
            else
                c += (k & 2) ? -t : t;
            t *= x / (k + 1);
        }
        cosine[i] = c;
        sine[i] = s;
    }
}

static void fft(void)
{
    for (unsigned i = 0, j = 0; i < N; i++) {
        if (i < j) {
            double t = re[i];
            re[i] = re[j], re[j] = t;
            t = im[i];
            im[i] = im[j], im[j] = t;
        }
        unsigned bit = N >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
    }
    for (int half = 1; half < N; half *= 2) {
        int step = N / (2 * half);
        for (int i = 0; i < N; i += 2 * half)
            for (int k = 0; k < half; k++) {
                double wr = cosine[k * step], wi = -sine[k * step];
                double *pr = &re[i + k], *pi = &im[i + k];
                double xr = pr[half] * wr - pi[half] * wi, xi = pr[half] * wi + pi[half] * wr;
                pr[half] = pr[0] - xr;
                pi[half] = pi[0] - xi;
                pr[0] += xr;
                pi[0] += xi;
            }
    }
}

WORKLOAD(fft)
{
    uint64_t state = 13, sum = 0;
    fill_roots();
    for (int i = 0; i < N; i++)
        re[i] = (double)(next_random(&state) >> 50), im[i] = 0;
    for (int round = 0; round < (int)part(1400, permille); round++) {
        fft();
        for (int i = 0; i < N; i++)
            re[i] *= 1.0 / 128, im[i] *= 1.0 / 128;
    }
    for (int i = 0; i < N; i += 101)
        sum = mix_double(sum, re[i]);
    return sum;
}
