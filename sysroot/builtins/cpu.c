/* What __builtin_cpu_supports reads, from the window's header page (isa::window::feature). The numbers are gcc's. */
struct processor_model {
	unsigned vendor, type, subtype, features[1];
};

struct processor_model __cpu_model __attribute__((visibility("hidden")));
unsigned __cpu_features2[1] __attribute__((visibility("hidden")));
int __cpu_indicator_init(void) __attribute__((visibility("hidden"), constructor(101)));

int __cpu_indicator_init(void)
{
	const unsigned f = *(const volatile unsigned *)0x1000C;
	unsigned r = 1u << 0 | 1u << 3 | 1u << 4; /* CMOV, SSE, SSE2 */
	if (f & 1u << 0)
		r |= 1u << 5 | 1u << 6; /* SSE3, SSSE3 */
	if (f & 1u << 1)
		r |= 1u << 2 | 1u << 7 | 1u << 8; /* POPCNT, SSE4.1, SSE4.2 */
	if (f & 1u << 2)
		r |= 1u << 9; /* AVX */
	if (f & 1u << 3)
		r |= 1u << 10; /* AVX2 */
	if (f & 1u << 4)
		r |= 1u << 14; /* FMA */
	if (f & 1u << 5)
		r |= 1u << 16 | 1u << 17; /* BMI, BMI2 */
	if (f & 1u << 8)
		r |= 1u << 18 | 1u << 19; /* AES, PCLMUL */
	__cpu_model.vendor = 3; /* neither of the two that programs know */
	__cpu_model.features[0] = r;
	return 0;
}
