/* Structures, unions, bit-fields, arrays of them, passed and returned. */
struct point { short x; long y; char tag; };
struct line { struct point from, to; union { int i; float f; char c[6]; } u; struct point *link; };
struct bits { unsigned a : 3; int b : 5; unsigned c : 17; long d : 40; _Bool e : 1; unsigned : 0; signed char f : 4; unsigned long g : 33; };
union any { long l; int i[2]; struct { char lo, hi; short rest; }; };
struct big { int n; double v[20]; char name[13]; };
static struct point make(int x, long y) { struct point p = { x, y, 'p' }; return p; }
static struct point move(struct point p, struct point d) { p.x += d.x; p.y += d.y; return p; }
static struct big grow(struct big b, int k) { b.n += k; b.v[k % 20] = k; b.name[k % 13] = k; return b; }
static long sum(const struct big *b) { long s = b->n; for (int i = 0; i < 20; i++) s = s * 3 + (long)b->v[i]; for (int i = 0; i < 13; i++) s += b->name[i] << i; return s; }
static struct point table[5] = { { 1, 2, 3 }, [3] = { .y = 7, .tag = 'x' }, { 4 } };
static struct line lines[2] = { { .from = { 1, 2 }, .u.f = 1.5f, .link = &table[3] }, { { 9 }, .link = table + 1 } };
long test(long a, long b)
{
	struct point p = make(a, b), q; struct line l = { p, { 5, 6, 7 } }, *pl = &l; long h = 0;
	q = move(p, (struct point){ 3, 4 }); l.to = q; pl->link = &l.to; pl->link->tag++; h += q.x + q.y + l.to.tag + pl->from.x;
	pl->u.f = 2.5f; h = h * 31 + pl->u.i; pl->u.c[2] = 7; h = h * 31 + pl->u.i;
	struct bits s = { 5, -3, 70000, -12345678901, 1, -2, 0x1FFFFFFFFUL }; s.a += b; s.b -= a; s.c ^= a; s.d *= 3; s.e = b; s.f++; s.g -= 5;
	h = h * 31 + s.a + s.b * 3 + s.c * 5 + (long)s.d * 7 + s.e * 11 + s.f * 13 + (unsigned long)s.g * 17 + sizeof s; h += s.a++ + --s.f; h = h * 3 + s.a + s.f + (s.b < 0) + (s.a - 8 < 0) + (s.c = 0x7FFFFFF) ;
	union any u; u.l = a; h = h * 31 + u.i[0] + u.i[1] + u.lo + u.hi + u.rest; u.hi = 9; h += u.l;
	struct big g = { 1, { 1, 2, 3 }, "hello" }, k; k = grow(g, 3); k = grow(grow(k, 17), b & 15); h = h * 31 + sum(&g) + sum(&k); k = g; h += sum(&k);
	for (int i = 0; i < 5; i++) h = h * 7 + table[i].x + table[i].y * 3 + table[i].tag; table[2] = table[3]; table[b & 3].y += 2; h += table[2].y; table[b & 3].y -= 2; table[2] = (struct point){ 0 };
	h += lines[0].link->y + lines[1].link->y + lines[0].u.i + (lines[0].link - table) + (&lines[1] - lines); h += (a > b ? p : q).x + make(7, 8).y + (p = q).tag;
	struct { int a[3][2]; } m = { { { 1, 2 }, 3, 4, { 5 } } }; for (int i = 0; i < 3; i++) for (int j = 0; j < 2; j++) h = h * 5 + m.a[i][j] + sizeof m.a[i];
	return h + sizeof(struct line) + sizeof(struct point) * 3 + _Alignof(struct big) + sizeof(union any);
}
