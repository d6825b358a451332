/* crop(left, top, width, height): that part of the picture; what of it lies outside is left away. */
int crop(struct picture *p, int left, int top, int width, int height)
{
	if (left < 0)
		left = 0;
	if (top < 0)
		top = 0;
	if (left > p->width - 1)
		left = p->width - 1;
	if (top > p->height - 1)
		top = p->height - 1;
	if (width < 1)
		width = 1;
	if (height < 1)
		height = 1;
	if (width > p->width - left)
		width = p->width - left;
	if (height > p->height - top)
		height = p->height - top;
	p->pixels += top * p->stride + (long)left * p->channels;
	p->width = width;
	p->height = height;
	return 0;
}
