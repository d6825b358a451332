#define SYS_mmap 9
long rf_test_mmap(unsigned long bytes);
#define __syscall(number, address, bytes, ...) rf_test_mmap(bytes)
