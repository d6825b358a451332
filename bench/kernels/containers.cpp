// C++ with the standard library's containers: maps, hash maps, strings, sorting with a function object.
#include "kernel.h"
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

WORKLOAD(containers)
{
    uint64_t state = 71, sum = 1;
    for (uint64_t round = 0; round < part(320, permille); round++) {
        std::map<std::string, uint64_t> ordered;
        std::unordered_map<uint64_t, uint32_t> counts;
        std::vector<std::pair<uint32_t, std::string>> list;
        for (unsigned i = 0; i < AMOUNT(4000u, 60u); i++) {
            uint64_t r = next_random(&state);
            std::string key = "entry " + std::to_string(uint32_t(r >> 40) % 3000);
            ordered[key] += r & 15;
            counts[(r >> 20) % 1000]++;
            list.emplace_back(uint32_t(r >> 8), std::move(key));
        }
        std::sort(list.begin(), list.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
        for (const auto &[key, value] : ordered)
            sum = mix(sum, value + key.size());
        for (uint64_t i = 0; i < AMOUNT(1000, 60); i++)
            sum = mix(sum, counts.count(i) ? counts[i] : 0);
        sum = mix(sum, list[round % list.size()].second.back());
    }
    return sum;
}
