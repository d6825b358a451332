/* What each back end answers when it is asked for what it has, and for what it lacks: RF_ERROR_UNSUPPORTED, and nothing has happened. */
#include <ringfence.h>
#include <setjmp.h>
#include <stdint.h>

#include "check.h"

static rf_domain *seen;
static jmp_buf back;
static int jumps;
static int host_add(int a, int b) {
    seen = rf_caller_domain(NULL);
    if (jumps)
        longjmp(back, 1);
    return a + b;
}
static void note(rf_caller *c, void *context) {
    (void)context;
    rf_caller_return_int(c, 0);
}
static const rf_import imports[] = { RF_IMPORT_INIT(int, host_add, (int, int), host_add), RF_IMPORT_INIT_CALLBACK("host_mix", note, NULL),
                                     RF_IMPORT_INIT_CALLBACK("host_eight", note, NULL), RF_IMPORT_INIT_CALLBACK("host_note", note, NULL) };
static const rf_slot slots[] = { { "host_add", 2, 0, 1, 0, RF_ON_FAILURE_RETURN, 0 } };
static rf_module *fenced, *plain, *module;
static rf_backend backend;

static rf_domain_options usual(void) {
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.imports = imports, o.import_count = 4, o.backend = backend;
    return o;
}

static rf_status make(rf_module *of, const rf_domain_options *o) {
    rf_domain *d = NULL;
    rf_status s = rf_domain_create(of, o, &d);
    CHECK((s == RF_OK) == (d != NULL));
    rf_domain_destroy(d);
    return s;
}

static uint64_t keep(const rf_limit_hit *hit, void *context) {
    (void)hit, (void)context;
    return 0;
}
static int warm(rf_domain *d, void *context) {
    (void)d, (void)context;
    return 0;
}

static rf_status region(rf_domain *d) {
    rf_region *r = NULL;
    rf_group *g = NULL;
    CHECK_STATUS(rf_region_create(4096, NULL, &r), RF_OK);
    CHECK_STATUS(rf_group_create(NULL, 1, &g), RF_OK);
    rf_status s = rf_region_give(r, NULL, d, RF_RIGHTS_READ);
    CHECK(rf_group_admit(g, NULL, d) == s);
    CHECK_STATUS(rf_group_destroy(g), RF_OK);
    CHECK_STATUS(rf_region_destroy(r), RF_OK);
    return s;
}

/* Leaves a call by a jump. */
static rf_status jump(rf_domain *d) {
    int (*call)(int, int) = RF_DLSYM(d, int, call_host_add, (int, int));
    rf_mark mark = rf_call_mark();
    jumps = 1;
    if (setjmp(back) == 0)
        call(1, 2);
    jumps = 0;
    return rf_call_unwind(mark);
}

/* What the back end answers; RF_OK if it has it. */
static rf_status ask(rf_feature feature, rf_domain *d) {
    rf_domain_options o = usual();
    rf_policy *p = NULL;
    rf_snapshot *s = NULL;
    rf_function *f = NULL;
    rf_confinement c = RF_CONFINEMENT_INIT;
    static const unsigned char ret[] = { 0x0F, 0x1F, 0x84, 0x00, 0xFF, 0xFF, 0x9A, 0x62, 0xC3 };
    rf_status status;
    switch (feature) {
    case RF_FEATURE_INTERRUPT: {
        static volatile int never;
        o.cancel = &never;
        status = make(module, &o);
        CHECK(rf_domain_interrupt(d) == status);
        return status;
    }
    case RF_FEATURE_LIMITS:
        o.call_limit = 5;
        status = make(module, &o);
        CHECK(rf_domain_set_time_limit(d, 1000000000) == status);
        return status;
    case RF_FEATURE_ON_LIMIT:
        o.on_limit = keep;
        return make(module, &o);
    case RF_FEATURE_POLICY:
        CHECK_STATUS(rf_policy_create(&p), RF_OK);
        o.policy = p;
        status = make(module, &o);
        CHECK_STATUS(rf_policy_destroy(p), RF_OK);
        return status;
    case RF_FEATURE_GRANTS:
        o.imports = imports + 1, o.import_count = 3, o.slots = slots, o.slot_count = 1;
        return make(module, &o);
    case RF_FEATURE_REGIONS:
        return region(d);
    case RF_FEATURE_CODE:
        status = rf_code_add(d, "ret", ret, sizeof ret, 0, &f);
        rf_function_destroy(f);
        return status;
    case RF_FEATURE_MODULES:
        status = rf_domain_remove_module(d, "x");
        return status == RF_ERROR_NO_OBJECT ? RF_OK : status;
    case RF_FEATURE_CHECKPOINTS:
        return rf_domain_checkpoint(d);
    case RF_FEATURE_SNAPSHOTS:
        status = rf_snapshot_create(module, &o, warm, NULL, &s);
        rf_snapshot_destroy(s);
        return status;
    case RF_FEATURE_CONFINEMENT:
        status = rf_domain_confinement(d, &c);
        CHECK(c.size == sizeof c && c.system_calls == (status == RF_OK));
        return status;
    case RF_FEATURE_CALLER: {
        rf_value a[] = { rf_value_i32(2), rf_value_i32(3) };
        seen = (rf_domain *)a;
        CHECK_STATUS(rf_domain_call(d, "call_host_add", a, 2, NULL), RF_OK);
        CHECK(rf_caller_domain(NULL) == NULL);
        CHECK(seen == d || seen == NULL);
        return seen ? RF_OK : RF_ERROR_UNSUPPORTED;
    }
    case RF_FEATURE_UNWIND:
        return jump(d);
    case RF_FEATURE_PAUSES:
        status = rf_domain_pause_time(d);
        CHECK_STATUS(rf_domain_resume_time(d), status);
        CHECK_STATUS(rf_domain_pause_time(NULL), RF_ERROR_HANDLE);
        CHECK_STATUS(rf_domain_resume_time(NULL), RF_ERROR_HANDLE);
        return status;
    case RF_FEATURE_FENCE:
        status = make(fenced, &o);
        return status == RF_ERROR_FORMAT ? RF_ERROR_UNSUPPORTED : status; /* it is the file that is refused */
    default:
        return -1;
    }
}

int main(int argc, char **argv) {
    if (argc < 3)
        return fprintf(stderr, "usage: backends MODULE.rf MODULE.so\n"), 2;
    CHECK_STATUS(rf_module_create(argv[1], 0, &fenced), RF_OK);
    CHECK_STATUS(rf_module_create(argv[2], RF_LOAD_UNFENCED, &plain), RF_OK);
    enum { FEATURES = sizeof feature_names / sizeof *feature_names };
    for (int b = RF_BACKEND_WINDOW; b <= RF_BACKEND_NONE; b++) {
        backend = (rf_backend)b, module = b == RF_BACKEND_NONE ? plain : fenced;
        for (int f = 0; f < FEATURES; f++) {
            rf_domain *d = NULL;
            rf_domain_options o = usual();
            int offers = rf_backend_offers(backend, (rf_feature)f);
            CHECK(offers == 0 || offers == 1);
            /* A crash, a handler that waits for itself, and a jump over frames without a fence are not tried; maps and processes are the module's to ask for. */
            if (f == RF_FEATURE_FAULTS || f == RF_FEATURE_HANDLERS || f == RF_FEATURE_PLAIN || f >= RF_FEATURE_FILE_MAPS || (f == RF_FEATURE_UNWIND && b == RF_BACKEND_NONE))
                continue;
            CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
            rf_error_clear();
            rf_status s = ask((rf_feature)f, d);
            if (s != (offers ? RF_OK : RF_ERROR_UNSUPPORTED)) {
                fprintf(stderr, "back end %d, %s: %s: %s\n", b, feature_names[f], rf_status_name(s), rf_error() ? rf_error()->message : "none");
                failures++;
            }
            /* The domain is as it was. A plain C function asked in vain, or nothing failed. */
            rf_value a[] = { rf_value_i32(2), rf_value_i32(3) }, r = { RF_TYPE_I32, { 0 } };
            CHECK_STATUS(rf_domain_call(d, "add", a, 2, &r), RF_OK);
            CHECK(r.as.i32 == 5);
            CHECK_STATUS(rf_domain_destroy(d), RF_OK);
        }
    }
    /* Numbers that there are not, and structs that are not set up. */
    rf_error_clear();
    CHECK(rf_backend_offers((rf_backend)3, RF_FEATURE_PLAIN) == -1 && rf_error()->status == RF_ERROR_ARGUMENT);
    CHECK(rf_backend_offers(RF_BACKEND_WINDOW, (rf_feature)FEATURES) == -1);
    CHECK(rf_backend_offers((rf_backend)-1, (rf_feature)-1) == -1);
    backend = RF_BACKEND_WINDOW;
    rf_domain_options o = usual();
    rf_domain *d = NULL;
    rf_confinement c = RF_CONFINEMENT_INIT;
    o.backend = 3;
    CHECK_STATUS(make(fenced, &o), RF_ERROR_ARGUMENT);
    o.backend = RF_BACKEND_PROCESS;
    CHECK_STATUS(rf_domain_create(fenced, &o, &d), RF_OK);
    CHECK_STATUS(rf_domain_confinement(NULL, &c), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_domain_confinement(d, NULL), RF_ERROR_ARGUMENT);
    c.size = 3;
    CHECK_STATUS(rf_domain_confinement(d, &c), RF_ERROR_ARGUMENT);
    c.size = offsetof(rf_confinement, namespaces), c.namespaces = 77;
    CHECK_STATUS(rf_domain_confinement(d, &c), RF_OK);
    CHECK(c.system_calls == 1 && c.namespaces == 77);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    /* A file for another back end. */
    CHECK_STATUS(rf_module_destroy(fenced), RF_OK);
    CHECK_STATUS(rf_module_destroy(plain), RF_OK);
    CHECK(rf_module_create(argv[1], RF_LOAD_UNFENCED, &fenced) != RF_OK && rf_module_create(argv[2], 0, &plain) != RF_OK);
    return FINISH("backends");
}
