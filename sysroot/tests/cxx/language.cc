// What the language itself needs of a runtime: static objects, virtual calls, RTTI, new and delete, guards.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <typeinfo>

namespace {

struct Static {
	const char *name;
	explicit Static(const char *n) : name(n) { std::printf("+%s\n", name); }
	~Static() { std::printf("-%s\n", name); }
};
Static first("first"), second("second");

struct Shape {
	virtual ~Shape() { std::puts("~Shape"); }
	virtual double area() const = 0;
};
struct Named {
	virtual ~Named() = default;
	virtual const char *name() const { return "named"; }
};
struct Square : Shape, Named {
	double side;
	explicit Square(double s) : side(s) {}
	~Square() override { std::puts("~Square"); }
	double area() const override { return side * side; }
	const char *name() const override { return "square"; }
};
struct Base {
	int base = 1;
	virtual ~Base() = default;
};
struct Left : virtual Base {
	int left = 2;
};
struct Right : virtual Base {
	int right = 3;
};
struct Bottom : Left, Right {
	int bottom = 4;
};

Static &local()
{
	static Static object("local");
	return object;
}

thread_local int counter = 7;
struct PerThread {
	int value = 40;
	PerThread() { std::puts("+thread"); }
	~PerThread() { std::puts("-thread"); }
};
thread_local PerThread per_thread;

struct alignas(64) Wide {
	char bytes[64];
};

struct Counted {
	static int alive;
	int number = ++alive;
	~Counted() { --alive; }
};
int Counted::alive;

int twice(int x) { return 2 * x; }
struct Member {
	int base;
	int plus(int x) const { return base + x; }
	virtual int times(int x) const { return base * x; }
	virtual ~Member() = default;
};

}

// Not known to the compiler where it is used.
__attribute__((noinline)) Shape *make(double side) { return new Square(side); }
__attribute__((noinline)) Base *make_bottom() { return new Bottom; }

int main(int argc, char **argv)
{
	std::atexit([] { std::puts("atexit"); });
	std::printf("main %d %d\n", argc, argv[0] != nullptr);

	Shape *shape = make(3);
	std::printf("%.1f %s\n", shape->area(), typeid(*shape) == typeid(Square) ? "is Square" : "is not");
	Named *named = dynamic_cast<Named *>(shape);
	std::printf("%s %d\n", named ? named->name() : "none", dynamic_cast<Square *>(named) == shape);
	std::printf("%s %s\n", typeid(*shape).name(), typeid(int *[3]).name());
	std::printf("%d\n", dynamic_cast<void *>(named) == static_cast<void *>(shape));
	delete shape;

	Base *base = make_bottom();
	auto *right = dynamic_cast<Right *>(base);
	auto *left = dynamic_cast<Left *>(right);
	std::printf("%d %d %d %d\n", right->base, right->right, left->left, dynamic_cast<Bottom *>(left)->bottom);
	std::printf("%d\n", dynamic_cast<Named *>(base) == nullptr);
	delete base;

	local();
	std::printf("%s\n", local().name);

	counter += argc;
	per_thread.value += counter;
	std::printf("%d %d\n", counter, per_thread.value);

	auto *many = new Counted[100];
	std::printf("%d %d\n", Counted::alive, many[99].number);
	delete[] many;
	std::printf("%d\n", Counted::alive);
	auto *wide = new Wide[3];
	std::printf("%d\n", static_cast<int>(reinterpret_cast<std::uintptr_t>(wide) % 64));
	std::memset(wide, 1, 3 * sizeof *wide);
	delete[] wide;
	alignas(Counted) unsigned char room[sizeof(Counted)];
	auto *placed = new (room) Counted;
	std::printf("%d\n", placed->number);
	placed->~Counted();
	volatile std::size_t huge = std::size_t(1) << 40;
	std::printf("%d\n", new (std::nothrow) char[huge] == nullptr);

	int (*function)(int) = twice;
	int (Member::*plain)(int) const = &Member::plus;
	int (Member::*through)(int) const = &Member::times;
	Member member;
	member.base = 5;
	std::printf("%d %d %d\n", function(21), (member.*plain)(2), (member.*through)(3));
	auto closure = [&](int x) { return member.base + x + argc; };
	std::printf("%d\n", closure(1));

	return 3;
}
