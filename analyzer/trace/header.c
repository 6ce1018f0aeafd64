/*
 * header.c - reads a trace file's header. What contradicts its check or its copy is noted as damage
 * and repaired if possible.
 */
#include <errno.h>
#include <string.h>

#include "trace/cursor.h"
#include "trace/integrity/checks.h"
#include "trace/reader.h"
#include "util/text/fmt.h"
#include "whyoom/trace.h"

#define FIELD(name) offsetof(struct trace_header, name)
/* The most threads that can be raising a counter when the process ends. */
#define UNDER_WAY 64u

static void put(uint8_t *page, size_t at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		page[at + i] = (uint8_t)(value >> 8 * i);
}

static void damaged(struct trace *t, uint64_t offset, uint64_t bytes)
{
	damage_note(&t->damage, TRACE_DAMAGE_HEADER,
	    &(struct damage_where){.offset = offset, .bytes = bytes});
}

/* True if the file has checks. The version or the check may be damaged, but hardly both. */
static bool has_checks(const uint8_t *page)
{
	uint64_t version =
	    cursor_at(page + FIELD(major), 2) << 16 | cursor_at(page + FIELD(minor), 2);

	return cursor_at(page + FIELD(check), 8) || version >= (2 << 16 | TRACE_CHECKS_FROM);
}

static bool is_sound(const uint8_t *page)
{
	return cursor_at(page + FIELD(check), 8) == checks_header(page);
}

/* The process may have been killed while it changed its mode. */
static bool is_sound_but_for_mode(uint8_t *page)
{
	uint64_t was = cursor_at(page + FIELD(mode), 4);

	for (uint32_t mode = 0; mode <= TRACE_MODE_SUPERVISOR; mode++) {
		put(page, FIELD(mode), mode, 4);
		if (is_sound(page))
			return true;
	}
	put(page, FIELD(mode), was, 4);
	return false;
}

/* Check the constant part. A single wrong bit is repaired, even in the magic. */
static void check_constant(struct trace *t, uint8_t *page)
{
	if (is_sound(page) || is_sound_but_for_mode(page))
		return;
	damaged(t, 0, FIELD(check));
	for (size_t bit = 0; bit < 8 * (FIELD(check) + 8); bit++) {
		page[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (is_sound(page))
			return;
		page[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* True if the difference fits an update that was interrupted. A counter grows by one for each
 * event, or by its bytes; flags gain a bit. */
static bool under_way(size_t at, uint64_t counter, uint64_t copy)
{
	uint64_t ahead = counter - copy;

	if (at == FIELD(chunk_bytes))
		return !(ahead % TRACE_SLOT_BYTES);
	if (at == FIELD(flags))
		return (counter & copy) == copy;
	if (at == FIELD(dropped_bytes) || at == FIELD(paused_bytes))
		return ahead < 1ull << 40;
	return ahead <= UNDER_WAY;
}

/* A counter is raised before its copy, so a larger difference is damage. The lower value counts: it
 * claims nothing that did not happen. */
static void check_counters(struct trace *t, uint8_t *page)
{
	const uint16_t *offsets;

	for (size_t i = checks_counters(&offsets); i-- > 0;) {
		uint64_t counter = cursor_at(page + offsets[i], 8);
		uint64_t copy = cursor_at(page + TRACE_COPY_OFFSET + offsets[i], 8);

		if (counter == copy)
			continue;
		if (!under_way(offsets[i], counter, copy))
			damaged(t, offsets[i], sizeof(counter));
		if (copy < counter && offsets[i] != FIELD(chunk_bytes))
			put(page, offsets[i], copy, sizeof(copy));
	}
}

/* The end is stored after its check, so it may be missing beside a valid check. */
static void check_end(struct trace *t, uint8_t *page)
{
	uint64_t how = cursor_at(page + FIELD(end_how), 4),
		 check = cursor_at(page + FIELD(end_check), 8);

	if ((!how && !check) || (how && check == checks_end(page)))
		return;
	if (how)
		damaged(t, FIELD(end_how), FIELD(dropped) - FIELD(end_how));
	for (uint32_t other = TRACE_END_EXIT; other <= TRACE_END_DETACHED; other++) {
		put(page, FIELD(end_how), other, 4);
		if (check == checks_end(page))
			return;
	}
	put(page, FIELD(end_how), how, 4);
	if (!how)
		damaged(t, FIELD(end_how), FIELD(dropped) - FIELD(end_how));
}

static void check_slots(struct trace *t, uint8_t *page)
{
	for (size_t i = 0; i < TRACE_CHECKPOINT_SLOTS; i++) {
		size_t at = FIELD(checkpoint) + i * sizeof(struct trace_checkpoint);

		if (!cursor_at(page + at, 4) ||
		    cursor_at(page + FIELD(checkpoint_check) + 8 * i, 8) ==
			xxh64_of(page + at, sizeof(struct trace_checkpoint)))
			continue;
		damaged(t, at, sizeof(struct trace_checkpoint));
		put(page, at, 0, 4);
	}
}

static struct trace_rights read_rights(struct cursor *c)
{
	struct trace_rights raw = {.reserved = 0};

	for (size_t i = 0; i < TRACE_RIGHT_SLOTS; i++)
		raw.ticks[i] = cursor_fixed(c, 8);
	raw.stopped_ticks = cursor_fixed(c, 8);
	raw.children = cursor_fixed(c, 8);
	raw.stopped = (uint32_t)cursor_fixed(c, 4);
	raw.reserved = (uint32_t)cursor_fixed(c, 4);
	return raw;
}

/* Free places, and those being filled, are left out. */
static void read_unrecorded(struct cursor *c, struct trace_facts *f)
{
	f->unrecorded = cursor_fixed(c, 8);
	f->unrecorded_programs = 0; /* this may be a second read */
	for (unsigned i = 0; i < TRACE_UNRECORDED_PLACES; i++) {
		struct trace_program *p = &f->unrecorded_program[f->unrecorded_programs];
		const uint8_t *path;

		p->why = (uint32_t)cursor_fixed(c, 4);
		p->count = (uint32_t)cursor_fixed(c, 4);
		path = cursor_take(c, sizeof(p->path));
		if (!path || !p->why || p->why == TRACE_UNRECORDED_TAKEN || !p->count)
			continue;
		memcpy(p->path, path, sizeof(p->path));
		p->path[sizeof(p->path) - 1] = 0;
		f->unrecorded_programs++;
	}
}

int trace_read_header(struct trace *t, struct header_tail *tail, struct err *err)
{
	uint8_t raw[TRACE_HEADER_BYTES];
	struct trace_facts *f = &t->facts;
	const char *path = t->source.path;
	struct cursor c;
	size_t got;
	uint32_t header_bytes, slot_bytes;
	int r = source_read(&t->source, 0, raw, sizeof(raw), &got, err);

	if (r)
		return r;
	if (!t->source.size)
		return err_set(err, -ENODATA,
		    "%s: empty: the program ended, or ran out of disk, before anything was "
		    "recorded",
		    path);
	/* The recorder writes the magic last. */
	if (t->source.size <= TRACE_SLOT_BYTES && got >= 8 && !memcmp(raw, (uint8_t[8]){0}, 8))
		return err_set(err, -ENODATA,
		    "%s: holds nothing yet: the program was killed, or ran out of disk, before "
		    "anything was recorded, or has only just begun",
		    path);
	/* A small trace has one check over everything instead of the others. */
	t->checks = !t->source.small && got == sizeof(raw) && has_checks(raw);
	if (t->checks)
		check_constant(t, raw);
	if (got < 8 || memcmp(raw, TRACE_MAGIC, 8) != 0)
		return err_set(err, -EINVAL,
		    "%s: offset 0: not a whyoom trace (a trace begins with \"WHYOOMT\")", path);
	if (got < sizeof(raw))
		return err_set(err, -EINVAL,
		    "%s: cut off at %llu bytes, within the header of %u bytes: nothing can be read",
		    path, (unsigned long long)t->source.size, TRACE_HEADER_BYTES);
	if (t->checks) {
		check_counters(t, raw);
		check_end(t, raw);
		check_slots(t, raw);
	}
	c = cursor_of(raw + 8, sizeof(raw) - 8);
	f->major = (uint16_t)cursor_fixed(&c, 2);
	f->minor = (uint16_t)cursor_fixed(&c, 2);
	if (f->major > TRACE_MAJOR)
		return err_set(err, -ENOTSUP,
		    "%s: trace format %u.%u, and this whyoom (" WHYOOM_VERSION
		    ") reads up to %u.x: use a whyoom that reads format %u",
		    path, f->major, f->minor, TRACE_MAJOR, f->major);
	header_bytes = (uint32_t)cursor_fixed(&c, 4);
	slot_bytes = (uint32_t)cursor_fixed(&c, 4);
	if (!f->major || header_bytes != TRACE_HEADER_BYTES || slot_bytes != TRACE_SLOT_BYTES)
		return err_set(err, -EINVAL,
		    "%s: offset 8: damaged header (version %u.%u, %u header bytes, %u slot bytes)",
		    path, f->major, f->minor, header_bytes, slot_bytes);
	cursor_fixed(&c, 4); /* architecture */
	f->mode = (uint32_t)cursor_fixed(&c, 4);
	t->clock_kind = (uint32_t)cursor_fixed(&c, 4);
	cursor_fixed(&c, 4); /* ticks_shift */
	f->pid = (uint32_t)cursor_fixed(&c, 4);
	f->ppid = (uint32_t)cursor_fixed(&c, 4);
	f->image = (uint32_t)cursor_fixed(&c, 4);
	tail->ticks_hz = cursor_fixed(&c, 8);
	tail->start_ticks = cursor_fixed(&c, 8);
	f->start_mono_ns = cursor_fixed(&c, 8);
	f->start_real_ns = cursor_fixed(&c, 8);
	cursor_take(&c, 24);
	f->file_bytes = cursor_fixed(&c, 8);
	f->end_how = (uint32_t)cursor_fixed(&c, 4);
	f->end_code = (uint32_t)cursor_fixed(&c, 4);
	tail->end_mono_ns = cursor_fixed(&c, 8);
	for (size_t i = 0; i < TRACE_DROP_REASONS; i++) {
		f->dropped[i] = cursor_fixed(&c, 8);
		f->dropped_total += f->dropped[i];
	}
	f->dropped_bytes = cursor_fixed(&c, 8);
	tail->flags = cursor_fixed(&c, 8);
	f->budget = tail->flags & TRACE_FLAG_BUDGET;
	f->disk_bound = tail->flags & TRACE_FLAG_DISK;
	f->root = tail->flags & TRACE_FLAG_ROOT;
	f->forked = tail->flags & TRACE_FLAG_FORKED;
	cursor_take(&c, sizeof(struct trace_control));
	tail->slots = checkpoint_slots_read(&c);
	f->paused_bytes = cursor_fixed(&c, 8);
	f->brief_stacks = cursor_fixed(&c, 8);
	f->untold = cursor_fixed(&c, 8);
	tail->chunk_bytes = t->checks ? cursor_fixed(&c, 8) : 0;
	c = cursor_of(raw + FIELD(rights), sizeof(raw) - FIELD(rights));
	tail->rights = read_rights(&c);
	c = cursor_of(raw + FIELD(unrecorded), sizeof(raw) - FIELD(unrecorded));
	read_unrecorded(&c, f);
	if (f->end_how > TRACE_END_DETACHED)
		f->end_how = TRACE_END_NONE;
	return 0;
}

/* --- rights that the process gave up --- */

static const char *const names[TRACE_RIGHT_KINDS] = {
    [TRACE_RIGHT_UNKNOWN] = "by a call that was not seen",
    [TRACE_RIGHT_USER] = "the user (setuid)",
    [TRACE_RIGHT_GROUP] = "the groups (setgid, setgroups)",
    [TRACE_RIGHT_CAPABILITY] = "capabilities",
    [TRACE_RIGHT_ROOT] = "the root directory (chroot, pivot_root)",
    [TRACE_RIGHT_NAMESPACE] = "a namespace (unshare, setns)",
    [TRACE_RIGHT_SECCOMP] = "seccomp",
    [TRACE_RIGHT_LANDLOCK] = "Landlock",
};

static const char *const keys[TRACE_RIGHT_KINDS] = {
    [TRACE_RIGHT_UNKNOWN] = "unknown",
    [TRACE_RIGHT_USER] = "user",
    [TRACE_RIGHT_GROUP] = "group",
    [TRACE_RIGHT_CAPABILITY] = "capability",
    [TRACE_RIGHT_ROOT] = "root",
    [TRACE_RIGHT_NAMESPACE] = "namespace",
    [TRACE_RIGHT_SECCOMP] = "seccomp",
    [TRACE_RIGHT_LANDLOCK] = "landlock",
};

const char *trace_right_key(uint32_t right)
{
	return keys[right];
}

bool trace_is_user_directory(const char *name)
{
	size_t digits = strncmp(name, "uid.", 4) ? 0 : strspn(name + 4, "0123456789");

	return digits && digits <= 10 && !name[4 + digits];
}

/* 0 means "not", so the very first moment becomes 1. */
static uint64_t moment(struct clock *clock, uint64_t ticks)
{
	uint64_t ns = ticks ? clock_ns(clock, ticks) : 0;

	return ticks && !ns ? 1 : ns;
}

struct trace_rights_facts rights_facts(const struct trace_rights *raw, struct clock *clock)
{
	struct trace_rights_facts f = {.children = raw->children};

	for (size_t i = 0; i < TRACE_RIGHT_KINDS; i++) {
		f.given_up_ns[i] = moment(clock, raw->ticks[i]);
		f.any |= f.given_up_ns[i] != 0;
	}
	f.stopped_ns = moment(clock, raw->stopped_ticks);
	/* a kind from a newer version */
	f.reason = raw->stopped < TRACE_RIGHT_KINDS ? raw->stopped : TRACE_RIGHT_UNKNOWN;
	return f;
}

void trace_rights_why(const struct trace_rights_facts *f, struct str *out)
{
	uint64_t at = f->given_up_ns[f->reason];
	struct fmt t;

	str_puts(out, "rights were given up");
	if (at)
		str_printf(out, " at %s", fmt_duration(&t, at));
	str_printf(out, f->reason == TRACE_RIGHT_UNKNOWN ? " %s" : ": %s", names[f->reason]);
}

void trace_rights_list(const struct trace_rights_facts *f, struct str *out)
{
	const char *before = "";
	struct fmt t;

	for (size_t i = 0; i < TRACE_RIGHT_KINDS; i++) {
		if (!f->given_up_ns[i])
			continue;
		str_printf(
		    out, "%s%s at %s", before, names[i], fmt_duration(&t, f->given_up_ns[i]));
		before = ", ";
	}
}
