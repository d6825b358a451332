// An exception that nobody catches ends the program, with its type and its message.
#include <iostream>
#include <stdexcept>
#include <vector>

int main()
{
	std::cout << "before" << std::endl;
	std::vector<int> v(3);
	return v.at(7);
}
