/* In a container: each connection leaves its session behind. Some shared memory and a file beside.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef SCALE
#define SCALE 1
#endif

struct session {
	struct session *next;
	char name[64];
	char buffer[16000 * SCALE];
};

static struct session *sessions;

static __attribute__((noinline)) struct session *open_session(int number)
{
	struct session *s = malloc(sizeof(*s));

	if (!s)
		exit(1);
	memset(s->buffer, number, sizeof(s->buffer));
	snprintf(s->name, sizeof(s->name), "client %d", number);
	s->next = sessions;
	sessions = s;
	return s;
}

static __attribute__((noinline)) int answer(const struct session *s)
{
	char *page = malloc(50000);
	int n;

	if (!page)
		exit(1);
	memset(page, 'x', 50000);
	n = page[49999] + s->name[0];
	free(page);
	return n;
}

int main(void)
{
	char name[] = "/var/tmp/sessions.XXXXXX";
	char *board =
	    mmap(NULL, 6 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = mkstemp(name), sum = 0;

	unlink(name);
	memset(board, 1, 6 << 20);
	for (int i = 0; i < 8; i++)
		if (write(fd, board, 1 << 20) < 0)
			return 2;
	for (int i = 0;; i++) {
		sum += answer(open_session(i));
		usleep(100);
	}
	return sum;
}
