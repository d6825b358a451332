// What runs when a module ends: constructors note a number, destructors its negative.
#include <cstdlib>

extern "C" void host_note(long what);

static long bad;

struct Noted {
	long number;
	explicit Noted(long n) : number(n) { host_note(n); }
	~Noted()
	{
		host_note(-number);
		if (number != 2)
			return;
		switch (bad) {
		case 1:
			*reinterpret_cast<volatile long *>(8) = 0;
			break;
		case 2:
			for (volatile long i = 0;; i = i + 1) {
			}
		case 3:
			std::exit(9);
		}
	}
};

static Noted first(1), second(2);
static thread_local Noted local(3);

static void registered() { host_note(-4); }
__attribute__((destructor)) static void destructor() { host_note(-5); }
__attribute__((destructor(101))) static void early() { host_note(-6); }

extern "C" long touch()
{
	long sum = local.number;
	static Noted inner(7);
	std::atexit(registered);
	return sum + inner.number;
}

extern "C" void __rf_thread_exit(void);
extern "C" void thread_ends() { __rf_thread_exit(); }
extern "C" void misbehave(long how) { bad = how; }
extern "C" long works() { return 8; }
