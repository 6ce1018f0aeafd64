/*
 * host.c - repeats the host's requests on real allocators. A first run without a limit shows what
 * is resident, further runs what lies beside (beside.c); then each allocator has its own run.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay/host.h"
#include "util/num.h"
#include "util/progress.h"
#include "util/text/fmt.h"
#include "util/tuned.h"

TUNED(uint64_t, SPARE_BYTES, 256ull << 20,
    "what a small machine's system and a shell need while the replay takes the rest");

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "no memory for the replay");
}

static void note(struct host *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct host *h, const char *format, ...)
{
	struct replay_result *out = h->out;
	char text[512];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n > 0 && out->note_count < NOTES_MAX &&
	    (out->notes[out->note_count] = arena_copy(&out->arena, text, strlen(text))))
		out->note_count++;
}

static int read_recorded(struct host *h, const struct trace_set *set, struct err *err)
{
	struct feed outside = {0};
	int64_t shift = 0;

	if (set->supervisor) {
		outside = feed_of_trace(set->supervisor);
		shift = (int64_t)(trace_facts(set->supervisor)->start_mono_ns -
				  h->feed.facts(h->feed.self)->start_mono_ns);
	}
	return recorded_read(h->feed, set->supervisor ? &outside : NULL, shift, &h->recorded, err);
}

/* The plan is at least as large as the trace, so it lies with temporary files, not in memory. */
static FILE *open_plan(struct err *err)
{
	const char *where = getenv("TMPDIR");
	char path[256];
	FILE *f;
	int fd;

	where = where && *where ? where : "/tmp";
	fd = open(where, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	/* Some file systems have no files without a name. */
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
		snprintf(path, sizeof(path), "%.200s/whyoom-plan-XXXXXX", where);
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0)
			unlink(path);
	}
	if (fd < 0) {
		err_set(err, -errno, "cannot make a temporary file in %.200s: %s; set TMPDIR",
		    where, strerror(errno));
		return NULL;
	}
	f = fdopen(fd, "w+");
	if (!f)
		close(fd);
	return f;
}

/* The replay's time between two moments; at most so many moments of the record. */
#define PACE_NS 10000000.0
#define PACE_MOST 16384u

static uint64_t pace_of(const struct host *h)
{
	uint64_t part = h->feed.facts(h->feed.self)->last_ns / PACE_MOST,
		 pace = (uint64_t)(PACE_NS * h->request->speed);

	return h->request->speed <= 0 ? 0 : pace > part ? pace : part + 1;
}

/* Makes further runs keep the requested speed. */
static void set_pace(struct host *h)
{
	for (uint32_t i = 0; i < h->player.samples && h->request->speed > 0; i++)
		h->player.play->samples[i].due_ns =
		    (uint64_t)((double)h->out->plan.moments.items[i].time_ns / h->request->speed);
}

static int make_plan(struct host *h, struct err *err)
{
	const struct failure *f = model_failure(h->verdict->model);

	if (f)
		h->last =
		    (struct plan_last){.time_ns = f->time_ns, .size = f->size, .stack = f->stack};
	h->plan = open_plan(err);
	if (!h->plan)
		return -EIO;
	h->source = (struct plan_source){h->feed, &h->recorded, &h->last};
	return plan_make(&h->source, pace_of(h), h->plan, &h->out->plan, err);
}

static void find_original(struct host *h)
{
	const struct failure_view *f = &h->verdict->failure;
	struct replay_point *p = &h->out->original;
	const struct failure *burst = model_failure(h->verdict->model);

	h->out->limit_kind = f->limit;
	h->out->limit_bytes = f->kind == FAILURE_NONE ? 0 : f->limit_bytes;
	h->out->peak_live = h->out->plan.peak_live;
	if (f->kind == FAILURE_NONE)
		return;
	*p = (struct replay_point){.failed = true,
	    /* A replay emulates each kill as the kernel's. */
	    .kind = failure_kind_name(failure_is_kill(f->kind) ? FAILURE_OOM_KILL : f->kind),
	    .space = "host",
	    .requested = f->requested_bytes,
	    .time_ns = f->time_ns,
	    .event = h->out->plan.last_event};
	replay_stack(p, &h->feed, burst ? burst->stack : 0);
	if (p->event == UINT64_MAX)
		p->event = h->out->plan.events;
}

static void find_allocator(struct host *h)
{
	const char *owner = h->feed.info(h->feed.self, "malloc.owner");

	h->own = play_allocator_of(owner);
	if (h->own)
		return;
	h->own = play_allocator("glibc");
	if (owner)
		note(h,
		    "The program's malloc came from %s, which cannot be preloaded: the replay uses "
		    "glibc's.",
		    owner);
}

/* Finds the touched shares at the peak. */
static void find_shares(struct host *h)
{
	const struct plan_facts *plan = &h->out->plan;
	const struct plan_moment none = {0}, *at = &none;

	for (size_t i = 0; i < plan->moments.count; i++)
		if (plan->moments.items[i].peak)
			at = &plan->moments.items[i];
	for (int kind = 0; kind < PLAN_KINDS; kind++)
		h->out->shares[kind] = touch_share(&h->out->touch, (enum plan_kind)kind, at);
}

static uint64_t available(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024;
}

static uint64_t need_at(const struct touch_fit *fit, const struct plan_moment *m)
{
	uint64_t bytes = touch_bytes(fit, m);

	return bytes + bytes / 8;
}

static const struct plan_moment *fits_until(
    const struct plan_facts *plan, const struct touch_fit *fit, uint64_t bytes)
{
	const struct plan_moment *last = &plan->moments.items[0];

	for (size_t i = 0; i < plan->moments.count && need_at(fit, last) <= bytes; i++)
		last = &plan->moments.items[i];
	return last;
}

static int check_room(struct host *h, struct err *err)
{
	const struct plan_facts *plan = &h->out->plan;
	uint64_t need = 0, have = available(), room = h->request->room;
	struct touch_fit fit = h->out->touch;
	const struct plan_moment *until;
	struct fmt a, b, c, d;

	have = num_less(room < have || !have ? room : have, SPARE_BYTES);
	if (h->request->no_touch)
		for (uint32_t k = 1; k < PLAN_CLASSES; k++)
			fit.share[k] = 0;
	for (size_t i = 0; i < plan->moments.count; i++)
		if (need_at(&fit, &plan->moments.items[i]) > need)
			need = need_at(&fit, &plan->moments.items[i]);
	h->capped = need > have && h->request->memory && h->request->memory <= have;
	if (need <= have || h->capped)
		return 0;
	until = fits_until(plan, &fit, have);
	return err_set(err, -ENOMEM,
	    "the replay would write to %s, but this machine can spare %s, enough up to event %s, "
	    "after %s: --memory with that much or less replays that part%s",
	    fmt_size(&a, need), fmt_size(&b, have), fmt_count(&c, until->event),
	    fmt_duration(&d, until->time_ns),
	    h->request->no_touch ? ""
				 : "; --no-touch asks for all blocks, without writing to them");
}

int host_run(struct host *h, const struct play_allocator *allocator, int *held, struct err *err)
{
	int rc;

	progress_begin("replaying", h->player.samples);
	rc = player_run(&h->player, allocator, held, err);
	progress_end();
	return rc;
}

/* Takes the allocators' settings from the record. */
static void find_settings(struct host *h)
{
	for (size_t i = 0; i < PLAY_SETTINGS; i++) {
		char key[64];

		snprintf(key, sizeof(key), "env.%s", play_settings[i]);
		h->player.settings[i] = h->feed.info(h->feed.self, key);
	}
}

/* The address space of a thread's stack: what the C library takes by RLIMIT_STACK, or less if the
 * record shows less. */
#define STACK_UNLIMITED (2ull << 20)
#define STACK_MOST (1ull << 30)

static uint64_t stack_bytes(const struct host *h)
{
	const char *limit = h->feed.info(h->feed.self, "limit.stack");
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), seen = h->recorded.thread_stack,
		 most = limit && strcmp(limit, "unlimited") ? strtoull(limit, NULL, 10)
							    : STACK_UNLIMITED;

	seen = num_less(seen, page) / page * page;
	if (!limit)
		return seen;
	most = num_least(most, STACK_MOST) / page * page;
	return seen ? num_least(seen, most) : most;
}

static int run_reference(struct host *h, struct err *err)
{
	size_t bytes = h->player.samples * sizeof(struct play_sample);
	struct play *play = h->player.play;
	int rc;

	play->touch = touch_policy(&h->out->touch);
	play->touch.none = h->request->no_touch;
	play->stack = stack_bytes(h);
	/* The order of the threads decides which request is refused. */
	play->in_turn = beside_kind(h) != PLAY_LIMIT_NONE;
	play->sparse = beside_kind(h) == PLAY_LIMIT_AS || beside_kind(h) == PLAY_LIMIT_DATA;
	if (h->capped) {
		play->limit_kind = PLAY_LIMIT_DATA;
		play->limit = h->request->memory;
	}
	rc = host_run(h, h->own, NULL, err);
	if (rc == -ENOENT && strcmp(h->own->name, "glibc") != 0) {
		note(h,
		    "The program ran with %s, which is not installed here: the replay uses glibc.",
		    h->own->name);
		h->own = play_allocator("glibc");
		rc = host_run(h, h->own, NULL, err);
	}
	if (rc)
		return rc;
	if (!h->reference)
		h->reference = malloc(bytes + 1);
	if (!h->reference)
		return no_memory(err);
	memcpy(h->reference, h->player.play->samples, bytes);
	h->reference_base = h->player.play->base_resident;
	h->played = true;
	return 0;
}

TUNED(uint64_t, REFIT_PART, 200,
    "half a percent of the peak: below the error of a measurement, so a further run gains nothing");

static bool is_close(const struct plan_facts *plan, const struct touch_fit *a, struct touch_fit *b)
{
	uint64_t most = 0, off = 0;

	for (size_t i = 0; i < plan->moments.count; i++) {
		uint64_t x = touch_bytes(a, &plan->moments.items[i]),
			 y = touch_bytes(b, &plan->moments.items[i]);

		most = x > most ? x : most;
		off = x > y + off ? x - y : y > x + off ? y - x : off;
	}
	return off <= most / REFIT_PART;
}

/* Fits the shares again, with the first run's overhead, and makes the run again if they change. */
static int refine_touch(struct host *h, struct err *err)
{
	const struct plan_facts *plan = &h->out->plan;
	double *resident = malloc((plan->moments.count + 1) * sizeof(*resident));
	struct touch_fit *fit = &h->out->touch, before = *fit;
	struct touch_replay replay = {.resident = resident, .share = before.share};
	struct err no_room = {""};
	int rc;

	if (!resident)
		return no_memory(err);
	for (size_t i = 0; i < plan->moments.count; i++)
		resident[i] = (double)num_less(h->reference[i].resident, h->reference_base);
	rc = touch_fit(&h->recorded, plan, &replay, fit);
	free(resident);
	if (rc)
		return no_memory(err);
	if (is_close(plan, &before, fit)) {
		memcpy(fit->share, before.share, sizeof(fit->share));
		return 0;
	}
	if (check_room(h, &no_room)) {
		*fit = before;
		return 0;
	}
	find_shares(h);
	return run_reference(h, err);
}

static void estimate(struct host *h)
{
	const struct replay_result *out = h->out;
	uint64_t end =
	    out->original.failed ? out->original.time_ns : h->verdict->model->run.last_ns;
	uint64_t had = out->limit_bytes ? out->limit_bytes : out->rows[0].peak_resident;

	if (out->memory > had && !out->replayed.failed)
		h->out->lasts_ns = replay_lasts(h->verdict->model, end, out->memory - had);
}

static void tell_machine(struct host *h)
{
	const char *page = h->feed.info(h->feed.self, "page.size"),
		   *libc = h->feed.info(h->feed.self, "libc");
	long own = sysconf(_SC_PAGESIZE);
	struct fmt a, b;

	if (page && strtol(page, NULL, 10) != own)
		note(h,
		    "Pages had %s when it was recorded and have %s here, so resident memory and "
		    "the allocators' overhead differ.",
		    fmt_size(&a, strtoull(page, NULL, 10)), fmt_size(&b, (uint64_t)own));
	if (libc && !strcmp(h->own->name, "glibc") && strcmp(libc, h->player.play->libc))
		note(h,
		    "The program ran with glibc %s, and this machine has %s: its malloc may place "
		    "blocks differently.",
		    libc, h->player.play->libc);
}

static void tell_gaps(struct host *h)
{
	const struct trace_facts *f = h->feed.facts(h->feed.self);
	const struct plan_facts *plan = &h->out->plan;
	struct fmt a, b;

	if (f->dropped_total || f->budget)
		note(h,
		    "%s events were not recorded: their memory is not replayed, but taken in "
		    "addition.",
		    fmt_count(&a, f->dropped_total));
	if (f->mode == TRACE_MODE_SAMPLED)
		note(h, "Only a sample of the small blocks was recorded: the others are not "
			"replayed, but their memory is taken in addition.");
	if (f->checkpoint.until_ns)
		note(h,
		    "The first %s of the record are summarised (a checkpoint): only the blocks "
		    "that outlived them are replayed.",
		    fmt_duration(&b, f->checkpoint.until_ns));
	if (plan->unknown_releases)
		note(h, "%s releases of blocks from before the record are left out.",
		    fmt_count(&a, plan->unknown_releases));
	if (plan->breaks)
		note(h, "The program moved its break itself; these %s moves are left out.",
		    fmt_count(&a, plan->breaks));
	if (h->out->original.failed && h->failing == PLAN_NONE)
		note(h, "Nothing was measured at the failure, and the replayed blocks alone do not "
			"reach the limit. Record with `whyoom run`.");
	if (h->out->original.failed && !h->last.size &&
	    (h->player.play->limit_kind == PLAY_LIMIT_AS ||
		h->player.play->limit_kind == PLAY_LIMIT_DATA))
		note(h,
		    "The refused request is not in the record; it may be the loader's or a "
		    "thread's stack. The program ended with almost nothing left of its limit, the "
		    "replay with %s.",
		    fmt_size(&a, beside_left(h)));
	if (h->out->plan.aligned)
		note(h, "%s blocks were aligned; the alignment is taken from their addresses.",
		    fmt_count(&b, h->out->plan.aligned));
}

/* Takes a real cgroup for an emulated limit, if possible. Not for a debugger: a killed process does
 * not stop. */
static void find_limit(struct host *h)
{
	struct play *play = h->player.play;
	struct err why = {""};
	struct group trial;

	if (play->limit_kind == PLAY_LIMIT_AS || play->limit_kind == PLAY_LIMIT_DATA)
		h->out->limit_by = "rlimit";
	if (play->limit_kind != PLAY_LIMIT_RESIDENT)
		return;
	h->out->limit_by = "emulated";
	if (!limit_is_cgroup(h->out->limit_kind) || h->request->hold)
		return;
	if (group_make(&h->request->parent, &trial, &why)) {
		note(h, "The cgroup's limit is emulated: %.300s.", why.text);
		return;
	}
	group_remove(&trial);
	h->player.parent = h->request->parent;
	play->limit_kind = PLAY_LIMIT_GROUP;
	h->out->limit_by = "cgroup";
}

static int run_all(struct host *h, struct err *err)
{
	enum play_limit kind;
	uint64_t limit = h->request->memory ? h->request->memory : h->out->limit_bytes;
	size_t count = h->request->allocator_count;
	int rc = run_reference(h, err);

	if (!rc && !h->capped && !h->request->no_touch && h->out->touch.samples)
		rc = refine_touch(h, err);
	if (rc)
		return rc;
	if (!h->capped)
		outcome_compare_curves(h);
	kind = h->capped ? PLAY_LIMIT_NONE : beside_kind(h);
	beside_find_failing(h, kind);
	if (kind != PLAY_LIMIT_NONE)
		rc = beside_settle(h, kind, limit, err);
	if (rc)
		return rc;
	find_limit(h);
	set_pace(h);
	for (size_t i = 0; i < (count ? count : 1); i++) {
		const struct play_allocator *a = count ? h->request->allocators[i] : h->own;
		bool hold = h->request->hold && i == 0;
		struct err missing = {""};

		if (a != h->own)
			h->player.play->lend = 0;
		h->player.play->hold = hold;
		h->player.play->hold_at_end = h->request->hold_at_end;
		if (i || hold || a != h->own || !h->played || h->request->speed > 0)
			rc = host_run(h, a, hold ? &h->out->held : NULL, &missing);
		if (rc == -ENOENT && i) {
			struct replay_row *row = &h->out->rows[h->out->row_count++];

			row->name = a->name;
			snprintf(row->missing, sizeof(row->missing), "%.150s", missing.text);
			continue;
		}
		if (rc) {
			*err = missing;
			return rc;
		}
		rc = outcome_take_row(h, a, err);
		if (rc)
			return rc;
		if (!i) {
			h->out->replayed = h->out->rows[0].failed;
			h->out->same = outcome_is_same(h);
		}
	}
	return 0;
}

static void host_fini(struct host *h)
{
	player_close(&h->player);
	recorded_fini(&h->recorded);
	free(h->reference);
	if (h->plan)
		fclose(h->plan);
}

int replay_host(const struct trace_set *set, const struct verdict_result *verdict,
    const struct replay_request *request, struct replay_result *out, struct err *err)
{
	struct host h = {.request = request,
	    .verdict = verdict,
	    .out = out,
	    .feed = feed_of_trace(verdict->trace),
	    .player = {.results = -1}};
	int rc;

	memset(out, 0, sizeof(*out));
	out->memory = request->memory;
	out->speed = request->speed;
	find_allocator(&h);
	rc = read_recorded(&h, set, err);
	if (!rc)
		rc = make_plan(&h, err);
	if (!rc) {
		find_original(&h);
		if (touch_fit(&h.recorded, &out->plan, NULL, &out->touch))
			rc = no_memory(err);
	}
	if (!rc) {
		find_shares(&h);
		out->touched = !request->no_touch;
		rc = check_room(&h, err);
	}
	if (!rc)
		rc = player_open(&h.player, request->player, fileno(h.plan),
		    (uint32_t)out->plan.moments.count, err);
	if (!rc) {
		find_settings(&h);
		rc = run_all(&h, err);
	}
	if (!rc) {
		tell_machine(&h);
		tell_gaps(&h);
		estimate(&h);
	}
	host_fini(&h);
	return rc;
}
