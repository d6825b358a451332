/* Objects of the host's that domains reach word for word, from C. */
#include <ringfence.h>
#include <stdint.h>

#include "check.h"

struct request {
    const char *uri;
    size_t length;
    unsigned char cb[48];
    struct request *next;
    int flags;
    int mode;
};

static const char *const layout =
    "struct request 88 { uri @0 char*; length @8 8; cb @16 1[48]; next @64 struct request*; flags @72 4; mode @76 4 }\n"
    "handle(req: struct request, n: number) reads req->uri as string; writes req->cb[32]; keeps nothing\n";

static rf_module *module;
static rf_arena *arena;

static rf_domain *make(rf_arena *of) {
    rf_domain *d = NULL;
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.arena = of;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    return d;
}

/* RF_RIGHTS_NONE, _READ or _WRITE, by trying; and the table says the same. */
static int can(rf_domain *d, void *p) {
    rf_value a[] = { rf_value_ptr(p), rf_value_i32(7) };
    int rights = RF_RIGHTS_WRITE;
    if (rf_domain_call(d, "read_word", a, 1, NULL) != RF_OK) {
        CHECK(rf_error()->status == RF_FAULT_ACCESS && rf_error()->address == (uintptr_t)p);
        CHECK_STATUS(rf_domain_reset(d), RF_OK);
        rights = RF_RIGHTS_NONE;
    } else if (rf_domain_call(d, "write_word", a, 2, NULL) != RF_OK) {
        CHECK_STATUS(rf_domain_reset(d), RF_OK);
        rights = RF_RIGHTS_READ;
    }
    CHECK(rf_arena_rights(arena, d, p) == rights);
    return rights;
}

static void arguments(rf_domain *a) {
    rf_arena *other = NULL;
    CHECK_STATUS(rf_arena_create(0, 0, &other), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_arena_create(UINT64_MAX, 0, &other), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_arena_create(4096, 0, NULL), RF_ERROR_ARGUMENT);
    CHECK(!rf_arena_alloc(NULL, NULL, 16) && rf_error()->status == RF_ERROR_HANDLE);
    CHECK(!rf_arena_alloc(arena, NULL, SIZE_MAX) && rf_error()->status == RF_ERROR_ARGUMENT);
    CHECK(!rf_arena_alloc(arena, (rf_domain *)(uintptr_t)9, 16) && rf_error()->status == RF_ERROR_HANDLE);
    int *p = rf_arena_alloc(arena, NULL, 64);
    CHECK(p && (uintptr_t)p % 16 == 0 && p[0] == 0);
    CHECK_STATUS(rf_arena_give(arena, NULL, a, (char *)p + 1, 4, RF_RIGHTS_READ), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_arena_give(arena, NULL, a, p, 3, RF_RIGHTS_READ), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_arena_give(arena, NULL, a, p, 68, RF_RIGHTS_READ), RF_ERROR_RANGE);
    CHECK_STATUS(rf_arena_give(arena, NULL, a, &failures, 4, RF_RIGHTS_READ), RF_ERROR_RANGE);
    CHECK_STATUS(rf_arena_give(arena, NULL, a, NULL, 4, RF_RIGHTS_READ), RF_ERROR_RANGE);
    CHECK_STATUS(rf_arena_give(arena, NULL, a, p, SIZE_MAX - 3, RF_RIGHTS_READ), RF_ERROR_RANGE);
    CHECK_STATUS(rf_arena_give(arena, NULL, a, p, 4, (rf_rights)3), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_arena_give(arena, NULL, NULL, p, 4, RF_RIGHTS_READ), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_arena_free(arena, NULL, p + 4), RF_ERROR_FREE);
    CHECK_STATUS(rf_arena_free(arena, a, p), RF_ERROR_RIGHTS);
    CHECK_STATUS(rf_arena_free(arena, NULL, p), RF_OK);
    CHECK_STATUS(rf_arena_free(arena, NULL, p), RF_ERROR_FREE);
    CHECK_STATUS(rf_arena_free(arena, NULL, NULL), RF_OK);
    /* Another arena's domain. */
    CHECK_STATUS(rf_arena_create(4096, 0, &other), RF_OK);
    rf_domain *stranger = make(other);
    p = rf_arena_alloc(arena, NULL, 64);
    CHECK_STATUS(rf_arena_give(arena, NULL, stranger, p, 4, RF_RIGHTS_READ), RF_ERROR_ARGUMENT);
    CHECK(rf_arena_rights(arena, stranger, p) == -1);
    CHECK_STATUS(rf_domain_destroy(stranger), RF_OK);
    CHECK_STATUS(rf_arena_destroy(other), RF_OK);
    CHECK_STATUS(rf_arena_destroy(other), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_arena_free(arena, NULL, p), RF_OK);
}

static void words(rf_domain *a, rf_domain *b) {
    int *p = rf_arena_alloc(arena, NULL, 64);
    CHECK(can(a, p) == RF_RIGHTS_NONE);
    CHECK_STATUS(rf_arena_give(arena, NULL, a, p, 32, RF_RIGHTS_WRITE), RF_OK);
    CHECK_STATUS(rf_arena_give(arena, NULL, b, p + 4, 4, RF_RIGHTS_READ), RF_OK);
    CHECK(can(a, p + 7) == RF_RIGHTS_WRITE && can(a, p + 8) == RF_RIGHTS_NONE && p[7] == 7);
    CHECK(can(b, p + 4) == RF_RIGHTS_READ && can(b, p + 3) == RF_RIGHTS_NONE && can(b, p + 5) == RF_RIGHTS_NONE);
    CHECK_STATUS(rf_arena_give(arena, a, b, p, 4, RF_RIGHTS_READ), RF_ERROR_RIGHTS);
    char text[200];
    size_t whole = rf_arena_overview(arena, 8, text, sizeof text);
    CHECK(whole == strlen(text) && strstr(text, "=rw") && strstr(text, "=r"));
    CHECK_STATUS(rf_arena_revoke(arena, NULL, p, 64), RF_OK);
    CHECK(can(a, p) == RF_RIGHTS_NONE && can(b, p + 4) == RF_RIGHTS_NONE);
    /* A domain's own object. */
    int *own = rf_arena_alloc(arena, a, 20);
    CHECK(can(a, own + 4) == RF_RIGHTS_WRITE && can(a, own + 5) == RF_RIGHTS_NONE && can(b, own) == RF_RIGHTS_NONE);
    CHECK_STATUS(rf_arena_give(arena, a, b, own, 8, RF_RIGHTS_READ), RF_OK);
    CHECK(can(b, own + 1) == RF_RIGHTS_READ);
    CHECK_STATUS(rf_arena_free(arena, b, own), RF_ERROR_RIGHTS);
    CHECK_STATUS(rf_arena_free(arena, a, own), RF_OK);
    CHECK(can(a, own) == RF_RIGHTS_NONE && can(b, own) == RF_RIGHTS_NONE);

    rf_arena_group *group = NULL, *inner = NULL;
    CHECK_STATUS(rf_arena_group_create(arena, 0, &group), RF_OK);
    CHECK_STATUS(rf_arena_group_create(arena, 1, &inner), RF_OK);
    CHECK_STATUS(rf_arena_give_group(arena, NULL, group, p, 8, RF_RIGHTS_WRITE), RF_OK);
    CHECK_STATUS(rf_arena_group_admit(group, a, a), RF_ERROR_RIGHTS);
    CHECK_STATUS(rf_arena_group_admit(inner, a, a), RF_OK);
    CHECK_STATUS(rf_arena_group_admit(group, NULL, b), RF_OK);
    CHECK(can(a, p) == RF_RIGHTS_NONE && can(b, p) == RF_RIGHTS_WRITE);
    CHECK_STATUS(rf_arena_group_admit_group(group, inner), RF_OK);
    CHECK_STATUS(rf_arena_group_admit_group(inner, group), RF_ERROR_RIGHTS);
    CHECK(can(a, p) == RF_RIGHTS_WRITE);
    CHECK_STATUS(rf_arena_group_expel(group, b), RF_OK);
    CHECK_STATUS(rf_arena_group_expel(group, b), RF_ERROR_RIGHTS);
    CHECK_STATUS(rf_arena_group_destroy(group), RF_OK);
    CHECK_STATUS(rf_arena_group_destroy(inner), RF_OK);
    CHECK(can(a, p) == RF_RIGHTS_NONE && can(b, p) == RF_RIGHTS_NONE);
    CHECK_STATUS(rf_arena_free(arena, NULL, p), RF_OK);
}

static void policies(rf_domain *a) {
    struct request *req = rf_arena_alloc(arena, NULL, sizeof *req), *next = rf_arena_alloc(arena, NULL, sizeof *next);
    char *uri = rf_arena_alloc(arena, NULL, 16);
    strcpy(uri, "/index.html");
    req->uri = uri, req->next = next, req->flags = 1, next->flags = 6;
    rf_arena_policy *policy = NULL;
    CHECK_STATUS(rf_arena_policy_create("handle(req: struct request) reads req", &policy), RF_ERROR_TEXT);
    CHECK(!policy && strstr(rf_error()->message, "^"));
    CHECK_STATUS(rf_arena_policy_create(layout, &policy), RF_OK);
    rf_value r = { RF_TYPE_U64, { 0 } }, args[] = { rf_value_ptr(req), rf_value_i32(32) };
    CHECK_STATUS(rf_arena_policy_call(policy, a, "handle", args, 2, &r), RF_OK);
    CHECK(r.as.u64 == 11 && req->cb[0] == 1 && req->cb[31] == 32 && req->cb[32] == 0);
    CHECK(rf_arena_rights(arena, a, req) == RF_RIGHTS_NONE && rf_arena_rights(arena, a, req->cb) == RF_RIGHTS_NONE);
    /* The 33rd byte. */
    args[1] = rf_value_i32(33);
    CHECK_STATUS(rf_arena_policy_call(policy, a, "handle", args, 2, &r), RF_FAULT_ACCESS);
    CHECK(rf_error()->address == (uintptr_t)(req->cb + 32) && req->cb[32] == 0 && !strcmp(rf_error()->function, "handle"));
    CHECK(strstr(rf_error()->message, "handle(req: struct request, n: number) writes req->cb[33]"));
    CHECK(rf_arena_rights(arena, a, req->cb) == RF_RIGHTS_NONE);
    CHECK_STATUS(rf_domain_reset(a), RF_OK);
    CHECK_STATUS(rf_arena_policy_call(policy, a, "flags_of_all", args, 1, &r), RF_ERROR_TEXT);
    args[0] = rf_value_ptr((char *)req + 48);
    CHECK(rf_arena_policy_call(policy, a, "handle", args, 2, &r) != RF_OK);
    /* By hand, around calls by a pointer. */
    uint64_t raw[] = { (uintptr_t)req, 32 };
    rf_arena_call *call = NULL;
    CHECK_STATUS(rf_arena_call_create(policy, a, "handle", raw, 2, &call), RF_OK);
    CHECK(rf_arena_rights(arena, a, req->cb) == RF_RIGHTS_WRITE);
    CHECK_STATUS(rf_arena_free(arena, NULL, req), RF_ERROR_BUSY);
    CHECK_STATUS(rf_arena_call_destroy(call), RF_OK);
    CHECK_STATUS(rf_arena_call_destroy(call), RF_ERROR_HANDLE);
    CHECK(rf_arena_rights(arena, a, req->cb) == RF_RIGHTS_NONE);
    /* Pointers inside objects lead on. */
    rf_value list[] = { rf_value_ptr(req) }, flags = { RF_TYPE_I32, { 0 } };
    CHECK_STATUS(rf_arena_give(arena, NULL, a, &req->next, 12, RF_RIGHTS_READ), RF_OK);
    CHECK_STATUS(rf_domain_call(a, "flags_of_all", list, 1, &flags), RF_FAULT_ACCESS);
    CHECK_STATUS(rf_domain_reset(a), RF_OK);
    CHECK_STATUS(rf_arena_give(arena, NULL, a, &next->next, 12, RF_RIGHTS_READ), RF_OK);
    CHECK_STATUS(rf_domain_call(a, "flags_of_all", list, 1, &flags), RF_OK);
    CHECK(flags.as.i32 == 7);
    CHECK_STATUS(rf_arena_policy_destroy(policy), RF_OK);
}

/* What a call needed, found by letting it run. */
static void learning(rf_domain *a, rf_domain *b) {
    struct request *req = rf_arena_alloc(arena, NULL, sizeof *req);
    char *uri = rf_arena_alloc(arena, NULL, 16);
    strcpy(uri, "/index.html");
    req->uri = uri;
    rf_arena_policy *signatures = NULL, *learned = NULL;
    CHECK_STATUS(rf_arena_policy_create("struct request 88 { uri @0 char*; length @8 8; cb @16 1[48]; next @64 struct request*; "
                                        "flags @72 4; mode @76 4 }\nhandle(req: struct request, n: number)\n",
                                        &signatures),
                 RF_OK);
    rf_arena_learner *learner = NULL, *second = NULL;
    CHECK_STATUS(rf_arena_learner_create(NULL, a, &learner), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_arena_learner_create(signatures, a, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_arena_learner_create(signatures, a, &learner), RF_OK);
    CHECK_STATUS(rf_arena_learner_create(signatures, b, &second), RF_ERROR_BUSY);
    CHECK(!second);
    rf_value r = { RF_TYPE_U64, { 0 } }, args[] = { rf_value_ptr(req), rf_value_i32(32) };
    CHECK_STATUS(rf_arena_learner_call(learner, "nobody", args, 2, &r), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_arena_learner_call(learner, "handle", args, 2, &r), RF_OK);
    CHECK(r.as.u64 == 11 && req->cb[31] == 32);
    /* Others are denied as ever. */
    CHECK_STATUS(rf_domain_call(b, "read_word", args, 1, NULL), RF_FAULT_ACCESS);
    CHECK(strstr(rf_error()->message, "may not read"));
    CHECK_STATUS(rf_domain_reset(b), RF_OK);
    char text[600];
    size_t whole = rf_arena_learner_policy(learner, text, sizeof text);
    CHECK(whole == strlen(text));
    CHECK(strstr(text, "handle(req: struct request, n: number) reads req->uri as string; writes req->cb[32]; keeps nothing\n"));
    CHECK(rf_arena_learner_policy(learner, text, 4) == whole && strlen(text) == 3);
    CHECK(rf_arena_learner_policy(NULL, NULL, 0) == 0 && rf_error()->status == RF_ERROR_HANDLE);
    rf_arena_learner_policy(learner, text, sizeof text);
    CHECK_STATUS(rf_arena_learner_destroy(learner), RF_OK);
    CHECK_STATUS(rf_arena_learner_destroy(learner), RF_ERROR_HANDLE);
    /* Denied again; and what was learned is enough. */
    CHECK_STATUS(rf_domain_call(a, "handle", args, 2, &r), RF_FAULT_ACCESS);
    CHECK_STATUS(rf_domain_reset(a), RF_OK);
    CHECK_STATUS(rf_arena_policy_create(text, &learned), RF_OK);
    CHECK_STATUS(rf_arena_policy_call(learned, a, "handle", args, 2, &r), RF_OK);
    CHECK_STATUS(rf_arena_policy_destroy(learned), RF_OK);
    CHECK_STATUS(rf_arena_policy_destroy(signatures), RF_OK);
    CHECK_STATUS(rf_arena_free(arena, NULL, req), RF_OK);
    CHECK_STATUS(rf_arena_free(arena, NULL, uri), RF_OK);
}

/* Arguments on the stack are copied in and out. */
static void copied(rf_domain *a) {
    rf_arena_policy *policy = NULL;
    CHECK_STATUS(rf_arena_policy_create("struct point 8 { x @0 4; y @4 4 }\n"
                                        "mirror(p: copied struct point) writes *p; keeps nothing\n"
                                        "handle(p: copied struct point, n: number) reads *p; keeps nothing\n"
                                        "read_word(p: copied bytes[4]) reads p[4]; keeps nothing\n"
                                        "write_word(p: copied bytes[4], n: number) reads p[4]; keeps nothing\n",
                                        &policy),
                 RF_OK);
    int point[3] = { 3, 4, 5 };
    rf_value args[] = { rf_value_ptr(point), rf_value_i32(9) }, r = { RF_TYPE_I32, { 0 } };
    CHECK_STATUS(rf_arena_policy_call(policy, a, "mirror", args, 1, NULL), RF_OK);
    CHECK(point[0] == 4 && point[1] == 3 && point[2] == 5);
    CHECK_STATUS(rf_arena_policy_call(policy, a, "read_word", args, 1, &r), RF_OK);
    CHECK(r.as.i32 == 4);
    /* What it may not write is not; and a call that fails changes nothing. */
    CHECK_STATUS(rf_arena_policy_call(policy, a, "write_word", args, 2, NULL), RF_FAULT_ACCESS);
    CHECK(point[0] == 4);
    CHECK_STATUS(rf_domain_reset(a), RF_OK);
    /* An object of the arena goes as it is. */
    int *object = rf_arena_alloc(arena, NULL, 8);
    object[0] = 1, object[1] = 2;
    args[0] = rf_value_ptr(object);
    CHECK_STATUS(rf_arena_policy_call(policy, a, "mirror", args, 1, NULL), RF_OK);
    CHECK(object[0] == 2 && object[1] == 1);
    CHECK_STATUS(rf_arena_free(arena, NULL, object), RF_OK);
    CHECK_STATUS(rf_arena_policy_destroy(policy), RF_OK);
    CHECK_STATUS(rf_arena_check_heaps(NULL), RF_ERROR_HANDLE);
    /* The matrix has it. */
    char text[4000];
    CHECK(rf_overview_text(text, sizeof text) && strstr(text, "arena 1, 1048576 bytes"));
}

int main(int argc, char **argv) {
    if (argc < 2)
        return fprintf(stderr, "usage: arenas MODULE\n"), 2;
    if (!HAS(WORDS))
        return FINISH("arenas");
    CHECK_STATUS(rf_module_create(argv[1], 0, &module), RF_ERROR_FORMAT);
    CHECK(strstr(rf_error()->message, "words"));
    CHECK_STATUS(rf_module_create(argv[1], RF_LOAD_ALLOW_WORDS, &module), RF_OK);
    CHECK_STATUS(rf_arena_create(1 << 20, 0, &arena), RF_OK);
    rf_domain *a = make(arena), *b = make(arena);
    arguments(a);
    words(a, b);
    policies(a);
    learning(a, b);
    copied(a);
    CHECK_STATUS(rf_domain_destroy(a), RF_OK);
    /* What a domain knows of an error is asked for by rf_error: of one that has gone, nobody is asked. */
    rf_value args[] = { rf_value_ptr(rf_arena_alloc(arena, NULL, 4)) };
    CHECK_STATUS(rf_domain_call(b, "read_word", args, 1, NULL), RF_FAULT_ACCESS);
    CHECK(strstr(rf_error()->message, "the object: 4 bytes"));
    CHECK_STATUS(rf_domain_reset(b), RF_OK);
    CHECK_STATUS(rf_domain_call(b, "read_word", args, 1, NULL), RF_FAULT_ACCESS);
    CHECK_STATUS(rf_arena_destroy(arena), RF_OK);
    CHECK_STATUS(rf_domain_destroy(b), RF_OK);
    CHECK(rf_error()->status == RF_FAULT_ACCESS && !strstr(rf_error()->message, "the object"));
    CHECK_STATUS(rf_module_destroy(module), RF_OK);
    return FINISH("arenas");
}
