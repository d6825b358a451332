// C++ with virtual calls: a tree of shapes behind smart pointers, transformed and measured through a base class.
#include "kernel.h"
#include <memory>
#include <vector>

namespace {

struct Shape {
    virtual ~Shape() = default;
    virtual uint64_t area() const = 0;
    virtual void grow(uint32_t by) = 0;
};

struct Square final : Shape {
    uint32_t side;
    explicit Square(uint32_t s) : side(s) {}
    uint64_t area() const override { return uint64_t(side) * side; }
    void grow(uint32_t by) override { side = (side + by) & 1023; }
};

struct Box final : Shape {
    uint32_t w, h;
    Box(uint32_t a, uint32_t b) : w(a), h(b) {}
    uint64_t area() const override { return uint64_t(w) * h; }
    void grow(uint32_t by) override { w = (w + by) & 1023, h = (h ^ by) & 1023; }
};

struct Group final : Shape {
    std::vector<std::unique_ptr<Shape>> parts;
    uint64_t area() const override
    {
        uint64_t sum = 0;
        for (const auto &p : parts)
            sum += p->area();
        return sum;
    }
    void grow(uint32_t by) override
    {
        for (auto &p : parts)
            p->grow(by);
    }
};

std::unique_ptr<Shape> make(uint64_t &state, int depth)
{
    uint64_t r = next_random(&state);
    if (depth > 0) {
        auto group = std::make_unique<Group>();
        for (unsigned i = 0; i < 4 + (r >> 60); i++)
            group->parts.push_back(make(state, depth - 1));
        return group;
    }
    if (r >> 63)
        return std::make_unique<Square>(uint32_t(r) & 1023);
    return std::make_unique<Box>(uint32_t(r) & 1023, uint32_t(r >> 20) & 1023);
}

} // namespace

WORKLOAD(scene)
{
    uint64_t state = 67, sum = 1;
    auto root = make(state, 3);
    for (uint64_t round = 0; round < part(AMOUNT(150000, 5000), permille); round++) {
        root->grow(uint32_t(round & 7));
        sum = mix(sum, root->area());
    }
    return sum;
}
