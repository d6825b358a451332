/* ringfence/host/value.h - arguments and results whose types are known at run time. */
#ifndef RINGFENCE_HOST_VALUE_H
#define RINGFENCE_HOST_VALUE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The type of an argument or a result. */
typedef enum rf_type {
    RF_TYPE_VOID = 0,
    RF_TYPE_I32,
    RF_TYPE_U32,
    RF_TYPE_I64,
    RF_TYPE_U64,
    RF_TYPE_PTR,
    RF_TYPE_F32,
    RF_TYPE_F64,
    RF_TYPE_I8, /* this one and those behind it: of arrays only (rf_function_call_batch) */
    RF_TYPE_U8,
    RF_TYPE_I16,
    RF_TYPE_U16
} rf_type;

/* An argument or a result. */
typedef struct rf_value {
    rf_type type;
    union {
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        void *ptr; /* an address; of the domain, when it comes from one */
        float f32;
        double f64;
    } as;
} rf_value;

static inline rf_value rf_value_i32(int32_t v) { rf_value r; r.type = RF_TYPE_I32; r.as.u64 = 0; r.as.i32 = v; return r; }
static inline rf_value rf_value_u32(uint32_t v) { rf_value r; r.type = RF_TYPE_U32; r.as.u64 = 0; r.as.u32 = v; return r; }
static inline rf_value rf_value_i64(int64_t v) { rf_value r; r.type = RF_TYPE_I64; r.as.i64 = v; return r; }
static inline rf_value rf_value_u64(uint64_t v) { rf_value r; r.type = RF_TYPE_U64; r.as.u64 = v; return r; }
static inline rf_value rf_value_ptr(const void *v) { rf_value r; r.type = RF_TYPE_PTR; r.as.u64 = (uint64_t)(uintptr_t)v; return r; }
static inline rf_value rf_value_f32(float v) { rf_value r; r.type = RF_TYPE_F32; r.as.u64 = 0; r.as.f32 = v; return r; }
static inline rf_value rf_value_f64(double v) { rf_value r; r.type = RF_TYPE_F64; r.as.f64 = v; return r; }

#ifdef __cplusplus
}
#endif
#endif
