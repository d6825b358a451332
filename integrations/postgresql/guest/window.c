/* Window functions: their window is with the server. */
#include "guest.h"

#include "windowapi.h"

RF_IMPORT(int, plf_window_begin, (void))
RF_IMPORT(int64, plf_window_position, (void))
RF_IMPORT(int64, plf_window_rows, (void))
RF_IMPORT(void, plf_window_mark, (int64 position))
RF_IMPORT(int, plf_window_peers, (int64 one, int64 other))
RF_IMPORT(Datum, plf_window_value, (int where, int number, int offset, int seek, int mark, uint8 *isnull_and_isout))

static void check(WindowObject window)
{
	if (!WindowObjectIsValid(window))
		ereport(ERROR, (errcode(ERRCODE_WINDOWING_ERROR), errmsg("not called as a window function")));
}

/* One block for each caller, cleared where a partition begins: partitions come one after the other. */
void *WinGetPartitionLocalMemory(WindowObject window, Size size)
{
	struct plf_flinfo *info;
	struct plf_state state;
	int first;

	check(window);
	info = (struct plf_flinfo *) ((struct plf_window *) window)->flinfo;
	plf_state_save(&state);
	first = plf_window_begin();
	plf_state_restore(&state);
	if (info->partition == NULL || info->partition_size < size) {
		info->partition = MemoryContextAllocZero(info->info.fn_mcxt, size);
		info->partition_size = size;
	} else if (first)
		memset(info->partition, 0, info->partition_size);
	return info->partition;
}

int64 WinGetCurrentPosition(WindowObject window)
{
	check(window);
	return plf_window_position();
}

int64 WinGetPartitionRowCount(WindowObject window)
{
	struct plf_state state;
	int64 rows;

	check(window);
	plf_state_save(&state);
	rows = plf_window_rows();
	plf_state_restore(&state);
	return rows;
}

void WinSetMarkPosition(WindowObject window, int64 position)
{
	check(window);
	plf_window_mark(position);
}

bool WinRowsArePeers(WindowObject window, int64 one, int64 other)
{
	struct plf_state state;
	bool same;

	check(window);
	plf_state_save(&state);
	same = plf_window_peers(one, other) != 0;
	plf_state_restore(&state);
	return same;
}

static Datum value(WindowObject window, int where, int number, int offset, int seek, bool mark, bool *isnull, bool *isout)
{
	struct plf_state state;
	uint8 told[2] = {0, 0};
	Datum result;

	check(window);
	plf_state_save(&state);
	result = plf_window_value(where, number, offset, seek, mark, told);
	plf_state_restore(&state);
	*isnull = told[0] != 0;
	if (isout != NULL)
		*isout = told[1] != 0;
	return result;
}

Datum WinGetFuncArgInPartition(WindowObject window, int number, int offset, int seek, bool mark, bool *isnull, bool *isout)
{
	return value(window, PLF_WINDOW_PARTITION, number, offset, seek, mark, isnull, isout);
}

Datum WinGetFuncArgInFrame(WindowObject window, int number, int offset, int seek, bool mark, bool *isnull, bool *isout)
{
	return value(window, PLF_WINDOW_FRAME, number, offset, seek, mark, isnull, isout);
}

Datum WinGetFuncArgCurrent(WindowObject window, int number, bool *isnull)
{
	return value(window, PLF_WINDOW_CURRENT, number, 0, WINDOW_SEEK_CURRENT, false, isnull, NULL);
}
