/* The checked way: modules, domains, calls, callbacks, memory, and everything that can be wrong about them. */
#include <ringfence.h>
#include <stdint.h>

#include "check.h"

struct tally {
    int calls;
    char note[64];
    rf_domain *seen;
    rf_function *again;
    int depth;
};

static void cb_add(rf_caller *c, void *context) {
    struct tally *t = context;
    int a = (int)rf_caller_arg_int(c, 0), b = (int)rf_caller_arg_int(c, 1);
    t->calls++;
    t->seen = rf_caller_domain(c);
    if (b == 13) {
        rf_caller_fail(c, "no thirteens");
        return;
    }
    if (t->again && t->depth++ < 20) { /* host and domain in turn */
        rf_value arguments[] = { rf_value_i32(a), rf_value_i32(b) }, result = { RF_TYPE_I32, { 0 } };
        if (rf_function_call(t->again, arguments, 2, &result) != RF_OK)
            rf_caller_fail(c, rf_error()->message);
        rf_caller_return_int(c, (uint32_t)result.as.i32);
        return;
    }
    rf_caller_return_int(c, (uint32_t)(a + b));
}
static void cb_mix(rf_caller *c, void *context) {
    (void)context;
    rf_caller_return_f64(c, (int)rf_caller_arg_int(c, 0) + rf_caller_arg_f64(c, 0) + (double)(long)rf_caller_arg_int(c, 1) + (double)rf_caller_arg_f32(c, 1));
}
static void cb_eight(rf_caller *c, void *context) {
    (void)context;
    uint64_t sum = 0;
    for (unsigned i = 0; i < 6; i++)
        sum += rf_caller_arg_int(c, i);
    rf_caller_return_int(c, sum + 10 * rf_caller_arg_stack(c, 0) + 100 * rf_caller_arg_stack(c, 1));
}
static void cb_note(rf_caller *c, void *context) {
    struct tally *t = context;
    size_t length = rf_caller_arg_int(c, 1);
    if (length >= sizeof t->note || rf_memory_read(rf_caller_domain(c), (void *)(uintptr_t)rf_caller_arg_int(c, 0), t->note, length) != RF_OK)
        rf_caller_fail(c, "bad note");
}

static struct tally tally;
static const rf_import imports[] = {
    RF_IMPORT_INIT_CALLBACK("host_add", cb_add, &tally),
    RF_IMPORT_INIT_CALLBACK("host_mix", cb_mix, NULL),
    RF_IMPORT_INIT_CALLBACK("host_eight", cb_eight, NULL),
    RF_IMPORT_INIT_CALLBACK("host_note", cb_note, &tally),
};

static void modules(const char *path) {
    rf_module *m = (rf_module *)&tally;
    CHECK_STATUS(rf_module_create("/nonexistent", 0, &m), RF_ERROR_FILE);
    CHECK(m == NULL);
    CHECK_STATUS(rf_module_create(NULL, 0, &m), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_module_create(path, 0, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_module_create(path, -1, &m), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_module_create("/", 0, &m), RF_ERROR_FILE);
    CHECK_STATUS(rf_module_create_from_bytes("not a module", 12, NULL, 0, &m), RF_ERROR_FORMAT);
    CHECK_STATUS(rf_module_create_from_bytes("", 0, "empty", 0, &m), RF_ERROR_FORMAT);
    CHECK_STATUS(rf_module_create_from_bytes(NULL, 5, NULL, 0, &m), RF_ERROR_ARGUMENT);
    CHECK(rf_error() && rf_error()->size == sizeof(rf_error_info));
    CHECK_STATUS(rf_module_destroy(NULL), RF_OK);
    CHECK_STATUS(rf_module_destroy((rf_module *)&tally), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_module_destroy((rf_module *)(uintptr_t)0xdeadbeef), RF_ERROR_HANDLE);

    /* Damaged in every byte of the first kilobyte, and cut at many places: an error or a module, never a crash. */
    FILE *f = fopen(path, "rb");
    unsigned char *bytes = malloc(1 << 20);
    size_t length = f && bytes ? fread(bytes, 1, 1 << 20, f) : 0;
    CHECK(length > 1000);
    if (f)
        fclose(f);
    rf_status s;
    for (size_t i = 0; i < 1024 && i < length; i++) {
        bytes[i] ^= 0x81;
        s = rf_module_create_from_bytes(bytes, length, "damaged", 0, &m);
        CHECK((s == RF_OK) == (m != NULL));
        rf_module_destroy(m);
        bytes[i] ^= 0x81;
    }
    for (size_t cut = 0; cut < length; cut += 97) {
        s = rf_module_create_from_bytes(bytes, cut, "cut", 0, &m);
        CHECK((s == RF_OK) == (m != NULL));
        rf_module_destroy(m);
    }
    CHECK_STATUS(rf_module_create_from_bytes(bytes, length, "whole", 0, &m), RF_OK);
    CHECK_STATUS(rf_module_destroy(m), RF_OK);
    CHECK_STATUS(rf_module_destroy(m), RF_ERROR_HANDLE);
    free(bytes);
}

struct seen {
    int exports, imports, callable, most;
};

static int see(void *context, const rf_symbol *symbol) {
    struct seen *seen = context;
    CHECK(symbol->name && *symbol->name);
    seen->exports += !symbol->imported;
    seen->imports += symbol->imported && !symbol->weak;
    seen->callable += !strcmp(symbol->name, "add") && symbol->kind == RF_SYMBOL_KIND_FUNCTION && !symbol->imported;
    return seen->most > 0 && seen->exports == seen->most;
}

static void symbols(rf_module *m) {
    struct seen all = {0}, first = {.most = 1};
    CHECK_STATUS(rf_module_visit(m, see, &all), RF_OK);
    CHECK(all.exports > 1 && all.imports > 0 && all.callable == 1);
    CHECK_STATUS(rf_module_visit(m, see, &first), RF_OK);
    CHECK(first.exports == 1 && first.imports == 0);
    CHECK_STATUS(rf_module_visit(m, NULL, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_module_visit(NULL, see, &all), RF_ERROR_HANDLE);
}

static void domains(rf_module *m) {
    rf_domain *d = (rf_domain *)&tally;
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    CHECK_STATUS(rf_domain_create(m, NULL, &d), RF_ERROR_IMPORT);
    CHECK(d == NULL && strstr(rf_error()->message, "host_"));
    CHECK_STATUS(rf_domain_create(NULL, NULL, &d), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_domain_create(m, NULL, NULL), RF_ERROR_ARGUMENT);
    o.import_count = 3;
    CHECK_STATUS(rf_domain_create(m, &o, &d), RF_ERROR_ARGUMENT);
    rf_import bad[] = { { "both", (void (*)(void))abort, cb_mix, NULL }, { "none", NULL, NULL, NULL }, { NULL, NULL, cb_mix, NULL } };
    for (int i = 0; i < 3; i++) {
        o.imports = bad + i, o.import_count = 1;
        CHECK_STATUS(rf_domain_create(m, &o, &d), RF_ERROR_ARGUMENT);
    }
    o.imports = imports, o.import_count = 4;
    o.size = 3;
    CHECK_STATUS(rf_domain_create(m, &o, &d), RF_ERROR_ARGUMENT);
    struct {
        rf_domain_options o;
        uint64_t from_the_future;
    } later = { o, 1 };
    later.o.size = sizeof later;
    CHECK_STATUS(rf_domain_create(m, &later.o, &d), RF_ERROR_ARGUMENT);
    later.from_the_future = 0;
    CHECK_STATUS(rf_domain_create(m, &later.o, &d), RF_OK);
    CHECK_STATUS(rf_domain_state(d), RF_OK);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    CHECK_STATUS(rf_domain_destroy(d), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_domain_destroy((rf_domain *)m), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_domain_destroy(NULL), RF_OK);
    CHECK_STATUS(rf_domain_state(d), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_domain_reset(d), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_domain_interrupt(d), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_domain_set_time_limit(d, 5), RF_ERROR_HANDLE);
}

static void calls(rf_domain *d) {
    rf_function *add, *f;
    rf_value two[] = { rf_value_i32(2), rf_value_i32(3) }, r = { RF_TYPE_I32, { 0 } };
    CHECK_STATUS(rf_function_create(d, "add", &add), RF_OK);
    CHECK_STATUS(rf_function_call(add, two, 2, &r), RF_OK);
    CHECK(r.as.i32 == 5);
    CHECK_STATUS(rf_function_call(add, two, 2, NULL), RF_OK);
    CHECK_STATUS(rf_function_call(add, NULL, 2, &r), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_function_call(NULL, two, 2, &r), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_function_call((rf_function *)d, two, 2, &r), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_function_call(add, NULL, 0, &r), RF_OK); /* wrong count: some number */
    r.type = (rf_type)77;
    CHECK_STATUS(rf_function_call(add, two, 2, &r), RF_ERROR_ARGUMENT);
    rf_value odd = two[0];
    odd.type = RF_TYPE_VOID;
    r.type = RF_TYPE_I32;
    CHECK_STATUS(rf_function_call(add, &odd, 1, &r), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_function_create(d, "nope", &f), RF_ERROR_NO_FUNCTION);
    CHECK(f == NULL);
    CHECK_STATUS(rf_function_create(d, "counter", &f), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_function_create(d, NULL, &f), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_function_create(d, "add", NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_function_destroy(add), RF_OK);
    CHECK_STATUS(rf_function_destroy(add), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_function_call(add, two, 2, &r), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_function_destroy(NULL), RF_OK);

    rf_value eight[] = { rf_value_i64(1), rf_value_i64(2), rf_value_i64(3), rf_value_i64(4), rf_value_i64(5), rf_value_i64(6), rf_value_i64(7), rf_value_i64(8) };
    r.type = RF_TYPE_I64;
    CHECK_STATUS(rf_domain_call(d, "eight", eight, 8, &r), RF_OK);
    CHECK(r.as.i64 == 87654321);
    rf_value mixed[] = { rf_value_i32(1), rf_value_f64(2.5), rf_value_i64(3), rf_value_f32(4.25f), rf_value_u32(250) };
    r.type = RF_TYPE_F64;
    CHECK_STATUS(rf_domain_call(d, "mixed", mixed, 5, &r), RF_OK);
    CHECK(r.as.f64 == 1 + 5.0 + 3 + 17 + 250);
    rf_value ten[10];
    for (int i = 0; i < 10; i++)
        ten[i] = rf_value_f64(i < 9 ? 1 : 2);
    CHECK_STATUS(rf_domain_call(d, "ten_doubles", ten, 10, &r), RF_OK);
    CHECK(r.as.f64 == 65);
    rf_value third = rf_value_f32(3.0f);
    r.type = RF_TYPE_F32;
    CHECK_STATUS(rf_domain_call(d, "half", &third, 1, &r), RF_OK);
    CHECK(r.as.f32 == 1.5f);
    rf_value two_n = rf_value_i32(2), x = rf_value_i32(21), pointer = { RF_TYPE_PTR, { 0 } };
    CHECK_STATUS(rf_domain_call(d, "pick", &two_n, 1, &pointer), RF_OK);
    r.type = RF_TYPE_I32;
    CHECK_STATUS(rf_domain_call_address(d, pointer.as.ptr, &x, 1, &r), RF_OK);
    CHECK(r.as.i32 == 42);
    if (HAS(FENCE)) /* the middle of a function */
        CHECK_STATUS(rf_domain_call_address(d, (char *)pointer.as.ptr + 8, &x, 1, &r), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_domain_call_address(d, (void *)(uintptr_t)abort, &x, 1, &r), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_domain_call_address(d, NULL, &x, 1, &r), RF_ERROR_NO_FUNCTION);
    rf_value many[400];
    for (int i = 0; i < 400; i++)
        many[i] = rf_value_i32(i);
    CHECK_STATUS(rf_domain_call(d, "nothing", many, 100, NULL), RF_OK);
    CHECK_STATUS(rf_domain_call(d, "nothing", many, 400, NULL), RF_ERROR_TOO_LONG);
    CHECK_STATUS(rf_domain_call(d, "nothing", many, SIZE_MAX, NULL), RF_ERROR_TOO_LONG);
    CHECK_STATUS(rf_domain_call(NULL, "nothing", NULL, 0, NULL), RF_ERROR_HANDLE);
}

static void callbacks(rf_domain *d) {
    rf_value two[] = { rf_value_i32(20), rf_value_i32(21) }, r = { RF_TYPE_I32, { 0 } };
    CHECK_STATUS(rf_domain_call(d, "call_host_add", two, 2, &r), RF_OK);
    CHECK(r.as.i32 == 42 && tally.seen == d);
    r.type = RF_TYPE_F64;
    CHECK_STATUS(rf_domain_call(d, "call_host_mix", NULL, 0, &r), RF_OK);
    CHECK(r.as.f64 == 1 + 2.5 + 3 + 4.5);
    r.type = RF_TYPE_I64;
    CHECK_STATUS(rf_domain_call(d, "call_host_eight", NULL, 0, &r), RF_OK);
    CHECK(r.as.i64 == 21 + 70 + 800);
    CHECK_STATUS(rf_domain_call(d, "call_host_note", NULL, 0, NULL), RF_OK);
    CHECK(!strcmp(tally.note, "hello from inside"));

    r.type = RF_TYPE_I32;
    CHECK_STATUS(rf_function_create(d, "call_host_add", &tally.again), RF_OK);
    CHECK_STATUS(rf_function_call(tally.again, two, 2, &r), RF_OK);
    CHECK(r.as.i32 == 41 + 21);
    rf_function_destroy(tally.again);
    tally.again = NULL;

    rf_value unlucky[] = { rf_value_i32(1), rf_value_i32(13) };
    r.as.i32 = 99;
    CHECK_STATUS(rf_domain_call(d, "call_host_add", unlucky, 2, &r), RF_FAULT_HOST);
    CHECK(r.as.i32 == 0 && strstr(rf_error()->message, "no thirteens"));
    CHECK_STATUS(rf_domain_call(d, "call_host_add", two, 2, &r), RF_ERROR_FAULTED);
    CHECK_STATUS(rf_domain_reset(d), RF_OK);
    CHECK(rf_error() == NULL);
    CHECK_STATUS(rf_domain_call(d, "call_host_add", two, 2, &r), RF_OK);

    /* Outside of a callback there is no caller. */
    CHECK(rf_caller_arg_int(NULL, 0) == 0 && rf_error()->status == RF_ERROR_HANDLE);
    CHECK(rf_caller_arg_int((rf_caller *)&tally, 0) == 0 && rf_error()->status == RF_ERROR_HANDLE);
    rf_caller_return_int((rf_caller *)(uintptr_t)8, 1);
    rf_caller_fail((rf_caller *)&tally, "x");
    CHECK(rf_caller_domain(NULL) == NULL);
    rf_error_clear();
}

static void memory(rf_domain *d) {
    static const char text[] = "some text";
    char back[32];
    size_t length = 99;
    rf_value r = { RF_TYPE_U64, { 0 } };
    char *s = rf_memory_alloc_string(d, text);
    CHECK(s && rf_memory_contains(d, s, 10) && !rf_memory_contains(NULL, s, 1));
    rf_value arg = rf_value_ptr(s);
    CHECK_STATUS(rf_domain_call(d, "upper", &arg, 1, &r), RF_OK);
    CHECK(r.as.u64 == 9);
    CHECK_STATUS(rf_memory_read_string(d, s, back, sizeof back, &length), RF_OK);
    CHECK(!strcmp(back, "SOME TEXT") && length == 9);
    CHECK_STATUS(rf_memory_read_string(d, s, back, 10, NULL), RF_OK);
    CHECK_STATUS(rf_memory_read_string(d, s, back, 9, &length), RF_ERROR_TOO_LONG);
    CHECK(back[0] == 0 && length == 0);
    CHECK_STATUS(rf_memory_read_string(d, s, back, 0, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_memory_read_string(d, s, NULL, 9, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_memory_read_string(d, NULL, back, 9, NULL), HAS(FENCE) ? RF_ERROR_RANGE : RF_ERROR_ACCESS);
    CHECK_STATUS(rf_memory_free(d, s), RF_OK);
    CHECK_STATUS(rf_memory_free(d, s), RF_ERROR_FREE);
    CHECK_STATUS(rf_memory_free(d, back), RF_ERROR_FREE);
    CHECK_STATUS(rf_memory_free(d, NULL), RF_OK);
    CHECK_STATUS(rf_memory_free(NULL, NULL), RF_ERROR_HANDLE);

    char *block = rf_memory_alloc(d, 5000);
    CHECK(block && ((uintptr_t)block & 15) == 0);
    CHECK_STATUS(rf_memory_write(d, block + 4990, text, 10), RF_OK);
    CHECK_STATUS(rf_memory_read(d, block + 4990, back, 10), RF_OK);
    CHECK(!memcmp(back, text, 10));
    CHECK_STATUS(rf_memory_read(d, block, NULL, 10), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_memory_write(d, block, NULL, 10), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_memory_read(d, block, NULL, 0), RF_OK);
    char *base = (char *)((uintptr_t)block & ~(uintptr_t)0xFFFFFFFF);
    const void *outside[] = { NULL, text, base - 1, base + (1ULL << 32), (void *)UINTPTR_MAX };
    for (size_t i = 0; i < sizeof outside / sizeof *outside && HAS(FENCE); i++) {
        CHECK(!rf_memory_contains(d, outside[i], 1));
        CHECK_STATUS(rf_memory_read(d, outside[i], back, 1), RF_ERROR_RANGE);
        CHECK_STATUS(rf_memory_write(d, (void *)outside[i], back, 1), RF_ERROR_RANGE);
    }
    CHECK_STATUS(rf_memory_read(d, block, back, SIZE_MAX), RF_ERROR_RANGE);
    if (HAS(FENCE)) {
        CHECK_STATUS(rf_memory_read(d, base + (1ULL << 32) - 4, back, 5), RF_ERROR_RANGE);
        CHECK_STATUS(rf_memory_read(d, base, back, 1), RF_ERROR_ACCESS);
        CHECK_STATUS(rf_memory_write(d, base + 0x10000, back, 1), RF_ERROR_ACCESS);
    }
    CHECK_STATUS(rf_memory_read(NULL, block, back, 1), RF_ERROR_HANDLE);
    CHECK(rf_memory_alloc(d, SIZE_MAX) == NULL && rf_error()->status == RF_ERROR_LIMIT);
    CHECK(rf_memory_alloc(NULL, 5) == NULL && rf_error()->status == RF_ERROR_HANDLE);
    CHECK(rf_memory_alloc_string(d, NULL) == NULL);

    size_t size = 0;
    int *counter = rf_domain_find_object(d, "counter", &size), value = 0;
    CHECK(counter && size == sizeof(int) && rf_memory_read(d, counter, &value, size) == RF_OK && value >= 7);
    CHECK(rf_domain_find_object(d, "add", NULL) == NULL && rf_error()->status == RF_ERROR_NO_OBJECT);
    CHECK(rf_domain_find_object(d, NULL, NULL) == NULL && rf_error()->status == RF_ERROR_ARGUMENT);
    rf_error_clear();
}

static void faults(rf_domain *d) {
    if (!HAS(FAULTS))
        return;
    rf_value a[] = { rf_value_i32(1), rf_value_i32(0) }, r = { RF_TYPE_I32, { 0 } };
    struct {
        const char *name;
        rf_status status;
    } cases[] = { { "divide", RF_FAULT_DIVIDE }, { "trap", RF_FAULT_ILLEGAL }, { "recurse_data", RF_FAULT_STACK },
                  { "recurse_control", RF_FAULT_STACK }, { "wild_read", RF_FAULT_ACCESS }, { "spin", RF_FAULT_TIME } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_STATUS(rf_domain_set_time_limit(d, cases[i].status == RF_FAULT_TIME ? 10000000 : 0), RF_OK);
        CHECK_STATUS(rf_domain_call(d, cases[i].name, a, 2, &r), cases[i].status);
        const rf_error_info *e = rf_error();
        CHECK(e && e->status == cases[i].status && e->frame_count > 0 && e->frames[0].address);
        CHECK(e && e->function && (strstr(cases[i].name, e->function) || !strcmp(e->function, "deep")));
        CHECK(e && e->message && strstr(e->message, e->function));
        CHECK_STATUS(rf_domain_state(d), RF_ERROR_FAULTED);
        CHECK_STATUS(rf_domain_reset(d), RF_OK);
    }
    CHECK_STATUS(rf_domain_set_time_limit(d, 0), RF_OK);
    rf_value target[] = { rf_value_ptr(rf_domain_find_object(d, "zeroes", NULL)) };
    CHECK_STATUS(rf_domain_call(d, "jump_to", target, 1, &r), RF_FAULT_TARGET);
    CHECK_STATUS(rf_domain_reset(d), RF_OK);
    target[0] = rf_value_u64((uint64_t)(uintptr_t)abort); /* nothing of that number in the window */
    CHECK(rf_domain_call(d, "jump_to", target, 1, &r) >= RF_FAULT_ACCESS);
    CHECK_STATUS(rf_domain_reset(d), RF_OK);
}

int main(int argc, char **argv) {
    if (argc < 2)
        return fprintf(stderr, "usage: checked MODULE\n"), 2;
    rf_module *m;
    rf_domain *d;
    rf_function *f;
    modules(argv[1]);
    CHECK_STATUS(rf_module_create(argv[1], 0, &m), RF_OK);
    symbols(m);
    domains(m);
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.imports = imports, o.import_count = 4, o.memory_limit = HAS(LIMITS) ? 16 << 20 : 0;
    CHECK_STATUS(rf_domain_create(m, &o, &d), RF_OK);
    CHECK_STATUS(rf_module_destroy(m), RF_OK); /* the domain lives on */
    calls(d);
    callbacks(d);
    memory(d);
    faults(d);
    CHECK_STATUS(rf_function_create(d, "add", &f), RF_OK);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    CHECK_STATUS(rf_function_call(f, NULL, 0, NULL), RF_ERROR_HANDLE);
    return FINISH("checked");
}
