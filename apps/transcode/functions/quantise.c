/* quantise(levels): so many steps of each colour, from 2 to 256. */
int quantise(struct picture *p, int levels)
{
	if (levels < 2 || levels > 256)
		return 1;
	unsigned char step[256];
	for (int i = 0; i < 256; i++)
		step[i] = (unsigned char)((i * (levels - 1) + 127) / 255 * 255 / (levels - 1));
	int colours = p->channels == 1 ? 1 : 3;
	for (int y = 0; y < p->height; y++) {
		unsigned char *at = p->pixels + y * p->stride;
		for (int x = 0; x < p->width; x++, at += p->channels)
			for (int c = 0; c < colours; c++)
				at[c] = step[at[c]];
	}
	return 0;
}
