/* when.c - see when.h. */
#include "explain/join/when.h"

#include <stdlib.h>
#include <string.h>

#include "explain/pattern.h"

#define LOOKED_AT 256u

#define CLOCK "(?<h>[0-2]\\d):(?<m>[0-5]\\d):(?<s>[0-6]\\d)(?:[.,](?<f>\\d{1,9}))?"

/* The first that matches counts: those that tell more come first. */
static const char *const formats[] = {
    /* ISO and its kin: 2026-05-01T12:34:56.789Z, 2026-05-01 12:34:56,789, 2026/05/01 12:34:56 */
    "(?<Y>20\\d\\d)[-/](?<M>[01]\\d)[-/](?<D>[0-3]\\d)[T _]" CLOCK
    "(?: ?(?<z>Z|[+-]\\d\\d:?\\d\\d)\\b)?",
    /* TensorRT: [05/01/2026-12:34:56] */
    "(?<M>[01]\\d)/(?<D>[0-3]\\d)/(?<Y>20\\d\\d)[- ]" CLOCK,
    /* absl: E20260501 12:34:56.789012 */
    "\\b[IWEF](?<Y>20\\d\\d)(?<M>[01]\\d)(?<D>[0-3]\\d) " CLOCK,
    /* klog and glog: E0501 12:34:56.789012 */
    "\\b[IWEF](?<M>[01]\\d)(?<D>[0-3]\\d) " CLOCK,
    /* syslog, ctime, dmesg -T: May  1 12:34:56, May 1 12:34:56 2026 */
    "\\b(?<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(?<D>[1-3]?\\d) " CLOCK
    "(?: (?<Y>20\\d\\d)\\b)?",
    /* vLLM: INFO 05-01 12:34:56 */
    "\\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?<M>[01]\\d)-(?<D>[0-3]\\d) " CLOCK,
    /* the kernel: [12345.678901] */
    "\\[ {0,12}(?<up>\\d{1,9})\\.(?<f>\\d{6})\\]",
    /* seconds since 1970 in JSON: "ts":1767225600.123 */
    "\"(?:ts|time|timestamp)\": ?\"?(?<epoch>\\d{10})(?:\\.(?<f>\\d{1,9}))?",
    /* a time alone, at the line's beginning */
    "^\\W{0,3}" CLOCK "\\b",
};
#define FORMATS (sizeof(formats) / sizeof(*formats))

struct whens {
	struct pattern *patterns[FORMATS];
};

struct whens *whens_new(void)
{
	struct whens *whens = calloc(1, sizeof(*whens));

	for (size_t i = 0; whens && i < FORMATS; i++)
		if (pattern_new(formats[i], &whens->patterns[i], NULL)) {
			whens_free(whens);
			return NULL;
		}
	return whens;
}

void whens_free(struct whens *whens)
{
	if (!whens)
		return;
	for (size_t i = 0; i < FORMATS; i++)
		pattern_free(whens->patterns[i]);
	free(whens);
}

static const struct pattern_group *group(const struct pattern_match *m, const char *name)
{
	for (size_t i = 0; i < m->group_count; i++)
		if (strcmp(m->groups[i].name, name) == 0)
			return &m->groups[i];
	return NULL;
}

static int64_t number(const struct pattern_match *m, const char *name)
{
	const struct pattern_group *g = group(m, name);
	int64_t value = 0;

	for (size_t i = 0; g && i < g->bytes; i++)
		value = value * 10 + (g->text[i] - '0');
	return value;
}

static int64_t month(const struct pattern_match *m)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const struct pattern_group *g = group(m, "mon");
	const char *at;

	if (!g)
		return number(m, "M");
	at = memmem(names, sizeof(names), g->text, g->bytes);
	return at ? (at - names) / 3 + 1 : 0;
}

/* Days since 1970-01-01 of a Gregorian date. */
static int64_t days(int64_t y, int64_t m, int64_t d)
{
	int64_t era, of_era;

	y -= m <= 2;
	era = y / 400;
	of_era = y - era * 400;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 +
	       (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1 - 719468;
}

/* "+02:00", "-0730" in seconds; "Z" is 0. */
static int64_t offset(const struct pattern_match *m)
{
	const struct pattern_group *g = group(m, "z");
	int64_t digits = 0, minutes;

	for (size_t i = 1; g && i < g->bytes; i++)
		if (g->text[i] != ':')
			digits = digits * 10 + (g->text[i] - '0');
	minutes = digits / 100 * 60 + digits % 100;
	return g && *g->text == '-' ? minutes * -60 : minutes * 60;
}

static int64_t fraction(const struct pattern_match *m)
{
	const struct pattern_group *g = group(m, "f");
	int64_t ns = 0;

	for (size_t i = 0; g && i < 9; i++)
		ns = ns * 10 + (i < g->bytes ? g->text[i] - '0' : 0);
	return ns;
}

static void read_match(const struct pattern_match *m, struct when *out)
{
	int64_t seconds = number(m, "h") * 3600 + number(m, "m") * 60 + number(m, "s");

	if (group(m, "up")) {
		out->clock = WHEN_UPTIME;
		seconds = number(m, "up");
	} else if (group(m, "epoch")) {
		out->clock = WHEN_WALL;
		out->year = true;
		seconds = number(m, "epoch");
	} else if (group(m, "D")) {
		out->clock = WHEN_WALL;
		out->year = group(m, "Y") != NULL;
		seconds +=
		    days(out->year ? number(m, "Y") : 1970, month(m), number(m, "D")) * 86400;
		seconds -= offset(m);
	} else {
		out->clock = WHEN_DAY;
	}
	out->ns = seconds * 1000000000 + fraction(m);
	out->at = m->begin;
	out->bytes = m->end - m->begin;
}

bool whens_read(struct whens *whens, const char *line, size_t bytes, struct when *out)
{
	struct pattern_match match;

	*out = (struct when){.clock = WHEN_UNKNOWN};
	if (bytes > LOOKED_AT)
		bytes = LOOKED_AT;
	for (size_t i = 0; i < FORMATS; i++)
		if (pattern_find(whens->patterns[i], line, bytes, 0, bytes, &match)) {
			read_match(&match, out);
			return true;
		}
	return false;
}
