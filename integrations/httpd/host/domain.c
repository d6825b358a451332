/* Domains: each thread has its own, for each module and what the configuration gives it. */
#include "mod_fenced.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 64 /* domains of a thread that wait for requests */ };

static __thread mf_slot *slots;
static pthread_key_t key;

apr_uint64_t mf_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (apr_uint64_t)t.tv_sec * 1000000000 + (apr_uint64_t)t.tv_nsec;
}

/* mf_slot.dirs */
static char *dirs_text(apr_pool_t *pool, const mf_settings *settings)
{
    char *text = NULL;

    for (int i = 0; settings->dirs && i < settings->dirs->nelts; i++) {
        const mf_dir *dir = &APR_ARRAY_IDX(settings->dirs, i, mf_dir);

        text = apr_psprintf(pool, "%s%d %s\n%s\n", text ? text : "", dir->rights, dir->host, dir->guest);
    }
    return text;
}

static void destroy(mf_slot *slot)
{
    if (slot->domain)
        __atomic_fetch_sub(&slot->module->counters->domains, 1, __ATOMIC_RELAXED);
    rf_domain_destroy(slot->domain);
    rf_error_clear();
    free(slot->dirs);
    free(slot);
}

/* A thread ends. */
static void end_thread(void *nothing)
{
    (void)nothing;
    while (slots) {
        mf_slot *slot = slots;

        slots = slot->next;
        destroy(slot);
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
static rf_policy *policy(mf_slot *slot, const mf_settings *settings)
{
    rf_policy *p;

    if (rf_policy_create(&p) != RF_OK)
        return NULL;
    /* The streams are open, so that the libc uses them; mf_syscall answers for them. */
    if (rf_policy_stdin(p, RF_STREAM_NULL) == RF_OK && rf_policy_stdout(p, RF_STREAM_NULL) == RF_OK &&
        rf_policy_stderr(p, RF_STREAM_NULL) == RF_OK && rf_policy_clocks(p, 1) == RF_OK &&
        rf_policy_randomness(p, 1) == RF_OK && rf_policy_callback(p, mf_syscall, slot) == RF_OK) {
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

/* Makes the domain of a slot, and lets its module prepare itself. */
static rf_status make(mf_slot *slot, const mf_settings *settings)
{
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    rf_import imports[16];
    rf_policy *p = policy(slot, settings);
    rf_status status;

    if (!p)
        return rf_error()->status;
    for (unsigned i = 0; i < mf_import_count; i++) {
        imports[i] = mf_imports[i];
        imports[i].context = slot;
    }
    o.imports = imports;
    o.import_count = mf_import_count;
    o.policy = p;
    o.time_limit = slot->time_limit;
    o.memory_limit = (apr_uint64_t)slot->memory_limit;
    status = rf_domain_create(slot->module->handle, &o, &slot->domain);
    rf_policy_destroy(p);
    if (status != RF_OK)
        return status;
    __atomic_fetch_add(&slot->module->counters->domains, 1, __ATOMIC_RELAXED);
    slot->serve = slot->module->kind == MF_HANDLER ? RF_DLSYM(slot->domain, int, fenced_handle, (const void *))
                                                   : RF_DLSYM(slot->domain, int, fenced_program, (const void *));
    if (!slot->serve)
        return rf_error()->status;
    if (slot->module->has_start) {
        status = rf_domain_call(slot->domain, "fenced_start", NULL, 0, NULL);
        if (status != RF_OK)
            return status;
    }
    slot->block = rf_memory_alloc(slot->domain, MF_BLOCK);
    if (slot->block && rf_domain_checkpoint(slot->domain) != RF_OK) {
        if (slot->module->has_start)
            return rf_error()->status;
        /* A reset then runs constructors again, and takes the block away. */
        rf_memory_free(slot->domain, slot->block);
        slot->block = NULL;
        rf_error_clear();
    }
    return RF_OK;
}

/* One that is made like that and has no request, or NULL. Those that are too many go. */
static mf_slot *find(const mf_module *m, apr_int64_t memory, mf_reset reset, const char *dirs)
{
    mf_slot **at = &slots;
    int count = 0;

    while (*at) {
        mf_slot *slot = *at;

        if (!slot->busy && slot->module == m && slot->memory_limit == memory && slot->reset == reset &&
            strcmp(slot->dirs ? slot->dirs : "", dirs ? dirs : "") == 0) {
            *at = slot->next;
            slot->next = slots;
            return slots = slot;
        }
        if (++count >= MOST && !slot->busy) {
            *at = slot->next;
            destroy(slot);
            continue;
        }
        at = &slot->next;
    }
    return NULL;
}

/* The calling thread's domain for such a request; NULL with rf_error. */
mf_slot *mf_slot_take(mf_module *m, const mf_settings *settings, request_rec *r)
{
    apr_int64_t memory = settings->memory_limit < 0 ? MF_MEMORY_LIMIT : settings->memory_limit;
    apr_uint64_t time = (apr_uint64_t)(settings->time_limit < 0 ? MF_TIME_LIMIT : settings->time_limit) * 1000;
    mf_reset reset = settings->reset < 0 ? MF_RESET_REQUEST : (mf_reset)settings->reset;
    char *dirs = dirs_text(r->pool, settings);
    mf_slot *slot = find(m, memory, reset, dirs);

    if (!slot) {
        slot = calloc(1, sizeof *slot);
        if (!slot)
            return NULL;
        slot->module = m;
        slot->memory_limit = memory;
        slot->reset = reset;
        slot->time_limit = time;
        slot->dirs = dirs ? strdup(dirs) : NULL;
        if (make(slot, settings) != RF_OK) {
            /* What there is to tell is told before it is gone. */
            const char *why = rf_error() ? rf_error()->message : "no memory";

            ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "fenced:%s: no domain: %s", m->name, why);
            destroy(slot);
            return NULL;
        }
        slot->next = slots;
        slots = slot;
        pthread_setspecific(key, slots);
    }
    if (slot->time_limit != time) {
        slot->time_limit = time;
        rf_domain_set_time_limit(slot->domain, time);
    }
    slot->busy = 1;
    return slot;
}

static void measure(mf_slot *slot)
{
    rf_usage usage = RF_USAGE_INIT;
    apr_uint64_t *most = &slot->module->counters->most_memory;

    if (rf_domain_usage(slot->domain, &usage) == RF_OK && usage.memory > *most)
        __atomic_store_n(most, usage.memory, __ATOMIC_RELAXED);
}

/* The request is over. */
void mf_slot_give(mf_slot *slot, int faulted, request_rec *r)
{
    mf_slot **at = &slots;

    slot->busy = 0;
    slot->request = NULL;
    if (faulted || slot->requests++ % 16 == 0)
        measure(slot);
    if (slot->reset == MF_RESET_NEVER) {
        slot->down |= faulted;
        return;
    }
    if ((slot->reset == MF_RESET_FAULT && !faulted) || rf_domain_reset(slot->domain) == RF_OK)
        return;
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "fenced:%s: cannot be reset, and is made anew: %s", slot->module->name,
                  rf_error()->message);
    while (*at != slot)
        at = &(*at)->next;
    *at = slot->next;
    destroy(slot);
}
