/*
 * starts.c - starts programs by every call for that.
 *
 * 	starts calls PATH		each call, in the child of a fork; prints how it ended
 * 	starts errors FOLDER		files that cannot be executed; errno
 * 	starts threads PATH COUNT	by fork, vfork and posix_spawn, while other threads allocate
 * 	starts large PATH COUNT		the same by vfork, with an environment of 3000 lines
 * 	starts cost PATH COUNT		the same by vfork; ns for each on stderr
 * 	starts refused PATH COUNT	execve that fails after its look at the file; likewise
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wordexp.h>

extern char **environ;

static const char *const calls[] = {"execl", "execle", "execlp", "execv", "execve", "execvp",
    "execvpe", "execveat", "execveat-empty", "fexecve", "fexecve-path", "syscall", "syscall-at"};

/* Returns only on failure. */
static void execute(const char *call, const char *path, char **argv, char **env)
{
	const char *name = strrchr(path, '/') + 1;
	int fd = open(path, (strstr(call, "path") ? O_PATH : O_RDONLY) | O_CLOEXEC);

	errno = 0;
	if (!strcmp(call, "execl"))
		execl(path, argv[0], argv[1], argv[1] ? argv[2] : NULL, NULL);
	else if (!strcmp(call, "execle"))
		execle(path, argv[0], argv[1], argv[1] ? argv[2] : NULL, NULL, env);
	else if (!strcmp(call, "execlp"))
		execlp(name, argv[0], argv[1], argv[1] ? argv[2] : NULL, NULL);
	else if (!strcmp(call, "execv"))
		execv(path, argv);
	else if (!strcmp(call, "execve"))
		execve(path, argv, env);
	else if (!strcmp(call, "execvp"))
		execvp(name, argv);
	else if (!strcmp(call, "execvpe"))
		execvpe(name, argv, env);
	else if (!strcmp(call, "execveat"))
		execveat(AT_FDCWD, path, argv, env, 0);
	else if (!strcmp(call, "execveat-empty"))
		execveat(fd, "", argv, env, AT_EMPTY_PATH);
	else if (!strncmp(call, "fexecve", 7))
		fexecve(fd, argv, env);
	else if (!strcmp(call, "syscall"))
		syscall(SYS_execve, path, argv, env);
	else if (!strcmp(call, "syscall-at"))
		syscall(SYS_execveat, AT_FDCWD, path, argv, env, 0);
}

static void end_of(const char *call, pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	printf("%s: %x\n", call, status);
	fflush(stdout);
}

/* The caller's pointers and strings. */
static unsigned long sum_of(char **lines)
{
	unsigned long sum = 5381;

	for (; *lines; lines++) {
		sum = sum * 31 + (unsigned long)*lines;
		for (const char *c = *lines; *c; c++)
			sum = sum * 31 + (unsigned char)*c;
	}
	return sum;
}

static int each_call(const char *path)
{
	char *argv[] = {(char *)path, "one", "two", NULL}, line[600], folder[500];
	unsigned long before = sum_of(environ), arguments = sum_of(argv);
	wordexp_t words;
	pid_t pid;
	FILE *f;

	snprintf(
	    folder, sizeof(folder), "/nowhere:%.*s:/bin", (int)(strrchr(path, '/') - path), path);
	setenv("PATH", folder, 1);
	before = sum_of(environ);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		pid = fork();
		if (!pid) {
			execute(calls[i], path, argv, environ);
			_exit(99);
		}
		end_of(calls[i], pid);
		pid = vfork(); /* its output is ours */
		if (!pid) {
			execute(calls[i], path, argv, environ);
			_exit(99);
		}
		end_of("by vfork", pid);
		if (before != sum_of(environ) || arguments != sum_of(argv))
			return 1;
	}
	printf("spawn %d\n", posix_spawn(&pid, path, NULL, NULL, argv, environ));
	end_of("posix_spawn", pid);
	printf(
	    "spawnp %d\n", posix_spawnp(&pid, strrchr(path, '/') + 1, NULL, NULL, argv, environ));
	end_of("posix_spawnp", pid);
	snprintf(line, sizeof(line), "%s one two; exit $?", path);
	printf("system %x\n", system(line));
	fflush(stdout);
	snprintf(line, sizeof(line), "%s one two", path); /* the shell becomes it */
	f = popen(line, "r");
	while (f && fgets(line, sizeof(line), f))
		printf("popen: %s", line);
	printf("popen %x\n", f ? pclose(f) : -1);
	snprintf(line, sizeof(line), "$(%s one two)", path);
	if (!wordexp(line, &words, 0))
		printf("wordexp %zu %s\n", words.we_wordc, words.we_wordv[0]);
	return before != sum_of(environ) || arguments != sum_of(argv);
}

static int errors(const char *folder)
{
	static const char *const names[] = {"missing", "unreadable", "folder", "text", "empty",
	    "no-interpreter", "damaged", "far/missing"};
	char path[600], *argv[] = {"x", "one", NULL};
	pid_t pid;
	int status;

	snprintf(path, sizeof(path), "/nowhere:%s", folder);
	setenv("PATH", path, 1);
	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
			snprintf(path, sizeof(path), "%s/%s", folder, names[n]);
			pid = fork();
			if (!pid) {
				execute(calls[i], path, argv, environ);
				_exit(errno);
			}
			waitpid(pid, &status, 0);
			printf("%s %s: %s\n", names[n], calls[i], strerror(WEXITSTATUS(status)));
			fflush(stdout);
			pid = -7;
			errno = 0;
			status = posix_spawn(&pid, path, NULL, NULL, argv, environ);
			printf("posix_spawn: %d %d\n", status, errno);
			if (!status)
				end_of("posix_spawn", pid);
			status = posix_spawnp(&pid, names[n], NULL, NULL, argv, environ);
			printf("posix_spawnp: %d %d\n", status, errno);
			if (!status)
				end_of("posix_spawnp", pid);
		}
	return 0;
}

static volatile int stop;

static void *allocate(void *arg)
{
	for (unsigned i = 0; !stop; i++) {
		free(malloc(100));
		if (i % 16 == 0)
			usleep(1000); /* so that the trace stays small, however long it takes */
	}
	return arg;
}

static __attribute__((noinline)) pid_t start_by_vfork(const char *path, char **argv)
{
	pid_t pid = vfork();

	if (!pid) {
		execv(path, argv);
		_exit(99);
	}
	return pid;
}

/* The number of those that did not end with 5. */
static int start_many(const char *path, int count, int ways)
{
	char *argv[] = {(char *)path, NULL};
	int status, bad = 0;
	pid_t pid;

	for (int i = 0; i < count; i++) {
		if (i % ways == 0) {
			pid = start_by_vfork(path, argv);
		} else if (i % ways == 1) {
			pid = fork();
			if (!pid) {
				execv(path, argv);
				_exit(99);
			}
		} else {
			posix_spawn(&pid, path, NULL, NULL, argv, environ);
		}
		waitpid(pid, &status, 0);
		bad += !WIFEXITED(status) || WEXITSTATUS(status) != 5;
	}
	return bad;
}

/* The kernel opens the file before it reads the arguments, which point nowhere. */
static int refuse(const char *path, int count, int ways)
{
	char **volatile nowhere = (char **)8;

	for (int i = 0; i < count; i += ways)
		execve(path, nowhere, environ);
	return errno != EFAULT;
}

static long size_of_us(void)
{
	char line[200];
	FILE *f = fopen("/proc/self/status", "r");
	long kib = 0;

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmSize: %ld", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

int main(int argc, char **argv)
{
	struct timespec a, b;
	pthread_t threads[4];
	int bad;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "calls"))
		return each_call(argv[2]);
	if (!strcmp(argv[1], "errors"))
		return errors(argv[2]);
	if (argc < 4)
		return 2;
	if (!strcmp(argv[1], "threads")) {
		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, allocate, NULL);
		bad = start_many(argv[2], atoi(argv[3]), 3);
		stop = 1;
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		fprintf(stderr, "bad %d\n", bad);
	} else if (!strcmp(argv[1], "large")) {
		char name[32];
		long before;

		for (int i = 0; i < 3000; i++) {
			snprintf(name, sizeof(name), "VARIABLE_%d", i);
			setenv(name, "value", 1);
		}
		bad = start_many(argv[2], 10, 1);
		before = size_of_us();
		bad += start_many(argv[2], atoi(argv[3]), 1);
		fprintf(stderr, "bad %d, %ld KiB\n", bad, size_of_us() - before);
	} else {
		int (*way)(const char *, int, int) = !strcmp(argv[1], "cost") ? start_many : refuse;

		way(argv[2], 10, 1);
		clock_gettime(CLOCK_MONOTONIC, &a);
		way(argv[2], atoi(argv[3]), 1);
		clock_gettime(CLOCK_MONOTONIC, &b);
		fprintf(stderr, "%ld\n",
		    ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec) / atoi(argv[3]));
	}
	return 0;
}
