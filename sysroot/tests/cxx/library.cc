// The standard library: containers, algorithms, smart pointers, strings, numbers, and the streams.
#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <bitset>
#include <charconv>
#include <chrono>
#include <cmath>
#include <complex>
#include <deque>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <list>
#include <locale>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <queue>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <valarray>
#include <variant>
#include <vector>

namespace {

std::map<std::string, int> global{{"one", 1}, {"two", 2}, {"three", 3}};

struct Node : std::enable_shared_from_this<Node> {
	std::string name;
	std::vector<std::shared_ptr<Node>> children;
	std::weak_ptr<Node> parent;
	explicit Node(std::string n) : name(std::move(n)) {}
	~Node() { std::cout << "~" << name << ' '; }
};

void containers()
{
	std::vector<int> v(1000);
	std::iota(v.begin(), v.end(), 0);
	std::mt19937_64 engine(42);
	std::shuffle(v.begin(), v.end(), engine);
	std::cout << v[0] << ' ' << v[500] << ' ' << engine() << '\n';
	std::stable_sort(v.begin(), v.end(), [](int a, int b) { return a % 7 < b % 7; });
	std::sort(v.begin() + 10, v.begin() + 500, std::greater<>());
	std::cout << v[10] << ' ' << std::accumulate(v.begin(), v.end(), 0L) << ' ' << *std::max_element(v.begin(), v.end()) << '\n';
	std::nth_element(v.begin(), v.begin() + 500, v.end());
	std::cout << v[500] << ' ' << std::count_if(v.begin(), v.end(), [](int x) { return x & 1; }) << '\n';

	for (auto &[key, value] : global)
		std::cout << key << '=' << value << ' ';
	global.erase("two");
	std::cout << global.size() << ' ' << global.count("two") << ' ' << global.lower_bound("p")->first << '\n';
	std::unordered_map<std::string, std::vector<int>> hashed;
	for (int i = 0; i < 5000; i++)
		hashed["key" + std::to_string(i % 701)].push_back(i);
	std::cout << hashed.size() << ' ' << hashed.bucket_count() << ' ' << hashed["key700"].back() << '\n';
	std::set<int> set{5, 3, 9, 1};
	std::multiset<int> multi(v.begin(), v.begin() + 10);
	std::unordered_set<int> odd(v.begin(), v.end());
	std::deque<int> deque;
	std::list<int> list;
	for (int i = 0; i < 300; i++) {
		deque.push_front(i);
		list.push_back(i * 37 % 101);
	}
	list.sort();
	list.unique();
	std::priority_queue<int> heap(v.begin(), v.end());
	std::cout << *set.begin() << ' ' << multi.size() << ' ' << odd.size() << ' ' << deque[7] << ' ' << list.size() << ' ' << heap.top() << '\n';
	std::bitset<70> bits(0xF0F0);
	std::valarray<double> values{1, 4, 9};
	std::cout << bits.count() << ' ' << std::valarray<double>(std::sqrt(values)).sum() << ' ' << std::hash<std::string>()("fence") << '\n';
}

void memory()
{
	auto root = std::make_shared<Node>("root");
	for (const char *name : {"a", "b", "c"}) {
		root->children.push_back(std::make_shared<Node>(name));
		root->children.back()->parent = root->shared_from_this();
	}
	std::cout << root.use_count() << ' ' << root->children[1]->parent.lock()->name << '\n';
	root.reset();
	std::cout << '\n';
	std::unique_ptr<Node> unique(new Node("unique"));
	std::function<int(int)> f = [n = 3](int x) { return x * n; };
	auto bound = std::bind(f, std::placeholders::_1);
	std::variant<int, std::string, double> variant = std::string("text");
	std::any any = 42;
	std::optional<std::string> nothing;
	std::cout << bound(14) << ' ' << std::visit([](auto &x) { return sizeof x > 0; }, variant) << ' ' << std::any_cast<int>(any)
	          << ' ' << nothing.value_or("empty") << ' ' << std::get<1>(std::tuple(1, "two")) << '\n';
	std::mutex mutex;
	std::lock_guard<std::mutex> lock(mutex);
	static std::once_flag once;
	for (int i = 0; i < 3; i++)
		std::call_once(once, [] { std::cout << "once\n"; });
	std::atomic<long> atomic{5};
	atomic.fetch_add(37);
	std::cout << atomic << '\n';
}

void text()
{
	std::string s = "the quick brown fox";
	s.replace(4, 5, "slow").append(40, '.').insert(0, ">> ");
	std::cout << s << ' ' << s.find("fox") << ' ' << s.substr(3, 8) << ' ' << std::string_view(s).rfind('o') << '\n';
	std::wstring wide = L"wide";
	wide += L" text";
	std::cout << wide.size() << ' ' << std::stoi("-1234") << ' ' << std::stod("2.5e3") << ' ' << std::stoull("ff", nullptr, 16) << '\n';
	std::cout << std::setw(10) << std::setfill('*') << 42 << ' ' << std::hex << std::showbase << 255 << std::dec << ' ' << std::fixed
	          << std::setprecision(3) << 3.14159265 << ' ' << std::scientific << 12345.678 << std::defaultfloat << ' ' << 1e100 << ' '
	          << 0.1L << ' ' << std::boolalpha << true << '\n';
	std::istringstream in("12 3.5 word 0x1f\nline two\n");
	int i;
	double d;
	std::string w, rest;
	unsigned h;
	in >> i >> d >> w >> std::hex >> h;
	std::getline(in, rest);
	std::getline(in, rest);
	std::cout << i << ' ' << d << ' ' << w << ' ' << h << ' ' << rest << ' ' << in.eof() << in.fail() << '\n';
	in >> i;
	std::cout << in.fail() << '\n';
	std::ostringstream out;
	out << std::complex<double>(1, -2) << ' ' << std::quoted("a \"b\"") << ' ' << std::put_money(1234) << ' ' << std::left << std::setw(6) << "x" << '|';
	std::cout << out.str() << '\n';
	std::regex pattern("([a-z]+)-([0-9]+)");
	std::smatch match;
	std::string subject = "see abc-123 and de-45";
	for (auto it = subject.cbegin(); std::regex_search(it, subject.cend(), match, pattern); it = match.suffix().first)
		std::cout << match[2] << match[1] << ' ';
	std::cout << std::regex_replace(subject, pattern, "<$1>") << '\n';
	char buffer[64];
	auto shortest = std::to_chars(buffer, buffer + sizeof buffer, 0.1 + 0.2);
	*shortest.ptr = 0;
	double back = 0;
	std::from_chars(buffer, shortest.ptr, back);
	std::cout << buffer << ' ' << (back == 0.1 + 0.2) << ' ' << std::numeric_limits<double>::max_digits10 << '\n';
	std::cout << std::locale().name() << ' ' << std::use_facet<std::ctype<char>>(std::locale()).toupper('q') << ' '
	          << std::chrono::duration_cast<std::chrono::minutes>(std::chrono::hours(3)).count() << '\n';
	std::normal_distribution<double> normal(10, 2);
	std::mt19937 engine(7);
	std::cout << normal(engine) << ' ' << std::uniform_int_distribution<int>(1, 6)(engine) << '\n';
	std::ifstream missing("/no/such/file");
	std::cout << missing.is_open() << '\n';
}

}

int main()
{
	containers();
	memory();
	text();
	std::string line;
	long sum = 0;
	int lines = 0;
	while (std::getline(std::cin, line)) {
		lines++;
		for (unsigned char c : line)
			sum += c;
	}
	std::cout << lines << ' ' << sum << std::endl;
	std::cerr << "done" << std::endl;
	std::wcout << L"";
	return 0;
}
