/* Polygons as an extension would make them: a type, what queries ask of it, and the two functions of its index. One source for
 * LANGUAGE C and plfenced; polygons.inc makes the type. The layout is the server's POLYGON: a box, then the corners. */
#include "postgres.h"

#include "access/gist.h"
#include "access/stratnum.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/geo_decls.h"

#include <math.h>

PG_MODULE_MAGIC;

#define MOST_POINTS 1000000
#define GET_SHAPE(n) ((const POLYGON *) PG_DETOAST_DATUM(PG_GETARG_DATUM(n)))

/* ---------------------------------------------------------------------------------------------- in and out */

static POLYGON *
make(int64 n)
{
	Size size;
	POLYGON *s;

	if (n < 3 || n > MOST_POINTS)
		ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			errmsg("a shape has 3 to %d points, not %lld", MOST_POINTS, (long long) n)));
	size = offsetof(POLYGON, p) + n * sizeof(Point);
	s = palloc0(size);
	SET_VARSIZE(s, size);
	s->npts = (int32) n;
	return s;
}

/* Looks at all points, and gives the shape its box. */
static POLYGON *
finish(POLYGON *s)
{
	BOX *b = &s->boundbox;

	b->low = b->high = s->p[0];
	for (int i = 0; i < s->npts; i++) {
		const Point *p = &s->p[i];

		if (!isfinite(p->x) || !isfinite(p->y))
			ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				errmsg("point %d of the shape is not finite", i + 1)));
		b->low.x = Min(b->low.x, p->x);
		b->low.y = Min(b->low.y, p->y);
		b->high.x = Max(b->high.x, p->x);
		b->high.y = Max(b->high.y, p->y);
	}
	return s;
}

static char *
expect(char *at, char c, const char *text)
{
	while (*at == ' ')
		at++;
	if (*at != c)
		ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg("invalid shape: \"%.60s\"", text),
			c ? errdetail("'%c' is expected at byte %d.", c, (int) (at - text) + 1)
			  : errdetail("It should end at byte %d.", (int) (at - text) + 1)));
	return at + 1;
}

/* ((x,y),(x,y),...), as the server's polygons are written. */
PG_FUNCTION_INFO_V1(shape_in);
Datum
shape_in(PG_FUNCTION_ARGS)
{
	char *text = PG_GETARG_CSTRING(0), *at = text;
	int64 n = -1;
	POLYGON *s;

	for (char *c = text; *c; c++)
		n += *c == '(';
	s = make(n);
	at = expect(at, '(', text);
	for (int i = 0; i < s->npts; i++) {
		if (i > 0)
			at = expect(at, ',', text);
		at = expect(at, '(', text);
		s->p[i].x = float8in_internal(at, &at, "shape", text);
		at = expect(at, ',', text);
		s->p[i].y = float8in_internal(at, &at, "shape", text);
		at = expect(at, ')', text);
	}
	at = expect(at, ')', text);
	expect(at, 0, text);
	PG_RETURN_POINTER(finish(s));
}

PG_FUNCTION_INFO_V1(shape_out);
Datum
shape_out(PG_FUNCTION_ARGS)
{
	const POLYGON *s = GET_SHAPE(0);
	StringInfoData out;

	initStringInfo(&out);
	appendStringInfoChar(&out, '(');
	for (int i = 0; i < s->npts; i++)
		appendStringInfo(&out, "%s(%s,%s)", i > 0 ? "," : "", float8out_internal(s->p[i].x), float8out_internal(s->p[i].y));
	appendStringInfoChar(&out, ')');
	PG_RETURN_CSTRING(out.data);
}

/* From well-known bytes: one ring of a polygon, little-endian, its first point again at its end. */
PG_FUNCTION_INFO_V1(shape_from);
Datum
shape_from(PG_FUNCTION_ARGS)
{
	bytea *given = PG_GETARG_BYTEA_PP(0);
	const char *bytes = VARDATA_ANY(given);
	Size size = VARSIZE_ANY_EXHDR(given), head = 1 + 3 * sizeof(uint32);
	uint32 type, rings, n;
	POLYGON *s;

	if (size < head || bytes[0] != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION), errmsg("these are not the bytes of a polygon")));
	memcpy(&type, bytes + 1, sizeof type);
	memcpy(&rings, bytes + 5, sizeof rings);
	memcpy(&n, bytes + 9, sizeof n);
	if (type != 3 || rings != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			errmsg("these are not the bytes of a polygon with one ring")));
	s = make((int64) n - 1);
	if (size != head + n * sizeof(Point))
		ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			errmsg("a polygon of %u points has %zu bytes, not %zu", n, head + n * sizeof(Point), size)));
	memcpy(s->p, bytes + head, s->npts * sizeof(Point));
	PG_RETURN_POINTER(finish(s));
}

/* ------------------------------------------------------------------------------------------------ geometry */

static bool
boxes_meet(const BOX *a, const BOX *b)
{
	return a->low.x <= b->high.x && b->low.x <= a->high.x && a->low.y <= b->high.y && b->low.y <= a->high.y;
}

static bool
box_has(const BOX *b, const Point *p)
{
	return p->x >= b->low.x && p->x <= b->high.x && p->y >= b->low.y && p->y <= b->high.y;
}

/* How often a ray to the right crosses the edges: an odd number of times from inside. */
static bool
has(const POLYGON *s, const Point *p)
{
	bool inside = false;
	const Point *a = &s->p[s->npts - 1];

	if (!box_has(&s->boundbox, p))
		return false;
	for (int i = 0; i < s->npts; i++) {
		const Point *b = &s->p[i];

		if ((a->y > p->y) != (b->y > p->y) && p->x < (b->x - a->x) * (p->y - a->y) / (b->y - a->y) + a->x)
			inside = !inside;
		a = b;
	}
	return inside;
}

/* On which side of the line from a to b: its sign. */
static double
side(const Point *a, const Point *b, const Point *p)
{
	return (b->x - a->x) * (p->y - a->y) - (b->y - a->y) * (p->x - a->x);
}

static bool
edges_meet(const Point *a, const Point *b, const Point *c, const Point *d)
{
	return Min(a->x, b->x) <= Max(c->x, d->x) && Min(c->x, d->x) <= Max(a->x, b->x) && Min(a->y, b->y) <= Max(c->y, d->y) &&
		Min(c->y, d->y) <= Max(a->y, b->y) && side(a, b, c) * side(a, b, d) <= 0 && side(c, d, a) * side(c, d, b) <= 0;
}

/* Whether two rings have a point in common: edges that meet, or one inside the other. */
static bool
rings_meet(const POLYGON *s, const Point *ring, int n, const BOX *box)
{
	const Point *a = &s->p[s->npts - 1];

	for (int i = 0; i < s->npts; i++) {
		const Point *b = &s->p[i];
		BOX edge = { { Max(a->x, b->x), Max(a->y, b->y) }, { Min(a->x, b->x), Min(a->y, b->y) } };

		if (boxes_meet(&edge, box)) {
			const Point *c = &ring[n - 1];

			for (int k = 0; k < n; k++) {
				if (edges_meet(a, b, c, &ring[k]))
					return true;
				c = &ring[k];
			}
		}
		a = b;
	}
	return has(s, &ring[0]);
}

/* shape && shape */
PG_FUNCTION_INFO_V1(shape_meets);
Datum
shape_meets(PG_FUNCTION_ARGS)
{
	const POLYGON *a = GET_SHAPE(0), *b = GET_SHAPE(1);

	if (!boxes_meet(&a->boundbox, &b->boundbox))
		PG_RETURN_BOOL(false);
	PG_RETURN_BOOL(rings_meet(a, b->p, b->npts, &b->boundbox) || has(b, &a->p[0]));
}

/* shape && box */
PG_FUNCTION_INFO_V1(shape_meets_box);
Datum
shape_meets_box(PG_FUNCTION_ARGS)
{
	const POLYGON *s = GET_SHAPE(0);
	const BOX *b = PG_GETARG_BOX_P(1);
	Point corners[4] = { b->low, { b->high.x, b->low.y }, b->high, { b->low.x, b->high.y } };

	if (!boxes_meet(&s->boundbox, b))
		PG_RETURN_BOOL(false);
	PG_RETURN_BOOL(box_has(b, &s->p[0]) || rings_meet(s, corners, 4, b));
}

/* shape @> point */
PG_FUNCTION_INFO_V1(shape_has);
Datum
shape_has(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(has(GET_SHAPE(0), PG_GETARG_POINT_P(1)));
}

/* shape <@ circle: no point is farther from the middle than the circle reaches. */
PG_FUNCTION_INFO_V1(shape_in_circle);
Datum
shape_in_circle(PG_FUNCTION_ARGS)
{
	const POLYGON *s = GET_SHAPE(0);
	const CIRCLE *c = PG_GETARG_CIRCLE_P(1);

	for (int i = 0; i < s->npts; i++) {
		double x = s->p[i].x - c->center.x, y = s->p[i].y - c->center.y;

		if (x * x + y * y > c->radius * c->radius)
			PG_RETURN_BOOL(false);
	}
	PG_RETURN_BOOL(true);
}

PG_FUNCTION_INFO_V1(shape_area);
Datum
shape_area(PG_FUNCTION_ARGS)
{
	const POLYGON *s = GET_SHAPE(0);
	const Point *a = &s->p[s->npts - 1];
	double twice = 0;

	for (int i = 0; i < s->npts; i++) {
		twice += a->x * s->p[i].y - a->y * s->p[i].x;
		a = &s->p[i];
	}
	PG_RETURN_FLOAT8(fabs(twice) / 2);
}

PG_FUNCTION_INFO_V1(shape_bounds);
Datum
shape_bounds(PG_FUNCTION_ARGS)
{
	const POLYGON *s = GET_SHAPE(0);
	BOX *b = palloc(sizeof *b);

	*b = s->boundbox;
	PG_RETURN_BOX_P(b);
}

/* The square around a point, which reaches so far to each side. */
PG_FUNCTION_INFO_V1(square_around);
Datum
square_around(PG_FUNCTION_ARGS)
{
	const Point *p = PG_GETARG_POINT_P(0);
	double reach = PG_GETARG_FLOAT8(1);
	BOX *b = palloc(sizeof *b);

	b->low.x = p->x - reach;
	b->low.y = p->y - reach;
	b->high.x = p->x + reach;
	b->high.y = p->y + reach;
	PG_RETURN_BOX_P(b);
}

/* Any bytes as a shape: what an author does who means harm, and makes the other functions trust it. */
PG_FUNCTION_INFO_V1(shape_forged);
Datum
shape_forged(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

/* ------------------------------------------------------------------------------- the index, whose keys are boxes */

PG_FUNCTION_INFO_V1(shape_compress);
Datum
shape_compress(PG_FUNCTION_ARGS)
{
	GISTENTRY *entry = (GISTENTRY *) PG_GETARG_POINTER(0), *made;
	BOX *b;

	if (!entry->leafkey)
		PG_RETURN_POINTER(entry);
	b = palloc(sizeof *b);
	*b = ((const POLYGON *) PG_DETOAST_DATUM(entry->key))->boundbox;
	made = palloc(sizeof *made);
	gistentryinit(*made, PointerGetDatum(b), entry->rel, entry->page, entry->offset, false);
	PG_RETURN_POINTER(made);
}

PG_FUNCTION_INFO_V1(shape_consistent);
Datum
shape_consistent(PG_FUNCTION_ARGS)
{
	const BOX *key = DatumGetBoxP(((GISTENTRY *) PG_GETARG_POINTER(0))->key);

	*(bool *) PG_GETARG_POINTER(4) = true;
	switch ((StrategyNumber) PG_GETARG_UINT16(2)) {
	case RTOverlapStrategyNumber:
		PG_RETURN_BOOL(boxes_meet(key, PG_GETARG_BOX_P(1)));
	case RTContainsStrategyNumber:
		PG_RETURN_BOOL(box_has(key, PG_GETARG_POINT_P(1)));
	default:
		elog(ERROR, "shapes have no strategy %d", PG_GETARG_UINT16(2));
	}
}
