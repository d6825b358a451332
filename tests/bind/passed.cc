// Structs by value: passed.h in a domain, from C++.
#include "passed_fenced.hpp"

#include "../api/check.h"

namespace {

template <typename S> S pattern(unsigned seed) {
    unsigned char bytes[sizeof(S)];
    for (std::size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = static_cast<unsigned char>(37 * i + seed);
    S made;
    std::memcpy(&made, bytes, sizeof made);
    return made;
}

// Whether all fields are.
template <typename S> bool same(const S &a, const S &b) {
    std::uint64_t left[ringfence::detail::words<S>]{}, right[ringfence::detail::words<S>]{}, any = 0;
    std::memcpy(left, &a, sizeof a);
    std::memcpy(right, &b, sizeof b);
    for (std::size_t n = 0; n < ringfence::detail::words<S>; n++) {
        std::uint64_t fields = ringfence::by_value<S>::words[n].fields;
        any |= left[n] & fields;
        if ((left[n] ^ right[n]) & fields)
            return false;
    }
    return any != 0;
}

template <typename S> bool same(const ringfence::tainted<S> &a, const S &b) {
    return a.copy_and_verify([&](const S &value) { return same(value, b); });
}

#define SHAPE(S)                                                                                                       \
    {                                                                                                                  \
        const S s = pattern<S>(3), t = pattern<S>(101);                                                                \
        auto out = box.allocate<S>();                                                                                  \
        CHECK(same(sandbox_invoke(box, S##_echo, t), t));                                                              \
        CHECK(same(sandbox_invoke(box, S##_between, out, 'f', s, 2.5, t, 1.25f), t) && same(out[0].get(), s));         \
        CHECK(same(sandbox_invoke(box, S##_crowded, out, 1, 2, 3, 4, t, 5, s, -6), s) && same(out[0].get(), t));       \
        CHECK(same(sandbox_invoke(box, S##_floating, 1, 2, 3, 4, 5, 6, 7, s, 8, t, out), t) && same(out[0].get(), s)); \
        /* What is tainted passes, too. */                                                                             \
        CHECK(same(sandbox_invoke(box, S##_echo, out[0]), s));                                                         \
        CHECK(same(sandbox_invoke(box, S##_echo, sandbox_invoke(box, S##_echo, t)), t));                               \
        CHECK(!rf_error());                                                                                            \
    }

template <typename S> bool zero(const S &value) {
    return value.a == 0 && value.b == 0;
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 2)
        return fprintf(stderr, "usage: passed MODULE\n"), 2;
    ringfence::sandbox box(argv[1]);
    if (!box)
        return fprintf(stderr, "%s\n", rf_error()->message), 1;
    PASSED_SHAPES(SHAPE)

    // Fields, and where pointers lead.
    auto text = box.copy("text");
    auto echoed = sandbox_invoke(box, passed_pointer_echo, passed_pointer{text.get().UNSAFE_unverified(), PASSED_GREEN});
    CHECK(echoed.field(&passed_pointer::b).copy_and_verify([](passed_color c) { return c == PASSED_GREEN; }));
    CHECK(echoed.field(&passed_pointer::a).copy_and_verify_string([](std::unique_ptr<char[]> t) { return t && !strcmp(t.get(), "text"); }));

    // Padding is not the domain's to see.
    passed_hole hole;
    memset(&hole, 0xAA, sizeof hole);
    hole.a = 1, hole.b = 2;
    CHECK(sandbox_invoke(box, passed_seen, hole).UNSAFE_unverified() == 0x0000000200000001);
    passed_float_hole floating;
    memset(&floating, 0xAA, sizeof floating);
    floating.a = 1, floating.b = 2.5;
    CHECK(sandbox_invoke(box, passed_seen_floating, floating).UNSAFE_unverified() == 0x3f800000);

    // What fails returns zeroes.
    CHECK(sandbox_invoke(box, passed_crash, passed_complex{1, 2}).copy_and_verify(zero<passed_complex>));
    CHECK(rf_error() && rf_error()->status == RF_FAULT_ACCESS);
    CHECK(sandbox_invoke(box, passed_complex_echo, passed_complex{1, 2}).copy_and_verify(zero<passed_complex>));
    CHECK_STATUS(rf_domain_reset(box.domain()), RF_OK);
    CHECK(sandbox_invoke(box, passed_crash_large, pattern<passed_large>(1)).copy_and_verify(zero<passed_large>));
    CHECK(rf_error() && rf_error()->status == RF_FAULT_ACCESS);
    return FINISH("passed.cc");
}
