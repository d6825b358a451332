/* Imports: what a window function asks of its window. The window is that of the innermost call in progress; numbers that the module
 * gives are checked before the server sees them. */
#include "function.h"

#include "windowapi.h"

#include "import.h"

static WindowObject
window(void)
{
	FunctionCallInfo fcinfo;

	plf_caller_domain();
	fcinfo = plf_current_call->fcinfo;
	if (!fcinfo || !fcinfo->context || !IsA(fcinfo->context, WindowObjectData))
		ereport(ERROR, (errcode(ERRCODE_WINDOWING_ERROR), errmsg("a module asked for a window outside of a window function"),
			errhint("Make the function with CREATE FUNCTION ... WINDOW.")));
	return (WindowObject) fcinfo->context;
}

uint64
plf_put_window(plf_writer *w, uint64 flinfo)
{
	struct plf_window node = { T_WindowObjectData, 0, flinfo };

	return plf_put(w, &node, sizeof node);
}

/* Whether the function was not called before in this partition. */
GUARDED(window_begin)
{
	bool *known = WinGetPartitionLocalMemory(window(), sizeof *known);

	rf_caller_return_int(caller, !*known);
	*known = true;
}

GUARDED(window_position)
{
	rf_caller_return_int(caller, WinGetCurrentPosition(window()));
}

GUARDED(window_rows)
{
	rf_caller_return_int(caller, WinGetPartitionRowCount(window()));
}

GUARDED(window_mark)
{
	WindowObject w = window();
	int64 position = (int64) ARG(0);

	/* Rows in front of the mark may go; behind the current one there may be none yet. */
	if (position > WinGetCurrentPosition(w))
		ereport(ERROR, (errcode(ERRCODE_WINDOWING_ERROR), errmsg("a window function's mark is behind the current row")));
	WinSetMarkPosition(w, position);
}

GUARDED(window_peers)
{
	rf_caller_return_int(caller, WinRowsArePeers(window(), (int64) ARG(0), (int64) ARG(1)));
}

GUARDED(window_value)
{
	WindowObject w = window();
	plf_domain *d = plf_caller_domain();
	plf_function *f = plf_current_call->fcinfo->flinfo->fn_extra;
	int where = (int) ARG(0), number = (int) ARG(1), offset = (int) ARG(2), seek = (int) ARG(3);
	bool mark = ARG(4) != 0, isnull = false, isout = false;
	uint8 told[2];
	Datum value;

	if (number < 0 || number >= f->nargs)
		ereport(ERROR, (errcode(ERRCODE_WINDOWING_ERROR), errmsg("window function \"%s\" has no argument %d", f->name, number)));
	if (seek != WINDOW_SEEK_CURRENT && seek != WINDOW_SEEK_HEAD && seek != WINDOW_SEEK_TAIL)
		ereport(ERROR, (errcode(ERRCODE_WINDOWING_ERROR), errmsg("window function \"%s\" seeks in an unknown way", f->name)));
	switch (where) {
	case PLF_WINDOW_PARTITION:
		value = WinGetFuncArgInPartition(w, number, offset, seek, mark, &isnull, &isout);
		break;
	case PLF_WINDOW_FRAME:
		value = WinGetFuncArgInFrame(w, number, offset, seek, mark, &isnull, &isout);
		break;
	default:
		value = WinGetFuncArgCurrent(w, number, &isnull);
	}
	if (isnull)
		value = (Datum) 0;
	else {
		plf_writer writer;

		plf_callback_writer(&writer, d);
		value = plf_put_datum(&writer, &f->args[number], value);
		plf_callback_done(&writer);
	}
	told[0] = isnull;
	told[1] = isout;
	if (rf_memory_write(d->handle, (void *) ARG(5), told, sizeof told) != RF_OK)
		plf_throw_library("plf_window_value");
	rf_caller_return_int(caller, value);
}
