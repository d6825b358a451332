/* Included again on purpose: NDEBUG may have changed. */
#undef assert
#ifdef NDEBUG
#define assert(x) ((void)0)
#else
#define assert(x) ((x) ? (void)0 : __assert_fail(#x, __FILE__, __LINE__, __func__))
#endif
#if !defined(static_assert) && !defined(__cplusplus)
#define static_assert _Static_assert
#endif
#ifdef __cplusplus
extern "C"
#endif
void __assert_fail(const char *, const char *, int, const char *) __attribute__((noreturn));
