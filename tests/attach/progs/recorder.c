/* Stands in for libwhyoom.so: the same two functions, which do what a test wants of them, by
 * ATTACH_TEST in the target's environment. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The interface. */
int whyoom_attach(const char *settings, size_t size);
int whyoom_detach(void);

static char *volatile nowhere = (char *)16;
static char directory[4096];
static int recording;
static volatile double noise;

static void put(const char *name, const char *bytes, size_t size)
{
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		_exit(99);
	close(fd);
}

static int asked(const char *what)
{
	const char *wish = getenv("ATTACH_TEST");

	return wish && !strcmp(wish, what);
}

int whyoom_attach(const char *settings, size_t size)
{
	const struct timespec slow = {2, 0}, endless = {14, 0};
	void *blocks[100];

	if (recording)
		return -EALREADY;
	if (asked("busy"))
		return -EBUSY;
	for (size_t i = 0; i < size; i += strlen(settings + i) + 1)
		if (!strncmp(settings + i, "WHYOOM_DIR=", 11))
			snprintf(directory, sizeof(directory), "%s", settings + i + 11);
	put("began", "", 0);
	/* What the thread had in its registers must be put back. */
	for (int i = 0; i < 100; i++) {
		blocks[i] = malloc((size_t)i * 1000);
		noise = noise * 1.5 + sqrt(noise + i);
	}
	for (int i = 0; i < 100; i++)
		free(blocks[i]);
	if (asked("crash"))
		*nowhere = 1;
	if (asked("slow"))
		nanosleep(&slow, NULL);
	if (asked("endless"))
		nanosleep(&endless, NULL);
	put("attached", settings, size);
	recording = 1;
	return 0;
}

int whyoom_detach(void)
{
	if (!recording)
		return -EINVAL;
	recording = 0;
	put("detached", "", 0);
	return 0;
}
