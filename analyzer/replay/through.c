/* through.c - see through.h. */
#include "replay/through.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/memory.h"
#include "util/simgpu.h"
#include "util/unfinished.h"

#define PAGE (2u << 20) /* rooms within one page are the same */
#define OTHER_DEVICE 3 /* exit status: this device will not do */

int through_stream_open(struct through_stream *s, struct err *err)
{
	int fd = memfd_create("whyoom-through", MFD_CLOEXEC);

	memset(s, 0, sizeof(*s));
	s->room = UINT64_MAX;
	s->file = fd < 0 ? NULL : fdopen(fd, "w+");
	if (!s->file)
		return err_set(
		    err, -errno, "no room for the requests to a device: %s", strerror(errno));
	return 0;
}

void through_stream_close(struct through_stream *s)
{
	if (s->file)
		fclose(s->file);
	map_free(&s->serials);
	s->file = NULL;
}

static void write_block(struct through_stream *s, const struct torch_ask *ask)
{
	uint64_t *slot, before;

	fprintf(s->file, "a %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n", ask->serial,
	    ask->size, ask->stream, ask->pool, ask->address != 0);
	if (!ask->address)
		return;
	slot = map_put(&s->serials, ask->address);
	if (!slot) {
		s->error = -ENOMEM;
		return;
	}
	/* The release of the block that was there is not recorded. */
	before = *slot;
	*slot = ask->serial;
	if (before)
		fprintf(s->file, "f %" PRIu64 "\n", before);
}

static void write_release(struct through_stream *s, const struct torch_ask *ask)
{
	const uint64_t *slot = map_find(&s->serials, ask->address);

	if (!slot)
		return;
	fprintf(s->file, "f %" PRIu64 "\n", *slot);
	map_remove(&s->serials, ask->address);
}

static void told(void *arg, const struct torch_ask *ask)
{
	struct through_stream *s = arg;

	if (ask->kind == TORCH_ASK_BLOCK && ask->room != UINT64_MAX &&
	    ask->room / PAGE != s->room / PAGE) {
		s->room = ask->room;
		fprintf(s->file, "r %" PRIu64 "\n", ask->room);
	}
	switch (ask->kind) {
	case TORCH_ASK_BLOCK:
		write_block(s, ask);
		break;
	case TORCH_ASK_RELEASE:
		write_release(s, ask);
		break;
	case TORCH_ASK_FLUSH:
		fputs("e\n", s->file);
		break;
	case TORCH_ASK_RETIRE:
		fprintf(s->file, "p %" PRIu64 "\n", ask->pool);
		break;
	}
}

void through_stream_change(struct through_stream *s, struct torch_change *change)
{
	change->told = told;
	change->told_arg = s;
}

static void set(const char *name, const char *value)
{
	if (value && *value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void machine_of(pid_t pid, char machine[32])
{
	snprintf(machine, 32, "through-%d", (int)pid);
}

static void set_environment(const struct through_request *r, bool simulated)
{
	char size[32], machine[32];

	set("PYTORCH_ALLOC_CONF", r->settings);
	set("PYTORCH_CUDA_ALLOC_CONF", r->settings);
	unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
	unsetenv("LD_PRELOAD");
	if (!simulated)
		return;
	snprintf(size, sizeof(size), "%" PRIu64, r->memory);
	/* A killed process may have had this number before. */
	machine_of(getpid(), machine);
	simgpu_forget(machine);
	setenv("LD_PRELOAD", r->simgpu, 1);
	setenv("WHYOOM_SIMGPU", size, 1);
	setenv("WHYOOM_SIMGPU_MACHINE", machine, 1);
	/* The memory beside PyTorch's includes the recorded context. */
	setenv("WHYOOM_SIMGPU_CONTEXT", "0", 1);
	setenv("WHYOOM_SIMGPU_QUIET", "1", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
}

static void __attribute__((noreturn)) become(const struct through_request *r,
    const struct through_stream *s, bool simulated, int answer, int words, pid_t parent)
{
	char stream[32], memory[32], allowed[32];
	char *arguments[] = {(char *)r->program, (char *)r->script, stream, memory, allowed, NULL};

	if (!r->script)
		memmove(&arguments[1], &arguments[2], 4 * sizeof(*arguments));
	memory_lift();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(stream, sizeof(stream), "/dev/fd/%d", dup(fileno(s->file)));
	snprintf(memory, sizeof(memory), "%" PRIu64, r->memory);
	snprintf(allowed, sizeof(allowed), "%" PRIu64, r->allowed == UINT64_MAX ? 0 : r->allowed);
	set_environment(r, simulated);
	if (dup2(answer, STDOUT_FILENO) >= 0 && dup2(words, STDERR_FILENO) >= 0 &&
	    getppid() == parent)
		execvp(r->program, arguments);
	dprintf(answer, "error cannot start %s: %s\n", r->program, strerror(errno));
	_exit(1);
}

static void take_line(struct through_answer *a, char *line, char *error, size_t room, bool *done)
{
	static const struct {
		const char *key;
		size_t at;
	} numbers[] = {{"peak_reserved", offsetof(struct through_answer, peak_reserved)},
	    {"peak_allocated", offsetof(struct through_answer, peak_allocated)},
	    {"end_reserved", offsetof(struct through_answer, end_reserved)},
	    {"segments", offsetof(struct through_answer, segments)},
	    {"peak_segments", offsetof(struct through_answer, peak_segments)},
	    {"free", offsetof(struct through_answer, free)},
	    {"granted", offsetof(struct through_answer, granted)},
	    {"events", offsetof(struct through_answer, events)},
	    {"nanoseconds", offsetof(struct through_answer, ns)}};
	char *value = strchr(line, ' ');
	struct through_refusal *f = &a->refused;

	line[strcspn(line, "\n")] = '\0';
	if (!value)
		return;
	*value++ = '\0';
	if (strcmp(line, "torch") == 0)
		snprintf(a->torch, sizeof(a->torch), "%s", value);
	else if (strcmp(line, "device") == 0)
		snprintf(a->device, sizeof(a->device), "%s", value);
	else if (strcmp(line, "error") == 0)
		snprintf(error, room, "%s", value);
	else if (strcmp(line, "done") == 0)
		*done = true;
	else if (strcmp(line, "refused") == 0 &&
		 sscanf(value, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &f->serial, &f->size,
		     &f->reserved, &f->allocated) != 4)
		f->serial = 0;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (strcmp(line, numbers[i].key) == 0)
			*(uint64_t *)((char *)a + numbers[i].at) = strtoull(value, NULL, 10);
}

static void last_words(int fd, char *out, size_t room)
{
	char text[4096], *line;
	off_t end = lseek(fd, 0, SEEK_END);
	off_t from = end > (off_t)sizeof(text) - 1 ? end - (off_t)sizeof(text) + 1 : 0;
	ssize_t n = end > 0 ? pread(fd, text, sizeof(text) - 1, from) : 0;

	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n > 0 ? n : 0] = '\0';
	line = strrchr(text, '\n');
	snprintf(out, room, "%.*s", (int)room - 1, line ? line + 1 : text);
}

/* 0; 1: another device may do; negative with err. */
static int attempt(const char *what, const struct through_request *r, struct through_stream *s,
    bool simulated, struct through_answer *out, struct err *err)
{
	int answer[2], words = memfd_create("whyoom-words", MFD_CLOEXEC), status = 0;
	char line[1024], error[400] = "", machine[32], simgpu[SIMGPU_PATH];
	pid_t parent = getpid(), pid;
	bool done = false;
	FILE *lines;

	memset(out, 0, sizeof(*out));
	out->simulated = simulated;
	if (words < 0 || pipe2(answer, O_CLOEXEC))
		return err_set(err, -errno, "cannot start %s: %s", r->program, strerror(errno));
	pid = fork();
	if (pid == 0)
		become(r, s, simulated, answer[1], words, parent);
	if (pid > 0) {
		machine_of(pid, machine);
		unfinished_child(pid);
		unfinished_file(simgpu_path(machine, simgpu));
	}
	close(answer[1]);
	lines = fdopen(answer[0], "r");
	while (lines && fgets(line, sizeof(line), lines))
		take_line(out, line, error, sizeof(error), &done);
	if (lines)
		fclose(lines);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0) {
		unfinished_child_done(pid);
		unfinished_remove(simgpu);
	}
	if (!*error)
		last_words(words, error, sizeof(error));
	close(words);
	if (pid > 0 && done && status == 0)
		return 0;
	err_set(err, -EIO, "%s did not answer: %.400s", what,
	    *error ? error : "it ended without a message");
	return WIFEXITED(status) && WEXITSTATUS(status) == OTHER_DEVICE && !simulated ? 1 : -EIO;
}

int through_run(const char *what, const struct through_request *request, struct through_stream *s,
    struct through_answer *out, struct err *err)
{
	int rc = 1;

	if (fflush(s->file) || ferror(s->file) || s->error)
		return err_set(
		    err, s->error ? s->error : -EIO, "no room for the requests to a device");
	/* Each attempt opens /dev/fd/N anew, with an offset of its own. */
	if (access("/dev/nvidiactl", R_OK | W_OK) == 0)
		rc = attempt(what, request, s, false, out, err);
	return rc == 1 ? attempt(what, request, s, true, out, err) : rc;
}
