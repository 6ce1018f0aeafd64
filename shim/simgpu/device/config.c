/*
 * config.c - see config.h.
 */
#include "simgpu/device/config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1ull << 20)
#define GRANULE (2 * MIB)
#define DEFAULT_CONTEXT (256 * MIB)

static const struct preset {
	const char *shorthand, *name;
	uint64_t mib;
	int major, minor, multiprocessors;
	uint64_t context_mib;
} presets[] = {
#define SIMGPU_PRESET(shorthand, name, mib, major, minor, sms, context)                            \
	{shorthand, name, mib, major, minor, sms, context},
#include "simgpu/device/presets.def"
#undef SIMGPU_PRESET
};

/* Parses digits itself, as strtod() follows the host's locale. */
static bool parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	uint64_t whole = 0, part = 0, scale = 1, unit = 1;
	const char *s = text;

	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*s - '0'), &whole))
			return false;
	if (s == text)
		return false;
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9'; s++)
			if (scale < 1000000) {
				part = part * 10 + (uint64_t)(*s - '0');
				scale *= 10;
			}
	if (*s && *s != 'B' && *s != 'b') {
		const char *u = strchr(units, toupper((unsigned char)*s));

		if (!u)
			return false;
		unit = 1ull << 10 * (u - units + 1);
		s++;
		if (*s == 'i')
			s++;
	}
	if (*s == 'B' || *s == 'b')
		s++;
	if (*s || __builtin_mul_overflow(whole, unit, &whole))
		return false;
	/* at most six digits of at most 1 TiB: no overflow */
	return !__builtin_add_overflow(whole, part * unit / scale, bytes);
}

/* Ignores case, blanks and dashes: "RTX 4090" is "rtx4090". */
static bool names_equal(const char *a, const char *b)
{
	for (;; a++, b++) {
		while (*a == ' ' || *a == '-' || *a == '_')
			a++;
		while (*b == ' ' || *b == '-' || *b == '_')
			b++;
		if (toupper((unsigned char)*a) != toupper((unsigned char)*b))
			return false;
		if (!*a)
			return true;
	}
}

static bool parse_device(const char *text, struct device_spec *spec)
{
	uint64_t bytes;

	for (size_t i = 0; i < sizeof(presets) / sizeof(*presets); i++) {
		const struct preset *p = &presets[i];

		if (!names_equal(text, p->shorthand) && !names_equal(text, p->name))
			continue;
		*spec = (struct device_spec){.bytes = p->mib * MIB,
		    .context = p->context_mib * MIB,
		    .major = p->major,
		    .minor = p->minor,
		    .multiprocessors = p->multiprocessors};
		snprintf(spec->name, sizeof(spec->name), "%s", p->name);
		return true;
	}
	if (!parse_size(text, &bytes) || bytes < GRANULE || bytes > 1ull << 43)
		return false;
	*spec = (struct device_spec){.bytes = bytes & ~(GRANULE - 1),
	    .context = DEFAULT_CONTEXT,
	    .major = 8,
	    .minor = 0,
	    .multiprocessors = 108};
	/* leave most of a small device to the program */
	if (spec->context > bytes / 8)
		spec->context = bytes / 8 & ~(GRANULE - 1);
	snprintf(spec->name, sizeof(spec->name), "Simulated GPU");
	return true;
}

/* Returns 0, or -1 with the reason in `why` and `config` unchanged. */
static int parse_devices(struct config *config, const char *text, char why[96])
{
	struct device_spec specs[SIMGPU_DEVICES], one;
	int count = 0;

	while (*text) {
		char item[80];
		size_t n = strcspn(text, ",");
		unsigned long times = 1;
		char *what = item, *x;

		snprintf(item, sizeof(item), "%.*s", (int)(n < 79 ? n : 79), text);
		x = item + strspn(item, "0123456789");
		if (x > item && *x == 'x') {
			times = strtoul(item, NULL, 10);
			what = x + 1;
		}
		if (!parse_device(what, &one)) {
			snprintf(
			    why, 96, "'%.40s' is neither a size nor the name of a known GPU", what);
			return -1;
		}
		if (!times || times > (unsigned long)(SIMGPU_DEVICES - count)) {
			snprintf(why, 96, "there can be 1 to %d devices", SIMGPU_DEVICES);
			return -1;
		}
		while (times--)
			specs[count++] = one;
		text += n;
		if (*text == ',')
			text++;
	}
	if (!count) {
		snprintf(why, 96, "no device is named");
		return -1;
	}
	memcpy(config->devices, specs, sizeof(*specs) * (size_t)count);
	config->count = count;
	return 0;
}

static bool number(const char *text, uint64_t *out)
{
	uint64_t value = 0;

	for (const char *s = text; *s; s++)
		if (*s < '0' || *s > '9' || value > UINT64_MAX / 10 - 1)
			return false;
		else
			value = value * 10 + (uint64_t)(*s - '0');
	*out = value;
	return *text;
}

enum type { TYPE_SIZE, TYPE_NUMBER, TYPE_TEXT };

/* Returns the value of a variable; its default if it is unset or makes no sense. */
static const char *read_option(
    const char *name, enum type type, const char *fallback, uint64_t *value, char why[96])
{
	const char *text = getenv(name);

	*value = 0;
	for (int i = 0; i < 2; i++, text = fallback) {
		if (!text || !*text)
			continue;
		if (type == TYPE_TEXT || (type == TYPE_SIZE && parse_size(text, value)) ||
		    (type == TYPE_NUMBER && number(text, value)))
			return text;
		snprintf(why, 96, "%s: '%.20s' makes no sense", name, text);
	}
	return "";
}

void config_read(struct config *config, char why[96])
{
	struct {
#define SIMGPU_OPTION(NAME, TYPE, fallback, help)                                                  \
	struct {                                                                                   \
		const char *text;                                                                  \
		uint64_t value;                                                                    \
	} NAME;
#include "simgpu/device/options.def"
#undef SIMGPU_OPTION
	} o;
	const char *devices = getenv("WHYOOM_SIMGPU");

	*config = (struct config){0};
	why[0] = 0;
#define SIMGPU_OPTION(NAME, TYPE, fallback, help)                                                  \
	o.NAME.text =                                                                              \
	    read_option("WHYOOM_SIMGPU_" #NAME, TYPE_##TYPE, fallback, &o.NAME.value, why);
#include "simgpu/device/options.def"
#undef SIMGPU_OPTION
	if (!devices || !*devices)
		devices = SIMGPU_DEFAULT;
	parse_devices(config, devices, why);
	if (*o.CONTEXT.text)
		for (int i = 0; i < config->count; i++)
			config->devices[i].context =
			    (o.CONTEXT.value + GRANULE - 1) & ~(GRANULE - 1);
	for (size_t i = 0; o.MACHINE.text[i] && i < sizeof(config->machine) - 1; i++) {
		char c = o.MACHINE.text[i];

		config->machine[i] = isalnum((unsigned char)c) || strchr("._-", c) ? c : '_';
	}
	config->backing = o.BACKING.value;
	config->quiet = o.QUIET.value;
	snprintf(config->fail.call, sizeof(config->fail.call), "%s", o.FAIL_CALL.text);
	config->fail.nth = o.FAIL_NTH.value;
	config->fail.from = o.FAIL_FROM.value;
	config->fail.size = o.FAIL_SIZE.value;
	config->fail.rate = o.FAIL_RATE.value;
	config->fail.seed = o.FAIL_SEED.value;
}
