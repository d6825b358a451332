// What a stream reads as long double, by its bits, so that streams have no x87 code (musl/internal/floatscan.h). The libc's numbers
// know no locale.
#include <cstring>
#include <locale>

extern "C" {
struct rf_number {
	unsigned long low, high;
};
__attribute__((visibility("hidden"))) rf_number __rf_strtox(const char *, char **, int);
}

namespace std _GLIBCXX_VISIBILITY(default)
{
_GLIBCXX_BEGIN_NAMESPACE_VERSION
template <> void __convert_to_v(const char *s, long double &v, ios_base::iostate &error, const __c_locale &) throw()
{
	char *end;
	rf_number number = __rf_strtox(s, &end, 2);
	if (end == s || *end) {
		number = {0, 0};
		error = ios_base::failbit;
	} else if ((number.high & 0x7FFF) == 0x7FFF && !(number.low << 1)) {
		// Instead of an infinity the largest number (defect 23 of the library's standard).
		number = {~0UL, number.high - 1};
		error = ios_base::failbit;
	}
	memcpy(static_cast<void *>(&v), &number, 10);
}
_GLIBCXX_END_NAMESPACE_VERSION
}
