/* spare.c - see spare.h. */
#include "cmd/run/spare.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FILE_OF_SELF "/proc/self/oom_score_adj"

static char before[16]; /* the value as the kernel writes it; "": this process is not spared */

static int put(const char *value)
{
	int fd = open(FILE_OF_SELF, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, value, strlen(value));

	if (fd >= 0)
		close(fd);
	return n < 0 ? -1 : 0;
}

void run_spare_begin(void)
{
	char value[sizeof(before)] = "";
	int fd = open(FILE_OF_SELF, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!*before && read(fd, value, sizeof(value) - 1) > 0 && !put("-1000"))
		memcpy(before, value, sizeof(before));
	close(fd);
}

void run_spare_end(void)
{
	if (*before)
		put(before);
	*before = '\0';
}
