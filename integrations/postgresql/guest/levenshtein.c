/* Edit distance with costs, by characters. */
#include "guest.h"

#include "mb/pg_wchar.h"
#include "utils/varlena.h"

#include <string.h>

#define LONGEST 255

/* Where each character begins; one more entry says where the last one ends. */
static int split(const char *text, int length, int **starts)
{
	int count = pg_mbstrlen_with_len(text, length), at = 0;

	*starts = palloc((Size) (count + 1) * sizeof **starts);
	for (int i = 0; i < count; i++) {
		(*starts)[i] = at;
		at += pg_database_encoding_max_length() == 1 ? 1 : pg_mblen_with_len(text + at, length - at);
	}
	(*starts)[count] = at;
	return count;
}

int varstr_levenshtein_less_equal(const char *source, int source_length, const char *target, int target_length, int insertion,
	int deletion, int substitution, int most, bool trusted)
{
	int *from, *to, *previous, *row, *rows;
	int m = split(source, source_length, &from), n = split(target, target_length, &to), distance;

	if (m == 0)
		return n * insertion;
	if (n == 0)
		return m * deletion;
	if (!trusted && (m > LONGEST || n > LONGEST))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
		                errmsg("levenshtein argument exceeds maximum length of %d characters", LONGEST)));
	rows = palloc(2 * (Size) (n + 1) * sizeof *rows);
	previous = rows;
	row = rows + n + 1;
	for (int j = 0; j <= n; j++)
		previous[j] = j * insertion;
	for (int i = 1; i <= m; i++) {
		const char *c = source + from[i - 1];
		int length = from[i] - from[i - 1], *swap;

		row[0] = i * deletion;
		for (int j = 1; j <= n; j++) {
			bool same = length == to[j] - to[j - 1] && memcmp(c, target + to[j - 1], length) == 0;
			int best = previous[j - 1] + (same ? 0 : substitution);

			best = Min(best, previous[j] + deletion);
			row[j] = Min(best, row[j - 1] + insertion);
		}
		swap = previous;
		previous = row;
		row = swap;
	}
	distance = previous[n];
	pfree(rows);
	pfree(to);
	pfree(from);
	return most >= 0 && distance > most ? most + 1 : distance;
}

int varstr_levenshtein(const char *source, int source_length, const char *target, int target_length, int insertion, int deletion,
	int substitution, bool trusted)
{
	return varstr_levenshtein_less_equal(source, source_length, target, target_length, insertion, deletion, substitution, -1,
		trusted);
}
