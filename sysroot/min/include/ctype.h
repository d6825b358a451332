#ifndef RF_MIN_CTYPE_H
#define RF_MIN_CTYPE_H
#ifdef __cplusplus
extern "C" {
#endif
int isalnum(int), isalpha(int), isblank(int), iscntrl(int), isdigit(int), isgraph(int), islower(int), isprint(int),
	ispunct(int), isspace(int), isupper(int), isxdigit(int), tolower(int), toupper(int), isascii(int);
#ifdef __cplusplus
}
#endif
#endif
