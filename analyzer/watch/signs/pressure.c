#include "watch/signs/pressure.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static FILE *open_in(const char *directory, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", directory, name) < (int)sizeof(path)
		   ? fopen(path, "re")
		   : NULL;
}

/* "some avg10=1.25 avg60=0.40 avg300=0.09 total=123456": percent, and microseconds. */
static void read_stalls(FILE *f, struct pressure *out)
{
	char line[256], kind[8];
	double percent;
	uint64_t total_us;
	unsigned found = 0;

	while (fgets(line, sizeof(line), f)) {
		const char *total = strstr(line, "total=");

		if (sscanf(line, "%7s avg10=%lf", kind, &percent) != 2 || !total ||
		    sscanf(total, "total=%" SCNu64, &total_us) != 1 ||
		    !(percent >= 0 && percent <= 100))
			continue;
		if (!strcmp(kind, "some")) {
			out->some = percent / 100;
			out->some_seconds = (double)total_us / 1e6;
			found |= 1;
		} else if (!strcmp(kind, "full")) {
			out->full = percent / 100;
			out->full_seconds = (double)total_us / 1e6;
			found |= 2;
		}
	}
	out->stalls_known = found == 3;
}

struct named {
	const char *name;
	uint64_t *value; /* the lines' sum */
};

/* Add the lines "name value" that are wanted. True: there is one at least. */
static bool read_named(FILE *f, const struct named *names, size_t count)
{
	char line[256], name[64];
	bool any = false;
	uint64_t value;

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %" SCNu64, name, &value) != 2)
			continue;
		for (size_t i = 0; i < count; i++)
			if (!strcmp(names[i].name, name)) {
				*names[i].value += value;
				any = true;
			}
	}
	return any;
}

bool pressure_read(const char *directory, struct pressure *out)
{
	uint64_t scanned = 0, stolen = 0, refaults = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
	const struct named high[] = {{"high", &out->throttled}};
	/* Before Linux 5.9 there is one count of refaults. */
	const struct named stat[] = {{"pgscan", &scanned}, {"pgsteal", &stolen},
	    {"workingset_refault", &refaults}, {"workingset_refault_anon", &refaults},
	    {"workingset_refault_file", &refaults}};
	FILE *f;

	*out = (struct pressure){0};
	f = open_in(directory, "memory.pressure");
	if (f) {
		read_stalls(f, out);
		fclose(f);
	}
	f = open_in(directory, "memory.events");
	if (f) {
		out->throttled_known = read_named(f, high, 1);
		fclose(f);
	}
	f = open_in(directory, "memory.stat");
	if (f) {
		out->reclaim_known = read_named(f, stat, sizeof(stat) / sizeof(*stat));
		out->scanned_bytes = scanned * page;
		out->reclaimed_bytes = stolen * page;
		out->refault_bytes = refaults * page;
		fclose(f);
	}
	return out->stalls_known || out->throttled_known || out->reclaim_known;
}
