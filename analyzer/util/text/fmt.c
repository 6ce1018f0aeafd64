#include "util/text/fmt.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/text/str.h"

#define ARGUMENTS 40 /* characters of template arguments that are shown */

static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

/* Print three significant digits and `more`; never round up to four ("1000 KiB" cannot appear). */
static void put_size(char *out, size_t room, const char *sign, uint64_t bytes, int more)
{
	unsigned unit = 0;
	double value = (double)bytes;

	if (bytes < 1024) {
		snprintf(out, room, "%s%u B", sign, (unsigned)bytes);
		return;
	}
	while (value >= 999.5 && unit < 6) {
		value /= 1024;
		unit++;
	}
	snprintf(out, room, "%s%.*f %s", sign,
	    more + (value < 9.995      ? 2
		       : value < 99.95 ? 1
				       : 0),
	    value, units[unit]);
}

const char *fmt_size(struct fmt *f, uint64_t bytes)
{
	put_size(f->text, sizeof(f->text), "", bytes, 0);
	return f->text;
}

const char *fmt_size_apart(struct fmt *f, uint64_t bytes, uint64_t other)
{
	struct fmt theirs;
	int more = 0;

	/* A double has about 16 digits: stop there. */
	do {
		put_size(f->text, sizeof(f->text), "", bytes, more);
		put_size(theirs.text, sizeof(theirs.text), "", other, more);
	} while (bytes != other && strcmp(f->text, theirs.text) == 0 && ++more < 14);
	return f->text;
}

const char *fmt_size_signed(struct fmt *f, int64_t bytes)
{
	uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;

	put_size(f->text, sizeof(f->text), bytes < 0 ? "-" : bytes > 0 ? "+" : "", size, 0);
	return f->text;
}

const char *fmt_size_exact(struct fmt *f, uint64_t bytes)
{
	struct fmt size, count;

	if (bytes < 1024)
		return fmt_size(f, bytes);
	snprintf(f->text, sizeof(f->text), "%.16s (%.30s bytes)", fmt_size(&size, bytes),
	    fmt_count(&count, bytes));
	return f->text;
}

const char *fmt_count(struct fmt *f, uint64_t n)
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n), at = 0;

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			f->text[at++] = ',';
		f->text[at++] = digits[i];
	}
	f->text[at] = 0;
	return f->text;
}

const char *fmt_ordinal(struct fmt *f, uint64_t n)
{
	static const char *const endings[] = {"th", "st", "nd", "rd"};
	bool teen = n / 10 % 10 == 1;
	struct fmt count;

	snprintf(f->text, sizeof(f->text), "%s%s", fmt_count(&count, n),
	    endings[teen || n % 10 > 3 ? 0 : n % 10]);
	return f->text;
}

const char *fmt_duration(struct fmt *f, uint64_t ns)
{
	static const struct {
		double scale;
		const char *unit;
	} small[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
	uint64_t s = ns / 1000000000 + (ns % 1000000000 >= 500000000);
	size_t room = sizeof(f->text);

	if (ns < 1000) {
		snprintf(f->text, room, "%u ns", (unsigned)ns);
	} else if (s < 100) {
		unsigned i = ns < 999500 ? 1 : ns < 999500000 ? 2 : 3;
		double value = (double)ns / small[i].scale;
		snprintf(f->text, room, "%.*f %s",
		    value < 9.995   ? 2
		    : value < 99.95 ? 1
				    : 0,
		    value, small[i].unit);
	} else if (s < 3600) {
		snprintf(f->text, room, "%u min %02u s", (unsigned)(s / 60), (unsigned)(s % 60));
	} else if (s < 86400) {
		snprintf(f->text, room, "%u h %02u min", (unsigned)(s / 3600),
		    (unsigned)(s % 3600 / 60));
	} else {
		snprintf(f->text, room, "%llu d %02u h", (unsigned long long)(s / 86400),
		    (unsigned)(s % 86400 / 3600));
	}
	return f->text;
}

const char *fmt_percent(struct fmt *f, uint64_t part, uint64_t whole)
{
	double p = whole ? 100.0 * (double)part / (double)whole : 0;

	if (!whole)
		snprintf(f->text, sizeof(f->text), "-");
	else if (part && p < 0.1)
		snprintf(f->text, sizeof(f->text), "<0.1 %%");
	else
		snprintf(f->text, sizeof(f->text), "%.*f %%", p < 9.95 && part ? 1 : 0, p);
	return f->text;
}

int fmt_parse_size(const char *text, uint64_t *bytes)
{
	static const char letters[] = "kmgtpe";
	const char *letter, *p = text;
	unsigned shift = 0;
	double value;
	char *end;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	/* strtod also accepts hexadecimal, infinities and exponents, which users do not mean. */
	while (isdigit((unsigned char)*p) || *p == '.')
		p++;
	errno = 0;
	value = strtod(text, &end);
	if (end != p)
		return -EINVAL;
	while (*p == ' ')
		p++;
	letter = *p ? strchr(letters, tolower((unsigned char)*p)) : NULL;
	if (letter) {
		shift = 10 * (unsigned)(letter - letters + 1);
		p++;
		if (tolower((unsigned char)*p) == 'i')
			p++;
	}
	if (tolower((unsigned char)*p) == 'b')
		p++;
	if (*p)
		return -EINVAL;
	if (!memchr(text, '.', (size_t)(end - text))) {
		unsigned long long whole = strtoull(text, NULL, 10);
		if (errno == ERANGE || whole > UINT64_MAX >> shift)
			return -ERANGE;
		*bytes = (uint64_t)whole << shift;
		return 0;
	}
	value *= (double)(1ull << shift);
	if (value >= 18446744073709551615.0)
		return -ERANGE;
	*bytes = (uint64_t)value;
	return 0;
}

/* Return the end behind the '>' that matches '<'; NULL: this is no list of arguments. */
static const char *arguments_end(const char *open)
{
	unsigned depth = 0;

	for (const char *p = open; *p; p++) {
		if (*p == '<')
			depth++;
		else if (*p == '>' && p[-1] != '-' && --depth == 0)
			return p + 1;
	}
	return NULL;
}

/* Find the " as " of "<T as Trait>", whose end is given; NULL: none. */
static const char *as_trait(const char *open, const char *end)
{
	unsigned depth = 0;

	for (const char *p = open; p < end; p++) {
		if (*p == '<')
			depth++;
		else if (*p == '>' && p[-1] != '-')
			depth--;
		else if (depth == 1 && strncmp(p, " as ", 4) == 0)
			return p;
	}
	return NULL;
}

static void add_function(struct str *to, const char *function, const char *stop, const char *dots)
{
	static const char operator_[] = "operator";

	for (const char *p = function; p < stop;) {
		const char *end = *p == '<' && p > function ? arguments_end(p) : NULL;

		if (strncmp(p, operator_, sizeof(operator_) - 1) == 0) {
			/* The < and > of operator<, operator<< and operator-> are no brackets. */
			size_t n =
			    sizeof(operator_) - 1 + strspn(p + sizeof(operator_) - 1, "<>-=");

			str_add(to, p, n);
			p += n;
		} else if (end && end <= stop && end - p > ARGUMENTS + 2) {
			str_puts(to, dots);
			p = end;
		} else {
			/* Show short arguments whole: one with long text is long itself. */
			size_t n = end && end <= stop ? (size_t)(end - p) : 1;

			str_add(to, p, n);
			p += n;
		}
	}
}

void fmt_function(struct str *to, const char *function, const char *dots)
{
	const char *end = *function == '<' ? arguments_end(function) : NULL,
		   *as = end ? as_trait(function, end) : NULL;

	if (as) {
		add_function(to, function + 1, as, dots);
		function = end;
	}
	add_function(to, function, function + strlen(function), dots);
}
