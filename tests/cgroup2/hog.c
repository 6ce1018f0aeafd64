/* hog.c - what the situations run: hog KIND [BYTES [COUNT [PAUSE-US]]].
 *
 *	leak	keeps COUNT blocks of BYTES (0: without end), with a pause after each
 *	serve	allocates and frees COUNT blocks of BYTES, beside 1 MiB that it keeps
 *	hold	keeps one block of BYTES for COUNT seconds
 *	file	writes COUNT pieces of BYTES into the file $FILE
 *	workers	forks three: two serve, the third leaks; waits for all and ends with status 0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct entry {
	struct entry *next;
	char text[];
};

static struct entry *entries;

__attribute__((noinline)) static struct entry *make_entry(size_t bytes)
{
	struct entry *e = malloc(bytes);

	if (!e) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	memset(e, 1, bytes);
	return e;
}

__attribute__((noinline)) static void remember(struct entry *e)
{
	e->next = entries;
	entries = e;
}

static void leak(size_t bytes, long count, unsigned pause)
{
	for (long i = 0; !count || i < count; i++) {
		free(make_entry(bytes / 2)); /* the request's own */
		remember(make_entry(bytes));
		if (pause)
			usleep(pause);
	}
}

static void serve(size_t bytes, long count, unsigned pause)
{
	struct entry *kept = make_entry(1 << 20);

	for (long i = 0; i < count; i++) {
		free(make_entry(bytes));
		if (pause)
			usleep(pause);
	}
	free(kept);
}

static int write_file(size_t bytes, long count)
{
	char *piece = calloc(1, bytes);
	int fd = open(getenv("FILE"), O_CREAT | O_WRONLY | O_TRUNC, 0600);

	if (fd < 0 || !piece)
		return 1;
	for (long i = 0; !count || i < count; i++)
		if (write(fd, piece, bytes) != (ssize_t)bytes)
			return 1;
	close(fd);
	free(piece);
	return 0;
}

static int workers(size_t bytes)
{
	for (int i = 0; i < 3; i++)
		if (!fork()) {
			if (i < 2)
				serve(bytes, 3000, 1000);
			else
				leak(bytes, 0, 500);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 0) : 65536;
	long count = argc > 3 ? atol(argv[3]) : 0;
	unsigned pause = argc > 4 ? (unsigned)atoi(argv[4]) : 0;

	if (!strcmp(kind, "leak"))
		leak(bytes, count, pause);
	else if (!strcmp(kind, "serve"))
		serve(bytes, count, pause);
	else if (!strcmp(kind, "file"))
		return write_file(bytes, count);
	else if (!strcmp(kind, "workers"))
		return workers(bytes);
	else if (!strcmp(kind, "hold")) {
		remember(make_entry(bytes));
		sleep((unsigned)count);
	} else
		return 2;
	return 0;
}
