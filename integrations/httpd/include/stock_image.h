/* stock_image.h - requests, as all fenced modules of a process see them: in memory that the server writes and they read.
 *
 * The memory has the same offset in the windows of all modules, and what points into it is such an offset; 0 is NULL. Each request has a
 * slot. What is written stays as long as the request: what changes is written anew, and the old bytes lie where they were. */
#ifndef STOCK_IMAGE_H
#define STOCK_IMAGE_H

#include "stock.h"

enum { STOCK_SLOTS = 512, STOCK_SLOT_SIZE = 16384, STOCK_BLOCK = 65536, STOCK_BLOCKS = 768 /* behind the slots, for large requests */ };

/* Words of 4 bytes of a request that a hook has looked at, as bits. */
enum { STOCK_LOOKED = 4 };
_Static_assert(sizeof(request_rec) <= STOCK_LOOKED * 64 * 4, "each word has a bit");

typedef struct stock_image_text {
    uint32_t at, length;
} stock_image_text;

/* A table lies here as APR has one, so that a module reads it without making one of its own: entries are apr_table_entry_t, whose texts are
 * offsets. */
typedef struct stock_image_table {
    uint32_t version; /* another one after each change; 0: the request has no such table */
    uint32_t count, entries;
    uint32_t empty; /* there is an empty text among the values */
} stock_image_table;

/* APR's index of a table: the first and the last entry of those whose names have these lowest bits, where there are any. */
enum { STOCK_INDEX = 32 };
typedef struct stock_image_index {
    uint32_t known;
    int first[STOCK_INDEX], last[STOCK_INDEX];
} stock_image_index;

typedef struct stock_image {
    uint64_t number;   /* the server's for the request; 0: the slot is free */
    uint64_t version;  /* another one after each change of what follows, but for tables */
    uint32_t links[3]; /* main, prev, next: their slots, plus 1 */
    uint32_t server;
    request_rec r; /* its numbers, and texts that are not changed in place, as offsets */
    stock_image_text texts[STOCK_TEXT_COUNT];
    uint32_t place, place_size; /* those that are changed in place lie side by side: where, and how many bytes they are */
    uint32_t said[STOCK_TEXT_KINDS]; /* texts that the server has been asked for; 0: ask */
    stock_image_table tables[STOCK_TABLES];
    uint32_t languages, language_count; /* of uint32_t, each a text; the count plus 1, 0: NULL */
    int64_t connection;
    uint32_t keepalive, keepalives, aborted, client_ip, local_ip, log_id; /* the last three are texts */
    apr_sockaddr_t client, local, agent; /* family 0: there is none */
    stock_image_index indexes[STOCK_TABLES]; /* of tables that have a version */
} stock_image;
_Static_assert(sizeof(stock_image) < STOCK_SLOT_SIZE / 4, "most of a slot is for texts");

/* What a module's library and the server's module have to agree on, told when the module is opened. The names of all lists are in it, so each
 * change of these makes another number. Whoever changes what a message or a field means, under the same names, changes STOCK_LAYOUT. */
enum { STOCK_LAYOUT = 4 };

static inline uint64_t stock_layout(void) {
#define STOCK_NAME_(name) #name " "
#define STOCK_FIRST_NAME_(name, changes) #name " "
    static const char names[] =
        STOCK_PLAIN_OPS(STOCK_NAME_) "/" STOCK_SYNCED_OPS(STOCK_NAME_) "/" STOCK_REQUEST_HOOKS(STOCK_FIRST_NAME_)
        STOCK_ACCESS_HOOKS(STOCK_FIRST_NAME_) STOCK_VOID_HOOKS(STOCK_FIRST_NAME_) STOCK_TEXT_HOOKS(STOCK_FIRST_NAME_)
        STOCK_SERVER_HOOKS(STOCK_FIRST_NAME_) "/" STOCK_TEXTS_IN_PLACE(STOCK_FIRST_NAME_) "/" STOCK_TEXTS_CONSTANT(STOCK_FIRST_NAME_) "/"
        STOCK_NUMBERS(STOCK_FIRST_NAME_) "/" STOCK_TABLE_LIST(STOCK_NAME_);
    const uint64_t counts[] = { STOCK_LAYOUT, sizeof(stock_image), STOCK_SLOTS, STOCK_SLOT_SIZE, STOCK_BLOCK, STOCK_BLOCKS, STOCK_IMAGES,
                                STOCK_CONFIGS, STOCK_PROVIDES, STOCK_TEXT_KINDS, STOCK_SERVER_VARIABLE, STOCK_REMOVE_FILTER, STOCK_BUCKET_BYTES };
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

    for (size_t i = 0; i < sizeof names; i++)
        hash = (hash ^ (unsigned char)names[i]) * 0x100000001b3;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        hash = (hash ^ counts[i]) * 0x100000001b3;
    return hash;
}

#define STOCK_COPY_NUMBER_(name, changes) to->name = from->name;

/* The numbers of a request. */
static inline void stock_copy_numbers(request_rec *to, const request_rec *from) {
    STOCK_NUMBERS(STOCK_COPY_NUMBER_)
}

#endif
