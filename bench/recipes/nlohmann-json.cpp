// JSON for Modern C++: documents read and printed, and damaged ones, each of which ends in an exception with a message.
#include "json.hh"
#include "kernel.h"
#include "rfcheck.h"
#include <string>

using nlohmann::json;

namespace {

uint64_t state;

uint64_t below(uint64_t n) { return rf_random(&state) % n; }

json value(int depth)
{
    switch (below(depth > 0 ? 8 : 4)) {
    case 0: return below(2) == 0;
    case 1: return static_cast<int64_t>(rf_random(&state));
    case 2: return static_cast<double>(below(1000000)) / 64;
    case 3: return "text " + std::to_string(below(100000)) + " \"quoted\"\n";
    case 4: {
        json list = json::array();
        for (auto n = below(8); n > 0; n--)
            list.push_back(value(depth - 1));
        return list;
    }
    default: {
        json object = json::object();
        for (auto n = below(8); n > 0; n--)
            object["key" + std::to_string(below(1000))] = value(depth - 1);
        return object;
    }
    }
}

json document()
{
    state = 84;
    json list = json::array();
    for (int i = 0; i < AMOUNT(4000, 2); i++)
        list.push_back(value(5));
    return list;
}

uint64_t digest(const std::string &text) { return rf_digest(text.data(), text.size()); }

}

WORKLOAD(parse)
{
    uint64_t sum = 1;
    std::string text = document().dump();
    for (uint64_t round = 0; round < part(14, permille); round++)
        sum = mix(sum, json::parse(text).size());
    return sum;
}

WORKLOAD(dump)
{
    uint64_t sum = 1;
    json list = document();
    for (uint64_t round = 0; round < part(40, permille); round++)
        sum = mix(sum, digest(list.dump()));
    return sum;
}

WORKLOAD(errors)
{
    static const char *const damaged[] = {"[1,2,x]", "{\"a\" 1}", "[1,2", "\"\\q\"", "[01]"};
    uint64_t sum = 1;
    for (uint64_t round = 0; round < part(AMOUNT(100000, 3), permille); round++) {
        try {
            json::parse(damaged[round % 5]);
        } catch (const json::parse_error &e) {
            sum = mix(sum, digest(e.what()));
        }
    }
    return sum;
}
