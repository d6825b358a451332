/* The images of the domain, as the window's header page lists them (isa::window::HEADER_IMAGES). */
#define _GNU_SOURCE
#include <link.h>

struct image {
	unsigned offset, length;
};

int dl_iterate_phdr(int (*f)(struct dl_phdr_info *, size_t, void *), void *data)
{
	char *window = *(char *const *)0x10000;
	unsigned count = *(const unsigned *)(window + 0x10014);
	const struct image *images = (const struct image *)(window + 0x10040);
	int result = 0;

	for (unsigned i = 0; i < count && result == 0; i++) {
		char *image = window + images[i].offset;
		const ElfW(Ehdr) *e = (const ElfW(Ehdr) *)image;
		struct dl_phdr_info info = {
			.dlpi_addr = (ElfW(Addr))image,
			.dlpi_name = "",
			.dlpi_phdr = (const ElfW(Phdr) *)(image + e->e_phoff),
			.dlpi_phnum = e->e_phnum,
			/* Unwinders keep what they found while this stays. */
			.dlpi_adds = *(const unsigned *)(window + 0x10018),
		};
		result = f(&info, sizeof info, data);
	}
	return result;
}
