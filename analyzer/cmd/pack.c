/*
 * pack.c - `whyoom pack`: compresses closed traces in place, or restores the originals. A trace is
 * replaced only when its other form is on the disk and reads back the same; nothing half-written
 * stays.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "trace/directory/small.h"
#include "trace/directory/source.h"
#include "trace/packed/packed.h"
#include "trace/trace.h"
#include "util/io.h"
#include "util/new_file.h"
#include "util/progress.h"
#include "util/text/fmt.h"
#include "util/text/note.h"
#include "util/text/str.h"
#include "util/unfinished.h"
#include "whyoom/trace.h"

#define PART 65536u /* compared or written at a time */
#define RAW ".raw" /* suffix of an original that is kept: no command reads it */

static const struct option options[] = {
    {"output", required_argument, NULL, 'o'},
    {"keep", no_argument, NULL, 'k'},
    {"unpack", no_argument, NULL, 'u'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct request {
	const char *output; /* NULL: in place */
	bool keep, unpack;
};

struct tally {
	uint64_t files, before, after;
};

static int fail(struct err *err, const char *path)
{
	int code = -errno;

	return err_set(err, code, "%s: %s", path, strerror(-code));
}

/* Reads the packed trace as any command does, and compares it with the plain one. */
static int compare(int from, uint64_t bytes, const char *packed, const char *path, struct err *err)
{
	static uint8_t a[PART], b[PART];
	struct source s;
	size_t got;
	int rc = source_open(&s, packed, NULL, NULL, err);

	if (rc)
		return rc;
	if (!s.packed || s.size != bytes)
		rc = err_set(err, -EIO, "%s: the packed form differs from the trace", path);
	progress_begin("comparing it with the original", bytes);
	for (uint64_t at = 0; !rc && at < bytes; at += sizeof(a)) {
		progress_step(at);
		size_t n = bytes - at < sizeof(a) ? (size_t)(bytes - at) : sizeof(a);

		rc = source_read(&s, at, b, n, &got, err);
		if (!rc &&
		    (pread(from, a, n, (off_t)at) != (ssize_t)n || got != n || memcmp(a, b, n)))
			rc = err_set(err, -EIO,
			    "%s: the packed form differs from the trace, or a process is writing "
			    "to it: the trace is unchanged",
			    path);
	}
	progress_end();
	source_close(&s);
	return rc;
}

/* Writes the packed trace at `path` as it was to the open file `to`. */
static int write_plain(
    const char *path, const struct new_file *to, uint64_t *bytes, struct err *err)
{
	static uint8_t part[PART];
	struct source s;
	size_t got;
	int rc = source_open(&s, path, NULL, NULL, err);

	if (rc)
		return rc;
	*bytes = s.size;
	for (uint64_t at = 0; !rc && at < s.size; at += got) {
		rc = source_read(&s, at, part, sizeof(part), &got, err);
		if (!rc && !got)
			rc = err_set(err, -EIO, "%s: the file ends too early", path);
		if (!rc) {
			rc = io_write_at(to->fd, part, got, at);
			if (rc)
				err_set(err, rc, "%s: %s", to->path, strerror(-rc));
			progress_step(at);
		}
	}
	source_close(&s);
	return rc;
}

static bool same_moment(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A hole of gigabytes may follow the last chunk. */
static uint64_t used(int fd, uint64_t size)
{
	struct trace_header h;

	return pread(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) &&
		       !memcmp(h.magic, TRACE_MAGIC, sizeof(h.magic)) &&
		       h.file_bytes >= TRACE_SLOT_BYTES && h.file_bytes < size
		   ? h.file_bytes
		   : size;
}

/* Writes the other form of `from` to the open file `to`, flushes it to the disk and compares the
 * two. */
static int fill(int from, const struct stat *before, const struct new_file *to, const char *path,
    bool unpack, struct err *err)
{
	struct timespec times[2] = {before->st_atim, before->st_mtim};
	uint64_t bytes = used(from, (uint64_t)before->st_size);
	struct stat now;
	struct err why;
	int rc;

	progress_begin(path, bytes);
	rc = unpack ? write_plain(path, to, &bytes, err) : packed_write(from, bytes, to->fd, &why);
	progress_end();
	if (rc)
		return unpack ? rc : err_set(err, rc, "%s: cannot be packed: %s", path, why.text);
	if (fchmod(to->fd, before->st_mode & 07777) || fsync(to->fd))
		return fail(err, to->path);
	rc = unpack ? compare(to->fd, bytes, path, path, err)
		    : compare(from, bytes, to->path, path, err);
	if (rc)
		return rc;
	if (fstat(from, &now) || !same_moment(before, &now))
		return err_set(err, -EBUSY, "%s: is being written: it was left as it was", path);
	/* Same times and, if permitted, same owner as the trace. */
	if (futimens(to->fd, times) || fchown(to->fd, before->st_uid, before->st_gid))
		errno = 0;
	return 0;
}

/* Puts the new file in place of `target`; the original of the same name is removed, or kept
 * beside. */
static int replace(
    const char *path, const char *target, bool keep, struct new_file *to, struct err *err)
{
	struct str kept = {0};
	int rc = 0;

	str_printf(&kept, "%s" RAW, path);
	if (kept.failed)
		rc = err_set(err, -ENOMEM, "%s: out of memory", path);
	if (!rc && keep && link(path, kept.text))
		rc = fail(err, kept.text);
	if (!rc) {
		rc = new_file_commit(to, target);
		if (rc)
			err_set(err, rc, "%s: %s", target, strerror(-rc));
	}
	str_free(&kept);
	return rc;
}

static int pack_file(const char *path, const char *target, const struct request *r,
    struct tally *tally, struct err *err)
{
	struct new_file to = {.fd = -1};
	struct stat before, after;
	int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc;

	if (from < 0)
		return fail(err, path);
	rc = fstat(from, &before) ? fail(err, path) : 0;
	if (!rc) {
		rc = new_file_begin(&to, target);
		if (rc)
			err_set(err, rc, "%s: %s", target, strerror(-rc));
	}
	if (!rc)
		rc = fill(from, &before, &to, path, r->unpack, err);
	if (!rc && fstat(to.fd, &after))
		rc = fail(err, to.path);
	if (!rc)
		rc = replace(path, target, r->keep && !r->output, &to, err);
	new_file_abort(&to);
	if (!rc) {
		tally->files++;
		tally->before += used(from, (uint64_t)before.st_size);
		tally->after += (uint64_t)after.st_size;
	}
	close(from);
	return rc;
}

/* Returns whether the trace may be packed or unpacked: 1; 0: it is already; negative with err. */
static int may(const struct trace *t, bool unpack, struct err *err)
{
	uint32_t pid;

	if (!!trace_packed(t) != unpack || trace_is_small(t))
		return 0;
	pid = trace_holder(t);
	if (pid)
		return err_set(err, -EBUSY,
		    "%s: process %u still has it open: what it goes on to record would be lost",
		    trace_facts(t)->path, pid);
	return 1;
}

static int target_of(
    const struct request *r, bool folder, const char *path, char *target, size_t room)
{
	const char *name = strrchr(path, '/');

	if (!r->output)
		return snprintf(target, room, "%s", path) < (int)room ? 0 : -ENAMETOOLONG;
	if (!folder)
		return snprintf(target, room, "%s", r->output) < (int)room ? 0 : -ENAMETOOLONG;
	return snprintf(target, room, "%s/%s", r->output, name ? name + 1 : path) < (int)room
		   ? 0
		   : -ENAMETOOLONG;
}

static int pack_one(const struct trace *t, const struct request *r, bool folder,
    struct tally *tally, struct err *err)
{
	char target[4096];
	const char *path = trace_facts(t)->path;

	if (target_of(r, folder, path, target, sizeof(target)))
		return err_set(err, -ENAMETOOLONG, "%.200s: the name is too long", path);
	if (r->output && !access(target, F_OK))
		return err_set(err, -EEXIST, "%s is there already", target);
	return pack_file(path, target, r, tally, err);
}

static int pack_set(const struct trace_set *set, const struct request *r, bool folder,
    struct tally *tally, struct err *err)
{
	int rc = 0, one;

	/* Refuses all traces if one may not be packed, before any is touched. */
	for (size_t i = 0; i <= set->count && rc >= 0; i++) {
		const struct trace *t = i < set->count ? set->images[i] : set->supervisor;

		rc = t ? may(t, r->unpack, err) : 0;
	}
	for (size_t i = 0; i <= set->count && rc >= 0; i++) {
		const struct trace *t = i < set->count ? set->images[i] : set->supervisor;

		one = t ? may(t, r->unpack, err) : 0;
		if (t && !one && trace_is_small(t) && !folder)
			note("%s shares a file of small traces, which is compact as it is",
			    trace_facts(t)->path);
		else if (t && !one && !trace_is_small(t))
			note(r->unpack ? "%s is not packed" : "%s is packed already",
			    trace_facts(t)->path);
		rc = one > 0 ? pack_one(t, r, folder, tally, err) : one;
	}
	return rc < 0 ? rc : 0;
}

/* Copies a file of small traces, which is compact as it is. */
static int copy_file(const char *path, const char *target, struct err *err)
{
	static uint8_t part[PART];
	int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), to, rc = 0;
	uint64_t at = 0;
	ssize_t n;

	if (from < 0)
		return fail(err, path);
	to = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		rc = fail(err, target);
	while (!rc && (n = pread(from, part, sizeof(part), (off_t)at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			rc = fail(err, path);
		} else {
			rc = io_write_at(to, part, (size_t)n, at);
			if (rc)
				err_set(err, rc, "%s: %s", target, strerror(-rc));
			at += (uint64_t)n;
		}
	}
	if (!rc && fsync(to))
		rc = fail(err, target);
	if (to >= 0)
		close(to);
	close(from);
	return rc;
}

static int copy_small(const char *folder, const struct request *r, struct err *err)
{
	char path[4096], target[4096];
	struct dirent *entry;
	DIR *dir = opendir(folder);
	int rc = dir ? 0 : fail(err, folder);

	while (!rc && (entry = readdir(dir))) {
		if (!small_is_name(entry->d_name))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >=
			(int)sizeof(path) ||
		    target_of(r, true, path, target, sizeof(target)))
			rc = err_set(err, -ENAMETOOLONG, "%.200s: the name is too long", folder);
		else
			rc = copy_file(path, target, err);
	}
	if (dir)
		closedir(dir);
	return rc;
}

/* Makes a directory that appears whole or not at all: it has a hidden name beside its place until
 * then. */
static int pack_folder(
    const struct trace_set *set, const struct request *r, struct tally *tally, struct err *err)
{
	struct request beside = *r;
	struct str hidden = {0};
	size_t n = strlen(r->output);
	const char *name;
	int rc = 0;

	while (n > 1 && r->output[n - 1] == '/')
		n--;
	name = memrchr(r->output, '/', n);
	name = name ? name + 1 : r->output;
	str_printf(&hidden, "%.*s.%.*s.%ld", (int)(name - r->output), r->output,
	    (int)(n - (size_t)(name - r->output)), name, (long)getpid());
	if (hidden.failed)
		return err_set(err, -ENOMEM, "%s: out of memory", r->output);
	beside.output = str_text(&hidden);
	if (!access(r->output, F_OK))
		rc = err_set(err, -EEXIST, "%s is there already", r->output);
	else if (unfinished_directory(beside.output) || mkdir(beside.output, 0700))
		rc = fail(err, r->output);
	if (!rc)
		rc = pack_set(set, &beside, true, tally, err);
	if (!rc)
		rc = copy_small(set->path, &beside, err);
	if (!rc && rename(beside.output, r->output))
		rc = fail(err, r->output);
	if (!rc)
		unfinished_done(beside.output);
	else
		unfinished_remove(beside.output);
	str_free(&hidden);
	return rc;
}

static int pack_path(
    const char *path, const struct request *r, struct tally *tally, struct err *err)
{
	struct trace_set set;
	struct stat st;
	bool folder;
	int rc = trace_set_open(path, &set, err);

	if (rc)
		return rc;
	folder = !stat(path, &st) && S_ISDIR(st.st_mode);
	rc = folder && r->output ? pack_folder(&set, r, tally, err)
				 : pack_set(&set, r, folder, tally, err);
	trace_set_close(&set);
	return rc;
}

static int pack_main(int argc, char **argv)
{
	struct request r = {0};
	struct tally tally = {0};
	struct fmt before, after;
	struct err err = {""};
	int opt, status = CMD_DONE;

	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":o:kuh", options, NULL)) != -1) {
		if (opt == 'o') {
			r.output = optarg;
		} else if (opt == 'k') {
			r.keep = true;
		} else if (opt == 'u') {
			r.unpack = true;
		} else if (opt == 'h') {
			cmd_help(&cmd_pack, stdout);
			return CMD_DONE;
		} else {
			return cmd_stray(&cmd_pack, opt, argv[optind - 1]);
		}
	}
	if (optind == argc)
		return cmd_usage(&cmd_pack, "no trace: name a directory that `whyoom run` made");
	if (r.output && argc - optind > 1)
		return cmd_usage(&cmd_pack, "--output is for one TRACE, not for %d", argc - optind);
	if (r.keep && r.unpack)
		return cmd_usage(&cmd_pack, "--keep is for traces that are packed, not unpacked");
	for (; optind < argc && status == CMD_DONE; optind++)
		if (pack_path(argv[optind], &r, &tally, &err))
			status = cmd_error(&err);
	if (tally.files)
		printf("%llu file%s, %s to %s\n", (unsigned long long)tally.files,
		    tally.files == 1 ? "" : "s", fmt_size(&before, tally.before),
		    fmt_size(&after, tally.after));
	return status;
}

const struct command cmd_pack = {
    .name = "pack",
    .arguments = "[OPTION...] TRACE...",
    .summary = "compress a closed trace; every command reads it as it is",
    .details =
	"TRACE is a directory that `whyoom run` made, or one file of it. Its files are replaced by "
	"packed\n"
	"ones, each when that is written and was compared.\n\n"
	"  -o, --output PATH        write there, and leave the original: a directory, or a file\n"
	"  -k, --keep               leave the original beside it, as NAME" RAW "\n"
	"  -u, --unpack             make the originals of packed ones, instead\n"
	"  -h, --help               this help\n",
    .main = pack_main,
};
