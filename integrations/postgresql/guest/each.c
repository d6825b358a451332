/* A plain function, called for each element of arrays: one crossing for all of them. */
#include "guest.h"

#define INTEGERS PLF_EACH_INTEGERS
#define NUMBERS PLF_EACH_NUMBERS

typedef uint64 (*any_int)(uint64, uint64, uint64, uint64, uint64, uint64, double, double, double, double, double, double, double, double);
typedef double (*any_double)(uint64, uint64, uint64, uint64, uint64, uint64, double, double, double, double, double, double, double, double);

#define PASS i[0], i[1], i[2], i[3], i[4], i[5], x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]

/* The rule: registers as the columns fill them. */
static void any(struct plf_each *e)
{
	uint64 i[INTEGERS] = {0};
	double x[NUMBERS] = {0};

	for (uint64 k = 0; k < e->count; k++) {
		int integers = 0, numbers = 0;

		for (uint32 column = 0; column < e->columns; column++) {
			if ((e->numbers & (1u << column)) != 0)
				x[numbers++] = ((const double *) e->column[column])[k];
			else
				i[integers++] = e->column[column][k];
		}
		if (e->returns_number)
			((double *) e->results)[k] = ((any_double) e->function)(PASS);
		else
			e->results[k] = ((any_int) e->function)(PASS);
		e->done = k + 1;
	}
}

/* And the most frequent shapes. Functions read the registers of their parameters only. */
#define LOOP(type, parameters, ...)                                             \
	{                                                                       \
		type(*f) parameters = (type(*) parameters) e->function;         \
		const type *a = (const type *) e->column[0];                    \
		const type *b = (const type *) e->column[e->columns - 1];       \
		type *r = (type *) e->results;                                  \
                                                                                \
		(void) b;                                                       \
		for (uint64 k = 0, count = e->count; k < count; e->done = ++k) \
			r[k] = f(__VA_ARGS__);                                  \
	}

RF_EXPORT void plf_each(struct plf_each *e)
{
	if (e->columns == 1 && e->numbers == 0 && !e->returns_number)
		LOOP(uint64, (uint64), a[k])
	else if (e->columns == 2 && e->numbers == 0 && !e->returns_number)
		LOOP(uint64, (uint64, uint64), a[k], b[k])
	else if (e->columns == 1 && e->numbers == 1 && e->returns_number)
		LOOP(double, (double), a[k])
	else if (e->columns == 2 && e->numbers == 3 && e->returns_number)
		LOOP(double, (double, double), a[k], b[k])
	else
		any(e);
}
