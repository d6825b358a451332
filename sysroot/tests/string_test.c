/* Checks the memory and string functions against plain loops, at every alignment, at the edge of a page that
 * is not there. `make -C sysroot test-string` builds it unfenced, with all names prefixed, and fenced (FENCED), for what a module
 * calls. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef FENCED
/* What a module calls, against loops of this file. */
#define t_memmove memmove
#define t_memcpy memcpy
#define t_mempcpy mempcpy
#define t_memset memset
#define t_memcmp memcmp
#define t_memchr memchr
#define t_memrchr memrchr
#define t_rawmemchr rawmemchr
#define t_strlen strlen
#define t_strnlen strnlen
#define t_strchr strchr
#define t_strrchr strrchr
#define t_strcmp strcmp
#define t_strncmp strncmp
#define t_strcpy strcpy
#define t_stpcpy stpcpy
#define t_strncpy strncpy
#define t_strcat strcat
#define t_strncat strncat
void *rawmemchr(const void *, int);
static const uint32_t features = 0;

static void *ref_memcpy(void *d, const void *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((volatile char *)d)[i] = ((const char *)s)[i];
	return d;
}

static void *ref_memmove(void *d, const void *s, size_t n)
{
	if ((uintptr_t)d <= (uintptr_t)s)
		return ref_memcpy(d, s, n);
	while (n--)
		((volatile char *)d)[n] = ((const char *)s)[n];
	return d;
}

static void *ref_memset(void *d, int c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((volatile char *)d)[i] = (char)c;
	return d;
}

static int ref_memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;
	for (size_t i = 0; i < n; i++)
		if (x[i] != y[i])
			return x[i] - y[i];
	return 0;
}

static void *ref_memchr(const void *s, int c, size_t n)
{
	for (const unsigned char *p = s; n--; p++)
		if (*p == (unsigned char)c)
			return (void *)p;
	return NULL;
}

static void *ref_memrchr(const void *s, int c, size_t n)
{
	while (n--)
		if (((const unsigned char *)s)[n] == (unsigned char)c)
			return (char *)s + n;
	return NULL;
}

static int ref_strncmp(const char *a, const char *b, size_t n)
{
	for (; n; n--, a++, b++)
		if (*a != *b || !*a)
			return (unsigned char)*a - (unsigned char)*b;
	return 0;
}

static int ref_strcmp(const char *a, const char *b) { return ref_strncmp(a, b, (size_t)-1); }

static void ref_strcpy(char *d, const char *s)
{
	while ((*d++ = *s++))
		;
}
#else
#define ref_memcpy memcpy
#define ref_memmove memmove
#define ref_memset memset
#define ref_memcmp memcmp
#define ref_memchr memchr
#define ref_memrchr memrchr
#define ref_strncmp strncmp
#define ref_strcmp strcmp
#define ref_strcpy strcpy
/* The window's header page up to the features, as the runtime fills it. */
uint64_t t_rf_header[2];
static uint32_t features;

static void set_features(uint32_t to)
{
	features = to;
	t_rf_header[1] = (uint64_t)to << 32;
}

#define D(ret, name, ...) ret t_##name(__VA_ARGS__)
D(void *, memmove, void *, const void *, size_t);
D(void *, memcpy, void *, const void *, size_t);
D(void *, mempcpy, void *, const void *, size_t);
D(void *, memset, void *, int, size_t);
D(int, memcmp, const void *, const void *, size_t);
D(void *, memchr, const void *, int, size_t);
D(void *, memrchr, const void *, int, size_t);
D(void *, rawmemchr, const void *, int);
D(size_t, strlen, const char *);
D(size_t, strnlen, const char *, size_t);
D(char *, strchr, const char *, int);
D(char *, strrchr, const char *, int);
D(int, strcmp, const char *, const char *);
D(int, strncmp, const char *, const char *, size_t);
D(char *, strcpy, char *, const char *);
D(char *, stpcpy, char *, const char *);
D(char *, strncpy, char *, const char *, size_t);
D(char *, strcat, char *, const char *);
D(char *, strncat, char *, const char *, size_t);
#endif

static int failures;
#define CHECK(cond)                                                                                          \
	do {                                                                                                 \
		if (!(cond) && failures++ < 20)                                                              \
			fprintf(stderr, "%s:%d: %s (features %x, n %zu)\n", __func__, __LINE__, #cond,       \
				features, n);                                                           \
	} while (0)

static int sign(int x) { return (x > 0) - (x < 0); }

/* A block of pages between two inaccessible ones. */
static char *fenced_block(size_t size)
{
	char *p = mmap(NULL, size + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || mprotect(p + 4096, size, PROT_READ | PROT_WRITE))
		exit(2);
	return p + 4096;
}

#define BLOCK 65536
static char *A, *B, *C;

static void fill(char *p, size_t n)
{
	static uint64_t x = 88172645463325252u;
	for (size_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = (char)(x >> 20);
	}
}

static void moves(size_t n)
{
	for (int ends = 0; ends < 2; ends++)
		for (size_t da = 0; da < 70; da += 1 + da / 9)
			for (size_t sa = 0; sa < 70; sa += 3) {
				char *d = ends ? A + BLOCK - n - da : A + 100 + da;
				char *s = ends ? B + BLOCK - n - sa : B + 100 + sa;
				char before = d[-1], after = ends && !da ? 0 : d[n];
				fill(s, n);
				CHECK(t_memcpy(d, s, n) == d);
				CHECK(!ref_memcmp(d, s, n));
				CHECK(d[-1] == before && (ends && !da ? 1 : d[n] == after));
			}
	for (long shift = -300; shift <= 300; shift += 7) {
		char *s = A + 1000, *d = s + shift;
		fill(A, n + 2000);
		ref_memcpy(B, A, n + 2000);
		ref_memmove(B + 1000 + shift, B + 1000, n);
		CHECK(t_memmove(d, s, n) == d);
		CHECK(!ref_memcmp(A, B, n + 2000));
	}
	for (size_t da = 0; da < 70; da++) {
		char *d = da & 1 ? A + BLOCK - n - da / 2 : A + 100 + da;
		fill(d - 40, n + 40);
		ref_memcpy(B, d - 40, n + 40);
		ref_memset(B + 40, 0xA5, n);
		CHECK(t_memset(d, 0x1A5, n) == d);
		CHECK(!ref_memcmp(d - 40, B, n + 40));
	}
}

static void compares(size_t n)
{
	for (size_t k = 0; k < 40; k++) {
		char *a = A + BLOCK - n - k % 33, *b = B + BLOCK - n - k * 5 % 37;
		fill(a, n);
		ref_memcpy(b, a, n);
		CHECK(t_memcmp(a, b, n) == 0);
		for (size_t t = 0; t < 6 && n; t++) {
			size_t at = (size_t)rand() % n;
			char old = b[at];
			b[at] ^= (char)(1 << rand() % 8);
			CHECK(sign(t_memcmp(a, b, n)) == sign(ref_memcmp(a, b, n)));
			CHECK(t_memchr(b, b[at], n) == ref_memchr(b, b[at], n));
			CHECK(t_memrchr(b, b[at], n) == ref_memrchr(b, b[at], n));
			CHECK(t_rawmemchr(b, b[at]) == ref_memchr(b, b[at], n));
			b[at] = old;
		}
		char missing = 7;
		for (size_t i = 0; i < n; i++)
			if (b[i] == missing)
				b[i] = 8;
		CHECK(!t_memchr(b, missing, n) && !t_memrchr(b, missing, n));
		if (n) {
			b[n - 1] = missing;
			CHECK(t_memchr(b, missing, (size_t)-1 >> 1) == b + n - 1);
			CHECK(t_memchr(b, missing, (size_t)-1) == b + n - 1);
			CHECK(t_memchr(b, missing, n - 1) == NULL);
		}
	}
}

static void strings(size_t n)
{
	for (size_t k = 0; k < 80; k++) {
		/* strings that end with the block, and strings that are followed by others */
		char *a = A + BLOCK - n - 1 - (k & 1 ? k : 0), *b = B + BLOCK - n - 1 - (k & 2 ? k * 3 : 0);
		fill(a, n);
		for (size_t i = 0; i < n; i++)
			if (!a[i] || a[i] == 'x')
				a[i] = 'y';
		a[n] = 0;
		ref_memcpy(b, a, n + 1);
		CHECK(t_strlen(a) == n);
		CHECK(t_strnlen(a, n / 2) == n / 2 && t_strnlen(a, (size_t)-1) == n);
		CHECK(t_strcmp(a, b) == 0 && t_strncmp(a, b, (size_t)-1) == 0);
		CHECK(t_strchr(a, 0) == a + n && !t_strchr(a, 'x') && !t_strrchr(a, 'x'));
		char *d = C + BLOCK - n - 1 - k * 7 % 50;
		CHECK(t_stpcpy(d, a) == d + n && !ref_memcmp(d, a, n + 1));
		ref_memset(d, 1, n);
		CHECK(t_strcpy(d, a) == d && !ref_memcmp(d, a, n + 1));
		if (n > 2) {
			size_t at = (size_t)rand() % n;
			b[at] = 'x';
			CHECK(t_strchr(b, 'x') == b + at && t_strrchr(b, 'x') == b + at);
			CHECK(sign(t_strcmp(a, b)) == sign(ref_strcmp(a, b)));
			CHECK(sign(t_strncmp(a, b, at + 1)) == sign(ref_strncmp(a, b, at + 1)));
			CHECK(t_strncmp(a, b, at) == 0);
			b[at] = 0;
			CHECK(sign(t_strcmp(a, b)) == 1 && sign(t_strcmp(b, a)) == -1 && t_strlen(b) == at);
			ref_memset(d - 10, 2, n);
			CHECK(t_strncpy(d - 10, b, n) == d - 10 && !ref_memcmp(d - 10, b, at));
			for (size_t i = at; i < n; i++)
				CHECK(!d[i - 10]);
			char *e = C + 100;
			ref_strcpy(e, "prefix");
			CHECK(!ref_strcmp(t_strcat(e, b) + 6, b));
			ref_strcpy(e, "prefix");
			CHECK(t_strlen(t_strncat(e, a, at)) == at + 6 && !ref_memcmp(e + 6, a, at));
		}
	}
}

/* Strings that begin at every distance before a page's end, of the block's last page, too; and at the block's start. */
static void edges(void)
{
	size_t n = 0; /* for CHECK */
	for (size_t da = 0; da <= 140; da += 1 + da / 40)
		for (size_t db = 0; db <= 140; db += 1 + db / 20) {
			/* without an end: n says where it is */
			char *a = A + BLOCK - da, *b = B + BLOCK - db;
			n = da < db ? da : db;
			ref_memset(a, 'y', da);
			ref_memset(b, 'y', db);
			CHECK(t_strncmp(a, b, n) == 0 && t_memcmp(a, b, n) == 0);
			CHECK(t_memchr(a, 'x', da) == NULL && t_memrchr(b, 'x', db) == NULL);
			CHECK(t_strnlen(a, da) == da && t_strnlen(b, db) == db);
			a = da ? A + 4096 - da : A;
			b = db ? B + 8192 - db : B;
			char *d = C + 300 + db;
			for (n = 0; n < 300; n += 1 + n / 3) {
				ref_memset(a, 'y', 300);
				ref_memset(b, 'y', 300);
				a[n] = b[n] = 0;
				a[n + 1] = 'x';
				CHECK(t_strcmp(a, b) == 0 && t_strncmp(a, b, 300) == 0 && t_strlen(a) == n);
				CHECK(!t_strchr(a, 'x') && !t_strrchr(a, 'x') && t_strrchr(a, 0) == a + n);
				d[n + 1] = 'z';
				CHECK(t_stpcpy(d, a) == d + n && !ref_memcmp(d, a, n + 1) && d[n + 1] == 'z');
				b[n] = 'x';
				CHECK(t_strcmp(a, b) < 0 && t_strcmp(b, a) > 0 && t_strncmp(a, b, n) == 0);
				CHECK(t_strncmp(a, b, n + 1) < 0 && t_strncmp(b, a, (size_t)-1) > 0);
				CHECK(t_strchr(b, 'x') == b + n && t_rawmemchr(b, 'x') == b + n);
				CHECK(t_memcmp(a, b, n) == 0 && t_memcmp(a, b, n + 1) < 0);
				CHECK(t_memchr(b, 'x', n) == NULL && t_memchr(b, 'x', (size_t)-1) == b + n);
				CHECK(t_memchr(b, 'x', n + 1) == b + n);
				b[n / 2] = 'x';
				b[n + 1] = 0;
				CHECK(t_strrchr(b, 'x') == b + n && t_strchr(b, 'x') == b + n / 2);
			}
		}
}

static void everything(void)
{
	edges();
	for (size_t n = 0; n < 9000; n += 1 + n / 40 + (n > 600 ? n / 9 : 0)) {
		moves(n);
		compares(n);
		strings(n);
	}
}

int main(void)
{
	A = fenced_block(BLOCK);
	B = fenced_block(BLOCK);
	C = fenced_block(BLOCK);
#ifdef FENCED
	everything();
#else
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi")) {
		fprintf(stderr, "this processor has no AVX2: nothing is tested\n");
		return 77;
	}
	/* String instructions that are fast, and none. */
	static const uint32_t sets[] = {0, 1u << 10};
	for (size_t f = 0; f < sizeof sets / sizeof *sets; f++) {
		set_features(sets[f]);
		everything();
	}
#endif
	if (failures)
		fprintf(stderr, "%d failures\n", failures);
	return failures != 0;
}
