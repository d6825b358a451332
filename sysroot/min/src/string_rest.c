/* The string functions that are not worth vectors here. */
#include <stdlib.h>
#include <string.h>

char *strstr(const char *hay, const char *needle)
{
	size_t n = strlen(needle);
	if (!n)
		return (char *)hay;
	for (; (hay = strchr(hay, *needle)); hay++)
		if (!strncmp(hay, needle, n))
			return (char *)hay;
	return NULL;
}

int strcoll(const char *a, const char *b) { return strcmp(a, b); }

size_t strcspn(const char *s, const char *set)
{
	const char *p = s;
	while (*p && !strchr(set, *p))
		p++;
	return (size_t)(p - s);
}

size_t strspn(const char *s, const char *set)
{
	const char *p = s;
	while (*p && strchr(set, *p))
		p++;
	return (size_t)(p - s);
}

char *strpbrk(const char *s, const char *set)
{
	s += strcspn(s, set);
	return *s ? (char *)s : NULL;
}

char *strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = malloc(n);
	return p ? memcpy(p, s, n) : NULL;
}

char *strerror(int e)
{
	(void)e;
	return (char *)"error";
}
