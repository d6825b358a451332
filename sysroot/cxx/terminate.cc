// The handler that std::terminate calls unless the program has set its own: says what libstdc++'s says, and tells the runtime
// what was thrown, so that the host gets it with the error.
#include <bits/exception_defines.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <typeinfo>

extern "C" [[noreturn]] void __rf_uncaught(const char *name, std::size_t length);

namespace __gnu_cxx {

void __verbose_terminate_handler()
{
	static bool terminating;
	if (terminating) {
		std::fputs("terminate called recursively\n", stderr);
		std::abort();
	}
	terminating = true;

	const std::type_info *type = abi::__cxa_current_exception_type();
	if (!type) {
		std::fputs("terminate called without an active exception\n", stderr);
		std::abort();
	}
	const char *name = type->name();
	int status = -1;
	char *plain = abi::__cxa_demangle(name, nullptr, nullptr, &status);
	if (status == 0)
		name = plain;
	std::fprintf(stderr, "terminate called after throwing an instance of '%s'\n", name);
	try {
		throw;
	} catch (const std::exception &e) {
		std::fprintf(stderr, "  what():  %s\n", e.what());
	} catch (...) {
	}
	__rf_uncaught(name, std::strlen(name));
}

}
