/* What the files with imports share. */
#ifndef PLFENCED_IMPORT_H
#define PLFENCED_IMPORT_H

#include "plfenced.h"

#pragma GCC visibility push(hidden)

extern plf_domain *plf_caller_domain(void);
extern void plf_callback_writer(plf_writer *w, plf_domain *d);
extern void plf_callback_done(plf_writer *w);
extern void plf_guard(rf_caller *caller, void (*body)(rf_caller *caller, void *context), void *context);

#define GUARDED(name)                                                                                                                \
	static void name##_body(rf_caller *caller, void *context);                                                                   \
	void plf_import_##name(rf_caller *caller, void *context)                                                                     \
	{                                                                                                                            \
		plf_guard(caller, name##_body, context);                                                                             \
	}                                                                                                                            \
	static void name##_body(rf_caller *caller, void *context)

#define ARG(n) rf_caller_arg_int(caller, (n))

#define PLF_IMPORTS(X)                                                                                                               \
	X(report) X(type_get) X(text_compare) X(text_case) X(function_call) X(tupdesc_get) X(tupdesc_bless) X(result_type)           \
	X(set_begin) X(set_put) X(spi_connect) X(spi_finish) X(spi_execute) X(spi_prepare) X(spi_execute_plan) X(spi_free)           \
	X(spi_cursor_open) X(spi_cursor_fetch) X(spi_cursor_close) X(window_begin) X(window_position) X(window_rows) X(window_mark)         \
	X(window_peers) X(window_value)

/* What texts may call, and how they declare it. */
#define PLF_BUILT_INS(X) X(notice, "void notice(const char *)") X(error, "void error(const char *)")

#define PLF_DECLARE(name) extern void plf_import_##name(rf_caller *caller, void *context);
PLF_IMPORTS(PLF_DECLARE)
#undef PLF_DECLARE
#define PLF_DECLARE(name, declaration) extern void plf_import_##name(rf_caller *caller, void *context);
PLF_BUILT_INS(PLF_DECLARE)
#undef PLF_DECLARE

#pragma GCC visibility pop

#endif
