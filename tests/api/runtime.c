/* Runtimes: functions come as text, call each other and the host, are replaced and deleted. */
#include <ringfence.h>
#include <stdint.h>

#include "check.h"

static char said[64];

static void scale(rf_caller *caller, void *context) {
    rf_caller_return_f64(caller, rf_caller_arg_f64(caller, 0) * (int)rf_caller_arg_int(caller, 0) * *(double *)context);
}

static void say(rf_caller *caller, void *context) {
    (void)context;
    const void *text = (const void *)(uintptr_t)rf_caller_arg_int(caller, 0);
    if (rf_memory_read_string(rf_caller_domain(caller), text, said, sizeof said, NULL) != RF_OK)
        rf_caller_fail(caller, "no text");
}

/* A call of a function of one long that returns one. */
static rf_status call(rf_function *function, int64_t n, int64_t *to) {
    rf_value argument = rf_value_i64(n), result = { RF_TYPE_I64, { 0 } };
    rf_status status = rf_function_call(function, &argument, 1, &result);
    *to = result.as.i64;
    return status;
}

static void verbs(rf_runtime *runtime) {
    rf_function *f, *g, *again, *none;
    int64_t got;
    CHECK_STATUS(rf_runtime_create_function(runtime, "f", "static long n; long f(long by) { return n += by; }", &f), RF_OK);
    CHECK_STATUS(rf_runtime_create_function(runtime, "g", "long f(long); long g(long n) { return 10 * f(n); }", &g), RF_OK);
    CHECK(call(f, 5, &got) == RF_OK && got == 5);
    CHECK(call(g, 2, &got) == RF_OK && got == 70);
    CHECK_STATUS(rf_runtime_replace_function(runtime, "f", "long f(long by) { return -by; }"), RF_OK);
    CHECK(call(f, 5, &got) == RF_OK && got == -5);
    CHECK(call(g, 2, &got) == RF_OK && got == -20);
    CHECK_STATUS(rf_runtime_replace_function(runtime, "f", "int f(long by) { return 0; }"), RF_ERROR_TYPE);
    CHECK_STATUS(rf_runtime_replace_function(runtime, "h", "int h(long by) { return 0; }"), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_runtime_create_function(runtime, "f", "long f(long by) { return by; }", NULL), RF_ERROR_EXISTS);
    CHECK_STATUS(rf_runtime_lookup_function(runtime, "f", &again), RF_OK);
    CHECK(call(again, 6, &got) == RF_OK && got == -6);
    CHECK(rf_function_address(again) == rf_function_address(f));

    CHECK_STATUS(rf_runtime_delete_function(runtime, "f"), RF_OK);
    CHECK_STATUS(rf_runtime_delete_function(runtime, "f"), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_runtime_lookup_function(runtime, "f", &none), RF_ERROR_NO_FUNCTION);
    CHECK(none == NULL);
    CHECK_STATUS(call(f, 1, &got), RF_ERROR_NO_FUNCTION);
    CHECK(rf_error() && strstr(rf_error()->message, "f was deleted"));
    CHECK(rf_function_address(f) == NULL);
    CHECK_STATUS(call(g, 1, &got), RF_ERROR_NO_FUNCTION);
    CHECK(rf_error() && strstr(rf_error()->message, "f was deleted"));
    CHECK_STATUS(call(g, 1, &got), RF_ERROR_FAULTED);
    CHECK_STATUS(rf_runtime_reset(runtime), RF_OK);
    CHECK_STATUS(rf_runtime_replace_function(runtime, "g", "long g(long n) { return n / (n - n); }"), RF_OK);
    CHECK_STATUS(call(g, 1, &got), RF_FAULT_DIVIDE);
    CHECK_STATUS(rf_runtime_reset(runtime), RF_OK);
    CHECK_STATUS(rf_runtime_delete_function(runtime, "g"), RF_OK);
    CHECK_STATUS(rf_function_destroy(f), RF_OK);
    CHECK_STATUS(rf_function_destroy(g), RF_OK);
    CHECK_STATUS(rf_function_destroy(again), RF_OK);
}

/* A long double passes by a pointer, in a runtime that has the x87 unit. */
static void long_double(void) {
    static const char text[] = "long double mix(int a, long double x, double d, long double y) { return a * x + y / d; }";
    rf_runtime *runtime;
    rf_function *f;
    rf_domain_options options = RF_DOMAIN_OPTIONS_INIT;
    CHECK_STATUS(rf_runtime_create(NULL, 0, &options, &runtime), RF_OK);
    CHECK(rf_runtime_create_function(runtime, "mix", text, NULL) != RF_OK);
    CHECK(rf_error() && strstr(rf_error()->message, "x87"));
    CHECK_STATUS(rf_runtime_destroy(runtime), RF_OK);
    options.x87 = 1;
    CHECK_STATUS(rf_runtime_create(NULL, 0, &options, &runtime), RF_OK);
    CHECK_STATUS(rf_runtime_create_function(runtime, "mix", text, &f), RF_OK);
    long double (*mix)(int, long double, double, long double) =
        RF_FUNCTION_POINTER(f, long double, mix, (int, long double, double, long double));
    CHECK(mix != NULL);
    if (mix)
        CHECK(mix(3, 0.1L, 7, 1e4000L) == 3 * 0.1L + 1e4000L / 7.0);
    CHECK(RF_FUNCTION_POINTER(f, double, mix, (int, double, double, double)) == NULL);
    rf_value arguments[4] = { rf_value_i64(1), rf_value_f64(1), rf_value_f64(1), rf_value_f64(1) };
    CHECK_STATUS(rf_function_call(f, arguments, 4, NULL), RF_ERROR_TYPE);
    CHECK_STATUS(rf_function_destroy(f), RF_OK);
    CHECK_STATUS(rf_runtime_destroy(runtime), RF_OK);
}

static void texts(rf_runtime *runtime) {
    rf_function *function = (rf_function *)&function;
    CHECK_STATUS(rf_runtime_create_function(runtime, "f", "long f(long n) {\n    return m;\n}", &function), RF_ERROR_TEXT);
    CHECK(function == NULL);
    CHECK(rf_error() && strstr(rf_error()->message, "2:12: error") && strstr(rf_error()->message, "^"));
    CHECK_STATUS(rf_runtime_create_function(runtime, "f", "long g(long n) { return n; }", NULL), RF_ERROR_TEXT);
    CHECK_STATUS(rf_runtime_create_function(runtime, "f", "long g(void); long f(void) { return g(); }", NULL), RF_ERROR_IMPORT);
    CHECK_STATUS(rf_runtime_create_function(runtime, "f", "int scale(int); int f(void) { return scale(1); }", NULL), RF_ERROR_TYPE);
    CHECK_STATUS(rf_runtime_create_function(runtime, NULL, "", NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_runtime_create_function(runtime, "f", NULL, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_runtime_create_function(runtime, "f", "\xFF", NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_runtime_create_function(NULL, "f", "", NULL), RF_ERROR_HANDLE);
}

static void objects(rf_runtime *runtime) {
    static const char text[] = "static long calls; void say(const char *); long g(long n) { say(\"object\"); return n + ++calls; }";
    unsigned char object[4096];
    size_t size, told;
    rf_function *g;
    int64_t got;
    CHECK_STATUS(rf_runtime_compile(text, NULL, 0, &told), RF_OK);
    CHECK(told > sizeof text && told < sizeof object);
    CHECK_STATUS(rf_runtime_compile(text, object, told - 1, &size), RF_ERROR_TOO_LONG);
    CHECK(size == told);
    CHECK_STATUS(rf_runtime_compile(text, object, sizeof object, &size), RF_OK);
    CHECK(size == told);
    CHECK_STATUS(rf_runtime_compile("long g(", object, sizeof object, &told), RF_ERROR_TEXT);
    CHECK(told == 0);
    CHECK_STATUS(rf_runtime_compile(text, NULL, 1, &told), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_runtime_compile(NULL, NULL, 0, &told), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_runtime_compile(text, NULL, 0, NULL), RF_ERROR_ARGUMENT);

    CHECK_STATUS(rf_runtime_replace_object(runtime, "g", object, size), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_runtime_create_object(runtime, "g", object, size, &g), RF_OK);
    CHECK(call(g, 5, &got) == RF_OK && got == 6 && strcmp(said, "object") == 0);
    CHECK(call(g, 5, &got) == RF_OK && got == 7);
    CHECK_STATUS(rf_runtime_create_object(runtime, "g", object, size, NULL), RF_ERROR_EXISTS);
    CHECK_STATUS(rf_runtime_replace_object(runtime, "g", object, size), RF_OK);
    CHECK(call(g, 5, &got) == RF_OK && got == 6);
    CHECK_STATUS(rf_runtime_replace_object(runtime, "g", object, size - 1), RF_ERROR_TEXT);
    CHECK(rf_error() && strstr(rf_error()->message, "object code"));
    CHECK_STATUS(rf_runtime_create_object(runtime, "h", text, sizeof text, NULL), RF_ERROR_TEXT);
    CHECK_STATUS(rf_runtime_create_object(runtime, "h", NULL, 0, NULL), RF_ERROR_ARGUMENT);
    CHECK(call(g, 5, &got) == RF_OK && got == 7);
    CHECK_STATUS(rf_runtime_delete_function(runtime, "g"), RF_OK);
    CHECK_STATUS(rf_function_destroy(g), RF_OK);
}

static void values(rf_runtime *runtime) {
    static const char text[] = "double scale(double, int); void say(const char *);"
                               "float f(signed char a, unsigned b, double x, const char *s) { if (s) say(s); return a + b + scale(x, 2); }";
    rf_function *f;
    CHECK_STATUS(rf_runtime_create_function(runtime, "f", text, &f), RF_OK);
    rf_value a[] = { rf_value_i32(-1), rf_value_i64(4000000000), rf_value_f32(2.0f), rf_value_ptr(NULL) };
    rf_value r = { RF_TYPE_F32, { 0 } };
    CHECK_STATUS(rf_function_call(f, a, 4, &r), RF_OK);
    CHECK(r.as.f32 == (float)(-1 + 4000000000u + 2.0));
    r.type = RF_TYPE_F64;
    CHECK_STATUS(rf_function_call(f, a, 4, &r), RF_OK);
    r.type = RF_TYPE_I32;
    CHECK_STATUS(rf_function_call(f, a, 4, &r), RF_ERROR_TYPE);
    CHECK_STATUS(rf_function_call(f, a, 4, NULL), RF_OK);
    CHECK_STATUS(rf_function_call(f, a, 3, NULL), RF_ERROR_TYPE);
    a[0] = rf_value_i32(128);
    CHECK_STATUS(rf_function_call(f, a, 4, NULL), RF_ERROR_TYPE);
    a[0] = rf_value_f64(1);
    CHECK_STATUS(rf_function_call(f, a, 4, NULL), RF_ERROR_TYPE);
    a[0] = rf_value_i32(1);

    rf_domain *domain = rf_runtime_domain(runtime);
    char *room = rf_memory_alloc(domain, 16);
    CHECK(room != NULL);
    CHECK_STATUS(rf_memory_write(domain, room, "from the host", 14), RF_OK);
    a[3] = rf_value_ptr(room);
    CHECK_STATUS(rf_function_call(f, a, 4, NULL), RF_OK);
    CHECK(strcmp(said, "from the host") == 0);
    a[3] = rf_value_ptr(said); /* the host's own memory is out of reach */
    rf_status status = rf_function_call(f, a, 4, NULL);
    CHECK(status == RF_FAULT_HOST || status == RF_FAULT_ACCESS);
    CHECK_STATUS(rf_runtime_reset(runtime), RF_OK);
    CHECK(rf_domain_find_object(domain, "x", NULL) == NULL);

    /* Batches, through a handle that stays. */
    rf_function *twice;
    int64_t numbers[] = { 1, 2, 3 };
    size_t done;
    CHECK_STATUS(rf_runtime_create_function(runtime, "twice", "long twice(long n) { return 2 * n; }", &twice), RF_OK);
    int64_t *array = rf_memory_alloc(domain, sizeof numbers);
    CHECK_STATUS(rf_memory_write(domain, array, numbers, sizeof numbers), RF_OK);
    rf_column column = { array, { RF_TYPE_I64, { 0 } } };
    CHECK_STATUS(rf_function_call_batch(twice, 3, &column, 1, RF_TYPE_I64, array, &done), RF_OK);
    CHECK_STATUS(rf_memory_read(domain, array, numbers, sizeof numbers), RF_OK);
    CHECK(done == 3 && numbers[0] == 2 && numbers[2] == 6);
    CHECK_STATUS(rf_runtime_delete_function(runtime, "twice"), RF_OK);
    CHECK_STATUS(rf_function_call_batch(twice, 3, &column, 1, RF_TYPE_I64, array, &done), RF_ERROR_NO_FUNCTION);
}

/* Functions as pointers of their types. */
static void pointers(rf_runtime *runtime) {
    rf_function *f;
    int64_t got;
    CHECK_STATUS(rf_runtime_create_function(runtime, "p", "static int n; int p(int by) { return n += by; }", &f), RF_OK);
    int (*p)(int) = RF_FUNCTION_POINTER(f, int, p, (int));
    CHECK(p && p(3) == 3 && p(4) == 7 && rf_call_status() == RF_OK);
    CHECK_STATUS(rf_runtime_replace_function(runtime, "p", "int p(int by) { return 100 / by; }"), RF_OK);
    CHECK(p(5) == 20 && rf_call_status() == RF_OK);

    CHECK(rf_function_pointer(f, "long p(int)") == NULL && rf_error()->status == RF_ERROR_TYPE);
    CHECK(strstr(rf_error()->message, "the text has int p(int)"));
    CHECK(rf_function_pointer(f, "int p(int, int)") == NULL && rf_error()->status == RF_ERROR_TYPE);
    CHECK(rf_function_pointer(f, "int p(double)") == NULL && rf_error()->status == RF_ERROR_TYPE);
    CHECK(rf_function_pointer(f, "p") == NULL && rf_error()->status == RF_ERROR_TYPE);
    CHECK(rf_function_pointer(f, "untyped p") == NULL && rf_error()->status == RF_ERROR_TYPE);
    CHECK(rf_function_pointer(f, "int p(") == NULL && rf_error()->status == RF_ERROR_TYPE);
    CHECK(rf_function_pointer(f, NULL) == NULL && rf_error()->status == RF_ERROR_ARGUMENT);
    CHECK(rf_function_pointer(NULL, "int p(int)") == NULL && rf_error()->status == RF_ERROR_HANDLE);
    rf_error_clear();

    CHECK(p(0) == 0 && rf_call_status() == RF_FAULT_DIVIDE);
    rf_error_clear();
    CHECK(p(5) == 0 && rf_call_status() == RF_ERROR_FAULTED);
    CHECK_STATUS(rf_runtime_reset(runtime), RF_OK);
    /* The pointer is of the life that has ended. */
    CHECK(p(5) == 0 && rf_call_status() == RF_ERROR_NO_FUNCTION);
    rf_error_clear();
    CHECK(call(f, 5, &got) == RF_OK && got == 20);
    p = RF_FUNCTION_POINTER(f, int, p, (int));
    CHECK(p && p(5) == 20 && rf_call_status() == RF_OK);
    CHECK_STATUS(rf_runtime_delete_function(runtime, "p"), RF_OK);
    CHECK(rf_function_pointer(f, "int p(int)") == NULL && rf_error()->status == RF_ERROR_NO_FUNCTION);
    CHECK(p(5) == 0 && rf_call_status() != RF_OK);
    CHECK_STATUS(rf_runtime_reset(runtime), RF_OK);
    rf_error_clear();
    CHECK_STATUS(rf_function_destroy(f), RF_OK);
}

int main(void) {
    double by = 0.5;
    rf_built_in built_ins[] = { { "double scale(double, int)", scale, &by }, { "void say(const char *text);", say, NULL } };
    rf_built_in bad = { "double scale", scale, NULL };
    rf_runtime *runtime = NULL, *other = NULL;
    CHECK_STATUS(rf_runtime_create(&bad, 1, NULL, &other), RF_ERROR_TEXT);
    bad.declaration = "int f(void)", bad.callback = NULL;
    CHECK_STATUS(rf_runtime_create(&bad, 1, NULL, &other), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_runtime_create(NULL, 1, NULL, &other), RF_ERROR_ARGUMENT);
    rf_import import = RF_IMPORT_INIT_CALLBACK("say", say, NULL);
    rf_domain_options options = RF_DOMAIN_OPTIONS_INIT;
    options.imports = &import, options.import_count = 1;
    CHECK_STATUS(rf_runtime_create(NULL, 0, &options, &other), RF_ERROR_ARGUMENT);
    CHECK(other == NULL);
    options.imports = NULL, options.import_count = 0, options.memory_limit = 32 << 20;
    CHECK_STATUS(rf_runtime_create(built_ins, 2, &options, &runtime), RF_OK);
    if (failures)
        return FINISH("runtime");
    verbs(runtime);
    texts(runtime);
    objects(runtime);
    values(runtime);
    pointers(runtime);
    long_double();

    rf_function *left;
    int64_t got;
    CHECK_STATUS(rf_runtime_create_function(runtime, "left", "long left(long n) { return n; }", &left), RF_OK);
    CHECK_STATUS(rf_runtime_destroy(runtime), RF_OK);
    CHECK_STATUS(rf_runtime_destroy(runtime), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_runtime_reset(runtime), RF_ERROR_HANDLE);
    CHECK(rf_runtime_domain(runtime) == NULL);
    CHECK_STATUS(call(left, 1, &got), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_runtime_destroy(NULL), RF_OK);
    return FINISH("runtime");
}
