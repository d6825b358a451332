// The handler that std::terminate calls unless the program has set its own. libstdc++'s throws the exception once more to
// see whether it has a message; this one looks at its type.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <typeinfo>
#include <unwind-cxx.h>

namespace __gnu_cxx {

void __verbose_terminate_handler()
{
	static bool terminating;
	if (terminating) {
		std::fputs("terminate called recursively\n", stderr);
		std::abort();
	}
	terminating = true;

	const std::type_info *type = __cxxabiv1::__cxa_current_exception_type();
	if (!type) {
		std::fputs("terminate called without an active exception\n", stderr);
		std::abort();
	}
	std::fprintf(stderr, "terminate called after throwing an instance of '%s'\n", type->name());
	__cxxabiv1::__cxa_exception *header = __cxxabiv1::__cxa_get_globals_fast()->caughtExceptions;
	void *object = __cxxabiv1::__get_object_from_ambiguous_exception(header);
	if (typeid(std::exception).__do_catch(type, &object, 1))
		std::fprintf(stderr, "  what():  %s\n", static_cast<std::exception *>(object)->what());
	std::fputs("fenced code cannot catch exceptions yet: the call ends here\n", stderr);
	std::abort();
}

}
