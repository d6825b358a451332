// Catches what another module of the same domain throws, by its own copies of the types.
#include <stdexcept>
#include <string>

struct Shape {
	virtual ~Shape() = default;
	virtual int sides() const { return 0; }
};
struct Square : Shape {
	int sides() const override { return 4; }
};

extern "C" long thrower(long kind);
extern "C" long through(long (*f)(long), long n);

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT long catch_from_other(long kind)
{
	try {
		return thrower(kind);
	} catch (int i) {
		return i;
	} catch (const Shape &s) {
		return s.sides();
	} catch (const std::exception &e) {
		return e.what()[0];
	} catch (const std::string &s) {
		return static_cast<long>(s.size());
	}
}

static long own(long n)
{
	if (n > 3)
		throw std::runtime_error("own");
	return n;
}

// Our frame, theirs, ours.
EXPORT long catch_through_other(long n)
{
	try {
		return through(own, n);
	} catch (const std::runtime_error &e) {
		return e.what()[0];
	}
}
