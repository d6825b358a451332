// `new (std::nothrow)`. libstdc++'s catches what the ordinary operator throws, which a program may have replaced; this one
// tries first whether there is memory.
#include <cstdlib>
#include <new>

namespace {

bool available(std::size_t size, std::size_t align) noexcept
{
	for (;;) {
		void *memory = align ? std::aligned_alloc(align, (size + align - 1) & -align) : std::malloc(size);
		if (memory || (align && size > -align)) {
			std::free(memory);
			return memory;
		}
		std::new_handler handler = std::get_new_handler();
		if (!handler)
			return false;
		handler();
	}
}

}

void *operator new(std::size_t size, const std::nothrow_t &) noexcept
{
	return available(size ? size : 1, 0) ? ::operator new(size) : nullptr;
}

void *operator new[](std::size_t size, const std::nothrow_t &) noexcept
{
	return available(size ? size : 1, 0) ? ::operator new[](size) : nullptr;
}

void *operator new(std::size_t size, std::align_val_t align, const std::nothrow_t &) noexcept
{
	return available(size ? size : 1, std::size_t(align)) ? ::operator new(size, align) : nullptr;
}

void *operator new[](std::size_t size, std::align_val_t align, const std::nothrow_t &) noexcept
{
	return available(size ? size : 1, std::size_t(align)) ? ::operator new[](size, align) : nullptr;
}
