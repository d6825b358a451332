/* Tables. A request's are the server's: they are loaded from its image when they are first looked at, and what is changed is noted for the
 * server. All others are APR's own, whose source this file includes under other names. */
#include "apr.h"

#define apr_table_copy own_table_copy
#define apr_table_clone own_table_clone
#define apr_table_clear own_table_clear
#define apr_table_get own_table_get
#define apr_table_getm own_table_getm
#define apr_table_set own_table_set
#define apr_table_setn own_table_setn
#define apr_table_unset own_table_unset
#define apr_table_merge own_table_merge
#define apr_table_mergen own_table_mergen
#define apr_table_add own_table_add
#define apr_table_addn own_table_addn
#define apr_table_overlay own_table_overlay
#define apr_table_vdo own_table_vdo
#define apr_table_do own_table_do
#define apr_table_compress own_table_compress
#define apr_table_overlap own_table_overlap
#define apr_table_elts own_table_elts
#define apr_is_empty_table own_is_empty_table
#include "tables/apr_tables.c"
#undef apr_table_copy
#undef apr_table_clone
#undef apr_table_clear
#undef apr_table_get
#undef apr_table_getm
#undef apr_table_set
#undef apr_table_setn
#undef apr_table_unset
#undef apr_table_merge
#undef apr_table_mergen
#undef apr_table_add
#undef apr_table_addn
#undef apr_table_overlay
#undef apr_table_vdo
#undef apr_table_do
#undef apr_table_compress
#undef apr_table_overlap
#undef apr_table_elts
#undef apr_is_empty_table

#include "inside.h"

/* Of each request, and, last, the connection's notes, which are the module's alone. */
static struct apr_table_t tables[STOCK_SLOTS][STOCK_TABLES + 1];

apr_table_t *stock_table_at(size_t twin, int which)
{
    return &tables[twin][which];
}

/* The twin whose table that is; NULL: none. `*which`: of its tables. */
static twin *owner(const apr_table_t *t, size_t *which)
{
    size_t at = (size_t)(t - &tables[0][0]);

    if (t < &tables[0][0] || at >= (size_t)STOCK_SLOTS * (STOCK_TABLES + 1))
        return NULL;
    *which = at % (STOCK_TABLES + 1);
    return stock_twin_at(at / (STOCK_TABLES + 1));
}

/* An empty text may stand for something by its address (mod_include's variables that are made when they are read): what was here stays. A
 * table that was cleared has its old entries behind its new ones still. */
static const char *known_empty(const apr_table_t *t, int old, const char *key, const char *value)
{
    const apr_table_entry_t *all = (const apr_table_entry_t *)(const void *)t->a.elts;

    for (int i = t->a.nelts; i < old; i++)
        if (!*all[i].val && strcasecmp(all[i].key, key) == 0)
            return all[i].val;
    return value;
}

/* Sees to it that what is here is what the server has. */
static apr_table_t *load(const apr_table_t *constant)
{
    apr_table_t *t = (apr_table_t *)(uintptr_t)constant;
    const stock_image_table *image;
    const stock_image_entry *entries;
    size_t which;
    twin *of = owner(t, &which);
    int old;

    if (!of)
        return t;
    stock_looks_further();
    if (!(of->made >> which & 1)) {
        of->made |= 1u << which;
        make_array_core(&t->a, of->pool, 8, sizeof(apr_table_entry_t), 0);
        t->index_initialized = 0;
    }
    if (which == STOCK_TABLES)
        return t;
    image = &stock_image_of(of)->tables[which];
    if (of->loaded[which] == image->version)
        return t;
    of->loaded[which] = image->version;
    old = t->a.nelts;
    own_table_clear(t);
    entries = (const stock_image_entry *)(const void *)stock_at(image->entries);
    for (uint32_t i = 0; i < image->count; i++) {
        const char *key = stock_at(entries[i].key), *value = stock_at(entries[i].value);

        own_table_addn(t, key, *value ? value : known_empty(t, old, key, value));
    }
    return t;
}

/* Notes a change that has been made here. */
static void tell(apr_table_t *t, stock_change how, const char *key, const char *value)
{
    size_t which;
    twin *of = owner(t, &which);

    if (!of || which == STOCK_TABLES)
        return;
    if (key && value && t == of->r.notes && strcasecmp(key, STOCK_LIST_NOTE) == 0)
        value = apr_array_pstrcat(of->pool, (const apr_array_header_t *)(const void *)value, '/');
    stock_note_change(of, how, which, key, value);
}

/* Tells the server of all that is in a table. */
static void tell_all(apr_table_t *t)
{
    size_t which;

    if (!owner(t, &which))
        return;
    tell(t, STOCK_CLEAR, NULL, NULL);
    for (int i = 0; i < t->a.nelts; i++)
        tell(t, STOCK_ADD, APR_ARRAY_IDX(&t->a, i, apr_table_entry_t).key, APR_ARRAY_IDX(&t->a, i, apr_table_entry_t).val);
}

const apr_array_header_t *apr_table_elts(const apr_table_t *t)
{
    return own_table_elts(load(t));
}

int apr_is_empty_table(const apr_table_t *t)
{
    return own_is_empty_table(load(t));
}

const char *apr_table_get(const apr_table_t *t, const char *key)
{
    return own_table_get(load(t), key);
}

const char *apr_table_getm(apr_pool_t *p, const apr_table_t *t, const char *key)
{
    return own_table_getm(p, load(t), key);
}

apr_table_t *apr_table_copy(apr_pool_t *p, const apr_table_t *t)
{
    return own_table_copy(p, load(t));
}

apr_table_t *apr_table_clone(apr_pool_t *p, const apr_table_t *t)
{
    return own_table_clone(p, load(t));
}

apr_table_t *apr_table_overlay(apr_pool_t *p, const apr_table_t *over, const apr_table_t *base)
{
    return own_table_overlay(p, load(over), load(base));
}

void apr_table_clear(apr_table_t *t)
{
    own_table_clear(load(t));
    tell(t, STOCK_CLEAR, NULL, NULL);
}

void apr_table_set(apr_table_t *t, const char *key, const char *value)
{
    own_table_set(load(t), key, value);
    tell(t, STOCK_SET, key, value);
}

void apr_table_setn(apr_table_t *t, const char *key, const char *value)
{
    own_table_setn(load(t), key, value);
    tell(t, STOCK_SET, key, value);
}

void apr_table_unset(apr_table_t *t, const char *key)
{
    load(t);
    if (!own_table_get(t, key))
        return;
    own_table_unset(t, key);
    tell(t, STOCK_UNSET, key, NULL);
}

void apr_table_merge(apr_table_t *t, const char *key, const char *value)
{
    own_table_merge(load(t), key, value);
    tell(t, STOCK_MERGE, key, value);
}

void apr_table_mergen(apr_table_t *t, const char *key, const char *value)
{
    own_table_mergen(load(t), key, value);
    tell(t, STOCK_MERGE, key, value);
}

void apr_table_add(apr_table_t *t, const char *key, const char *value)
{
    own_table_add(load(t), key, value);
    tell(t, STOCK_ADD, key, value);
}

void apr_table_addn(apr_table_t *t, const char *key, const char *value)
{
    own_table_addn(load(t), key, value);
    tell(t, STOCK_ADD, key, value);
}

int apr_table_vdo(apr_table_do_callback_fn_t *visit, void *record, const apr_table_t *t, va_list keys)
{
    return own_table_vdo(visit, record, load(t), keys);
}

int apr_table_do(apr_table_do_callback_fn_t *visit, void *record, const apr_table_t *t, ...)
{
    va_list keys;
    int result;

    va_start(keys, t);
    result = own_table_vdo(visit, record, load(t), keys);
    va_end(keys);
    return result;
}

void apr_table_compress(apr_table_t *t, unsigned flags)
{
    own_table_compress(load(t), flags);
    tell_all(t);
}

void apr_table_overlap(apr_table_t *t, const apr_table_t *more, unsigned flags)
{
    own_table_overlap(load(t), load(more), flags);
    tell_all(t);
}
