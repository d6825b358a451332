// The header and the library from C++.
#include <ringfence.hpp>

#include <memory>
#include <string>
#include <type_traits>

#include "check.h"

namespace {
struct Close {
    void operator()(rf_domain *d) const { (void)rf_domain_destroy(d); }
    void operator()(rf_module *m) const { (void)rf_module_destroy(m); }
};

void sum(rf_caller *caller, void *context) {
    ++*static_cast<int *>(context);
    rf_caller_return_int(caller, rf_caller_arg_int(caller, 0) + rf_caller_arg_int(caller, 1));
}
int host_add(int a, int b) { return a + b; }
double host_mix(int a, double x, long b, float y) noexcept { return a + x + static_cast<double>(b) + static_cast<double>(y); }
enum class byte_kind : unsigned char { small = 3 };

// A copy of an array in the domain's memory, and back.
template <typename T, size_t N> T *put(rf_domain *d, const T (&from)[N]) {
    void *to = rf_memory_alloc(d, sizeof from);
    CHECK_STATUS(rf_memory_write(d, to, from, sizeof from), RF_OK);
    return static_cast<T *>(to);
}
template <typename T> T at(rf_domain *d, const T *array, size_t n) {
    T value{};
    CHECK_STATUS(rf_memory_read(d, array + n, &value, sizeof value), RF_OK);
    return value;
}

// A call for each element, by the function's C++ type.
void batches(rf_domain *d) {
    if (!HAS(CODE))
        return;
    rf_function *mixed = nullptr, *narrow = nullptr, *half = nullptr, *bump = nullptr, *echo = nullptr;
    CHECK_STATUS(rf_function_create(d, "mixed", &mixed), RF_OK);
    CHECK_STATUS(rf_function_create(d, "narrow", &narrow), RF_OK);
    CHECK_STATUS(rf_function_create(d, "half", &half), RF_OK);
    CHECK_STATUS(rf_function_create(d, "nothing", &bump), RF_OK);
    CHECK_STATUS(rf_function_create(d, "echo_pointer", &echo), RF_OK);
    const int a[] = {1, -2};
    const double x[] = {2.5, 1e6};
    const float y[] = {4.25f, -0.5f};
    const byte_kind kinds[] = {byte_kind::small, static_cast<byte_kind>(250)};
    const long offset[] = {-4};
    const double none[] = {0, 0};
    double *out = put(d, none);
    size_t done = 77;
    using all = ringfence::batch<double(int, double, long, float, byte_kind)>;
    CHECK_STATUS(all::call(mixed, 2, out, &done, put(d, a), put(d, x), 3L, put(d, y), put(d, kinds)), RF_OK);
    CHECK(done == 2 && at(d, out, 0) == 1 + 5.0 + 3 + 17 + 3 && at(d, out, 1) == -2 + 2e6 + 3 - 2 + 250);
    CHECK_STATUS(all::call(mixed, 1, out, &done, -1, 0.5, put(d, offset), 1.0f, byte_kind::small), RF_OK);
    CHECK(at(d, out, 0) == -1 + 1 - 4 + 4 + 3);
    const signed char small[] = {-128, 5};
    signed char *bytes = put(d, small);
    CHECK_STATUS(ringfence::batch<signed char(signed char)>::call(narrow, 2, bytes, nullptr, bytes), RF_OK);
    CHECK(at(d, bytes, 0) == 127 && at(d, bytes, 1) == 4);
    float *floats = put(d, y);
    CHECK_STATUS(ringfence::batch<float(float)>::call(half, 2, floats, nullptr, floats), RF_OK);
    CHECK(at(d, floats, 1) == -0.25f);
    CHECK_STATUS(ringfence::batch<void()>::call(bump, 5, nullptr, &done), RF_OK);
    CHECK(done == 5);
    void *const pointers[] = {floats, nullptr};
    void **words = const_cast<void **>(put(d, pointers));
    CHECK_STATUS(ringfence::batch<void *(void *)>::call(echo, 2, words, nullptr, words), RF_OK);
    CHECK(at(d, words, 0) == floats && at(d, words, 1) == nullptr);
    for (rf_function *f : {mixed, narrow, half, bump, echo})
        CHECK_STATUS(rf_function_destroy(f), RF_OK);
}

// Functions by their C++ types, in both directions.
void typed(rf_domain *d) {
    auto mixed = ringfence::dlsym<double(int, double, long, float, unsigned char)>(d, "mixed");
    CHECK(mixed && mixed(1, 2.5, 3, 4.25f, 250) == 1 + 5.0 + 3 + 17 + 250);
    CHECK(ringfence::dlsym<signed char(signed char)>(d, "narrow")(-128) == 127);
    CHECK(ringfence::dlsym<bool(unsigned long)>(d, "is_odd")(3));
    CHECK(ringfence::dlsym<float(float)>(d, "half")(3.0f) == 1.5f);
    CHECK(ringfence::dlsym<long(long, long, long, long, long, long, long, long)>(d, "eight")(1, 2, 3, 4, 5, 6, 7, 8) == 87654321);
    ringfence::dlsym<void()>(d, "nothing")();
    CHECK(!ringfence::dlsym<void()>(d, "no_such") && rf_error()->status == RF_ERROR_NO_FUNCTION);
    batches(d);
    using ringfence::detail::prototype;
    CHECK(prototype<int()>::of("f") == "int f(void)");
    CHECK((prototype<long double(const char *, byte_kind, const unsigned short, char, size_t)>::of("f") ==
           "long double f(void *, unsigned char, unsigned short, signed char, long)"));
}

void imported(rf_module *module, const char *path) {
    rf_domain_options options = RF_DOMAIN_OPTIONS_INIT;
    ringfence::imports given;
    int calls = 0;
    given.function("host_add", host_add).function("host_mix", host_mix);
    given.callback("host_eight", sum, &calls).callback("host_note", sum, &calls).into(options);
    rf_domain *made = nullptr;
    CHECK_STATUS(rf_domain_create(module, &options, &made), RF_OK);
    std::unique_ptr<rf_domain, Close> domain(made);
    CHECK(ringfence::dlsym<int(int, int)>(made, "call_host_add")(20, 21) == 42);
    CHECK(ringfence::dlsym<double()>(made, "call_host_mix")() == 1 + 2.5 + 3 + 4.5);
    CHECK_STATUS(ringfence::provide("host_add", host_add), RF_OK);
    // The same in one step.
    std::unique_ptr<void, int (*)(void *)> handle(rf_dlopen_with(path, 0, &options), rf_dlclose);
    CHECK(handle && ringfence::dlsym<double()>(handle.get(), "call_host_mix")() == 1 + 2.5 + 3 + 4.5);
}
} // namespace

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    static_assert(std::is_standard_layout<rf_value>::value && sizeof(rf_value) == 16, "rf_value");
    rf_module *opened = nullptr;
    CHECK_STATUS(rf_module_create(argv[1], 0, &opened), RF_OK);
    std::unique_ptr<rf_module, Close> module(opened);
    imported(module.get(), argv[1]);
    int calls = 0;
    const rf_import imports[] = {
        RF_IMPORT_INIT_CALLBACK("host_add", sum, &calls),
        RF_IMPORT_INIT_CALLBACK("host_mix", sum, &calls),
        RF_IMPORT_INIT_CALLBACK("host_eight", sum, &calls),
        RF_IMPORT_INIT_CALLBACK("host_note", sum, &calls),
    };
    ringfence::domain_options options;
    options.imports = imports;
    options.import_count = 4;
    rf_domain *made = nullptr;
    CHECK_STATUS(rf_domain_create(module.get(), &options, &made), RF_OK);
    std::unique_ptr<rf_domain, Close> domain(made);
    auto add = ringfence::dlsym<int(int, int)>(domain.get(), "call_host_add");
    static_assert(std::is_same<decltype(add), int (*)(int, int)>::value, "a pointer of that type");
    CHECK(add && add(20, 21) == 42 && calls == 1);
    typed(domain.get());
    rf_value argument = rf_value_ptr(nullptr), result = {RF_TYPE_I32, {0}};
    if (HAS(FAULTS)) {
        CHECK_STATUS(rf_domain_call(domain.get(), "outer", &argument, 1, &result), RF_FAULT_ACCESS);
        CHECK(std::string(rf_error()->message).find("wild_read") != std::string::npos);
    }
    domain.reset();
    module.reset();
    return FINISH("cxx");
}
