/* Every kind of parameter, through a binding: kinds.h in a domain. */
#include "kinds_fenced.h"

#include "../api/check.h"
#include <setjmp.h>

static rf_status last;
static char message[256];

static void failed(const rf_error_info *error) {
    last = error->status;
    snprintf(message, sizeof message, "%s", error->message);
}

static int mark, seen;

static int visit(void *context, const char *name, const unsigned char *data, int length) {
    CHECK(context == &mark);
    if (length) {
        CHECK(strcmp(name, "one") == 0 && length == 3 && data[0] == 1 && data[2] == 255);
    } else {
        CHECK(data == NULL && strcmp(name, "ring") == 0);
    }
    return ++seen;
}

static int again(void *context, const char *name, const unsigned char *data, int length) {
    (void)name, (void)data, (void)length;
    return kinds_sum((int[]){ 20, 22 }, 2) + (context != NULL);
}

static double many(int a, double b, long c, float d, long e, long f, long g, long h, long i) {
    return a + 10 * b + 100.0 * (double)c + 1000 * (double)d + (double)(e + f + g + h + i);
}

static int words(void *context, int count, char **list) {
    (void)context;
    CHECK(count == 3 && strcmp(list[0], "some") == 0 && !list[1] && strcmp(list[2], "words") == 0);
    return 42;
}

static struct kinds_options *whose;
static int check_options(struct kinds_options *options, int value) {
    CHECK(options == whose && options->sum == 5 + 3 + 100 && options->color == KINDS_GREEN);
    CHECK(options->origin->x == 101);
    options->sum = 1000;
    return value * 2;
}

static jmp_buf away;
static int jump(void *context, const char *name, const unsigned char *data, int length) {
    (void)context, (void)name, (void)data, (void)length;
    longjmp(away, 1);
}

static void pointers(kinds *k) {
    int tens = 9, ones = 0, length = 0;
    CHECK(kinds_sum((int[]){ 1, 2, 39 }, 3) == 42);
    CHECK(kinds_sum(NULL, 0) == 0);
    CHECK(kinds_split(42, &tens, &ones) == 9 && tens == 4 && ones == 2);
    CHECK(kinds_split(57, &tens, NULL) == 4 && tens == 5);
    unsigned char buffer[5] = { 0 };
    CHECK(kinds_fill(buffer, 4, 'x') == 1 && memcmp(buffer, "xxxx", 5) == 0);
    const char *text = "a word", *place;
    CHECK(kinds_find(text, 'w', &place) == 1 && place == text + 2);
    CHECK(kinds_find(text, 'z', &place) == 0 && place == NULL);
    const char *bytes = kinds_bytes(k, &length);
    CHECK(length == 4 && memcmp(bytes, "ring", 4) == 0);
    char kept[] = "kept";
    kinds_keep(k, kept, 4);
    memset(kept, 0, sizeof kept);
    CHECK(kinds_kept(k, 3) == 't' && kinds_kept(k, 4) == -1);
    unsigned char rows[2][3], *list[2] = { rows[0], rows[1] };
    kinds_scale(list, 2, 3, 10);
    CHECK(rows[0][2] == 20 && rows[1][2] == 30);
    CHECK(kinds_mix(1.5f, 2.25, 3.0L, -4, 65000) == 65002.75f);
    CHECK(kinds_eight(1, 1, 1, 1, 1, 1, 1, 2) == 44);
    CHECK(kinds_twice(21) == 42);
}

static void texts(kinds *k) {
    const char *name = kinds_name(k);
    CHECK(strcmp(name, "ring") == 0 && kinds_name(k) == name && !rf_memory_contains(kinds_fence.state->domain, name, 1));
    int before = kinds_live();
    char *upper = kinds_upper(k, "ring");
    CHECK(strcmp(upper, "RING") == 0 && kinds_live() == before + 1);
    CHECK(strcmp(kinds_name(k), "RING") == 0);
    kinds_free(upper); /* its copy here stands for it */
    CHECK(kinds_live() == before);
    kinds_free(kinds_upper(k, "ring"));
    kinds *other = NULL;
    CHECK(kinds_make(&other) == 0 && strcmp(kinds_name(other), "made") == 0);
    kinds_destroy(other);
    last = RF_OK;
    CHECK(kinds_forged() == NULL && last == RF_ERROR_RANGE);
}

static void hooks(kinds *volatile k) {
    kinds *ring = kinds_create("ring", KINDS_RED);
    CHECK(kinds_visit_all(ring, visit, &mark) == 3 && seen == 2);
    CHECK(kinds_visit_all(ring, KINDS_ANY, NULL) == -1);
    CHECK(kinds_visit_all(k, again, NULL) == 84 && kinds_visit_all(k, again, &mark) == 86);
    CHECK(kinds_call_many(many) == 1 + 25 + 300 + 4500 + 5 + 6 + 7 + 8 + 9);
    CHECK(kinds_words(words, NULL) == 42);
    CHECK(kinds_context(k, &mark) == NULL && kinds_context(k, &seen) == &mark && kinds_context(k, NULL) == &seen);

    kinds_register(ring, visit, &mark);
    CHECK(kinds_ring(ring) == 3);
    rfb_revoke(&kinds_fence, (void (*)(void))visit);
    last = RF_OK;
    CHECK(kinds_ring(ring) == 0 && last == RF_FAULT_HOST && strstr(message, "taken back") != NULL);
    CHECK_STATUS(rfb_reset(&kinds_fence), RF_OK);

    /* A jump out of a host function, and calls after it. */
    k = kinds_create("ring", KINDS_RED);
    for (int i = 0; i < 300; i++) {
        if (setjmp(away) == 0)
            kinds_visit_all(k, jump, NULL);
        CHECK(kinds_sum((int[]){ i, 1 }, 2) == i + 1);
    }
    CHECK(kinds_visit_all(k, again, NULL) == 84);
    kinds_destroy(k);
}

static void structs(void) {
    kinds_point p = { 1, 2, 1.5 };
    kinds_move(&p, 10, 20);
    CHECK(p.x == 11 && p.y == 22 && p.weight == 3);
    p.x = 100;
    char title[] = "abc";
    struct kinds_options o = { 1, KINDS_RED, title, &p, check_options, 0 };
    whose = &o;
    CHECK(kinds_apply(&o, 5) == 10);
    CHECK(o.sum == 1000 && o.flags == 0xFE && o.title == title && o.origin == &p && o.check == check_options);
    CHECK(p.x == 101);
    o.check = NULL;
    CHECK(kinds_apply(&o, 1) == -1 && o.sum == 1000 + 1 + 3 + 101 && p.x == 102);
    /* What the domain has put in is its own, and no memory of the host's. */
    CHECK(o.origin != &p && rf_memory_contains(kinds_fence.state->domain, o.origin, sizeof p));
}

static void faults(void) {
    int n = 1;
    last = RF_OK;
    CHECK(kinds_crash(&n) == 0 && last == RF_FAULT_ACCESS && n == 1);
    CHECK(kinds_crash_or(&n) == -77 && last == RF_ERROR_FAULTED);
    CHECK(kinds_create("x", KINDS_RED) == NULL);
    CHECK_STATUS(rfb_reset(&kinds_fence), RF_OK);
    kinds *k = kinds_create(NULL, KINDS_RED);
    CHECK(k && strcmp(kinds_name(k), "nobody") == 0);
    kinds_destroy(k);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return fprintf(stderr, "usage: host MODULE OTHER\n"), 2;
    kinds_fence.on_failure = failed;
    CHECK_STATUS(rfb_open(&kinds_fence, argv[2], NULL), RF_ERROR_FORMAT);
    CHECK(strstr(message, "kinds_point") != NULL);
    CHECK_STATUS(rfb_open(&kinds_fence, "/nowhere.rf", NULL), RF_ERROR_FILE);
    CHECK_STATUS(rfb_open(&kinds_fence, argv[1], NULL), RF_OK);
    kinds *k = kinds_create("ring", KINDS_GREEN);
    CHECK(rf_memory_contains(kinds_fence.state->domain, k, 1));
    pointers(k);
    texts(k);
    hooks(k);
    structs();
    faults();
    rfb_close(&kinds_fence);
    CHECK(kinds_sum((int[]){ 1, 2 }, 2) == 3); /* opened anew */
    rfb_close(&kinds_fence);
    return FINISH("host");
}
