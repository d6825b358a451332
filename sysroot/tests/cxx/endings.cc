// What runs when a program ends, and in which order.
#include <cstdio>
#include <cstdlib>

struct noted {
	const char *name;
	explicit noted(const char *n) : name(n) { std::printf("%s\n", name); }
	~noted() { std::printf("~%s\n", name); }
};

static noted first("first"), second("second");
static thread_local noted local("local of the thread");

__attribute__((destructor)) static void destructor() { std::puts("destructor"); }
__attribute__((destructor(101))) static void early() { std::puts("destructor 101"); }
static void last_registered() { std::puts("atexit, from atexit"); }
static void registered()
{
	std::puts("atexit");
	std::atexit(last_registered);
}

int main()
{
	std::atexit(registered);
	std::puts(local.name);
	static noted inner("inner");
	std::printf("written out at the end");
}
