/* Domains: each thread has its own, for each module and what the configuration gives it. */
#include "mod_fenced.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 64 /* domains of a thread that wait for requests */ };

static __thread mf_domain *domains;
static pthread_key_t key;

apr_uint64_t mf_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (apr_uint64_t)t.tv_sec * 1000000000 + (apr_uint64_t)t.tv_nsec;
}

/* mf_domain.dirs */
static char *dirs_text(apr_pool_t *pool, const mf_settings *settings)
{
    char *text = NULL;

    for (int i = 0; settings->dirs && i < settings->dirs->nelts; i++) {
        const mf_dir *dir = &APR_ARRAY_IDX(settings->dirs, i, mf_dir);

        text = apr_psprintf(pool, "%s%d %s\n%s\n", text ? text : "", dir->rights, dir->host, dir->guest);
    }
    return text;
}

static void destroy(mf_domain *d)
{
    if (d->rf)
        __atomic_fetch_sub(&d->module->counters->domains, 1, __ATOMIC_RELAXED);
    rf_domain_destroy(d->rf);
    mf_buffer_destroy(d);
    rf_error_clear();
    free(d->dirs);
    free(d);
}

/* A thread ends. */
static void end_thread(void *nothing)
{
    (void)nothing;
    while (domains) {
        mf_domain *d = domains;

        domains = d->next;
        destroy(d);
    }
}

static apr_status_t end_child(void *nothing)
{
    /* Threads that end later keep what they have: the process ends. */
    end_thread(nothing);
    pthread_key_delete(key);
    return APR_SUCCESS;
}

apr_status_t mf_domains_init(apr_pool_t *child)
{
    int error = pthread_key_create(&key, end_thread);

    if (error)
        return error;
    apr_pool_cleanup_register(child, NULL, end_child, apr_pool_cleanup_null);
    return APR_SUCCESS;
}

/* A policy, NULL on failure. */
static rf_policy *policy(mf_domain *d, const mf_settings *settings)
{
    rf_policy *p;

    if (rf_policy_create(&p) != RF_OK)
        return NULL;
    /* The streams are open, so that the libc uses them; mf_syscall answers for them. */
    if (rf_policy_stdin(p, RF_STREAM_NULL) == RF_OK && rf_policy_stdout(p, RF_STREAM_NULL) == RF_OK &&
        rf_policy_stderr(p, RF_STREAM_NULL) == RF_OK && rf_policy_clocks(p, 1) == RF_OK &&
        rf_policy_randomness(p, 1) == RF_OK && rf_policy_callback(p, mf_syscall, d) == RF_OK) {
        int i = 0;

        while (settings->dirs && i < settings->dirs->nelts) {
            const mf_dir *dir = &APR_ARRAY_IDX(settings->dirs, i, mf_dir);

            if (rf_policy_dir(p, dir->host, dir->guest, dir->rights) != RF_OK)
                break;
            i++;
        }
        if (!settings->dirs || i == settings->dirs->nelts)
            return p;
    }
    rf_policy_destroy(p);
    return NULL;
}

/* Makes a domain, and lets its module prepare itself. */
static rf_status make(mf_domain *d, const mf_settings *settings)
{
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    rf_import imports[16];
    rf_policy *p = policy(d, settings);
    rf_status status;

    if (!p)
        return rf_error()->status;
    for (unsigned i = 0; i < mf_import_count; i++) {
        imports[i] = mf_imports[i];
        imports[i].context = d;
    }
    o.imports = imports;
    o.import_count = mf_import_count;
    o.policy = p;
    o.time_limit = d->time_limit;
    o.memory_limit = (apr_uint64_t)d->memory_limit;
    status = rf_domain_create(d->module->handle, &o, &d->rf);
    rf_policy_destroy(p);
    if (status != RF_OK)
        return status;
    __atomic_fetch_add(&d->module->counters->domains, 1, __ATOMIC_RELAXED);
    d->serve = d->module->kind == MF_HANDLER ? RF_DLSYM(d->rf, int, fenced_handle, (const void *))
                                                   : RF_DLSYM(d->rf, int, fenced_program, (const void *));
    if (!d->serve)
        return rf_error()->status;
    if (d->module->has_start) {
        status = rf_domain_call(d->rf, "fenced_start", NULL, 0, NULL);
        if (status != RF_OK)
            return status;
    }
    d->block = rf_memory_alloc(d->rf, MF_BLOCK);
    if (d->block && rf_domain_checkpoint(d->rf) != RF_OK) {
        if (d->module->has_start)
            return rf_error()->status;
        /* A reset then runs constructors again, and takes the block away. */
        rf_memory_free(d->rf, d->block);
        d->block = NULL;
        rf_error_clear();
    }
    return RF_OK;
}

/* One that is made like that and has no request, or NULL. Those that are too many go. */
static mf_domain *find(const mf_module *m, apr_int64_t memory, mf_reset reset, const char *dirs)
{
    mf_domain **at = &domains;
    int count = 0;

    while (*at) {
        mf_domain *d = *at;

        if (!d->busy && d->module == m && d->memory_limit == memory && d->reset == reset &&
            strcmp(d->dirs ? d->dirs : "", dirs ? dirs : "") == 0) {
            *at = d->next;
            d->next = domains;
            return domains = d;
        }
        if (++count >= MOST && !d->busy) {
            *at = d->next;
            destroy(d);
            continue;
        }
        at = &d->next;
    }
    return NULL;
}

/* The calling thread's domain for such a request; NULL with rf_error. */
mf_domain *mf_domain_take(mf_module *m, const mf_settings *settings, request_rec *r)
{
    apr_int64_t memory = settings->memory_limit < 0 ? MF_MEMORY_LIMIT : settings->memory_limit;
    apr_uint64_t time = (apr_uint64_t)(settings->time_limit < 0 ? MF_TIME_LIMIT : settings->time_limit) * 1000;
    mf_reset reset = settings->reset < 0 ? MF_RESET_REQUEST : (mf_reset)settings->reset;
    char *dirs = dirs_text(r->pool, settings);
    mf_domain *d = find(m, memory, reset, dirs);

    if (!d) {
        d = calloc(1, sizeof *d);
        if (!d)
            return NULL;
        d->module = m;
        d->memory_limit = memory;
        d->reset = reset;
        d->time_limit = time;
        d->dirs = dirs ? strdup(dirs) : NULL;
        if (make(d, settings) != RF_OK) {
            /* What there is to tell is told before it is gone. */
            const char *why = rf_error() ? rf_error()->message : "no memory";

            ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "fenced:%s: no domain: %s", m->name, why);
            destroy(d);
            return NULL;
        }
        d->next = domains;
        domains = d;
        pthread_setspecific(key, domains);
    }
    if (d->time_limit != time) {
        d->time_limit = time;
        rf_domain_set_time_limit(d->rf, time);
    }
    d->busy = 1;
    return d;
}

static void measure(mf_domain *d)
{
    rf_usage usage = RF_USAGE_INIT;
    apr_uint64_t *most = &d->module->counters->most_memory;

    if (rf_domain_usage(d->rf, &usage) == RF_OK && usage.memory > *most)
        __atomic_store_n(most, usage.memory, __ATOMIC_RELAXED);
}

/* The request is over. */
void mf_domain_give(mf_domain *d, int faulted, request_rec *r)
{
    mf_domain **at = &domains;

    d->busy = 0;
    d->request = NULL;
    if (faulted || d->requests++ % 16 == 0)
        measure(d);
    if (d->reset == MF_RESET_NEVER) {
        d->down |= faulted;
        return;
    }
    if (d->reset == MF_RESET_FAULT && !faulted)
        return;
    mf_buffer_wipe(d);
    if (rf_domain_reset(d->rf) == RF_OK)
        return;
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "fenced:%s: cannot be reset, and is made anew: %s", d->module->name,
                  rf_error()->message);
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    destroy(d);
}
