// Tainted values: kinds.h in a domain, from C++.
#include "kinds_fenced.hpp"

#include "../api/check.h"

namespace {

int seen;

int visit(ringfence::sandbox &box, ringfence::tainted<void *> context, ringfence::tainted<const char *> name,
          ringfence::tainted<const unsigned char *> data, ringfence::tainted<int> length) {
    CHECK(context.copy_and_verify_address([](std::uintptr_t address) { return address; }) == 42);
    int n = length.copy_and_verify([](int value) { return value >= 0 && value < 100 ? value : 0; });
    data.copy_and_verify_range([&](std::unique_ptr<unsigned char[]> bytes) { CHECK(n == 0 || (bytes && bytes[2] == 255)); }, static_cast<std::size_t>(n));
    name.copy_and_verify_string([](std::unique_ptr<char[]> text) { CHECK(text && (!strcmp(text.get(), "one") || !strcmp(text.get(), "ring"))); });
    // Back into the domain.
    int ones[] = {1, 1};
    CHECK(sandbox_invoke(box, kinds_sum, box.copy(ones, 2), 2).UNSAFE_unverified() == 2);
    return ++seen;
}

ringfence::tainted<double> many(ringfence::sandbox &, ringfence::tainted<int> a, ringfence::tainted<double> b, ringfence::tainted<long> c,
                                ringfence::tainted<float> d, ringfence::tainted<long>, ringfence::tainted<long>, ringfence::tainted<long>,
                                ringfence::tainted<long>, ringfence::tainted<long> i) {
    CHECK(a.UNSAFE_unverified() == 1 && b.UNSAFE_unverified() == 2.5 && c.UNSAFE_unverified() == 3 && d.UNSAFE_unverified() == 4.5f);
    CHECK(i.UNSAFE_unverified() == 9);
    return b;
}

void structs(ringfence::sandbox &box) {
    auto point = box.allocate<kinds_point>();
    point->x = 1;
    point->y = 2;
    point->weight = 1.5;
    sandbox_invoke(box, kinds_move, point, 10, 20);
    CHECK(point->x.copy_and_verify([](int x) { return x == 11 ? x : 0; }) == 11);
    CHECK((point->x < 12).UNSAFE_unverified() && (point->weight == 3.0).UNSAFE_unverified());
    kinds_point copy = point.get().copy_and_verify([](std::unique_ptr<kinds_point> p) { return *p; });
    CHECK(copy.y == 22);

    auto options = box.allocate<kinds_options>();
    auto title = box.copy("title");
    options->title = title.get();
    options->origin = point.get();
    options->color = KINDS_RED;
    CHECK(sandbox_invoke(box, kinds_apply, options, 3).UNSAFE_unverified() == -1);
    CHECK(options->sum.copy_and_verify([](long sum) { return sum; }) == 3 + 5 + 11);
    CHECK(options->color.copy_and_verify([](kinds_color c) { return c; }) == KINDS_GREEN);
    // Pointers in structs lead on, and not out.
    CHECK(options->origin->x.UNSAFE_unverified() == 7);
    ringfence::tainted<kinds_point *> wild(ringfence::detail::place{box.domain(), 0x123456789});
    CHECK(wild->x.UNSAFE_unverified() == 0 && rf_error());
    CHECK(wild.copy_and_verify([](std::unique_ptr<kinds_point> p) { return p == nullptr; }));
    rf_error_clear();
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 2)
        return fprintf(stderr, "usage: host MODULE\n"), 2;
    ringfence::sandbox none("/nowhere.rf");
    CHECK(!none && rf_error() && rf_error()->status == RF_ERROR_FILE);
    ringfence::sandbox box(argv[1]);
    if (!box)
        return fprintf(stderr, "%s\n", rf_error()->message), 1;
    auto k = sandbox_invoke(box, kinds_create, box.copy("ring"), KINDS_GREEN);
    CHECK(k != nullptr);
    int numbers[] = {1, 2, 39};
    auto sum = sandbox_invoke(box, kinds_sum, box.copy(numbers, 3), 3);
    CHECK(sum.copy_and_verify([](int n) { return n < 100 ? n : -1; }) == 42);
    CHECK((sum == 42).UNSAFE_unverified());
    std::string name = sandbox_invoke(box, kinds_name, k).copy_and_verify_string([](std::unique_ptr<char[]> text) { return std::string(text ? text.get() : ""); });
    CHECK(name == "ring");
    auto place = box.allocate<const char *>();
    auto text = box.copy("a word");
    CHECK(sandbox_invoke(box, kinds_find, text, 'w', place).UNSAFE_unverified() == 1);
    CHECK(place[0].get().UNSAFE_unverified() == text.get().UNSAFE_unverified() + 2);

    auto context = ringfence::tainted<void *>(ringfence::detail::place{box.domain(), 42});
    {
        auto callback = box.register_callback(visit);
        CHECK(callback && sandbox_invoke(box, kinds_visit_all, k, callback, context).UNSAFE_unverified() == 3 && seen == 2);
        sandbox_invoke(box, kinds_register, k, callback, context);
        CHECK(sandbox_invoke(box, kinds_call_many, box.register_callback(many)).UNSAFE_unverified() == 2.5);
    }
    // It has ended with its owner.
    CHECK(sandbox_invoke(box, kinds_ring, k).UNSAFE_unverified() == 0 && rf_error() && rf_error()->status == RF_FAULT_HOST);
    CHECK_STATUS(rf_domain_reset(box.domain()), RF_OK);
    for (std::size_t i = 0; i < 3 * ringfence::sandbox::most_callbacks; i++)
        CHECK(box.register_callback(visit));
    structs(box);
    CHECK(sandbox_invoke(box, kinds_crash, box.allocate<int>()).UNSAFE_unverified() == 0 && rf_error()->status == RF_FAULT_ACCESS);
    return FINISH("host.cc");
}
