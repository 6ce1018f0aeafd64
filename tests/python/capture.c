/*
 * capture.c - a preload library for the tests of shim/python/python.c: walks the Python frames
 * inside malloc and mmap, as the shim does, and lets the program under test query the results.
 *
 * PYTHON_CAPTURE=every walks at every acquisition, and again without the cache: the two must agree,
 * also about the part that did not change. PYTHON_CAPTURE=quick walks once at every acquisition.
 * Otherwise it walks only for a block of exactly CAPTURE_SIZE bytes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/options.h"
#include "base/sys.h"
#include "loaded/loader.h"
#include "python/python.h"
#include "shim.h"
#include "stack/eh_frame.h"
#include "stack/modules.h"
#include "trace/definitions.h"

#define EXPORT __attribute__((visibility("default")))
#define CAPTURE_SIZE 1234567u
#define IDS (1u << 20)
#define STORE (512u << 20)

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

/* Called by the program under test, through ctypes. */
int capture_last(uint32_t *code, int32_t *lasti, uint64_t *anchor, int max);
int capture_code(uint32_t id, uint8_t *out, int room);
uint64_t capture_count(int what);
const char *capture_error(void);
const char *capture_facts(void);
void capture_look(void);
double capture_bench(int rounds, int walks, int *depth);
void *capture_foreign(void *unused);

/* ---- for python.c ---- */

struct stored {
	uint32_t bytes;
	uint8_t body[];
};

static uint8_t *store;
static _Atomic size_t store_used;
static _Atomic(struct stored *) codes[IDS];
static _Atomic uint32_t code_count;

bool definition_write(enum trace_def_kind kind, const void *body, size_t bytes)
{
	struct stored *s;
	size_t room, at;
	const uint8_t *p;
	uint64_t id;

	if (!store || kind != TRACE_DEF_CODE)
		return false;
	room = (sizeof(struct stored) + bytes + 7) & ~(size_t)7;
	at = atomic_fetch_add(&store_used, room);
	p = body;
	id = 0;
	for (unsigned shift = 0;; shift += 7) {
		id |= (uint64_t)(*p & 127) << shift;
		if (!(*p++ & 128))
			break;
	}
	if (at + room > STORE || id >= IDS)
		return false;
	s = (void *)(store + at);
	s->bytes = (uint32_t)bytes;
	memcpy(s->body, body, bytes);
	atomic_store(&codes[id], s);
	atomic_fetch_add(&code_count, 1);
	return true;
}

static char facts[200];

void definition_info(const char *key, const char *value)
{
	if (!strcmp(key, "python"))
		strncat(facts, value, sizeof facts - 1 - strlen(facts));
}

/* Counts the ends of tasks. */
__thread struct thread *thread_self __attribute__((tls_model("initial-exec")));
static _Atomic uint64_t task_ends;

struct note guard_enter_slow(const void *caller, uintptr_t frame)
{
	static struct thread anybody;

	return (struct note){.how = NOTE_PLAIN, .thread = &anybody};
}

void note_task_end(struct note n, uint64_t key)
{
	atomic_fetch_add(&task_ends, 1);
}

/* Needed only by older versions without anchors, to merge with native frames. */
const struct module *module_find(uintptr_t pc)
{
	return NULL;
}

int cfi_find(const struct module *module, uintptr_t pc, struct cfi_entry *out)
{
	return CFI_NONE;
}

/* ---- captures ---- */

struct kept {
	struct python_walk *walk, *fresh;
	struct python_frame *frames; /* of the last block of CAPTURE_SIZE */
	struct python_run *runs;
	uint32_t count, run_count, room;
	struct python_frame *before; /* the view before, for `same` */
	struct python_run *before_runs;
	uint32_t before_count, before_run_count;
	bool none;
};

static __thread struct kept *kept __attribute__((tls_model("initial-exec")));
static __thread bool inside __attribute__((tls_model("initial-exec")));
static bool every, quick, ready;
static _Atomic uint64_t captures, views, errors;
static char first_error[256];

static void wrong(const char *what, uint32_t a, uint32_t b)
{
	if (atomic_fetch_add(&errors, 1) == 0)
		snprintf(first_error, sizeof first_error, "%s (%u, %u)", what, a, b);
}

static bool same_frame(const struct python_frame *a, const struct python_frame *b)
{
	return a->code == b->code && a->lasti == b->lasti;
}

static bool same_run(const struct python_run *a, const struct python_run *b)
{
	return a->anchor == b->anchor && a->first == b->first && a->count == b->count;
}

static void check_same(struct kept *k, const struct python_view *v)
{
	uint32_t at;

	if (v->same > v->count || v->same > k->before_count)
		wrong("same is too large", v->same, k->before_count);
	else
		for (uint32_t i = 0; i < v->same; i++)
			if (!same_frame(&v->frames[i], &k->before[i]))
				wrong("a frame said to be the same", i, v->same);
	if (v->same_runs > v->run_count || v->same_runs > k->before_run_count) {
		wrong("same_runs is too large", v->same_runs, k->before_run_count);
	} else if (v->same_runs) {
		const struct python_run *last = &v->runs[v->same_runs - 1];

		for (uint32_t i = 0; i < v->same_runs; i++)
			if (!same_run(&v->runs[i], &k->before_runs[i]))
				wrong("a run said to be the same", i, v->same_runs);
		if (last->first + last->count > v->same)
			wrong("a run with a frame that is not", last->first + last->count, v->same);
	}
	at = 0;
	for (uint32_t i = 0; i < v->run_count; i++) {
		if (v->runs[i].first != at || !v->runs[i].count)
			wrong("runs do not cover the frames", i, at);
		at += v->runs[i].count;
	}
	if (at != v->count)
		wrong("frames outside of runs", at, v->count);
}

static void check_fresh(struct kept *k, const struct python_view *v)
{
	struct python_view full;

	python_thread_end(&k->fresh);
	if (!python_walk_now(&k->fresh, &full)) {
		wrong("nothing without the cache", v->count, 0);
		return;
	}
	if (full.count != v->count || full.run_count != v->run_count) {
		wrong("another depth without the cache", v->count, full.count);
		return;
	}
	for (uint32_t i = 0; i < v->count; i++)
		if (!same_frame(&v->frames[i], &full.frames[i]))
			wrong("another frame without the cache", i, v->count);
	for (uint32_t i = 0; i < v->run_count; i++)
		if (!same_run(&v->runs[i], &full.runs[i]))
			wrong("another run without the cache", i, v->run_count);
}

static bool room_for(struct kept *k, uint32_t count)
{
	size_t f, r;
	uint32_t room;
	uint8_t *p;

	if (k->room >= count)
		return true;
	room = k->room ? k->room : 1024;
	while (room < count)
		room *= 2;
	f = room * sizeof(struct python_frame);
	r = room * sizeof(struct python_run);
	p = sys_pages(2 * (f + r));
	if (!p)
		return false;
	if (k->room) {
		memcpy(p, k->frames, k->count * sizeof(struct python_frame));
		memcpy(p + f, k->runs, k->run_count * sizeof(struct python_run));
		sys_pages_free(k->frames,
		    2 * k->room * (sizeof(struct python_frame) + sizeof(struct python_run)));
	}
	k->frames = (void *)p;
	k->runs = (void *)(p + f);
	k->before = (void *)(p + f + r);
	k->before_runs = (void *)(p + f + r + f);
	k->room = room;
	return true;
}

static void keep(struct kept *k, const struct python_view *v, bool asked)
{
	if (!room_for(k, v->count))
		return;
	memcpy(k->before, v->frames, v->count * sizeof *k->before);
	memcpy(k->before_runs, v->runs, v->run_count * sizeof *k->before_runs);
	k->before_count = v->count;
	k->before_run_count = v->run_count;
	if (asked) {
		memcpy(k->frames, v->frames, v->count * sizeof *k->frames);
		memcpy(k->runs, v->runs, v->run_count * sizeof *k->runs);
		k->count = v->count;
		k->run_count = v->run_count;
	}
}

static struct kept *kept_now(void)
{
	if (!kept)
		kept = sys_pages(sizeof *kept);
	return kept;
}

static void capture(size_t size)
{
	struct python_view v;
	bool asked = size == CAPTURE_SIZE;
	struct kept *k;

	if (!ready || inside || (!every && !quick && !asked))
		return;
	inside = true;
	k = kept_now();
	if (k) {
		bool found;

		atomic_fetch_add_explicit(&captures, 1, memory_order_relaxed);
		found = python_walk_now(&k->walk, &v);
		if (asked)
			k->none = !found;
		if (found)
			atomic_fetch_add_explicit(&views, 1, memory_order_relaxed);
		if (found && (every || asked)) {
			check_fresh(k, &v);
			if (!quick)
				check_same(k, &v);
			keep(k, &v, asked);
		}
	}
	inside = false;
}

EXPORT void *malloc(size_t size)
{
	void *p = __libc_malloc(size);

	capture(size);
	return p;
}

EXPORT void *calloc(size_t n, size_t size)
{
	void *p = __libc_calloc(n, size);

	capture(n * size);
	return p;
}

EXPORT void *realloc(void *old, size_t size)
{
	void *p = __libc_realloc(old, size);

	capture(size);
	return p;
}

EXPORT void *mmap64(void *at, size_t bytes, int prot, int flags, int fd, off64_t offset)
{
	long p = sys_call(SYS_mmap, (long)at, (long)bytes, prot, flags, fd, offset);

	if (p < 0 && p > -4096) {
		errno = (int)-p;
		return MAP_FAILED;
	}
	capture(bytes);
	return (void *)p;
}

EXPORT void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return mmap64(at, bytes, prot, flags, fd, offset);
}

/* ---- queries of the program under test ---- */

/* Returns the frames of the calling thread's last block of CAPTURE_SIZE, outermost first, each with
 * its run's anchor. -1: there were no Python frames. */
EXPORT int capture_last(uint32_t *code, int32_t *lasti, uint64_t *anchor, int max)
{
	struct kept *k = kept;

	if (!k || k->none)
		return -1;
	for (uint32_t r = 0; r < k->run_count; r++)
		for (uint32_t i = 0; i < k->runs[r].count; i++)
			if ((int)(k->runs[r].first + i) < max)
				anchor[k->runs[r].first + i] = k->runs[r].anchor;
	for (uint32_t i = 0; i < k->count && (int)i < max; i++) {
		code[i] = k->frames[i].code;
		lasti[i] = k->frames[i].lasti;
	}
	return (int)k->count;
}

/* Copies the body of a CODE definition; returns its size, 0: unknown. */
EXPORT int capture_code(uint32_t id, uint8_t *out, int room)
{
	struct stored *s = id < IDS ? atomic_load(&codes[id]) : NULL;

	if (!s || (int)s->bytes > room)
		return 0;
	memcpy(out, s->body, s->bytes);
	return (int)s->bytes;
}

EXPORT uint64_t capture_count(int what)
{
	return what == 0   ? atomic_load(&captures)
	       : what == 1 ? atomic_load(&views)
	       : what == 2 ? atomic_load(&errors)
			   : atomic_load(&code_count);
}

EXPORT const char *capture_error(void)
{
	return first_error;
}

EXPORT const char *capture_facts(void)
{
	return facts;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	python_visit(info);
	return 0;
}

/* Also finds a library that was loaded later. */
EXPORT void capture_look(void)
{
	loader_each(look_at, NULL);
	python_after_visit();
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns the nanoseconds of a walk over the caller's stack, the fastest of some rounds. */
EXPORT double capture_bench(int rounds, int walks, int *depth)
{
	struct python_view v = {0};
	double best = 1e9;
	struct kept *k = kept_now();

	inside = true;
	for (int r = 0; r < rounds; r++) {
		double start = seconds();
		double t;

		for (int i = 0; i < walks; i++)
			python_walk_now(&k->walk, &v);
		t = seconds() - start;
		if (t < best)
			best = t;
	}
	inside = false;
	k->before_count = k->before_run_count = 0;
	python_thread_end(&k->walk);
	*depth = (int)v.count;
	return best / walks * 1e9;
}

/* For a thread that Python does not know: returns 1 if it saw no frames. */
EXPORT void *capture_foreign(void *unused)
{
	free(malloc(CAPTURE_SIZE));
	return (void *)(uintptr_t)(kept && kept->none);
}

/* ---- life ---- */

static void complain(const char *line)
{
	sys_say(line);
}

static void in_child(void)
{
	for (uint32_t i = 0; i < IDS && atomic_load(&code_count); i++)
		if (atomic_exchange(&codes[i], NULL))
			atomic_fetch_sub(&code_count, 1);
	python_fork_child(kept ? kept->walk : NULL);
	if (kept) {
		python_thread_end(&kept->fresh);
		kept->before_count = kept->before_run_count = 0;
	}
}

static __attribute__((constructor)) void start(void)
{
	extern char **environ;
	const char *mode = getenv("PYTHON_CAPTURE");
	long p = sys_call(SYS_mmap, 0, STORE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	store = p < 0 && p > -4096 ? NULL : (uint8_t *)p;
	every = mode && !strcmp(mode, "every");
	quick = mode && !strcmp(mode, "quick");
	options_read(environ, complain);
	capture_look();
	pthread_atfork(NULL, NULL, in_child);
	ready = true;
}

static __attribute__((destructor)) void stop(void)
{
	const char *to = getenv("PYTHON_CAPTURE_REPORT");
	FILE *f = to ? fopen(to, "a") : NULL;

	if (f) {
		fprintf(f, "%d %llu %llu %llu %s\n", (int)getpid(), (unsigned long long)captures,
		    (unsigned long long)views, (unsigned long long)errors, first_error);
		fclose(f);
	}
}
