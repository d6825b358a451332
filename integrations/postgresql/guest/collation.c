/* What depends on a collation: the server knows it. */
#include "guest.h"

#include "catalog/pg_collation.h"
#include "utils/formatting.h"
#include "utils/varlena.h"

#include <string.h>

RF_IMPORT(int, plf_text_compare, (const char *a, int a_length, const char *b, int b_length, Oid collation))
RF_IMPORT(char *, plf_text_case, (int which, const char *text, size_t length, Oid collation))

int varstr_cmp(const char *a, int a_length, const char *b, int b_length, Oid collation)
{
	struct plf_state state;
	int order;

	if (collation == C_COLLATION_OID) {
		order = memcmp(a, b, Min(a_length, b_length));
		return order != 0 ? order : (a_length > b_length) - (a_length < b_length);
	}
	plf_state_save(&state);
	order = plf_text_compare(a, a_length, b, b_length, collation);
	plf_state_restore(&state);
	return order;
}

static char *change_case(int which, const char *text, size_t length, Oid collation)
{
	struct plf_state state;
	char *result;

	if (text == NULL)
		return NULL;
	plf_state_save(&state);
	result = plf_text_case(which, text, length, collation);
	plf_state_restore(&state);
	return plf_adopt(result);
}

char *str_tolower(const char *text, size_t length, Oid collation)
{
	return change_case(0, text, length, collation);
}

char *str_toupper(const char *text, size_t length, Oid collation)
{
	return change_case(1, text, length, collation);
}

char *str_initcap(const char *text, size_t length, Oid collation)
{
	return change_case(2, text, length, collation);
}
