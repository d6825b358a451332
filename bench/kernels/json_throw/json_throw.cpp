// C++ with exceptions: orders as JSON, a third of them damaged, parsed and read by code that throws at what is wrong.
#include "json.h"

namespace {

Value random_value(uint64_t &random, int depth)
{
    uint64_t r = next_random(&random) >> 20;
    switch (r % (depth ? 7 : 5)) {
    case 0:
        return { int64_t(r >> 8 & 0xffff) };
    case 1:
        return { double(int64_t(r >> 8 & 0xffff) - 32768) / 8 };
    case 2:
        return { "a \"text\"\nof number " + std::to_string(r >> 30) };
    case 3:
        return { bool(r & 8) };
    case 4:
        return { nullptr };
    case 5: {
        Array array;
        for (unsigned i = 0; i < (r >> 8 & 7); i++)
            array.push_back(random_value(random, depth - 1));
        return { std::move(array) };
    }
    default: {
        Object object;
        for (unsigned i = 0; i < (r >> 8 & 7); i++)
            object["field " + std::to_string(i)] = random_value(random, depth - 1);
        return { std::move(object) };
    }
    }
}

Value order(uint64_t &random)
{
    Array lines;
    for (uint64_t n = 2 + (next_random(&random) >> 61); n; n--) {
        uint64_t r = next_random(&random) >> 24;
        Object line;
        line["count"] = { int64_t(r & 31) };
        line["price"] = { double(r >> 8 & 0xfff) / 4 };
        line["name"] = { "item " + std::to_string(r >> 20) };
        line["more"] = random_value(random, 3);
        lines.push_back({ std::move(line) });
    }
    Object order;
    order["id"] = { int64_t(next_random(&random) >> 40) };
    order["lines"] = { std::move(lines) };
    return { std::move(order) };
}

// Changes a byte of one document in three.
void damage(std::string &text, uint64_t &random)
{
    uint64_t r = next_random(&random) >> 16;
    if (r % 3 == 0)
        text[(r >> 8) % text.size()] = "{}[]\",:x1\n"[(r >> 4) % 10];
}

uint64_t total(const Value &order)
{
    uint64_t sum = uint64_t(order.at("id").integer());
    for (const Value &line : order.at("lines").array())
        sum = mix(sum, uint64_t(line.at("count").integer()) + line.at("name").text().size());
    return sum;
}

} // namespace

WORKLOAD(json_throw)
{
    uint64_t random = 107, sum = 1, good = 0, broken = 0, wrong = 0, missing = 0, too_big = 0;
    std::vector<std::string> texts;
    for (int i = 0; i < AMOUNT(500, 20); i++) {
        Value value = order(random);
        texts.push_back(write(value));
        REQUIRE(hash(parse(texts.back())) == hash(value));
    }
    for (uint64_t i = 0; i < part(AMOUNT(30000, 40), permille); i++) {
        std::string text = texts[i % texts.size()];
        damage(text, random);
        try {
            Value value = parse(text);
            sum = mix(sum, total(value));
            sum = mix(sum, hash(value));
            good++;
        } catch (const SyntaxError &e) {
            sum = mix(sum, e.code());
            broken++;
        } catch (const Error &e) {
            sum = mix(sum, e.code());
            wrong++;
        } catch (const std::out_of_range &) {
            missing++;
        } catch (const std::exception &) {
            too_big++;
        }
    }
    return mix(mix(mix(mix(mix(sum, good), broken), wrong), missing), too_big);
}
