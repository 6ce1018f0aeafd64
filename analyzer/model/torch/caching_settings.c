#include "model/torch/caching_settings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void caching_settings_init(struct caching_settings *s)
{
	*s = (struct caching_settings){.large_segment = 20 * CACHING_MIB,
	    .max_split = UINT64_MAX,
	    .max_rounding = 20 * CACHING_MIB};
}

/* --- the text: "key:value,key:[1:2,>:4]" --- */

/* Read a word up to a separator, without spaces. False: empty, or too long. */
static bool word(const char **at, char *out, size_t room)
{
	size_t n = 0;

	for (; **at && !strchr(":,[]", **at); (*at)++) {
		if (isspace((unsigned char)**at))
			continue;
		if (n + 1 == room)
			return false;
		out[n++] = **at;
	}
	out[n] = 0;
	return n > 0;
}

static bool number(const char *text, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	*out = strtoull(text, &end, 10);
	return !*end;
}

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

static unsigned log2_of(uint64_t n)
{
	return 63u - (unsigned)__builtin_clzll(n);
}

static void fill(struct caching_settings *s, unsigned from, unsigned to, uint64_t divisions)
{
	for (unsigned i = from; i < to; i++)
		s->roundup[i] = (uint32_t)divisions;
}

/* Read one "256:4" or ">:1" of a list; `last` is the previous interval. */
static bool roundup_entry(
    struct caching_settings *s, const char *interval, const char *divisions, int *last)
{
	uint64_t value, boundary;
	unsigned index;

	if (!number(divisions, &value) || (value && !is_power_of_two(value)) || value > UINT32_MAX)
		return false;
	if (strcmp(interval, ">") == 0) {
		fill(s, (unsigned)(*last < 0 ? 1 : *last + 1), CACHING_ROUNDUPS, value);
		return true;
	}
	if (!number(interval, &boundary) || !is_power_of_two(boundary))
		return false;
	index = log2_of(boundary);
	if (index >= CACHING_ROUNDUPS)
		index = CACHING_ROUNDUPS - 1;
	if (*last < 0)
		fill(s, 0, index, value);
	s->roundup[index] = (uint32_t)value;
	*last = (int)index;
	return true;
}

static bool roundup_list(struct caching_settings *s, const char **at)
{
	char interval[32], divisions[32];
	int last = -1;

	(*at)++;
	while (**at && **at != ']') {
		if (!word(at, interval, sizeof(interval)) || **at != ':')
			return false;
		(*at)++;
		if (!word(at, divisions, sizeof(divisions)) ||
		    !roundup_entry(s, interval, divisions, &last))
			return false;
		if (**at == ',')
			(*at)++;
	}
	if (**at != ']')
		return false;
	(*at)++;
	return true;
}

/* True if the setting does not change where blocks go. */
static bool is_harmless(const char *key)
{
	static const char *const known[] = {"pinned_use_cuda_host_register",
	    "pinned_num_register_threads", "pinned_use_background_threads",
	    "pinned_reserve_segment_size_mb", "release_lock_on_cudamalloc",
	    "release_lock_on_hipmalloc", "graph_capture_record_stream_reuse"};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(key, known[i]) == 0)
			return true;
	return false;
}

static bool mebibytes(const char *value, uint64_t least, uint64_t *out)
{
	uint64_t n;

	if (!number(value, &n) || n < least)
		return false;
	*out = n < UINT64_MAX / CACHING_MIB ? n * CACHING_MIB : UINT64_MAX;
	return true;
}

static bool share(const char *value, double *out)
{
	char *end;
	double n = strtod(value, &end);

	if (end == value || *end || !isfinite(n) || n < 0 || n > 1)
		return false;
	*out = n;
	return true;
}

static bool set(struct caching_settings *s, const char *key, const char *value)
{
	uint64_t n;

	if (strcmp(key, "max_split_size_mb") == 0)
		return mebibytes(value, 20, &s->max_split);
	if (strcmp(key, "max_non_split_rounding_mb") == 0)
		return mebibytes(value, 20, &s->max_rounding);
	if (strcmp(key, "large_segment_size_mb") == 0)
		return mebibytes(value, 1, &s->large_segment);
	if (strcmp(key, "garbage_collection_threshold") == 0)
		return share(value, &s->gc_threshold);
	if (strcmp(key, "per_process_memory_fraction") == 0)
		return share(value, &s->memory_fraction);
	if (strcmp(key, "expandable_segments") == 0) {
		s->expandable = strcmp(value, "True") == 0;
		return s->expandable || strcmp(value, "False") == 0;
	}
	if (strcmp(key, "backend") == 0) {
		s->foreign_backend = strcmp(value, "native") != 0;
		return true;
	}
	if (strcmp(key, "roundup_power2_divisions") == 0) {
		if (!number(value, &n) || !is_power_of_two(n) || n > UINT32_MAX)
			return false;
		fill(s, 0, CACHING_ROUNDUPS, n);
		return true;
	}
	return is_harmless(key);
}

/* The value of each setting, for messages, in the messages' order. */
static const struct {
	const char *key, *takes;
} known[] = {{"expandable_segments", "True or False"},
    {"max_split_size_mb", "a number of MiB from 20 on"},
    {"max_non_split_rounding_mb", "a number of MiB from 20 on"},
    {"large_segment_size_mb", "a number of MiB from 1 on"},
    {"garbage_collection_threshold", "a share from 0 to 1"},
    {"per_process_memory_fraction", "a share from 0 to 1"},
    {"roundup_power2_divisions", "a power of two, or a list as [256:1,512:2,>:8]"},
    {"backend", "native or cudaMallocAsync"}};
#define KNOWN (sizeof(known) / sizeof(*known))

/* Report the text at `at`. Always false. */
static bool complain(struct err *err, const char *text, const char *at, const char *key)
{
	char names[256] = "";
	int n = (int)strcspn(at, ",");

	for (size_t i = 0; i < KNOWN; i++) {
		if (strcmp(known[i].key, key) == 0) {
			err_set(err, -EINVAL, "'%.*s', at character %zu: %s takes %s",
			    n > 80 ? 80 : n, at, (size_t)(at - text) + 1, key, known[i].takes);
			return false;
		}
		strcat(names, i ? ", " : "");
		strcat(names, known[i].key);
	}
	err_set(err, -EINVAL,
	    "'%.*s', at character %zu: no setting NAME:VALUE that is known here; there are %s",
	    n > 80 ? 80 : n, at, (size_t)(at - text) + 1, names);
	return false;
}

/* Read one "key:value". False: reported; *at is unchanged when the rest cannot be read. */
static bool setting(struct caching_settings *s, const char *text, const char **at, struct err *err)
{
	const char *start = *at, *here = start;
	char key[64] = "", value[64];
	bool good;

	if (!word(&here, key, sizeof(key)) || *here != ':')
		return complain(err, text, start, key);
	here++;
	while (isspace((unsigned char)*here))
		here++;
	if (*here == '[')
		good = strcmp(key, "roundup_power2_divisions") == 0 && roundup_list(s, &here);
	else if (word(&here, value, sizeof(value)))
		good = set(s, key, value);
	else
		return complain(err, text, start, key);
	if (*here && *here != ',')
		return complain(err, text, start, key);
	*at = here + (*here == ',');
	return good || complain(err, text, start, key);
}

bool caching_settings_parse(struct caching_settings *s, const char *text, struct err *err)
{
	bool understood = true;
	const char *from = text ? text : "", *at = from, *before;

	while (*at) {
		before = at;
		/* Report only the first error. */
		if (!setting(s, from, &at, understood ? err : NULL))
			understood = false;
		if (at == before)
			break;
	}
	return understood;
}

/* --- rounding --- */

/* Round up to one of `divisions` equal steps between a power of two and the next. */
static uint64_t round_to_division(uint64_t bytes, uint64_t divisions)
{
	uint64_t floor = 1ull << log2_of(bytes), step = floor >> log2_of(divisions), down;

	if (is_power_of_two(bytes))
		return bytes;
	if (!step)
		return floor << 1;
	down = bytes & ~(step - 1);
	return down == bytes ? bytes : down + step;
}

uint64_t caching_round(const struct caching_settings *s, uint64_t bytes)
{
	uint64_t divisions;
	unsigned log;

	if (bytes < CACHING_MIN_BLOCK)
		return CACHING_MIN_BLOCK;
	log = log2_of(bytes);
	log = log > 20 ? log - 20 : 0;
	divisions = s->roundup[log < CACHING_ROUNDUPS ? log : CACHING_ROUNDUPS - 1];
	if (divisions > 1 && bytes > CACHING_MIN_BLOCK * divisions)
		return round_to_division(bytes, divisions);
	return (bytes + CACHING_MIN_BLOCK - 1) / CACHING_MIN_BLOCK * CACHING_MIN_BLOCK;
}
