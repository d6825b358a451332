/* Matrices, copies of arrays in structures, a transform. */
#define N 9
struct m { double v[N][N]; }; static struct m one, two; static float filter[3][3] = { { 1, 2, 1 }, { 2, 4, 2 }, { 1, 2, 1 } }; static long rows[N];
static struct m times(const struct m *a, const struct m *b) { struct m r = { 0 }; for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) for (int k = 0; k < N; k++) r.v[i][j] += a->v[i][k] * b->v[k][j]; return r; }
static void smooth(struct m *m) { struct m old = *m; for (int i = 1; i < N - 1; i++) for (int j = 1; j < N - 1; j++) { float s = 0; for (int y = -1; y <= 1; y++) for (int x = -1; x <= 1; x++) s += filter[y + 1][x + 1] * (float)old.v[i + y][j + x]; m->v[i][j] = s / 16; } }
long test(long a, long b)
{
	for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) { one.v[i][j] = (int)(a % 17) * i + j; two.v[i][j] = i - (int)(b % 13) * j; }
	struct m r = times(&one, &two); r = times(&r, &one); smooth(&r); long h = 0; for (int i = 0; i < N; i++) { rows[i] = 0; for (int j = 0; j < N; j++) rows[i] += (long)r.v[i][j]; h = h * 31 + rows[i]; }
	short s[3][4][5]; for (int i = 0; i < 3; i++) for (int j = 0; j < 4; j++) for (int k = 0; k < 5; k++) s[i][j][k] = i * 100 + j * 10 + k; short (*p)[5] = s[1]; h += p[2][3] + (*p)[1] + sizeof *p + s[2][3][4] + ((short *)s)[17];
	return h;
}
