/*
 * oom_watch.c - see oom_watch.h.
 */
#include "cmd/supervise/oom_watch.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

void run_watch_init(struct run_watch *w)
{
	*w = (struct run_watch){.fd = -1};
}

void run_watch_off(struct run_watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	run_watch_init(w);
}

/* Version 1: "<eventfd> <descriptor of the file>" into cgroup.event_control. The kernel counts the
 * eventfd up when the group is out of memory, before it looks for a victim. */
static int watch_1(const char *dir)
{
	char path[PATH_MAX + 32], text[32];
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), control, oom, n;
	bool ok;

	snprintf(path, sizeof(path), "%s/memory.oom_control", dir);
	oom = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/cgroup.event_control", dir);
	control = open(path, O_WRONLY | O_CLOEXEC);
	n = snprintf(text, sizeof(text), "%d %d", fd, oom);
	ok = fd >= 0 && oom >= 0 && control >= 0 && write(control, text, (size_t)n) == n;
	if (oom >= 0)
		close(oom);
	if (control >= 0)
		close(control);
	if (ok || fd < 0)
		return fd;
	close(fd);
	return -1;
}

/* How often the group was out of memory: a file of counters changes for other reasons, too. */
static uint64_t count_2(const char *dir)
{
	struct event_level levels[RUN_CGROUP_EVENTS];
	struct event now = {
	    .levels = levels, .level_count = (uint32_t)run_cgroup_events(dir, levels)};

	return event_level_value(&now, TRACE_LEVEL_CG_OOM);
}

static int watch_2(const char *dir)
{
	char path[PATH_MAX + 32];
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	snprintf(path, sizeof(path), "%s/memory.events", dir);
	if (fd < 0 || inotify_add_watch(fd, path, IN_MODIFY) >= 0)
		return fd;
	close(fd);
	return -1;
}

void run_watch_on(struct run_watch *w, const struct run_cgroup *cgroup)
{
	if (w->version == cgroup->version && !strcmp(w->dir, cgroup->dir))
		return;
	run_watch_off(w);
	w->version = cgroup->version;
	snprintf(w->dir, sizeof(w->dir), "%s", cgroup->dir);
	if (w->version == 1) {
		w->fd = watch_1(w->dir);
	} else if (w->version == 2) {
		w->fd = watch_2(w->dir);
		w->count = count_2(w->dir);
	}
}

enum run_watch_news run_watch_take(struct run_watch *w)
{
	char events[1024];
	uint64_t before = w->count, told;
	bool any = false;

	if (w->fd < 0)
		return RUN_WATCH_NOTHING;
	if (w->version == 1)
		return read(w->fd, &told, sizeof(told)) > 0 ? RUN_WATCH_OOM : RUN_WATCH_NOTHING;
	while (read(w->fd, events, sizeof(events)) > 0)
		any = true;
	if (!any)
		return RUN_WATCH_NOTHING;
	w->count = count_2(w->dir);
	/* Anything else that is counted there is of a group at one of its limits. */
	return w->count > before ? RUN_WATCH_OOM : RUN_WATCH_FULL;
}
