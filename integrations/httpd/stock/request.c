/* Twins: the module's own copies of requests. What the server has changed since the module saw one last is in the request's image; changes
 * that the module makes go to the server when the module returns, and with the questions that see them. */
#include "inside.h"

static twin twins[STOCK_SLOTS];
const char *stock_images;
static core_dir_config core_dir; /* what a module sees that looks at the core's configuration: nothing set */
static const stock_field texts[] = { STOCK_TEXTS(STOCK_FIELD_) };
static const stock_field numbers[] = { STOCK_NUMBERS(STOCK_FIELD_) };

#define PLACE(name) &t->r.name,

/* In place of where the server has a text: the module has told it. */
#define TOLD (~(uint32_t)0)

size_t stock_twin_index(const twin *t)
{
    return (size_t)(t - twins);
}

twin *stock_twin_at(size_t index)
{
    return &twins[index];
}

twin *stock_twin_of(const request_rec *r)
{
    const char *at = (const char *)r;
    size_t offset = (size_t)(at - (const char *)twins);

    if (at < (const char *)twins || offset >= sizeof twins || offset % sizeof *twins)
        return NULL;
    return &twins[offset / sizeof *twins];
}

int stock_in_twins(const void *at)
{
    return (size_t)((const char *)at - (const char *)twins) < sizeof twins;
}

uint64_t stock_number(const request_rec *r)
{
    const twin *t = stock_twin_of(r);

    return t ? t->number : 0;
}

static const stock_image *image_of(size_t slot)
{
    return (const stock_image *)(const void *)(stock_images + slot * STOCK_SLOT_SIZE);
}

const stock_image *stock_image_of(const twin *t)
{
    return image_of(stock_twin_index(t));
}

/* What an image has at an offset. */
const char *stock_at(uint32_t offset)
{
    return offset ? stock_images + (uint32_t)(offset - (uint32_t)(uintptr_t)stock_images) : NULL;
}

/* Ends what the module has of the slot's last request. */
static void clear(twin *t)
{
    t->number = 0;
    if (!t->pool) {
        if (apr_pool_create_unmanaged_ex(&t->pool, NULL, NULL) != APR_SUCCESS)
            abort();
        apr_pool_tag(t->pool, stock_request_tag);
    }
    if (t->used)
        apr_pool_clear(t->pool);
    t->used = 0;
    if (t->change_count)
        stock_pack_end(t->changes);
    t->change_count = 0;
}

static apr_sockaddr_t *address(const apr_sockaddr_t *a)
{
    return a->family ? (apr_sockaddr_t *)(uintptr_t)a : NULL;
}

/* What it will take over of the image besides is what may change, and what is the module's own. */
OFTEN static void begin(twin *t, const stock_image *i)
{
    if (!t->pool || t->used || t->change_count)
        clear(t);
    t->number = 0;
    t->r = i->r;
    memset(&t->c, 0, sizeof t->c);
    memset(t->texts, 0, STOCK_IN_PLACE_COUNT * sizeof *t->texts);
    memcpy(t->texts + STOCK_IN_PLACE_COUNT, i->texts + STOCK_IN_PLACE_COUNT, (STOCK_TEXT_COUNT - STOCK_IN_PLACE_COUNT) * sizeof *t->texts);
    memset(t->loaded, 0, sizeof t->loaded);
    t->request_config[OWN] = t->conn_config[OWN] = NULL;
    t->copies = NULL;
    t->was = NULL;
    t->copied = t->place = t->languages_at = t->made = t->own = 0;
    t->language_count = -1;
    t->r.pool = t->c.pool = t->pool;
    t->r.connection = &t->c;
    t->dir_config[0] = &core_dir;
    t->r.per_dir_config = (ap_conf_vector_t *)t->dir_config;
    t->r.request_config = (ap_conf_vector_t *)t->request_config;
    t->c.conn_config = (ap_conf_vector_t *)t->conn_config;
    t->c.notes = stock_table_at(stock_twin_index(t), STOCK_TABLES);
    t->core_filter.frec = ap_subreq_core_filter_handle;
    t->r.output_filters = t->r.proto_output_filters = &t->core_filter;
    t->r.log = t->c.log = &t->log;
    t->c.bucket_alloc = &stock_bucket_alloc;
    t->c.id = (long)i->connection;
    t->c.client_ip = (char *)(uintptr_t)stock_at(i->client_ip);
    t->c.local_ip = (char *)(uintptr_t)stock_at(i->local_ip);
    t->c.log_id = stock_at(i->log_id);
    t->c.client_addr = address(&i->client);
    t->c.local_addr = address(&i->local);
    t->number = i->number;
    t->version = 0;
}

static int is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* They get memory of the module's; one look at all of it tells whether they were changed. What is equal stays where it is: the module
 * may hold its address. */
OFTEN static void take_texts_in_place(twin *t, const stock_image *i)
{
    const char *from = stock_at(i->place);

    if (t->copies && t->place == i->place)
        return;
    t->place = i->place;
    t->copied = i->place_size;
    t->elsewhere = 0;
    t->copies = !t->copies && t->copied <= TEXTS ? t->first : apr_palloc(t->pool, 2 * (apr_size_t)t->copied + 1);
    t->used |= t->copies != t->first;
    t->was = from;
    memcpy(t->copies, from, t->copied);
    for (int k = 0; k < STOCK_IN_PLACE_COUNT; k++) {
        char **place = stock_text_of(&t->r, &texts[k]), *copy = t->copies + (i->texts[k].at - i->place);

        t->texts[k] = i->texts[k];
        if (!t->texts[k].at)
            *place = NULL;
        else if (*place && strcmp(*place, copy) == 0)
            t->elsewhere = 1;
        else
            *place = copy;
    }
}

/* Others are read where the server has written them. Their addresses are those of the image, offsets: windows begin where the lower half of
 * addresses is 0. */
OFTEN static void take_other_texts(twin *t, const stock_image *i)
{
    for (int k = STOCK_IN_PLACE_COUNT; k < STOCK_TEXT_COUNT; k++)
        if (t->texts[k].at != i->texts[k].at) {
            t->texts[k] = i->texts[k];
            *stock_text_of(&t->r, &texts[k]) = (char *)(uintptr_t)t->texts[k].at;
        }
}

static void take_languages(twin *t, const stock_image *i)
{
    const uint32_t *all = (const uint32_t *)(const void *)stock_at(i->languages);

    t->used = 1;
    t->r.content_languages = i->language_count ? apr_array_make(t->pool, 2, sizeof(char *)) : NULL;
    for (uint32_t k = 1; k < i->language_count; k++)
        APR_ARRAY_PUSH(t->r.content_languages, const char *) = stock_at(all[k - 1]);
    t->languages_at = i->languages;
    t->language_count = (int)i->language_count - 1;
}

OFTEN static void take(twin *t, const stock_image *i)
{
    if (t->version) {
        stock_copy_numbers(&t->r, &i->r);
        take_other_texts(t, i);
    }
    t->version = i->version;
    t->r.server = t->c.base_server = stock_server(i->server);
    t->c.keepalive = (ap_conn_keepalive_e)i->keepalive;
    t->c.keepalives = (int)i->keepalives;
    t->c.aborted = i->aborted;
    t->r.useragent_addr = address(&i->agent);
    take_texts_in_place(t, i);
    if (i->languages != t->languages_at || (int)i->language_count - 1 != t->language_count)
        take_languages(t, i);
    stock_place_tables(t, i);
}

/* The request in a slot, as the server has it now. */
OFTEN twin *stock_take_request(uint64_t slot, void *record, int level)
{
    const stock_image *i = image_of(slot);
    twin *t = &twins[slot];

    if (slot >= STOCK_SLOTS)
        abort();
    if (t->number != i->number)
        begin(t, i);
    t->dir_config[OWN] = record;
    t->log.level = level;
    if (t->version != i->version) {
        take(t, i);
        t->taken = t->r;
    }
    return t;
}

static void see(twin *t)
{
    entry *e = stock_entry;

    for (int i = 0; e && i < e->seen_count; i++)
        if (e->seen[i] == t)
            return;
    if (e && e->seen_count < SEEN)
        e->seen[e->seen_count++] = t;
}

/* Takes what the server says of requests. The first one's twin; NULL: there was none. */
twin *stock_take_requests(stock_unpack *u)
{
    uint64_t count = stock_get(u);
    twin *all[STOCK_LINKS];

    if (count > STOCK_LINKS)
        abort();
    for (uint64_t k = 0; k < count; k++) {
        uint64_t slot = stock_get(u), record = stock_get(u);

        all[k] = stock_take_request(slot, (void *)(uintptr_t)record, (int)stock_get(u));
        see(all[k]);
    }
    for (uint64_t k = 0; k < count; k++) {
        request_rec **places[] = { &all[k]->r.main, &all[k]->r.prev, &all[k]->r.next };

        for (int n = 0; n < 3; n++) {
            *places[n] = NULL;
            for (uint64_t m = 0; m < count; m++)
                if (stock_image_of(all[k])->links[n] == stock_twin_index(all[m]) + 1)
                    *places[n] = &all[m]->r;
        }
        all[k]->taken.main = all[k]->r.main;
        all[k]->taken.prev = all[k]->r.prev;
        all[k]->taken.next = all[k]->r.next;
    }
    return count ? all[0] : NULL;
}

/* The server's request is gone. */
void stock_end_request(uint64_t slot)
{
    if (slot >= STOCK_SLOTS)
        abort();
    clear(&twins[slot]);
}

/* What the server wants to know besides, when a call ends. */
OFTEN uint64_t stock_flags(const entry *e)
{
    uint64_t flags = stock_remembers ? STOCK_REMEMBERS : 0;

    if (!e->allocates)
        return flags;
    e->t->used = 1;
    return flags | (stock_pool_matters(e->t->pool) ? STOCK_POOL_HELD : 0);
}

/* ---------------------------------------------------------------------------------------------------------------- changes */

/* memcmp is on another page. */
OFTEN static inline int differ(const void *a, const void *b, size_t size)
{
    typedef uint64_t two __attribute__((vector_size(16), aligned(1), may_alias));
    const char *one = a, *other = b;
    two d0 = { 0, 0 }, d1 = d0, d2 = d0, d3 = d0;
    uint64_t all;

    for (; size >= 64; size -= 64, one += 64, other += 64) {
        const two *x = (const two *)(const void *)one, *y = (const two *)(const void *)other;

        d0 |= x[0] ^ y[0];
        d1 |= x[1] ^ y[1];
        d2 |= x[2] ^ y[2];
        d3 |= x[3] ^ y[3];
    }
    for (; size >= 16; size -= 16, one += 16, other += 16)
        d0 |= *(const two *)(const void *)one ^ *(const two *)(const void *)other;
    d0 |= d1 | d2 | d3;
    all = d0[0] | d0[1];
    for (; size; size--)
        all |= (uint64_t)(*one++ ^ *other++);
    return all != 0;
}

/* Whether a text is another one than the server has. One that was told in this call may have been changed since, or not taken over. */
static int has_changed(twin *t, int k)
{
    const char *now = *stock_text_of(&t->r, &texts[k]);

    return t->texts[k].at == TOLD || ((uint32_t)(uintptr_t)now != t->texts[k].at && !is_same(now, stock_at(t->texts[k].at)));
}

OFTEN static int texts_have_changed(twin *t)
{
    for (int k = 0; k < STOCK_IN_PLACE_COUNT; k++)
        if (has_changed(t, k))
            return 1;
    return 0;
}

static OFTEN int fields_have_changed(twin *t)
{
    return differ(&t->r, &t->taken, sizeof t->r) || differ(t->copies, t->was, t->copied) ||
           (t->elsewhere && texts_have_changed(t)) || (t->r.content_languages && t->r.content_languages->nelts != t->language_count);
}

/* Whether the module has changed anything since it was last told or has told. */
OFTEN int stock_has_changed(twin *t)
{
    return t->change_count || fields_have_changed(t);
}

/* The same for one that is no other than it was when the server was told last. */
static int may_have_changed(twin *t, int k)
{
    return k < STOCK_IN_PLACE_COUNT || t->texts[k].at == TOLD || *stock_text_of(&t->r, &texts[k]) != *stock_text_of(&t->taken, &texts[k]);
}

#define CHANGED(name, changes) changed |= (uint64_t)(t->r.name != t->taken.name) << i++;

static void tell_numbers(stock_pack *p, const twin *t)
{
    uint64_t changed = 0;
    int i = 0;

    STOCK_NUMBERS(CHANGED)
    stock_put(p, changed);
    for (; changed; changed &= changed - 1)
        stock_put(p, stock_number_of(&t->r, &numbers[__builtin_ctzll(changed)]));
}

static void tell_texts(stock_pack *p, twin *t)
{
    uint64_t changed = 0;

    for (int i = 0; i < STOCK_TEXT_COUNT; i++)
        if (may_have_changed(t, i) && has_changed(t, i))
            changed |= (uint64_t)1 << i;
    if (t->r.content_languages != t->taken.content_languages ||
        (t->r.content_languages && t->r.content_languages->nelts != t->language_count))
        changed |= STOCK_LANGUAGES_CHANGED;
    stock_put(p, changed);
    for (uint64_t left = changed & ~STOCK_LANGUAGES_CHANGED; left; left &= left - 1) {
        int i = __builtin_ctzll(left);

        stock_put_text(p, *stock_text_of(&t->r, &texts[i]));
        t->texts[i].at = TOLD; /* whatever the server makes of it is new */
        if (i < STOCK_IN_PLACE_COUNT) {
            t->elsewhere = 1;
            t->place = TOLD;
        }
    }
    if (changed & STOCK_LANGUAGES_CHANGED) {
        const apr_array_header_t *all = t->r.content_languages;

        t->language_count = all ? all->nelts : -1;
        stock_put(p, (uint64_t)(t->language_count + 1));
        for (int i = 0; i < t->language_count; i++)
            stock_put_text(p, APR_ARRAY_IDX(all, i, const char *));
        t->languages_at = ~(uint32_t)0;
    }
    if (differ(t->copies, t->was, t->copied)) {
        t->was = t->copies + t->copied;
        memcpy(t->copies + t->copied, t->copies, t->copied);
    }
}

/* Whether the module may change it: it is the request of the call, or one that this is within. */
int stock_is_own(const twin *t)
{
    const request_rec *r = t && stock_entry && stock_entry->t ? &stock_entry->t->r : NULL;

    while (r && r != &t->r)
        r = r->main;
    return r != NULL;
}

/* Notes a change for the server. */
void stock_note_change(twin *t, stock_change how, uint64_t which, const char *key, const char *value)
{
    twin *own;

    if (!stock_is_own(t))
        abort();
    own = stock_entry->t;
    if (!own->changes) {
        if (!(own->changes = malloc(sizeof *own->changes)))
            abort();
        stock_pack_begin(own->changes);
    }
    stock_put(own->changes, how);
    stock_put(own->changes, t->number);
    stock_put(own->changes, which);
    stock_put_text(own->changes, key);
    stock_put_text(own->changes, value);
    own->change_count++;
}

static void tell_noted_changes(stock_pack *p, twin *t)
{
    char *to;

    stock_put(p, t->change_count);
    if (!t->change_count)
        return;
    if (t->changes->failed)
        abort();
    to = stock_pack_room(p, t->changes->length);
    if (to)
        memcpy(to, t->changes->bytes, t->changes->length);
    stock_pack_end(t->changes);
    t->change_count = 0;
}

/* Tables that the module has put in the place of the server's. */
static void tell_tables(stock_pack *p, twin *t)
{
    size_t index = stock_twin_index(t);
    apr_table_t **places[] = { STOCK_TABLE_LIST(PLACE) };
    const stock_image *image = stock_image_of(t);
    uint64_t changed = 0;

    for (int i = 0; i < STOCK_TABLES; i++)
        if (*places[i] && *places[i] != stock_table_at(index, i) && image->tables[i].version)
            changed |= (uint64_t)1 << i;
    stock_put(p, changed);
    for (int i = 0; i < STOCK_TABLES; i++)
        if (changed >> i & 1) {
            const apr_array_header_t *all = apr_table_elts(*places[i]);

            stock_put(p, (uint64_t)all->nelts);
            for (int k = 0; k < all->nelts; k++) {
                stock_put_text(p, APR_ARRAY_IDX(all, k, apr_table_entry_t).key);
                stock_put_text(p, APR_ARRAY_IDX(all, k, apr_table_entry_t).val);
            }
            *places[i] = stock_table_at(index, i);
            t->loaded[i] = 0; /* it is loaded anew */
        }
}

/* What the module has changed since it was last told or has told. */
void stock_tell_changes(stock_pack *p)
{
    twin *t = stock_entry ? stock_entry->t : NULL;
    int fields;

    if (!t)
        abort();
    fields = fields_have_changed(t);
    stock_put(p, (uint64_t)fields);
    if (fields) {
        tell_numbers(p, t);
        tell_texts(p, t);
    }
    tell_noted_changes(p, t);
    if (fields) {
        tell_tables(p, t);
        t->taken = t->r;
    }
}
