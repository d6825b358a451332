#include <nlohmann/json.hpp>
#include <cstring>

template class nlohmann::basic_json<>;

extern "C" __attribute__((visibility("default"))) long json_normalize(const char *text, unsigned long length, char *out,
                                                                     unsigned long room)
{
	try {
		std::string printed = nlohmann::json::parse(text, text + length).dump();
		if (printed.size() > room)
			return 0;
		std::memcpy(out, printed.data(), printed.size());
		return static_cast<long>(printed.size());
	} catch (const nlohmann::json::exception &e) {
		return -e.id;
	}
}
