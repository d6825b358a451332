// Throws in every way there is: what is wrong in the tables of this file is met by somebody's throw.
#include <exception>
#include <stdexcept>
#include <string>
#include <typeinfo>

namespace {

struct Base {
	virtual ~Base() = default;
	int n = 1;
};
struct Left : virtual Base {
	int left = 2;
};
struct Right : virtual Base {
	int right = 3;
};
struct Both : Left, Right {
	int both = 4;
};

volatile int ended;

struct Counted {
	~Counted() { ended = ended + 1; }
};

[[gnu::noipa]] void throws(unsigned long kind)
{
	Counted c;
	switch (kind % 8) {
	case 0: throw 17;
	case 1: throw Both();
	case 2: throw std::out_of_range("far");
	case 3: throw std::string("text");
	case 4: throw static_cast<Left *>(new Both);
	case 5: throw "text";
	case 6: throw nullptr;
	default: throw 2.5;
	}
}

// Frames with and without something to clean up, and one that catches what is not thrown.
[[gnu::noipa]] long down(unsigned long kind, unsigned long depth)
{
	volatile char room[64];
	room[depth % 64] = 1;
	if (depth == 0) {
		throws(kind);
	} else if (depth % 3 == 0) {
		Counted c;
		down(kind, depth - 1);
	} else if (depth % 3 == 1) {
		try {
			down(kind, depth - 1);
		} catch (std::bad_exception &) {
			return -1;
		}
	} else {
		try {
			down(kind, depth - 1);
		} catch (...) {
			Counted c;
			throw;
		}
	}
	return room[depth % 64];
}

[[gnu::noipa]] void specified(unsigned long kind, unsigned long depth) throw(int, Base) { down(kind, depth); }

[[gnu::noipa]] void never(unsigned long kind, unsigned long depth) noexcept { down(kind, depth); }

struct Throwing {
	unsigned long kind;
	~Throwing() noexcept(false)
	{
		try {
			throws(kind);
		} catch (Base *) {
		}
	}
};

long caught(unsigned long kind, unsigned long depth)
{
	try {
		switch (kind / 8 % 6) {
		case 0: return down(kind, depth);
		case 1: specified(kind, depth); return 1;
		case 2: never(kind, depth); return 2;
		case 3: {
			Throwing t{kind + 1};
			return down(kind, depth);
		}
		case 4: {
			std::exception_ptr kept;
			try {
				down(kind, depth);
			} catch (...) {
				kept = std::current_exception();
			}
			std::rethrow_exception(kept);
		}
		default:
			try {
				return down(kind, depth);
			} catch (...) {
				std::throw_with_nested(std::runtime_error("outer"));
			}
		}
	} catch (int n) {
		return n;
	} catch (Right &r) {
		return dynamic_cast<Both &>(r).both;
	} catch (const Base *b) {
		return typeid(*b).name()[0];
	} catch (std::exception &e) {
		try {
			std::rethrow_if_nested(e);
		} catch (...) {
			return e.what()[0];
		}
		return e.what()[1];
	} catch (const std::string &s) {
		return static_cast<long>(s.size());
	} catch (const char *s) {
		return s[0];
	} catch (...) {
		return 99;
	}
}

} // namespace

extern "C" __attribute__((visibility("default"))) long start(unsigned long kind, unsigned long depth)
{
	long sum = 0;
	for (int i = 0; i < 3; i++)
		sum += caught(kind, depth);
	return sum + ended % 2;
}
