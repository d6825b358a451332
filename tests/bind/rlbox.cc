// RLBox on Ringfence: rlbox MODULE.
#define RLBOX_USE_EXCEPTIONS
#include <rlbox.hpp>
#include <ringfence/rlbox_ringfence_sandbox.hpp>

extern "C" {
#include "kinds.h"
}
#include "../api/check.h"

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
    box.invoke_sandbox_function(kinds_destroy, k);
    box.free_in_sandbox(numbers);
    box.destroy_sandbox();
    return FINISH("rlbox.cc");
}
