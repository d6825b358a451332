/* Images of requests: what the fenced modules of this process read of them (include/stock_image.h). */
#include "stock.h"

#include "http_vhost.h"

enum { AHEAD = 8 /* entries of a table that are looked through for one that has been written */ };

static struct {
    rf_region *region;
    char *view;        /* the server's own */
    apr_uint32_t base; /* the offset in windows */
    pthread_mutex_t lock; /* of what follows */
    apr_uint32_t slots[STOCK_SLOTS];
    unsigned free_slots;
    unsigned char taken[STOCK_BLOCKS];
} images = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const stock_field texts[] = { STOCK_TEXTS(STOCK_FIELD_) };

/* In a new process of the server, before the modules' state is kept that resets return to. */
apr_status_t mf_stock_images_make(server_rec *s)
{
    apr_uint64_t size = (apr_uint64_t)STOCK_SLOTS * STOCK_SLOT_SIZE + (apr_uint64_t)STOCK_BLOCKS * STOCK_BLOCK;

    if (rf_region_create(size, NULL, &images.region) != RF_OK || !(images.view = rf_region_host_address(images.region))) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s, "fenced modules: no memory for requests: %s", rf_error()->message);
        rf_error_clear();
        return APR_EGENERAL;
    }
    for (unsigned i = 0; i < STOCK_SLOTS; i++)
        images.slots[i] = STOCK_SLOTS - 1 - i;
    images.free_slots = STOCK_SLOTS;
    return APR_SUCCESS;
}

/* Where the module will find them; 0 on failure. */
apr_uint64_t mf_stock_images_address(const mf_stock *m)
{
    apr_uint64_t address = (apr_uint64_t)(apr_uintptr_t)rf_region_address(images.region, m->domain);

    images.base = (apr_uint32_t)address;
    return address;
}

int mf_stock_images_give(const mf_stock *m)
{
    return rf_region_give(images.region, NULL, m->domain, RF_RIGHTS_READ) == RF_OK;
}

/* ------------------------------------------------------------------------------------------------------------------- room */

static int take_slot(mf_stock_request *q)
{
    int good;

    pthread_mutex_lock(&images.lock);
    good = images.free_slots > 0;
    if (good)
        q->slot = images.slots[--images.free_slots];
    pthread_mutex_unlock(&images.lock);
    if (!good)
        return 0;
    q->image = (stock_image *)(void *)(images.view + (apr_size_t)q->slot * STOCK_SLOT_SIZE);
    memset(q->image, 0, offsetof(stock_image, indexes));
    q->image->number = q->number;
    q->room = (char *)(q->image + 1);
    q->end = (char *)q->image + STOCK_SLOT_SIZE;
    return 1;
}

/* Blocks behind the slots, side by side. */
static int take_blocks(mf_stock_request *q, apr_size_t size)
{
    unsigned wanted = (unsigned)((size + STOCK_BLOCK - 1) / STOCK_BLOCK), first = 0, found = 0;

    if (size > (apr_size_t)STOCK_BLOCK * STOCK_BLOCKS || q->piece_count == MF_STOCK_PIECES)
        return 0;
    pthread_mutex_lock(&images.lock);
    for (unsigned i = 0; i < STOCK_BLOCKS && found < wanted; i++) {
        found = images.taken[i] ? 0 : found + 1;
        first = i + 1 - found;
    }
    if (found == wanted)
        memset(images.taken + first, 1, wanted);
    pthread_mutex_unlock(&images.lock);
    if (found != wanted)
        return 0;
    q->pieces[q->piece_count++] = (mf_stock_piece){ first, wanted };
    q->room = images.view + (apr_size_t)STOCK_SLOTS * STOCK_SLOT_SIZE + (apr_size_t)first * STOCK_BLOCK;
    q->end = q->room + (apr_size_t)wanted * STOCK_BLOCK;
    return 1;
}

/* The request is over. */
void mf_stock_image_end(mf_stock_request *q)
{
    if (!q->image)
        return;
    q->image->number = 0;
    q->image = NULL;
    pthread_mutex_lock(&images.lock);
    for (unsigned i = 0; i < q->piece_count; i++)
        memset(images.taken + q->pieces[i].first, 0, q->pieces[i].count);
    images.slots[images.free_slots++] = q->slot;
    pthread_mutex_unlock(&images.lock);
}

/* `size` bytes that stay; NULL: there is no room, and the image is of no use. */
static char *room(mf_stock_request *q, apr_size_t size)
{
    char *at;

    size = (size + 7) & ~(apr_size_t)7;
    if (size > (apr_size_t)(q->end - q->room) && !take_blocks(q, size)) {
        q->full = 1;
        return NULL;
    }
    at = q->room;
    q->room += size;
    return at;
}

static apr_uint32_t offset(const char *at)
{
    return images.base + (apr_uint32_t)(at - images.view);
}

static const char *written(apr_uint32_t at)
{
    return images.view + (at - images.base);
}

static stock_image_text write_text(mf_stock_request *q, const char *text)
{
    apr_size_t length = text ? strlen(text) : 0;
    char *at = text && length < STOCK_LARGEST ? room(q, length + 1) : NULL;

    if (!at) {
        q->full |= text != NULL;
        return (stock_image_text){ 0, 0 };
    }
    memcpy(at, text, length + 1);
    return (stock_image_text){ offset(at), (apr_uint32_t)length };
}

/* ----------------------------------------------------------------------------------------------------------------- writing */

static int is_written(stock_image_text t, const char *text)
{
    return text ? t.at && strcmp(written(t.at), text) == 0 : !t.at;
}

/* Of those that are changed where they are, whether any has: then all are written anew, side by side. A text that lies where it lay
 * has room for as much. */
static int write_texts_in_place(mf_stock_request *q)
{
    stock_image_text *to = q->image->texts;
    apr_size_t lengths[STOCK_IN_PLACE_COUNT], size = 0;
    int changed = 0;
    char *at;

    for (int i = 0; i < STOCK_IN_PLACE_COUNT; i++) {
        const char *now = *stock_text_of(q->r, &texts[i]);

        if (now != q->texts[i])
            changed |= !is_written(to[i], now);
        else if (now)
            changed |= !to[i].at || memcmp(written(to[i].at), now, (apr_size_t)to[i].length + 1) != 0;
        q->texts[i] = now;
    }
    if (!changed)
        return 0;
    for (int i = 0; i < STOCK_IN_PLACE_COUNT; i++)
        size += lengths[i] = q->texts[i] ? strlen(q->texts[i]) + 1 : 0;
    at = size < STOCK_LARGEST ? room(q, size) : NULL;
    if (!at) {
        q->full = 1;
        return 1;
    }
    q->image->place = offset(at);
    q->image->place_size = (apr_uint32_t)size;
    for (int i = 0; i < STOCK_IN_PLACE_COUNT; i++) {
        to[i] = lengths[i] ? (stock_image_text){ offset(at), (apr_uint32_t)lengths[i] - 1 } : (stock_image_text){ 0, 0 };
        if (lengths[i])
            memcpy(at, q->texts[i], lengths[i]);
        at += lengths[i];
    }
    return 1;
}

/* Of the others, those that are new. */
static int write_other_texts(mf_stock_request *q)
{
    int changed = 0;

    for (int i = STOCK_IN_PLACE_COUNT; i < STOCK_TEXT_COUNT; i++) {
        const char *now = *stock_text_of(q->r, &texts[i]);

        if (now == q->texts[i])
            continue;
        q->texts[i] = now;
        if (is_written(q->image->texts[i], now))
            continue;
        q->image->texts[i] = write_text(q, now);
        changed = 1;
    }
    return changed;
}

/* Behind the texts: their places stand in it. */
static int write_numbers(mf_stock_request *q)
{
    request_rec numbers = { 0 };

    stock_copy_numbers(&numbers, q->r);
    /* Without a file, what is known of files has never been set: a module must not see what lies there. */
    if (q->r->finfo.filetype == APR_NOFILE)
        memset(&numbers.finfo, 0, sizeof numbers.finfo);
    for (int i = STOCK_IN_PLACE_COUNT; i < STOCK_TEXT_COUNT; i++)
        *stock_text_of(&numbers, &texts[i]) = (char *)(apr_uintptr_t)q->image->texts[i].at;
    if (memcmp(&numbers, &q->image->r, sizeof numbers) == 0)
        return 0;
    q->image->r = numbers;
    return 1;
}

static int write_languages(mf_stock_request *q)
{
    const apr_array_header_t *now = q->r->content_languages;
    apr_uint32_t *all;

    if (now == q->languages && (!now || now->nelts == q->language_count))
        return 0;
    q->languages = now;
    q->language_count = now ? now->nelts : 0;
    q->image->language_count = now ? (apr_uint32_t)now->nelts + 1 : 0;
    if (!now || !(all = (apr_uint32_t *)(void *)room(q, (apr_size_t)now->nelts * sizeof *all)))
        return 1;
    q->image->languages = offset((char *)all);
    for (int i = 0; i < now->nelts; i++)
        all[i] = write_text(q, APR_ARRAY_IDX(now, i, const char *)).at;
    return 1;
}

static apr_uint32_t link_of(request_rec *r)
{
    mf_stock_request *q = r ? mf_stock_request_of(r) : NULL;

    return q && q->image ? q->slot + 1 : 0;
}

static int write_links(mf_stock_request *q)
{
    const conn_rec *c = q->r->connection;
    stock_image *to = q->image;
    apr_uint32_t now[] = { link_of(q->r->main), link_of(q->r->prev), link_of(q->r->next) };

    if (memcmp(to->links, now, sizeof now) == 0 && to->server == mf_stock_server_number(q->r->server) &&
        to->keepalive == (apr_uint32_t)c->keepalive && to->keepalives == (apr_uint32_t)c->keepalives && to->aborted == c->aborted)
        return 0;
    memcpy(to->links, now, sizeof now);
    to->server = mf_stock_server_number(q->r->server);
    to->keepalive = (apr_uint32_t)c->keepalive;
    to->keepalives = (apr_uint32_t)c->keepalives;
    to->aborted = c->aborted;
    return 1;
}

static void write_address(apr_sockaddr_t *to, const apr_sockaddr_t *a)
{
    char *at = (char *)&to->sa;

    memset(to, 0, sizeof *to);
    if (!a || (a->family != APR_INET && a->family != APR_INET6))
        return;
    to->family = a->family;
    to->port = a->port;
    to->salen = a->salen;
    to->ipaddr_len = a->ipaddr_len;
    to->addr_str_len = a->addr_str_len;
    if (a->family == APR_INET) {
        to->sa.sin = a->sa.sin;
        at = (char *)&to->sa.sin.sin_addr;
    } else {
        to->sa.sin6 = a->sa.sin6;
        at = (char *)&to->sa.sin6.sin6_addr;
    }
    to->ipaddr_ptr = (void *)(apr_uintptr_t)offset(at);
}

static void write_connection(mf_stock_request *q)
{
    const conn_rec *c = q->r->connection;
    stock_image *to = q->image;

    to->connection = c->id;
    to->client_ip = write_text(q, c->client_ip).at;
    to->local_ip = write_text(q, c->local_ip).at;
    to->log_id = write_text(q, c->log_id).at;
    write_address(&to->client, c->client_addr);
    write_address(&to->local, c->local_addr);
}

/* An array of texts, as modules know it. */
static apr_uint32_t write_array(mf_stock_request *q, const apr_array_header_t *all)
{
    apr_array_header_t *to = (apr_array_header_t *)(void *)room(q, sizeof *to);
    apr_uint64_t *elements = (apr_uint64_t *)(void *)room(q, (apr_size_t)all->nelts * sizeof *elements);

    if (!to || !elements)
        return 0;
    *to = (apr_array_header_t){ NULL, sizeof(char *), all->nelts, all->nelts, (char *)(apr_uintptr_t)offset((char *)elements) };
    for (int i = 0; i < all->nelts; i++)
        elements[i] = write_text(q, APR_ARRAY_IDX(all, i, const char *)).at;
    return offset((char *)to);
}

/* Entries that have been written are found again by their addresses, a little further on than the last one. */
static void write_table(mf_stock_request *q, int which, apr_table_t **table)
{
    const apr_array_header_t *all = apr_table_elts(*table);
    stock_image_table *to = &q->image->tables[which];
    stock_image_index *index = &q->image->indexes[which];
    mf_stock_written *before = q->tables[which].written, *now;
    int count = 0, cursor = 0;
    apr_table_entry_t *entries;

    entries = (apr_table_entry_t *)(void *)room(q, (apr_size_t)all->nelts * sizeof *entries);
    if (!entries)
        return;
    index->known = to->empty = 0;
    now = q->tables[which].written = apr_palloc(q->r->pool, (apr_size_t)all->nelts * sizeof *now);
    for (int i = 0; i < all->nelts; i++) {
        const apr_table_entry_t *e = &APR_ARRAY_IDX(all, i, apr_table_entry_t);
        unsigned bits = *(const unsigned char *)e->key % STOCK_INDEX;
        int k = cursor;
        int list = mf_stock_is_list(q->r, table, e->key);

        if (!list && !mf_stock_is_shared(q->r, table, e->key))
            continue;
        while (k < q->tables[which].written_count && k < cursor + AHEAD && (before[k].key != e->key || before[k].value != e->val))
            k++;
        if (k < q->tables[which].written_count && k < cursor + AHEAD) {
            now[count] = before[k];
            cursor = k + 1;
        } else {
            apr_uint32_t key = write_text(q, e->key).at;
            apr_uint32_t value = list ? write_array(q, (const apr_array_header_t *)(const void *)e->val) : write_text(q, e->val).at;

            now[count] = (mf_stock_written){ e->key, e->val, { 0 } };
            now[count].at = (apr_table_entry_t){ (char *)(apr_uintptr_t)key, (char *)(apr_uintptr_t)value, e->key_checksum };
        }
        entries[count] = now[count].at;
        to->empty |= !list && !*e->val;
        if (!(index->known >> bits & 1))
            index->first[bits] = count;
        index->last[bits] = count;
        index->known |= 1u << bits;
        count++;
    }
    q->tables[which].written_count = count;
    to->entries = offset((char *)entries);
    to->count = (apr_uint32_t)count;
    to->version++;
}

/* Entries are the same if they lie in the same order at the same addresses: who changes a table gives it other ones. */
static void write_tables(mf_stock_request *q, unsigned stale)
{
    for (; stale; stale &= stale - 1) {
        int i = __builtin_ctz(stale);
        apr_table_t **table = mf_stock_table_of(q->r, (apr_uint64_t)i);
        mf_stock_table *t = &q->tables[i];
        const apr_array_header_t *all;
        apr_size_t size;

        if (!table)
            continue;
        if (*table != t->table) {
            t->table = *table;
            t->all = apr_table_elts(*table);
        }
        all = t->all;
        size = (apr_size_t)all->nelts * sizeof(apr_table_entry_t);
        if (q->image->tables[i].version && all->nelts == t->count && (!size || memcmp(t->entries, all->elts, size) == 0))
            continue;
        if (all->nelts > t->room || !t->entries) {
            t->room = all->nelts > 8 ? 2 * all->nelts : 16;
            t->entries = apr_palloc(q->r->pool, (apr_size_t)t->room * sizeof(apr_table_entry_t));
        }
        memcpy(t->entries, all->elts, size);
        t->count = all->nelts;
        write_table(q, i, table);
    }
}

/* ------------------------------------------------------------------------------------------- what the server is asked for */

/* Texts that modules of this process have asked for, as bits. */
static unsigned asked;

void mf_stock_image_asked(stock_text which)
{
    if ((unsigned)which < STOCK_TEXT_KINDS && STOCK_TEXTS_SAID >> which & 1)
        __atomic_fetch_or(&asked, 1u << which, __ATOMIC_RELAXED);
}

static const char *say(request_rec *r, stock_text which)
{
    switch (which) {
    case STOCK_TEXT_SERVER_NAME: return ap_get_server_name(r);
    case STOCK_TEXT_URL_NAME: return ap_get_server_name_for_url(r);
    case STOCK_TEXT_SCHEME: return ap_run_http_scheme(r);
    case STOCK_TEXT_PORT: return apr_itoa(r->pool, ap_get_server_port(r));
    case STOCK_TEXT_DEFAULT_PORT: return apr_itoa(r->pool, ap_run_default_port(r));
    default: return NULL;
    }
}

/* They are written before anybody asks, since a question costs more than all of them. */
static void write_said(mf_stock_request *q)
{
    request_rec *r = q->r;
    const void *hang[] = { r->server, r->per_dir_config, r->hostname, r->parsed_uri.hostname, r->parsed_uri.port_str };
    unsigned now = __atomic_load_n(&asked, __ATOMIC_RELAXED);

    if (now == q->said && memcmp(hang, q->said_for, sizeof hang) == 0)
        return;
    _Static_assert(sizeof hang == sizeof q->said_for, "all are compared");
    memcpy(q->said_for, hang, sizeof hang);
    q->said = now;
    for (unsigned i = 0; now >> i; i++) {
        const char *text = now >> i & 1 ? say(r, (stock_text)i) : NULL;
        apr_uint32_t *to = &q->image->said[i];

        if (!text || !*to || strcmp(written(*to), text) != 0)
            *to = text ? write_text(q, text).at : 0;
    }
}

/* Whether any of what stands in request_rec has changed. */
static int write_fields(mf_stock_request *q, int fresh)
{
    const request_rec *r = q->r;
    int changed = 0;

    if (fresh || memcmp(&q->last, r, sizeof *r) != 0) {
        if (fresh || r->useragent_addr != q->last.useragent_addr) {
            write_address(&q->image->agent, r->useragent_addr);
            changed = 1;
        }
        changed |= write_other_texts(q);
        changed |= write_numbers(q) | write_languages(q);
        q->last = *r;
    }
    return changed | write_texts_in_place(q);
}

/* Brings the image of a request to what the request is now, where that may have changed. 0: there is no room for it. */
int mf_stock_image_update_stale(mf_stock_request *q)
{
    int fresh = !q->image, changed = fresh;

    if (fresh && !take_slot(q))
        return 0;
    if (q->stale == MF_STOCK_ALL) {
        changed |= write_links(q);
        if (fresh)
            write_connection(q);
    }
    if (q->stale & MF_STOCK_FIELDS)
        changed |= write_fields(q, fresh);
    if (q->stale)
        write_tables(q, q->stale & (MF_STOCK_FIELDS - 1));
    if (q->stale & MF_STOCK_FIELDS)
        write_said(q);
    if (changed)
        q->image->version++;
    q->stale = q->full ? MF_STOCK_ALL : 0;
    return !q->full;
}

/* The same, whatever has run since. */
int mf_stock_image_update(mf_stock_request *q)
{
    q->stale = MF_STOCK_ALL;
    return mf_stock_image_update_stale(q);
}
