#include "rf.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct sink {
	char *buf;
	size_t size, length; /* length goes on counting beyond size */
	int fd;		     /* -1: memory */
	size_t held;
} sink;

static FILE streams[3] = {{0}, {1}, {2}};
FILE *const stdin = &streams[0], *const stdout = &streams[1], *const stderr = &streams[2];

static int write_all(int fd, const char *p, size_t n)
{
	while (n) {
		long k = __rf_syscall_c(RF_SYS_write, fd, (long)p, (long)n, 0, 0, 0);
		if (k <= 0)
			return -1;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

static void put(sink *o, char c)
{
	if (o->fd >= 0) {
		if (o->held == o->size) {
			write_all(o->fd, o->buf, o->held);
			o->held = 0;
		}
		o->buf[o->held++] = c;
	} else if (o->length + 1 < o->size) {
		o->buf[o->length] = c;
	}
	o->length++;
}

static void pad(sink *o, char c, int n)
{
	while (n-- > 0)
		put(o, c);
}

struct spec {
	int width, precision; /* precision -1: none */
	int left, plus, space, alternate, zero;
};

static void put_text(sink *o, const struct spec *s, const char *p, int n)
{
	if (!s->left)
		pad(o, ' ', s->width - n);
	for (int i = 0; i < n; i++)
		put(o, p[i]);
	if (s->left)
		pad(o, ' ', s->width - n);
}

static void put_number(sink *o, const struct spec *s, unsigned long v, int negative, unsigned base, int upper)
{
	char digits[24], sign[3];
	int n = 0, k = 0;
	if (negative)
		sign[k++] = '-';
	else if (s->plus)
		sign[k++] = '+';
	else if (s->space)
		sign[k++] = ' ';
	if (s->alternate && base == 16 && v) {
		sign[k++] = '0';
		sign[k++] = upper ? 'X' : 'x';
	}
	for (; v; v /= base)
		digits[n++] = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[v % base];
	int least = s->precision >= 0 ? s->precision : 1;
	if (s->alternate && base == 8 && least <= n)
		least = n + 1;
	int zeros = least > n ? least - n : 0;
	int blanks = s->width - k - zeros - n;
	if (s->zero && !s->left && s->precision < 0 && blanks > 0) {
		zeros += blanks;
		blanks = 0;
	}
	if (!s->left)
		pad(o, ' ', blanks);
	for (int i = 0; i < k; i++)
		put(o, sign[i]);
	pad(o, '0', zeros);
	while (n)
		put(o, digits[--n]);
	if (s->left)
		pad(o, ' ', blanks);
}

static long signed_argument(int longs, va_list *ap)
{
	switch (longs) {
	case -2: return (signed char)va_arg(*ap, int);
	case -1: return (short)va_arg(*ap, int);
	case 0: return va_arg(*ap, int);
	default: return va_arg(*ap, long);
	}
}

static unsigned long unsigned_argument(int longs, va_list *ap)
{
	switch (longs) {
	case -2: return (unsigned char)va_arg(*ap, int);
	case -1: return (unsigned short)va_arg(*ap, int);
	case 0: return va_arg(*ap, unsigned);
	default: return va_arg(*ap, unsigned long);
	}
}

static int number(const char **f, va_list *ap)
{
	int n = 0;
	if (**f == '*') {
		++*f;
		return va_arg(*ap, int);
	}
	for (; (unsigned)**f - '0' < 10; ++*f)
		n = n * 10 + **f - '0';
	return n;
}

static void format(sink *o, const char *f, va_list *ap)
{
	for (; *f; f++) {
		if (*f != '%') {
			put(o, *f);
			continue;
		}
		struct spec s = {.precision = -1};
		for (f++;; f++) {
			if (*f == '-')
				s.left = 1;
			else if (*f == '+')
				s.plus = 1;
			else if (*f == ' ')
				s.space = 1;
			else if (*f == '#')
				s.alternate = 1;
			else if (*f == '0')
				s.zero = 1;
			else
				break;
		}
		s.width = number(&f, ap);
		if (s.width < 0) {
			s.left = 1;
			s.width = -s.width;
		}
		if (*f == '.') {
			f++;
			s.precision = number(&f, ap);
		}
		int longs = 0;
		for (;; f++) {
			if (*f == 'l' || *f == 'z' || *f == 'j' || *f == 't')
				longs++;
			else if (*f == 'h')
				longs--;
			else
				break;
		}
		char c;
		const char *text;
		long v;
		switch (*f) {
		case 'd':
		case 'i':
			v = signed_argument(longs, ap);
			s.alternate = 0;
			put_number(o, &s, v < 0 ? -(unsigned long)v : (unsigned long)v, v < 0, 10, 0);
			break;
		case 'u':
		case 'x':
		case 'X':
		case 'o':
			s.plus = s.space = 0;
			put_number(o, &s, unsigned_argument(longs, ap), 0,
				   *f == 'u' ? 10 : *f == 'o' ? 8 : 16, *f == 'X');
			break;
		case 'p':
			s.alternate = 1;
			put_number(o, &s, (uintptr_t)va_arg(*ap, void *), 0, 16, 0);
			break;
		case 'c':
			c = (char)va_arg(*ap, int);
			put_text(o, &s, &c, 1);
			break;
		case 's':
			text = va_arg(*ap, const char *);
			if (!text)
				text = "(null)";
			put_text(o, &s, text,
				 (int)(s.precision < 0 ? strlen(text) : strnlen(text, (size_t)s.precision)));
			break;
		case 'n': *va_arg(*ap, int *) = (int)o->length; break;
		case '%': put(o, '%'); break;
		case 0: return;
		default: /* floating point among them: shown as it stands, its argument is not known */
			put(o, '%');
			put(o, *f);
		}
	}
}

int vsnprintf(char *restrict buf, size_t size, const char *restrict f, va_list ap)
{
	sink o = {.buf = buf, .size = size, .fd = -1};
	va_list copy;
	va_copy(copy, ap);
	format(&o, f, &copy);
	va_end(copy);
	if (size)
		buf[o.length < size ? o.length : size - 1] = 0;
	return (int)o.length;
}

int vfprintf(FILE *restrict file, const char *restrict f, va_list ap)
{
	char buf[256];
	sink o = {.buf = buf, .size = sizeof buf, .fd = file->fd};
	va_list copy;
	va_copy(copy, ap);
	format(&o, f, &copy);
	va_end(copy);
	return write_all(o.fd, buf, o.held) ? -1 : (int)o.length;
}

int vprintf(const char *restrict f, va_list ap) { return vfprintf(stdout, f, ap); }
int vsprintf(char *restrict buf, const char *restrict f, va_list ap) { return vsnprintf(buf, 0x7fffffff, f, ap); }

#define FORWARD(last, call)                                                                                  \
	va_list ap;                                                                                          \
	va_start(ap, last);                                                                                  \
	int r = call;                                                                                        \
	va_end(ap);                                                                                          \
	return r

int printf(const char *restrict f, ...) { FORWARD(f, vfprintf(stdout, f, ap)); }
int fprintf(FILE *restrict file, const char *restrict f, ...) { FORWARD(f, vfprintf(file, f, ap)); }
int sprintf(char *restrict buf, const char *restrict f, ...) { FORWARD(f, vsprintf(buf, f, ap)); }
int snprintf(char *restrict buf, size_t size, const char *restrict f, ...) { FORWARD(f, vsnprintf(buf, size, f, ap)); }

int fputs(const char *restrict s, FILE *restrict f) { return write_all(f->fd, s, strlen(s)); }
int fputc(int c, FILE *f)
{
	char b = (char)c;
	return write_all(f->fd, &b, 1) ? EOF : (unsigned char)c;
}
int putc(int c, FILE *f) { return fputc(c, f); }
int putchar(int c) { return fputc(c, stdout); }
int puts(const char *s) { return fputs(s, stdout) || fputc('\n', stdout) < 0 ? EOF : 0; }
size_t fwrite(const void *restrict p, size_t size, size_t n, FILE *restrict f)
{
	return write_all(f->fd, p, size * n) ? 0 : n;
}
int fflush(FILE *f)
{
	(void)f;
	return 0;
}
