/* trial.c - see trial.h. */
#include "cmd/doctor/trial.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/common/traces.h"
#include "cmd/run/library.h"
#include "cmd/run/program.h"
#include "cmd/run/run_directory.h"
#include "util/text/fmt.h"

#define ELSEWHERE "/var/tmp" /* as run_directory.c has it */
#define SHELL "/bin/sh"
#define TRIAL_MS                                                                                   \
	20000 /* a shell starts in a hundredth of a second; a busy machine may take more           \
	       */
/* A run may take a tenth of what is free (options.def, max_disk). At 5 to 8 bytes an event this
 * much holds some 30 million of them. */
#define RUN_SHARE 10u
#define RUN_LEAST (UINT64_C(256) << 20)
#define LEAST (UINT64_C(32) << 20) /* what is free: below it not even a short run fits */

static const char *kind_of(int fd)
{
	static const struct {
		unsigned long type;
		const char *name;
	} all[] = {{TMPFS_MAGIC, "tmpfs"}, {RAMFS_MAGIC, "ramfs"}, {EXT4_SUPER_MAGIC, "ext4"},
	    {XFS_SUPER_MAGIC, "xfs"}, {BTRFS_SUPER_MAGIC, "btrfs"},
	    {OVERLAYFS_SUPER_MAGIC, "overlayfs"}, {NFS_SUPER_MAGIC, "nfs"},
	    {FUSE_SUPER_MAGIC, "fuse"}, {V9FS_MAGIC, "9p"}, {CEPH_SUPER_MAGIC, "ceph"},
	    {F2FS_SUPER_MAGIC, "f2fs"}, {0x2fc12fc1, "zfs"}, {SMB2_SUPER_MAGIC, "smb"}};
	struct statfs fs;

	for (size_t i = 0; !fstatfs(fd, &fs) && i < sizeof(all) / sizeof(*all); i++)
		if ((unsigned long)fs.f_type == all[i].type)
			return all[i].name;
	return "another file system";
}

/* What is wrong with a directory for traces. */
struct disk {
	char path[PATH_MAX]; /* absolute */
	const char *kind;
	uint64_t left; /* free bytes */
	int error; /* errno: it cannot be used */
	bool memory;
};

static void look_at(const char *path, struct disk *out)
{
	struct statvfs fs;
	int fd;

	*out = (struct disk){.kind = ""};
	if (!realpath(path, out->path)) {
		out->error = errno;
		snprintf(out->path, sizeof(out->path), "%s", path);
		return;
	}
	fd = open(out->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		out->error = errno;
		return;
	}
	out->kind = kind_of(fd);
	out->memory = run_dir_is_memory(fd);
	if (!fstatvfs(fd, &fs))
		out->left = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
		out->error = errno;
	close(fd);
}

/* `whyoom run` makes the last part of a path. */
static void parent_of(const char *path, char parent[PATH_MAX])
{
	size_t n = strlen(path);
	char *slash;

	while (n > 1 && path[n - 1] == '/')
		n--;
	snprintf(parent, PATH_MAX, "%.*s", (int)n, path);
	slash = strrchr(parent, '/');
	if (!slash)
		strcpy(parent, ".");
	else if (slash == parent)
		parent[1] = '\0';
	else
		*slash = '\0';
}

void doctor_disk(struct diagnosis *d, const char *wanted, bool allow_tmpfs, char folder[PATH_MAX])
{
	bool named = wanted && *wanted;
	char parent[PATH_MAX];
	struct disk disk;
	struct fmt left, share;

	folder[0] = '\0';
	look_at(named ? wanted : ".", &disk);
	if (named && disk.error == ENOENT) {
		parent_of(wanted, parent);
		look_at(parent, &disk);
	}
	if (!named && (disk.error || (disk.memory && !allow_tmpfs))) {
		struct disk other;

		look_at(ELSEWHERE, &other);
		if (!other.error && (!other.memory || allow_tmpfs))
			disk = other;
	}
	if (disk.error) {
		diagnosis_add(d, "disk", DIAGNOSIS_FAIL, "traces cannot be written to %.300s: %s",
		    disk.path, strerror(disk.error));
		diagnosis_way_out(d, "name a directory with -o DIR or WHYOOM_DIR; in a container "
				     "mount a volume there (an emptyDir on disk)");
		return;
	}
	if (disk.memory && !allow_tmpfs) {
		diagnosis_add(d, "disk", DIAGNOSIS_FAIL,
		    "%.300s is on a %s, whose pages are memory and count against the same limit",
		    disk.path, disk.kind);
		diagnosis_way_out(d, "name a directory on a disk with -o DIR or WHYOOM_DIR, or "
				     "accept it with --allow-tmpfs");
		return;
	}
	if (disk.left < LEAST) {
		diagnosis_add(d, "disk", DIAGNOSIS_FAIL, "only %s are free in %.300s (%s)",
		    fmt_size(&left, disk.left), disk.path, disk.kind);
		diagnosis_way_out(d, "free some space, or name another directory");
		return;
	}
	snprintf(folder, PATH_MAX, "%s", disk.path);
	if (disk.memory) {
		diagnosis_add(d, "disk", DIAGNOSIS_WARN,
		    "%.300s is on a %s: the traces are charged to the memory limit", disk.path,
		    disk.kind);
		diagnosis_way_out(d, "bound them with --max-disk, or name a directory on a disk");
	} else if (disk.left / RUN_SHARE < RUN_LEAST) {
		diagnosis_add(d, "disk", DIAGNOSIS_WARN,
		    "%s are free in %.300s (%s), and a run's traces may take a tenth: %s",
		    fmt_size(&left, disk.left), disk.path, disk.kind,
		    fmt_size(&share, disk.left / RUN_SHARE));
		diagnosis_way_out(d, "free some space, or --mode sampled; --max-disk sets the "
				     "share");
	} else {
		diagnosis_add(d, "disk", DIAGNOSIS_OK, "%s are free in %.300s (%s)",
		    fmt_size(&left, disk.left), disk.path, disk.kind);
	}
}

static void __attribute__((noreturn))
become(const char *library, const char *where, int out, pid_t parent)
{
	char *all = run_library_preload(library, getenv("LD_PRELOAD"));
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || !all || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
		_exit(127);
	setenv("LD_PRELOAD", all, 1);
	setenv("WHYOOM_DIR", where, 1);
	/* the directory's kind is another check's */
	setenv("WHYOOM_ALLOW_TMPFS", "1", 1);
	setenv("WHYOOM_MODE", "full", 1);
	unsetenv("WHYOOM_OFF");
	unsetenv("WHYOOM_QUIET");
	unsetenv("ENV");
	/* A shell that does nothing has nothing to record in a small environment; one that forks
	 * has. */
	execl(SHELL, "sh", "-c", "x=$(echo a); exit 0", (char *)NULL);
	_exit(127);
}

/* Run the shell. Its first words on stderr go to `said`. Returns its wait status; negative errno.
 */
static int run_shell(const char *library, const char *where, char said[256])
{
	pid_t parent = getpid(), pid;
	int ends[2], status = 0;
	size_t n = 0;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid == 0)
		become(library, where, ends[1], parent);
	close(ends[1]);
	while (pid > 0) {
		struct pollfd p = {.fd = ends[0], .events = POLLIN};
		char rest[256];
		int ready = poll(&p, 1, TRIAL_MS);
		ssize_t got;

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0) {
			kill(pid, SIGKILL);
			break;
		}
		got =
		    n < 255 ? read(ends[0], said + n, 255 - n) : read(ends[0], rest, sizeof(rest));
		if (got <= 0)
			break;
		n += n < 255 ? (size_t)got : 0;
	}
	said[n] = '\0';
	said[strcspn(said, "\n")] = '\0';
	close(ends[0]);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status;
}

static uint64_t count_events(const char *where)
{
	char *path = (char *)(uintptr_t)where;
	struct err err = {""};
	struct traces traces;
	struct event event;
	uint64_t count = 0;

	if (traces_open(&traces, &path, 1, &err))
		return 0;
	for (size_t i = 0; i < traces.set.count; i++)
		while (trace_next(traces.set.images[i], &event, &err) > 0)
			count++;
	traces_close(&traces);
	return count;
}

static void remove_folder(const char *where)
{
	int fd = open(where, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		unlinkat(fd, e->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(where);
}

void doctor_trial(struct diagnosis *d, const char *library, const char *folder)
{
	char where[PATH_MAX + 32], said[256] = "";
	struct run_program shell;
	uint64_t events;
	struct fmt f;
	int status;

	run_program_look(SHELL, &shell);
	if (shell.error || shell.kind != RUN_PROGRAM_SEEN) {
		diagnosis_add(d, "trial", DIAGNOSIS_OK,
		    "not made: there is no " SHELL " here that is linked dynamically with glibc");
		return;
	}
	snprintf(where, sizeof(where), "%s/whyoom.doctor.XXXXXX", folder);
	if (!mkdtemp(where)) {
		diagnosis_add(d, "trial", DIAGNOSIS_FAIL, "cannot make a directory in %.300s: %s",
		    folder, strerror(errno));
		return;
	}
	status = run_shell(library, where, said);
	events = status < 0 ? 0 : count_events(where);
	remove_folder(where);
	if (!status && events && !*said) {
		diagnosis_add(d, "trial", DIAGNOSIS_OK, SHELL " was recorded: %s events",
		    fmt_count(&f, events));
	} else if (!status && events) {
		diagnosis_add(d, "trial", DIAGNOSIS_WARN,
		    SHELL " was recorded, %s events, and this was said: %s", fmt_count(&f, events),
		    said);
	} else {
		diagnosis_add(d, "trial", DIAGNOSIS_FAIL, SHELL " could not be recorded%s%s",
		    *said ? ": " : "", said);
		diagnosis_way_out(d,
		    "the library must be readable, on a file system without noexec; "
		    "LD_DEBUG=libs says what the loader does with it");
	}
}
