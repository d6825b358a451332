// A library that throws, catches, and lets through what others throw.
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

struct Shape {
	virtual ~Shape() = default;
	virtual int sides() const { return 0; }
};
struct Square : Shape {
	int sides() const override { return 4; }
};

extern "C" long host_enter(long n);

namespace {

int alive;

struct Counted {
	Counted() { __atomic_add_fetch(&alive, 1, __ATOMIC_RELAXED); }
	Counted(const Counted &) = delete;
	~Counted() { __atomic_sub_fetch(&alive, 1, __ATOMIC_RELAXED); }
};

[[gnu::noipa]] long down(long n, long stop)
{
	Counted c;
	volatile char room[48];
	room[n % 48] = 1;
	if (n == stop)
		throw n;
	return down(n + 1, stop) + room[n % 48];
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// 1: int, 2: a class by value, 3: of the library, 4: a string.
EXPORT long thrower(long kind)
{
	Counted c;
	switch (kind) {
	case 1: throw 17;
	case 2: throw Square();
	case 3: throw std::out_of_range("far");
	case 4: throw std::string("text");
	default: return kind;
	}
}

EXPORT long through(long (*f)(long), long n)
{
	Counted c;
	return f(n) + 1;
}

EXPORT long left_alive() { return alive; }

// Throws from many depths; a number that depends on every catch.
EXPORT long work(long seed, long rounds)
{
	unsigned long sum = 0, state = static_cast<unsigned long>(seed);
	for (long i = 0; i < rounds; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		try {
			down(0, static_cast<long>(state >> 60));
		} catch (long n) {
			sum = sum * 31 + static_cast<unsigned long>(n);
		}
	}
	return static_cast<long>(sum);
}

// What is thrown below the host is not caught here.
EXPORT long around_the_host(long n)
{
	try {
		return host_enter(n);
	} catch (...) {
		return -1;
	}
}

// Caught on the inner side: the outer call goes on.
EXPORT long catches(long kind)
{
	try {
		return thrower(kind);
	} catch (int i) {
		return i;
	} catch (const Shape &s) {
		return s.sides();
	} catch (const std::exception &e) {
		return e.what()[0];
	} catch (...) {
		return 99;
	}
}

EXPORT long sorts(long bad)
{
	std::vector<long> v;
	for (long i = 0; i < 40; i++)
		v.push_back(i * 7 % 40);
	static long unlucky;
	unlucky = bad;
	try {
		std::qsort(v.data(), v.size(), sizeof v[0], [](const void *a, const void *b) {
			long x = *static_cast<const long *>(a), y = *static_cast<const long *>(b);
			if (x == unlucky)
				throw x;
			return static_cast<int>(x - y);
		});
	} catch (long x) {
		return -x;
	}
	return v[39];
}

// Calls `f` with `g` and `n`, and catches what comes: -1.
EXPORT long catch_from(long (*f)(long (*)(long), long), long (*g)(long), long n)
{
	try {
		return f(g, n);
	} catch (...) {
		return -1;
	}
}
// Catches before it gets to whoever called.
EXPORT long caught_below(long n)
{
	try {
		return thrower(n);
	} catch (...) {
		return -2;
	}
}
