/* shm DIRECTORY DISK - files of a file system in memory, at DIRECTORY and with 1 MiB, and of
 * others: mapped in each way, and refused space. Exits 1 at any difference from a run without a
 * recorder. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "line %d: %s: errno %d\n", __LINE__, #what, errno);        \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)
#define KIB 1024ul

static int file(const char *directory, const char *name, size_t bytes)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	return fd;
}

static char *map(int fd, size_t bytes, int flags)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

int main(int argc, char **argv)
{
	int fd = file(argv[1], "first", 400 * KIB), disk = file(argv[2], "disk", 64 * KIB), status;
	int memfd = memfd_create("name", 0);
	char *p;

	errno = 77;
	p = map(fd, 400 * KIB, MAP_SHARED); /* 1: none of it is there yet */
	memset(p, 1, 200 * KIB);
	map(fd, 400 * KIB, MAP_SHARED); /* 2: half of it is */
	map(fd, 400 * KIB, MAP_PRIVATE); /* 3: takes nothing of the file system */
	map(disk, 64 * KIB, MAP_SHARED); /* 4 */
	CHECK(ftruncate(memfd, 64 * KIB) == 0);
	map(memfd, 64 * KIB, MAP_SHARED); /* 5: has no bound of its own */
	map(-1, 64 * KIB, MAP_SHARED | MAP_ANONYMOUS); /* 6 */
	CHECK(errno == 77);
	CHECK(unlink(strcat(strcpy(malloc(600), argv[1]), "/first")) == 0);
	p = map(fd, 300 * KIB, MAP_SHARED); /* 7: it has no name any more */

	CHECK(posix_fallocate(fd, 0, 100 * KIB) == 0);
	CHECK(posix_fallocate(fd, 0, 2048 * KIB) == ENOSPC && errno == 77);
	CHECK(posix_fallocate64(fd, 0, 3072 * KIB) == ENOSPC && errno == 77);
	CHECK(fallocate(fd, 0, 0, 4096 * KIB) == -1 && errno == ENOSPC);
	CHECK(fallocate64(fd, 0, 0, 5120 * KIB) == -1 && errno == ENOSPC);
	errno = 77;
	CHECK(posix_fallocate(-1, 0, 1) == EBADF && errno == 77);
	CHECK(fallocate(-1, 0, 0, 1) == -1 && errno == EBADF);
	CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4 * KIB) == 0);
	/* Another process has a file there. */
	if (!fork()) {
		free(malloc(100)); /* the recorder notices a new process at its first event */
		map(file(argv[1], "child", 64 * KIB), 64 * KIB, MAP_SHARED);
		_exit(0);
	}
	CHECK(wait(&status) > 0 && status == 0);
	return 0;
}
