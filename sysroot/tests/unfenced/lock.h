#define LOCK(x)                                                                                              \
	while (__atomic_exchange_n(x, 1, __ATOMIC_ACQUIRE))                                                  \
	__builtin_ia32_pause()
#define UNLOCK(x) __atomic_store_n(x, 0, __ATOMIC_RELEASE)
