// RLBox on Ringfence: rlbox MODULE.
#define RLBOX_USE_EXCEPTIONS
#include <rlbox.hpp>
#include <ringfence/rlbox_ringfence_sandbox.hpp>

#include "kinds_fenced.hpp"

#include "../api/check.h"

#define sandbox_fields_reflection_kinds_class_kinds_point(f, g, ...) f(int, x, FIELD_NORMAL, ##__VA_ARGS__) g() f(int, y, FIELD_NORMAL, ##__VA_ARGS__) g() f(double, weight, FIELD_NORMAL, ##__VA_ARGS__) g()
#define sandbox_fields_reflection_kinds_allClasses(f, ...) f(kinds_point, kinds, ##__VA_ARGS__)
rlbox_load_structs_from_library(kinds);

using box_type = rlbox::rlbox_ringfence_sandbox;
using sandbox = rlbox::rlbox_sandbox<box_type>;
template <typename T> using tainted = rlbox::tainted<T, box_type>;

static int seen;
static tainted<int> visit(sandbox &box, tainted<void *>, tainted<const char *> name, tainted<const unsigned char *>, tainted<int> length) {
    CHECK(length.copy_and_verify([](int n) { return n; }) == (seen ? 0 : 3));
    CHECK(name.copy_and_verify_string([](std::unique_ptr<char[]> s) { return strlen(s.get()); }) > 0);
    return box.invoke_sandbox_function(kinds_live).copy_and_verify([](int n) { return n; }) + seen++;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    sandbox box;
    CHECK(box.create_sandbox(argv[1]));
    auto name = box.malloc_in_sandbox<char>(8);
    strcpy(name.unverified_safe_pointer_because(8, "it was allocated above"), "ring");
    auto k = box.invoke_sandbox_function(kinds_create, rlbox::sandbox_const_cast<const char *>(name), KINDS_RED);
    CHECK(k != nullptr);
    auto numbers = box.malloc_in_sandbox<int>(2);
    numbers[0] = 20, numbers[1] = 22;
    CHECK(box.invoke_sandbox_function(kinds_sum, numbers, 2).copy_and_verify([](int n) { return n; }) == 42);
    {
        auto callback = box.register_callback(visit);
        CHECK(box.invoke_sandbox_function(kinds_visit_all, k, callback, nullptr).copy_and_verify([](int n) { return n; }) == 3 && seen == 2);
    }
    // A struct of 16 bytes by value, as kinds_fenced.hpp says.
    tainted<kinds_point> point;
    point.x = 3, point.y = -4, point.weight = 2.5;
    tainted<kinds_point> back = box.invoke_sandbox_function(kinds_by_value, point);
    CHECK(back.x.UNSAFE_unverified() == 3 && back.y.UNSAFE_unverified() == -4 && back.weight.UNSAFE_unverified() == 2.5);
    box.invoke_sandbox_function(kinds_destroy, k);
    box.free_in_sandbox(numbers);
    box.destroy_sandbox();
    return FINISH("rlbox.cc");
}
