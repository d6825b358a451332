// Numbers in streams: what is read of texts, to the last bit, and what is written.
#include <cstring>
#include <iomanip>
#include <iostream>
#include <limits>
#include <locale>
#include <sstream>

static void bits(long double x, bool good)
{
	unsigned char bytes[10];
	std::memcpy(bytes, &x, sizeof bytes);
	for (int i = 9; i >= 0; i--)
		std::cout << std::hex << std::setw(2) << std::setfill('0') << int(bytes[i]);
	std::cout << ' ' << good << '\n';
}

template <class T> static void read(const char *text)
{
	std::istringstream s(text);
	T x = 7;
	s >> x;
	bits(x, bool(s));
}

int main()
{
	for (const char *text : {"1.5", "0.1", "-3.25e100", "1e4932", "1e5000", "-1e5000", "x", "", "nan", "1e-4940", "1e-5000", "12,5",
		     "1.5x", "0x1p3", "123456789012345678901234567890", "1e400", "1e39"}) {
		read<long double>(text);
		read<double>(text);
		read<float>(text);
	}
	long double amount = 0;
	std::istringstream money("12345");
	money >> std::get_money(amount);
	bits(amount, bool(money));
	std::cout << std::setprecision(20) << 1.0L / 3 << ' ' << std::put_money(98765.0L) << ' ' << std::fixed << 2.5L << ' '
		  << std::numeric_limits<long double>::max() << '\n';
	std::wostringstream wide;
	wide << 1.25L << L' ' << std::put_money(5.0L);
	std::wistringstream from(L"2.75 77");
	std::wstring rest;
	from >> amount >> rest;
	std::cout << wide.str().size() << ' ';
	bits(amount, bool(from));
}
