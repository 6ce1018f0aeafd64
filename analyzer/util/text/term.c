#include "util/text/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/text/str.h"

bool term_colour(int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fd) && (!no || !*no) && term && strcmp(term, "dumb") != 0;
}

unsigned term_width(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	unsigned long width = columns ? strtoul(columns, NULL, 10) : 0;

	if (!width && !ioctl(fd, TIOCGWINSZ, &size))
		width = size.ws_col;
	if (!width || width > 10000)
		width = 80;
	return width < 40 ? 40 : (unsigned)width;
}

const char *term_style(bool colour, enum term_style style)
{
	static const char *const codes[] = {"\033[0m", "\033[1m", "\033[2m", "\033[31m", "\033[33m",
	    "\033[32m", "\033[36m", "\033[34m", "\033[30;43m", "\033[30;46m", "\033[97;44m",
	    "\033[30;47m"};

	return colour ? codes[style] : "";
}

static unsigned width_of(unsigned long c)
{
	if ((c >= 0x300 && c < 0x370) || (c >= 0x200b && c < 0x2010) || (c >= 0xfe00 && c < 0xfe10))
		return 0;
	if ((c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) ||
	    (c >= 0xac00 && c < 0xd7a4) || (c >= 0xf900 && c < 0xfb00) ||
	    (c >= 0xff00 && c < 0xff61) || (c >= 0x1f300 && c < 0x1fb00) ||
	    (c >= 0x20000 && c < 0x40000))
		return 2;
	return 1;
}

unsigned term_columns(const char *text)
{
	unsigned columns = 0;

	while (*text) {
		size_t n = str_utf8(text);

		columns += width_of(str_code(text, n));
		text += n ? n : 1;
	}
	return columns;
}
