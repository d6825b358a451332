/* What the page is, and who asks for it: mod_fenced (page_fenced.c) or the server itself (page_plain.c). Requests begin with
 * `fault=N&`, the fault that happens. */
#ifndef PAGE_H
#define PAGE_H

#include <stddef.h>

typedef void (*page_put)(void *to, const char *from, size_t length);

/* 0, or -1 if the query is none that it knows, or there is no memory. */
int page(const char *query, page_put put, void *to);

#endif
