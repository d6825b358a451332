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

/* Those that the request has. */
OFTEN void stock_place_tables(twin *t, const stock_image *image)
{
    struct apr_table_t *own = tables[stock_twin_index(t)];
    int i = 0;

#define PLACE(name)                                                                                                                         \
    t->r.name = image->tables[i].version ? &own[i] : NULL;                                                                                  \
    i++;
    STOCK_TABLE_LIST(PLACE)
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

/* An empty text may stand for something by its address (mod_include's variables that are made when they are read): what was here stays. */
static const char *known_empty(const apr_array_header_t *before, const char *key)
{
    for (int i = 0; i < before->nelts; i++) {
        const apr_table_entry_t *e = &APR_ARRAY_IDX(before, i, apr_table_entry_t);

        if (!*e->val && strcasecmp(e->key, key) == 0)
            return e->val;
    }
    return NULL;
}

/* Gives a table entries of its own, as many, before they are changed. */
static void copy_entries(twin *of, apr_table_t *t, size_t which)
{
    apr_array_header_t before = t->a;

    make_array_core(&t->a, of->pool, before.nelts < 4 ? 8 : 2 * before.nelts, sizeof(apr_table_entry_t), 0);
    memcpy(t->a.elts, before.elts, (size_t)before.nelts * sizeof(apr_table_entry_t));
    t->a.nelts = before.nelts;
    of->own |= 1u << which;
}

_Static_assert(TABLE_HASH_SIZE == STOCK_INDEX && TABLE_INDEX_MASK == STOCK_INDEX - 1, "the index is APR's");

/* Takes a table over as the image has it: its entries are read where they lie. */
static void take(twin *of, apr_table_t *t, size_t which)
{
    const stock_image *image = stock_image_of(of);
    const stock_image_table *table = &image->tables[which];
    const stock_image_index *index = &image->indexes[which];
    apr_array_header_t before = t->a;
    int own = of->own >> which & 1;

    t->a = (apr_array_header_t){ of->pool, sizeof(apr_table_entry_t), (int)table->count, (int)table->count, NULL };
    t->a.elts = (char *)(uintptr_t)stock_at(table->entries);
    t->index_initialized = index->known;
    if (index->known) {
        memcpy(t->index_first, index->first, sizeof t->index_first);
        memcpy(t->index_last, index->last, sizeof t->index_last);
    }
    of->own &= ~(1u << which);
    if (!own || !table->empty)
        return;
    copy_entries(of, t, which);
    for (int i = 0; i < t->a.nelts; i++) {
        apr_table_entry_t *e = &APR_ARRAY_IDX(&t->a, i, apr_table_entry_t);
        const char *empty = *e->val ? NULL : known_empty(&before, e->key);

        if (empty)
            e->val = (char *)(uintptr_t)empty;
    }
}

/* Sees to it that what is here is what the server has. `changes`: the entries are to be the module's own. */
static inline apr_table_t *bring(const apr_table_t *constant, int changes)
{
    apr_table_t *t = (apr_table_t *)(uintptr_t)constant;
    const stock_image_table *image;
    size_t which;
    twin *of = owner(t, &which);

    if (!of)
        return t;
    stock_looks_further();
    if (which == STOCK_TABLES) { /* the connection's notes */
        if (!(of->made >> which & 1)) {
            of->made |= 1u << which;
            make_array_core(&t->a, of->pool, 8, sizeof(apr_table_entry_t), 0);
            t->index_initialized = 0;
        }
        return t;
    }
    image = &stock_image_of(of)->tables[which];
    if (of->loaded[which] != image->version) {
        of->loaded[which] = image->version;
        take(of, t, which);
    }
    if (changes && !(of->own >> which & 1))
        copy_entries(of, t, which);
    return t;
}

static apr_table_t *load(const apr_table_t *t)
{
    return bring(t, 0);
}

static apr_table_t *load_to_change(const apr_table_t *t)
{
    return bring(t, 1);
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
    return own_table_elts(load_to_change(t)); /* who looks at entries may write to them */
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
    return own_table_overlay(p, load_to_change(over), load(base)); /* which shares entries with the first */
}

void apr_table_clear(apr_table_t *t)
{
    own_table_clear(load_to_change(t));
    tell(t, STOCK_CLEAR, NULL, NULL);
}

void apr_table_set(apr_table_t *t, const char *key, const char *value)
{
    own_table_set(load_to_change(t), key, value);
    tell(t, STOCK_SET, key, value);
}

void apr_table_setn(apr_table_t *t, const char *key, const char *value)
{
    own_table_setn(load_to_change(t), key, value);
    tell(t, STOCK_SET, key, value);
}

void apr_table_unset(apr_table_t *t, const char *key)
{
    load(t);
    if (!own_table_get(t, key))
        return;
    own_table_unset(load_to_change(t), key);
    tell(t, STOCK_UNSET, key, NULL);
}

void apr_table_merge(apr_table_t *t, const char *key, const char *value)
{
    own_table_merge(load_to_change(t), key, value);
    tell(t, STOCK_MERGE, key, value);
}

void apr_table_mergen(apr_table_t *t, const char *key, const char *value)
{
    own_table_mergen(load_to_change(t), key, value);
    tell(t, STOCK_MERGE, key, value);
}

void apr_table_add(apr_table_t *t, const char *key, const char *value)
{
    own_table_add(load_to_change(t), key, value);
    tell(t, STOCK_ADD, key, value);
}

void apr_table_addn(apr_table_t *t, const char *key, const char *value)
{
    own_table_addn(load_to_change(t), key, value);
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
    own_table_compress(load_to_change(t), flags);
    tell_all(t);
}

void apr_table_overlap(apr_table_t *t, const apr_table_t *more, unsigned flags)
{
    own_table_overlap(load_to_change(t), load(more), flags);
    tell_all(t);
}
