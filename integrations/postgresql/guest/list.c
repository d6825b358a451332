/* Lists. */
#include "guest.h"

#include "nodes/pg_list.h"

#include <string.h>

static List *make(NodeTag type, int room)
{
	List *list = palloc(offsetof(List, initial_elements) + (Size) room * sizeof(ListCell));

	list->type = type;
	list->length = 0;
	list->max_length = room;
	list->elements = list->initial_elements;
	return list;
}

static List *append(List *list, NodeTag type, ListCell cell)
{
	if (list == NIL)
		list = make(type, 5);
	if (list->length >= list->max_length) {
		Size room = (Size) list->max_length * 2;

		if (list->elements == list->initial_elements) {
			ListCell *moved = palloc(room * sizeof(ListCell));

			memcpy(moved, list->elements, list->length * sizeof(ListCell));
			list->elements = moved;
		} else {
			list->elements = repalloc(list->elements, room * sizeof(ListCell));
		}
		list->max_length = (int) room;
	}
	list->elements[list->length++] = cell;
	return list;
}

List *list_make1_impl(NodeTag type, ListCell a)
{
	return append(NIL, type, a);
}

List *list_make2_impl(NodeTag type, ListCell a, ListCell b)
{
	return append(append(NIL, type, a), type, b);
}

List *list_make3_impl(NodeTag type, ListCell a, ListCell b, ListCell c)
{
	return append(list_make2_impl(type, a, b), type, c);
}

List *list_make4_impl(NodeTag type, ListCell a, ListCell b, ListCell c, ListCell d)
{
	return append(list_make3_impl(type, a, b, c), type, d);
}

List *lappend(List *list, void *datum)
{
	return append(list, T_List, (ListCell){.ptr_value = datum});
}

List *lappend_int(List *list, int datum)
{
	return append(list, T_IntList, (ListCell){.int_value = datum});
}

List *lappend_oid(List *list, Oid datum)
{
	return append(list, T_OidList, (ListCell){.oid_value = datum});
}

List *lcons(void *datum, List *list)
{
	list = lappend(list, datum);
	memmove(list->elements + 1, list->elements, (list->length - 1) * sizeof(ListCell));
	list->elements[0].ptr_value = datum;
	return list;
}

List *list_concat(List *list, const List *more)
{
	int count = list_length(more);

	for (int i = 0; i < count; i++)
		list = append(list, more->type, more->elements[i]);
	return list;
}

List *list_copy(const List *list)
{
	return list_concat(NIL, list);
}

List *list_delete_nth_cell(List *list, int at)
{
	if (list->length == 1) {
		list_free(list);
		return NIL;
	}
	memmove(list->elements + at, list->elements + at + 1, (list->length - 1 - at) * sizeof(ListCell));
	list->length--;
	return list;
}

List *list_delete_cell(List *list, ListCell *cell)
{
	return list_delete_nth_cell(list, (int) (cell - list->elements));
}

List *list_delete_first(List *list)
{
	return list == NIL ? NIL : list_delete_nth_cell(list, 0);
}

List *list_delete_last(List *list)
{
	return list == NIL ? NIL : list_delete_nth_cell(list, list->length - 1);
}

List *list_truncate(List *list, int size)
{
	if (size <= 0)
		return NIL;
	if (list != NIL && list->length > size)
		list->length = size;
	return list;
}

bool list_member_ptr(const List *list, const void *datum)
{
	for (int i = 0; i < list_length(list); i++)
		if (list->elements[i].ptr_value == datum)
			return true;
	return false;
}

bool list_member_int(const List *list, int datum)
{
	for (int i = 0; i < list_length(list); i++)
		if (list->elements[i].int_value == datum)
			return true;
	return false;
}

bool list_member_oid(const List *list, Oid datum)
{
	for (int i = 0; i < list_length(list); i++)
		if (list->elements[i].oid_value == datum)
			return true;
	return false;
}

void list_free(List *list)
{
	if (list == NIL)
		return;
	if (list->elements != list->initial_elements)
		pfree(list->elements);
	pfree(list);
}

void list_free_deep(List *list)
{
	for (int i = 0; i < list_length(list); i++)
		pfree(list->elements[i].ptr_value);
	list_free(list);
}

void list_sort(List *list, list_sort_comparator compare)
{
	if (list_length(list) > 1)
		qsort(list->elements, list->length, sizeof(ListCell), (int (*)(const void *, const void *)) compare);
}
