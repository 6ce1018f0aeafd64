/* limit.c - see limit.h. */
#include "cmd/common/limit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/supervise/cgroup.h"
#include "util/memory.h"
#include "util/num.h"
#include "util/text/fmt.h"
#include "whyoom/trace.h"

#define OPTION "--max-memory"
#define LEVELS 32u

static uint64_t level(const struct event_level *list, size_t count, uint32_t key)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].key == key)
			return list[i].value;
	return UINT64_MAX;
}

/* Of address space that counts, as it is. */
static uint64_t own_data(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%*u %*u %*u %*u %*u %llu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void limit_by_default(void)
{
	struct event_level levels[LEVELS];
	struct run_cgroup group;
	uint64_t most;

	most = level(levels, run_system_levels("", levels, LEVELS), TRACE_LEVEL_SYS_TOTAL);
	run_cgroup_find("", getpid(), &group);
	most = num_least(
	    most, level(levels, run_cgroup_levels(&group, levels, LEVELS), TRACE_LEVEL_CG_MAX));
	/* Sanitizers and the like have taken more than there is before anything began. */
	if (most != UINT64_MAX && own_data() < most / 4)
		memory_limit(most / 4 * 3, false);
}

int limit_take(int *argc, char **argv)
{
	const char *text = NULL;
	uint64_t bytes;

	for (int i = 2; i < *argc && strcmp(argv[i], "--"); i++) {
		size_t n = strlen(OPTION);
		int taken = 1;

		if (strncmp(argv[i], OPTION, n) || (argv[i][n] && argv[i][n] != '='))
			continue;
		text = argv[i][n] ? argv[i] + n + 1 : argv[i + 1];
		taken += !argv[i][n];
		if (!text)
			return cmd_usage(NULL, "'" OPTION "' needs a value");
		memmove(
		    argv + i, argv + i + taken, (size_t)(*argc - i - taken + 1) * sizeof(*argv));
		*argc -= taken;
		i--;
	}
	if (!text) {
		limit_by_default();
		return 0;
	}
	if (fmt_parse_size(text, &bytes))
		return cmd_usage(NULL, OPTION " is a size, as 2GiB, or 0 for none, not '%s'", text);
	memory_limit(bytes, true);
	return 0;
}
