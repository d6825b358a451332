// The library's usual instance, compiled once.
#pragma once
#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<>;

// For hosts that know no C++: the length of the document printed again, or the number of the error.
extern "C" long json_normalize(const char *text, unsigned long length, char *out, unsigned long room);
