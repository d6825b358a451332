/* Every third TCP packet of a source port. */
static unsigned seen[65536];

int filter(const unsigned char *packet, unsigned length, unsigned wire)
{
	if (length < 36 || packet[23] != 6)
		return 0;
	return ++seen[packet[34] << 8 | packet[35]] % 3 == 0;
}
