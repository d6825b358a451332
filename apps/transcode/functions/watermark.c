/* watermark(opacity): a ring of fence posts, white, in the corner below on the right; opacity from 0 to 255. */
static const unsigned short mark[16] = {
	0x07e0, 0x1ff8, 0x381c, 0x700e, 0x66c6, 0xcee7, 0xcee3, 0xfffb,
	0xcee3, 0xcee3, 0xfffb, 0xcee7, 0x66c6, 0x700e, 0x381c, 0x1ff8,
};

int watermark(struct picture *p, int opacity)
{
	if (opacity < 0 || opacity > 255)
		return 1;
	/* an eighth of the shorter side, at least one pixel a dot */
	int dot = (p->width < p->height ? p->width : p->height) / 128;
	if (dot < 1)
		dot = 1;
	int size = 16 * dot, colours = p->channels == 1 ? 1 : 3;
	int left = p->width - size - dot, top = p->height - size - dot;
	for (int y = 0; y < size; y++) {
		if (top + y < 0)
			continue;
		unsigned char *row = p->pixels + (top + y) * p->stride;
		for (int x = 0; x < size; x++) {
			if (left + x < 0 || !(mark[y / dot] >> (15 - x / dot) & 1))
				continue;
			unsigned char *at = row + (long)(left + x) * p->channels;
			for (int c = 0; c < colours; c++)
				at[c] = (unsigned char)(at[c] + ((255 - at[c]) * opacity + 127) / 255);
		}
	}
	return 0;
}
