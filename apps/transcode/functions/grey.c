/* grey(): one channel, by the weights of ITU-R BT.601; opacity stays. */
int grey(struct picture *p)
{
	if (p->channels == 1)
		return 0;
	int to = p->channels == 3 ? 1 : 4;
	for (int y = 0; y < p->height; y++) {
		const unsigned char *from = p->pixels + y * p->stride;
		unsigned char *into = p->pixels + y * p->stride;
		for (int x = 0; x < p->width; x++, from += p->channels, into += to) {
			unsigned char light = (unsigned char)((77 * from[0] + 150 * from[1] + 29 * from[2] + 128) >> 8);
			if (to == 4)
				into[1] = into[2] = light;
			into[0] = light;
		}
	}
	p->channels = to;
	return 0;
}
