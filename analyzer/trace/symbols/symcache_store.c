#include "trace/symbols/symcache_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "util/io.h"
#include "util/vec.h"

#define DIRECTORY_MAX (512ll << 20) /* bytes of all files; a fuller directory is cut to half */
#define TEMPORARY ".new-symbols-"
#define DAY 86400

struct symcache_store {
	char path[PATH_MAX];
	struct symcache_mark program;
	int fd; /* -1: there is no directory yet */
	bool written;
};

/* False: no directory is wanted. */
static bool find_path(char path[PATH_MAX])
{
	const char *named = getenv("WHYOOM_CACHE"), *cache = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");
	int n = 0;

	/* The XDG rules say to ignore relative paths. */
	if (named && *named)
		n = *named == '/' ? snprintf(path, PATH_MAX, "%s", named) : 0;
	else if (cache && *cache == '/')
		n = snprintf(path, PATH_MAX, "%s/whyoom", cache);
	else if (home && *home == '/')
		n = snprintf(path, PATH_MAX, "%s/.cache/whyoom", home);
	return n > 0 && n < PATH_MAX;
}

/* Open the directory, if nobody else may have written there. */
static void open_directory(struct symcache_store *store)
{
	struct stat st;
	int fd = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & 022)) {
		close(fd);
		fd = -1;
	}
	store->fd = fd;
}

static void make_directory(struct symcache_store *store)
{
	char *path = store->path;

	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		(void)mkdir(path, 0700);
		*slash = '/';
	}
	(void)mkdir(path, 0700);
	open_directory(store);
}

/* Identify this program, since another version may find more in the same file. By the link's text:
 * under an emulator or a debugger it names the program, but the link itself leads to the emulator.
 */
static bool see_program(struct symcache_mark *mark)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	struct stat st;

	if (n <= 0)
		return false;
	path[n] = 0;
	if (stat(path, &st))
		return false;
	*mark = symcache_mark(&st);
	return true;
}

struct symcache_store *symcache_store_open(void)
{
	struct symcache_store *store = calloc(1, sizeof(*store));

	if (!store || !find_path(store->path) || !see_program(&store->program)) {
		free(store);
		return NULL;
	}
	open_directory(store);
	return store;
}

const struct symcache_mark *symcache_store_program(const struct symcache_store *store)
{
	return &store->program;
}

/* Read instead of mapping: truncation of a mapped file would kill us. */
char *symcache_store_read(
    struct symcache_store *store, const char *name, size_t most, size_t *bytes)
{
	char *data = NULL;
	struct stat st;
	int fd = -1;

	if (store->fd >= 0)
		fd = openat(store->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    (uint64_t)st.st_size <= most) {
		*bytes = (size_t)st.st_size;
		data = malloc(*bytes + 1);
		if (data && io_read_at(fd, data, *bytes, 0) != (ssize_t)*bytes) {
			free(data);
			data = NULL;
		}
		/* Mark the file as used: unused files are removed first. */
		if (data && st.st_mtim.tv_sec < time(NULL) - DAY)
			(void)futimens(fd, NULL);
	}
	close(fd);
	return data;
}

/* Writing beyond the limit raises SIGXFSZ. */
static bool may_write(size_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	       bytes <= limit.rlim_cur;
}

void symcache_store_write(
    struct symcache_store *store, const char *name, const void *data, size_t bytes)
{
	char temporary[64];
	uint64_t number;
	int fd, rc;

	if (!may_write(bytes))
		return;
	if (store->fd < 0)
		make_directory(store);
	if (store->fd < 0 || getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		return;
	store->written = true;
	snprintf(temporary, sizeof(temporary), TEMPORARY "%016llx", (unsigned long long)number);
	fd = openat(
	    store->fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	rc = io_write_at(fd, data, bytes, 0);
	if (close(fd) || rc || renameat(store->fd, temporary, store->fd, name))
		(void)unlinkat(store->fd, temporary, 0);
}

struct kept_file {
	char name[NAME_MAX + 1];
	time_t used;
	long long bytes;
};

static int by_use(const void *a, const void *b)
{
	const struct kept_file *x = a, *y = b;

	return (x->used > y->used) - (x->used < y->used);
}

/* Tell our files from others: the user may have named a directory with other files. */
static bool is_ours(const char *name, bool *temporary)
{
	*temporary = !strncmp(name, TEMPORARY, strlen(TEMPORARY));
	return *temporary || !strcmp(name + strspn(name, "0123456789abcdef-"), SYMCACHE_SUFFIX);
}

/* Cut the directory to half, oldest first; temporary files of the day before are abandoned. */
static void cut(struct symcache_store *store)
{
	VEC(struct kept_file) files = {0};
	struct kept_file file;
	struct dirent *e;
	struct stat st;
	long long all = 0;
	bool temporary;
	int fd = dup(store->fd);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	while (dir && (e = readdir(dir))) {
		if (!is_ours(e->d_name, &temporary) ||
		    fstatat(store->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		snprintf(file.name, sizeof(file.name), "%s", e->d_name);
		file.used = st.st_mtim.tv_sec;
		file.bytes = st.st_size;
		if (temporary) {
			if (file.used < time(NULL) - DAY)
				(void)unlinkat(store->fd, file.name, 0);
			continue;
		}
		all += file.bytes;
		if (vec_push(&files, file))
			break;
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	if (all > DIRECTORY_MAX && files.count) {
		qsort(files.items, files.count, sizeof(*files.items), by_use);
		for (size_t i = 0; all > DIRECTORY_MAX / 2 && i < files.count; i++)
			if (!unlinkat(store->fd, files.items[i].name, 0))
				all -= files.items[i].bytes;
	}
	vec_free(&files);
}

void symcache_store_close(struct symcache_store *store)
{
	if (!store)
		return;
	if (store->fd >= 0) {
		if (store->written)
			cut(store);
		close(store->fd);
	}
	free(store);
}
