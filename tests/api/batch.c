/* Batches: one crossing, a call for each element of arrays in the domain. */
#include <ringfence.h>
#include <stdint.h>

#include "check.h"

enum { COUNT = 100 };

/* A copy of an array in the domain's memory. */
static void *put(rf_domain *domain, const void *from, size_t size) {
    void *to = rf_memory_alloc(domain, size);
    CHECK(to != NULL);
    CHECK_STATUS(rf_memory_write(domain, to, from, size), RF_OK);
    return to;
}

int main(int argc, char **argv) {
    rf_module *module;
    rf_domain *domain;
    rf_function *add, *divide;
    int32_t a[COUNT], b[COUNT], got[COUNT + 1] = { 0 };
    uint8_t bytes[COUNT];
    size_t done = 77;
    for (int i = 0; i < COUNT; i++)
        a[i] = 1000 * i, b[i] = -i, bytes[i] = (uint8_t)(255 - i);
    if (argc < 2)
        return 2;
    if (!HAS(CODE) || !HAS(FAULTS)) /* the loop is code that is added */
        return FINISH("batch");
    CHECK_STATUS(rf_module_create(argv[1], 0, &module), RF_OK);
    CHECK_STATUS(rf_domain_create(module, NULL, &domain), RF_OK);
    if (failures)
        return FINISH("batch");
    CHECK_STATUS(rf_function_create(domain, "add", &add), RF_OK);
    CHECK_STATUS(rf_function_create(domain, "divide", &divide), RF_OK);

    /* Arrays, a value for all, and elements that are narrower than the argument. */
    int32_t *in_a = put(domain, a, sizeof a), *in_b = put(domain, b, sizeof b), *out = put(domain, got, sizeof got);
    uint8_t *in_bytes = put(domain, bytes, sizeof bytes);
    rf_column both[] = { { in_a, { RF_TYPE_I32, { 0 } } }, { in_b, { RF_TYPE_I32, { 0 } } } };
    CHECK_STATUS(rf_function_call_batch(add, COUNT, both, 2, RF_TYPE_I32, out, &done), RF_OK);
    CHECK(done == COUNT);
    CHECK_STATUS(rf_memory_read(domain, out, got, sizeof got), RF_OK);
    for (int i = 0; i < COUNT; i++)
        CHECK(got[i] == 999 * i);
    CHECK(got[COUNT] == 0);
    rf_column narrow[] = { { in_bytes, { RF_TYPE_U8, { 0 } } }, { NULL, rf_value_i32(-5) } };
    CHECK_STATUS(rf_function_call_batch(add, COUNT, narrow, 2, RF_TYPE_I16, out, NULL), RF_OK);
    int16_t halves[COUNT + 1];
    CHECK_STATUS(rf_memory_read(domain, out, halves, sizeof halves), RF_OK);
    for (int i = 0; i < COUNT; i++)
        CHECK(halves[i] == 250 - i);
    CHECK_STATUS(rf_function_call_batch(add, COUNT, both, 2, RF_TYPE_VOID, NULL, &done), RF_OK);
    CHECK(done == COUNT);
    done = 77;
    CHECK_STATUS(rf_function_call_batch(add, 0, both, 2, RF_TYPE_I32, out, &done), RF_OK);
    CHECK(done == 0);

    /* What is wrong before anything is called. */
    rf_column host[] = { { a, { RF_TYPE_I32, { 0 } } }, { NULL, rf_value_i32(1) } };
    CHECK_STATUS(rf_function_call_batch(add, COUNT, host, 2, RF_TYPE_I32, out, &done), RF_ERROR_RANGE);
    CHECK_STATUS(rf_function_call_batch(add, COUNT, both, 2, RF_TYPE_I32, got, &done), RF_ERROR_RANGE);
    CHECK_STATUS(rf_function_call_batch(add, COUNT, NULL, 2, RF_TYPE_I32, out, &done), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_function_call_batch(add, COUNT, both, 2, (rf_type)77, out, &done), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_function_call_batch(NULL, COUNT, both, 2, RF_TYPE_I32, out, &done), RF_ERROR_HANDLE);
    rf_column bad[] = { { in_a, { RF_TYPE_VOID, { 0 } } }, { NULL, { RF_TYPE_U8, { 0 } } } };
    CHECK_STATUS(rf_function_call_batch(add, COUNT, &bad[0], 1, RF_TYPE_I32, out, &done), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_function_call_batch(add, COUNT, &bad[1], 1, RF_TYPE_I32, out, &done), RF_ERROR_ARGUMENT);
    rf_column many[7];
    for (int i = 0; i < 7; i++)
        many[i] = both[0];
    CHECK_STATUS(rf_function_call_batch(add, COUNT, many, 7, RF_TYPE_I32, out, &done), RF_ERROR_TOO_LONG);
    CHECK_STATUS(rf_function_call_batch(add, COUNT, both, SIZE_MAX, RF_TYPE_I32, out, &done), RF_ERROR_TOO_LONG);
    CHECK(done == 0);

    /* A fault tells its element, and leaves the results before it. */
    for (int i = 0; i < COUNT; i++)
        b[i] = i - 37;
    CHECK_STATUS(rf_memory_write(domain, in_b, b, sizeof b), RF_OK);
    rf_column quotient[] = { { NULL, rf_value_i32(37) }, { in_b, { RF_TYPE_I32, { 0 } } } };
    CHECK_STATUS(rf_function_call_batch(divide, COUNT, quotient, 2, RF_TYPE_I32, out, &done), RF_FAULT_DIVIDE);
    CHECK(done == 37);
    CHECK_STATUS(rf_memory_read(domain, out, got, sizeof got), RF_OK);
    CHECK(got[0] == -1 && got[36] == -37);
    CHECK_STATUS(rf_function_call_batch(divide, COUNT, quotient, 2, RF_TYPE_I32, out, &done), RF_ERROR_FAULTED);
    CHECK(done == 0);
    CHECK_STATUS(rf_domain_reset(domain), RF_OK);
    rf_column values[] = { { NULL, rf_value_i32(84) }, { NULL, rf_value_i32(2) } };
    out = rf_memory_alloc(domain, sizeof got);
    CHECK_STATUS(rf_function_call_batch(divide, 3, values, 2, RF_TYPE_I32, out, &done), RF_OK);
    CHECK_STATUS(rf_memory_read(domain, out, got, 12), RF_OK);
    CHECK(done == 3 && got[0] == 42 && got[2] == 42);

    CHECK_STATUS(rf_function_destroy(add), RF_OK);
    CHECK_STATUS(rf_function_destroy(divide), RF_OK);
    CHECK_STATUS(rf_domain_destroy(domain), RF_OK);
    CHECK_STATUS(rf_module_destroy(module), RF_OK);
    return FINISH("batch");
}
