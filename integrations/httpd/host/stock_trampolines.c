/* The server calls functions of modules without saying whose they are: each module and each of its hooks needs one of its own. */
#include "stock.h"

#define HOOKS(X, m) X(m, 0) X(m, 1) X(m, 2) X(m, 3) X(m, 4) X(m, 5) X(m, 6) X(m, 7) X(m, 8) X(m, 9) X(m, 10) X(m, 11)
#define MODULES(X)                                                                                                                          \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22)          \
    X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)

#define HOOK(m, k)                                                                                                                          \
    static int hook_##m##_##k(request_rec *r)                                                                                               \
    {                                                                                                                                       \
        return mf_stock_run_hook(m, k, r, NULL);                                                                                                  \
    }                                                                                                                                       \
    static void void_hook_##m##_##k(request_rec *r)                                                                                         \
    {                                                                                                                                       \
        mf_stock_run_hook(m, k, r, NULL);                                                                                                         \
    }                                                                                                                                      \
    static int text_hook_##m##_##k(request_rec *r, const char *text)                                                                       \
    {                                                                                                                                      \
        return mf_stock_run_hook(m, k, r, text);                                                                                           \
    }
#define FUNCTIONS(m)                                                                                                                        \
    static void *create_dir_##m(apr_pool_t *p, char *dir)                                                                                   \
    {                                                                                                                                       \
        return mf_stock_configure(m, STOCK_CREATE_DIR, p, dir, NULL, NULL, NULL);                                                           \
    }                                                                                                                                       \
    static void *merge_dir_##m(apr_pool_t *p, void *base, void *more)                                                                       \
    {                                                                                                                                       \
        return mf_stock_configure(m, STOCK_MERGE_DIR, p, NULL, NULL, base, more);                                                           \
    }                                                                                                                                       \
    static void *create_server_##m(apr_pool_t *p, server_rec *s)                                                                            \
    {                                                                                                                                       \
        return mf_stock_configure(m, STOCK_CREATE_SERVER, p, NULL, s, NULL, NULL);                                                          \
    }                                                                                                                                       \
    static void *merge_server_##m(apr_pool_t *p, void *base, void *more)                                                                    \
    {                                                                                                                                       \
        return mf_stock_configure(m, STOCK_MERGE_SERVER, p, NULL, NULL, base, more);                                                        \
    }                                                                                                                                       \
    static void register_hooks_##m(apr_pool_t *p)                                                                                           \
    {                                                                                                                                       \
        mf_stock_register_hooks(m, p);                                                                                                      \
    }                                                                                                                                       \
    HOOKS(HOOK, m)
MODULES(FUNCTIONS)

#define HOOK_NAME(m, k) hook_##m##_##k,
#define VOID_HOOK_NAME(m, k) void_hook_##m##_##k,
#define TEXT_HOOK_NAME(m, k) text_hook_##m##_##k,
#define TRAMPOLINE(m)                                                                                                                       \
    { create_dir_##m,     merge_dir_##m,          create_server_##m,          merge_server_##m,                                             \
      register_hooks_##m, { HOOKS(HOOK_NAME, m) }, { HOOKS(VOID_HOOK_NAME, m) }, { HOOKS(TEXT_HOOK_NAME, m) } },
const mf_stock_trampoline mf_stock_trampolines[MF_STOCK_MOST] = { MODULES(TRAMPOLINE) };
