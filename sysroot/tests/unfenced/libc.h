/* Just enough of musl's insides to build malloc.c without a fence, in a test. */
#ifndef RF_TEST_LIBC_H
#define RF_TEST_LIBC_H
extern struct {
	int need_locks;
} libc;
#define weak_alias(old, new) extern int rf_test_unused
#define hidden
#endif
