/* What the planner and the parser of the server offer to functions that they call with their own structures. Fenced functions
 * are never called that way; they can name these functions, and calling one is an error. */
#include "guest.h"

static void pg_attribute_noreturn() refuse(const char *name)
{
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
	                errmsg("a fenced function cannot call %s: the planner's and the parser's structures stay outside of the fence", name)));
}

#define OUTSIDE(name)         \
	void name(void);      \
	void name(void)       \
	{                     \
		refuse(#name); \
	}

OUTSIDE(get_restriction_variable)
OUTSIDE(get_join_variables)
OUTSIDE(generic_restriction_selectivity)
OUTSIDE(get_attstatsslot)
OUTSIDE(free_attstatsslot)
OUTSIDE(coerce_to_target_type)
OUTSIDE(transformExpr)
OUTSIDE(exprType)
OUTSIDE(exprTypmod)
OUTSIDE(exprLocation)
OUTSIDE(parser_errposition)
OUTSIDE(init_local_reloptions)
OUTSIDE(add_local_bool_reloption)
OUTSIDE(add_local_int_reloption)
OUTSIDE(add_local_real_reloption)
OUTSIDE(add_local_enum_reloption)
OUTSIDE(add_local_string_reloption)
OUTSIDE(register_reloptions_validator)
OUTSIDE(get_function_sibling_type)
