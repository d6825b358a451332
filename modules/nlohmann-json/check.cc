// Documents of every kind, there and back; damaged ones, with what the exceptions say; every error that the manual lists.
#include "json.hh"
#include "rfcheck.h"
#include <iostream>
#include <string>
#include <vector>

using nlohmann::json;

namespace {

std::uint64_t state = 1;

std::uint64_t below(std::uint64_t n) { return rf_random(&state) % n; }

std::uint64_t digest(const std::string &s) { return rf_digest(s.data(), s.size()); }

json value(int depth)
{
	switch (below(depth > 0 ? 9 : 6)) {
	case 0: return nullptr;
	case 1: return below(2) == 0;
	case 2: return static_cast<std::int64_t>(rf_random(&state));
	case 3: return rf_random(&state);
	case 4: return static_cast<double>(static_cast<std::int64_t>(rf_random(&state))) / static_cast<double>(1 + below(100000));
	case 5: {
		std::string s;
		for (auto n = below(24); n > 0; n--)
			s += below(8) ? std::string(1, static_cast<char>(' ' + below(95))) : std::string("\u00e4\u20ac\n\"\\").substr(0, 5);
		return s;
	}
	case 6: {
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

// What an attempt comes to, as one line.
template <typename F> std::string outcome(F f)
{
	try {
		return f();
	} catch (const json::parse_error &e) {
		return "parse error at " + std::to_string(e.byte) + ": " + e.what();
	} catch (const json::exception &e) {
		return std::to_string(e.id) + ": " + e.what();
	} catch (const std::exception &e) {
		return std::string("other: ") + e.what();
	}
}

void show(const char *name, const std::string &what) { std::cout << name << ": " << what << '\n'; }

void round_trips()
{
	std::uint64_t trail = 0;
	for (int i = 0; i < 400; i++) {
		json v = value(5);
		std::string text = v.dump(static_cast<int>(below(5)) - 1, ' ', below(2) == 0, json::error_handler_t::replace);
		json again = json::parse(text, nullptr, false);
		RF_REQUIRE(!again.is_discarded());
		trail = trail * 31 + digest(text) + digest(again.dump(-1, ' ', false, json::error_handler_t::replace));
		if (again != v)
			trail++;
		RF_REQUIRE(json::from_cbor(json::to_cbor(again)) == again);
		RF_REQUIRE(json::from_msgpack(json::to_msgpack(again)) == again);
		RF_REQUIRE(json::from_ubjson(json::to_ubjson(again, true, true)) == again);
		json other = value(4);
		RF_REQUIRE(again.patch(json::diff(again, other)) == other);
		json merged = again;
		merged.merge_patch(other);
		trail = trail * 31 + digest(merged.dump(-1, ' ', false, json::error_handler_t::replace));
	}
	show("round trips", std::to_string(trail));
}

void damage()
{
	std::uint64_t trail = 0;
	unsigned thrown = 0;
	for (int i = 0; i < 60; i++) {
		json v = value(4);
		std::string text = v.dump(-1, ' ', true, json::error_handler_t::replace);
		auto cbor = json::to_cbor(v);
		for (int k = 0; k < 60; k++) {
			std::string bad = text;
			auto at = below(bad.size());
			switch (below(4)) {
			case 0: bad.resize(at); break;
			case 1: bad[at] = static_cast<char>(below(256)); break;
			case 2: bad.insert(at, 1, "[]{},:\"x0"[below(9)]); break;
			default: bad.erase(at, 1 + below(3)); break;
			}
			std::string said = outcome([&] { return json::parse(bad).dump(-1, ' ', true); });
			RF_REQUIRE(json::accept(bad) == (said.compare(0, 5, "parse") != 0 && said.compare(0, 4, "406:") != 0));
			thrown += said.compare(0, 5, "parse") == 0;
			trail = trail * 31 + digest(said);
			if (k % 20 == 0)
				show("damaged", said.substr(0, 200));
			auto bytes = cbor;
			bytes[below(bytes.size())] = static_cast<std::uint8_t>(below(256));
			bytes.resize(bytes.size() - below(2));
			trail = trail * 31 + digest(outcome([&] { return json::from_cbor(bytes).dump(-1, ' ', true); }));
		}
	}
	show("damage", std::to_string(trail) + ", " + std::to_string(thrown) + " errors");
}

void every_error()
{
	json j = json::parse(R"({"a": [1, 2.5, "x", null], "b": {"c": true}, "n": 7})");
	const json &c = j;
	show("at", outcome([&] { return j.at("zz").dump(); }));
	show("at index", outcome([&] { return j.at("a").at(9).dump(); }));
	show("at on a number", outcome([&] { return j.at("n").at("x").dump(); }));
	show("key of a list", outcome([&] { return j["a"]["x"].dump(); }));
	show("index of an object", outcome([&] { return c["b"][0].dump(); }));
	show("get", outcome([&] { return j["n"].get<std::string>(); }));
	show("get list", outcome([&] { return std::to_string(j["b"].get<std::vector<int>>().size()); }));
	show("value", outcome([&] { return std::to_string(j["a"].value("x", 3)); }));
	show("push_back", outcome([&] { return (j["n"].push_back(1), j.dump()); }));
	show("erase", outcome([&] { return std::to_string(j["n"].erase("x")); }));
	show("erase far", outcome([&] { return (j["a"].erase(100), j.dump()); }));
	show("iterator", outcome([&] { return j.begin() < j.end() ? std::string("less") : std::string("not"); }));
	show("other's iterator", outcome([&] { json k = {1}; return (j["a"].erase(k.begin()), j.dump()); }));
	show("range", outcome([&] { json k = 5; return json(k.begin(), k.begin()).dump(); }));
	show("no value", outcome([&] { json k; return json(*k.begin()).dump(); }));
	show("key", outcome([&] { return j["a"].begin().key(); }));
	show("utf8", outcome([&] { return json("\xff\xfe").dump(); }));
	show("surrogate", outcome([&] { return json::parse("\"\\ud800x\"").dump(); }));
	show("number", outcome([&] { return json::parse("1e999").dump(); }));
	show("pointer", outcome([&] { return j.at("/a/01"_json_pointer).dump(); }));
	show("pointer -", outcome([&] { return j.at("/a/-"_json_pointer).dump(); }));
	show("pointer syntax", outcome([&] { return j.at(json::json_pointer("a/b")).dump(); }));
	show("pointer ~", outcome([&] { return j.at(json::json_pointer("/~2")).dump(); }));
	show("patch", outcome([&] { return j.patch(json::parse(R"([{"op":"test","path":"/n","value":8}])")).dump(); }));
	show("patch path", outcome([&] { return j.patch(json::parse(R"([{"op":"remove","path":"/q"}])")).dump(); }));
	show("patch op", outcome([&] { return j.patch(json::parse(R"([{"op":"jump","path":"/n"}])")).dump(); }));
	show("unflatten", outcome([&] { return json({{"/a", 1}, {"/a/b", 2}}).unflatten().dump(); }));
	show("flatten", outcome([&] { return j.flatten().dump(); }));
	show("msgpack", outcome([&] { return json::from_msgpack(std::vector<std::uint8_t>{0xc1}).dump(); }));
	show("ubjson", outcome([&] { return json::from_ubjson(std::vector<std::uint8_t>{'[', '#', 'i'}).dump(); }));
	show("bson", outcome([&] { return std::to_string(json::to_bson(json(5)).size()); }));
	show("discarded", json::parse("[1,", nullptr, false).is_discarded() ? "yes" : "no");
	show("callback", json::parse(R"([1,[2],3])", [](int, json::parse_event_t event, json &v) {
		return event != json::parse_event_t::value || v != 3;
	}).dump());
	// An exception of the caller's comes through the parser.
	show("thrown in a callback", outcome([&] {
		return json::parse("[1,2,3]", [](int, json::parse_event_t, json &v) -> bool {
			if (v == 2)
				throw std::runtime_error("from the callback");
			return true;
		}).dump();
	}));
	std::string deep(20000, '[');
	show("deep", outcome([&] { return json::parse(deep).dump(); }));
	char room[64];
	show("normalize", std::to_string(json_normalize(" [ 1 ,2 ]", 9, room, sizeof room)));
	show("normalize error", std::to_string(json_normalize("[1", 2, room, sizeof room)));
}

void bench()
{
	json v = json::array();
	for (int i = 0; i < 2000; i++)
		v.push_back(value(5));
	std::string text = v.dump(-1, ' ', false, json::error_handler_t::replace);
	std::uint64_t sum = 0;
	RF_BENCH("parse", 3, sum += json::parse(text).size());
	RF_BENCH("dump", 3, sum += v.dump(-1, ' ', false, json::error_handler_t::replace).size());
	RF_BENCH("cbor", 3, sum += json::from_cbor(json::to_cbor(v)).size());
	RF_BENCH("errors", 3, for (int i = 0; i < 20000; i++) sum += json_normalize("[1,2,x]", 7, nullptr, 0) == -101);
	RF_REQUIRE(sum > 60000);
}

}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "bench")) {
		bench();
		return 0;
	}
	round_trips();
	damage();
	every_error();
}
