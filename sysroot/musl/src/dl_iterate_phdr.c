/* The images of the domain, as the window's header page lists them (isa::window::HEADER_IMAGES). Their ELF headers are not in memory:
 * what a caller looks for is made here, the image and its table of frames. */
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
	const unsigned *frames = (const unsigned *)(window + 0x10a40); /* isa::window::HEADER_FRAMES */
	int result = 0;

	for (unsigned i = 0; i < count && result == 0; i++) {
		char *image = window + images[i].offset;
		const ElfW(Phdr) headers[] = {
			{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = images[i].length},
			{.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_vaddr = frames[i] - images[i].offset},
		};
		struct dl_phdr_info info = {
			.dlpi_addr = (ElfW(Addr))image,
			.dlpi_name = "",
			.dlpi_phdr = headers,
			.dlpi_phnum = frames[i] ? 2 : 1,
			/* Unwinders keep what they found while this stays. */
			.dlpi_adds = *(const unsigned *)(window + 0x10018),
		};
		result = f(&info, sizeof info, data);
	}
	return result;
}
