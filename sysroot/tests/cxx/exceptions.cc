// What C++ promises of exceptions. Prints what happens, in order.
#include <alloca.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <link.h>
#include <memory>
#include <new>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <unwind.h>
#include <vector>

namespace {

struct Trace {
	const char *name;
	explicit Trace(const char *n) : name(n) { std::printf("+%s\n", name); }
	Trace(const Trace &) = delete;
	~Trace() { std::printf("-%s (%d in flight)\n", name, std::uncaught_exceptions()); }
};

struct Base {
	virtual ~Base() = default;
	virtual const char *what() const { return "Base"; }
};
struct Left : virtual Base {};
struct Right : virtual Base {};
struct Both : Left, Right {
	const char *what() const override { return "Both"; }
};
struct Private : private Base {};

template <typename F> void attempt(const char *name, F f)
{
	std::printf("== %s\n", name);
	try {
		f();
		std::puts("nothing thrown");
	} catch (const std::exception &e) {
		std::printf("%s: %s\n", abi::__cxa_current_exception_type()->name(), e.what());
	} catch (const Base &b) {
		std::printf("a Base: %s\n", b.what());
	} catch (const Base *b) {
		std::printf("a pointer to Base: %s\n", b ? b->what() : "null");
	} catch (int i) {
		std::printf("int %d\n", i);
	} catch (const char *s) {
		std::printf("string %s\n", s);
	} catch (int Base::*) {
		std::puts("a pointer to a member");
	} catch (...) {
		std::printf("something: %s\n", abi::__cxa_current_exception_type()->name());
	}
}

[[gnu::noipa]] void raise(int n)
{
	if (n >= 0)
		throw n;
}

// Frames of every kind, with values in registers and on both stacks that have to survive.
[[gnu::noipa]] int deep(int n)
{
	Trace *t = n % 1000 == 0 ? new Trace("deep") : nullptr;
	std::unique_ptr<Trace> owner(t);
	if (n == 0)
		throw std::runtime_error("bottom");
	return deep(n - 1) + n;
}

[[gnu::noipa]] long many(long a, long b, long c, long d, long e, long f, long g, long h, long i, const std::string &s)
{
	try {
		raise(static_cast<int>(s.size()));
	} catch (int n) {
		return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + n;
	}
	return 0;
}

[[gnu::noipa]] int variable(int n)
{
	int sum = 0;
	for (int i = 1; i <= n; i++) {
		char *room = static_cast<char *>(alloca(static_cast<std::size_t>(i) * 100));
		std::memset(room, i, static_cast<std::size_t>(i) * 100);
		try {
			raise(i);
		} catch (int thrown) {
			sum += thrown + room[i * 100 - 1];
		}
	}
	return sum;
}

[[gnu::noipa]] int aligned(int n)
{
	alignas(64) volatile char room[256];
	room[n] = static_cast<char>(n);
	try {
		raise(n);
	} catch (int thrown) {
		return thrown + room[n] + static_cast<int>(reinterpret_cast<std::uintptr_t>(&room) % 64);
	}
	return -1;
}

[[gnu::noipa]] int big(int n)
{
	volatile char room[200000];
	room[n * 1000] = static_cast<char>(n);
	Trace t("big");
	raise(n);
	return room[n * 1000];
}

[[gnu::noipa]] double registers(double x, long a, long b, long c)
{
	long d = a * b, e = b * c, f = a * c;
	double y = x * 2;
	try {
		raise(static_cast<int>(a));
	} catch (int i) {
		return y + static_cast<double>(d + e + f + a + b + c + i);
	}
	return 0;
}

struct Member {
	Trace first{"first"};
	Trace second;
	explicit Member(int n) try : second("second") {
		raise(n);
		std::puts("made");
	} catch (int i) {
		std::printf("a constructor failed with %d\n", i);
	}
};

struct Element {
	static int made;
	int number = made++;
	Element()
	{
		if (number == 3)
			throw std::string("the fourth element");
	}
	~Element() { std::printf("-element %d\n", number); }
};
int Element::made = 0;

struct ThreadLocal {
	const char *name;
	~ThreadLocal() { std::printf("thread_local %s ends\n", name); }
};
thread_local ThreadLocal thread_one{"one"};
thread_local ThreadLocal thread_two{"two"};
struct Static {
	~Static() { std::puts("static ends"); }
} static_object;

int compare(const void *a, const void *b)
{
	int x = *static_cast<const int *>(a), y = *static_cast<const int *>(b);
	if (x == 13 || y == 13)
		throw std::domain_error("unlucky");
	return x - y;
}

[[gnu::noipa]] int initialised(bool fail)
{
	static int value = fail ? throw "no value" : 7;
	return value;
}

_Unwind_Reason_Code count(_Unwind_Context *context, void *counter)
{
	if (_Unwind_GetIP(context))
		++*static_cast<int *>(counter);
	return _URC_NO_REASON;
}
[[gnu::noipa]] int frames(int n)
{
	int found = 0;
	if (n == 0)
		_Unwind_Backtrace(count, &found);
	else
		found = frames(n - 1);
	asm volatile("" : "+r"(found));
	return found;
}

// Whether this function is in exactly one image that has tables for unwinding.
int image(dl_phdr_info *info, std::size_t, void *counter)
{
	bool here = false, tables = false;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const auto &p = info->dlpi_phdr[i];
		here |= p.p_type == PT_LOAD && reinterpret_cast<std::uintptr_t>(&image) - info->dlpi_addr - p.p_vaddr < p.p_memsz;
		tables |= p.p_type == PT_GNU_EH_FRAME;
	}
	*static_cast<int *>(counter) += here && tables;
	return 0;
}

std::string plain(const char *mangled)
{
	int status;
	std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
	return status == 0 ? name.get() : "status " + std::to_string(status);
}

[[gnu::noipa]] void rethrowing(int n)
{
	try {
		if (n == 0)
			throw Both();
		rethrowing(n - 1);
	} catch (Right &) {
		std::printf("again %d\n", n);
		throw;
	}
}

} // namespace

int main()
{
	std::cout.exceptions(std::ios::goodbit);
	attempt("nothing", [] {});
	attempt("int", [] { raise(5); });
	attempt("a derived class with virtual bases", [] { throw Both(); });
	attempt("a pointer to it", [] {
		static Both both;
		throw &both;
	});
	attempt("a private base", [] { throw Private(); });
	attempt("a null pointer", [] { throw nullptr; });
	attempt("a literal", [] { throw "text"; });
	attempt("deep", [] { deep(3000); });
	attempt("rethrown", [] { rethrowing(3); });
	attempt("qsort", [] {
		std::vector<int> v;
		for (int i = 0; i < 50; i++)
			v.push_back(i * 37 % 50);
		std::qsort(v.data(), v.size(), sizeof(int), compare);
	});
	attempt("constructor", [] {
		Member good(-1);
		Member bad(4);
	});
	attempt("array", [] { delete[] new Element[8]; });
	attempt("big", [] { big(99); });
	attempt("library", [] { std::string("abc").substr(5); });
	attempt("stoi", [] { std::stoi("none"); });
	attempt("stoi again", [] { std::stoi("99999999999"); });
	attempt("function", [] { std::function<void()>()(); });
	attempt("bad_cast", [] {
		Left left;
		Base &base = left;
		std::printf("%p\n", static_cast<void *>(&dynamic_cast<Right &>(base)));
	});
	attempt("bad_typeid", [] {
		Base *volatile none = nullptr;
		std::puts(typeid(*none).name());
	});
	attempt("memory", [] {
		volatile std::size_t size = std::size_t(1) << 46;
		::operator delete(::operator new(size));
	});
	attempt("length", [] {
		volatile long n = -1;
		std::vector<int> v(static_cast<std::size_t>(n));
	});
	attempt("array length", [] {
		volatile int n = -1;
		delete[] new int[n];
	});
	attempt("stream", [] {
		std::istringstream in("x");
		in.exceptions(std::ios::failbit);
		int i;
		in >> i;
	});
	attempt("regex", [] { std::regex("a(b"); });
	attempt("weak", [] { std::shared_ptr<int>(std::weak_ptr<int>()); });
	attempt("initialised", [] {
		for (int i = 0; i < 3; i++)
			try {
				std::printf("%d\n", initialised(i < 1));
			} catch (const char *s) {
				std::puts(s);
			}
	});
	attempt("exception_ptr", [] {
		std::exception_ptr kept;
		try {
			throw std::logic_error("kept");
		} catch (...) {
			kept = std::current_exception();
		}
		for (int i = 0; i < 2; i++)
			try {
				std::rethrow_exception(kept);
			} catch (std::logic_error &e) {
				std::puts(e.what());
			}
		std::rethrow_exception(std::make_exception_ptr(77));
	});
	attempt("nested", [] {
		try {
			try {
				throw std::runtime_error("inner");
			} catch (...) {
				std::throw_with_nested(std::logic_error("outer"));
			}
		} catch (const std::exception &e) {
			std::puts(e.what());
			std::rethrow_if_nested(e);
		}
	});
	attempt("thrown while caught", [] {
		try {
			raise(1);
		} catch (int) {
			Trace t("handler");
			raise(2);
		}
	});
	attempt("a destructor that throws and catches", [] {
		struct Catches {
			~Catches()
			{
				try {
					raise(8);
				} catch (int i) {
					std::printf("inside %d, %d in flight\n", i, std::uncaught_exceptions());
				}
			}
		} c;
		raise(9);
	});
	std::printf("many %ld\n", many(1, 2, 3, 4, 5, 6, 7, 8, 9, "four"));
	std::printf("variable %d\n", variable(20));
	std::printf("aligned %d\n", aligned(17));
	std::printf("registers %g\n", registers(1.25, 3, 4, 5));
	int images = 0;
	dl_iterate_phdr(image, &images);
	std::printf("images %d\n", images);
	std::printf("frames %d\n", frames(12) - frames(0));
	std::puts(new (std::nothrow) char[std::size_t(1) << 46] ? "memory" : "no memory");
	std::puts(plain(typeid(std::vector<std::string>).name()).c_str());
	std::puts(plain("_ZN3foo3barILi7EEEvRKSsz").c_str());
	std::puts(plain("no name").c_str());
	long sum = 0;
	for (int i = 0; i < 20000; i++)
		try {
			raise(i);
		} catch (int n) {
			sum += n;
		}
	std::printf("sum %ld\n", sum);
	std::printf("%s %s\n", thread_one.name, thread_two.name);
	std::set_terminate([] {
		std::puts("terminate");
		std::exit(3);
	});
	static std::function<void()> noexcept_call = []() noexcept { raise(1); };
	noexcept_call();
}
