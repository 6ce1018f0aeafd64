#include "trace/rights.h"

#include <string.h>

#include "util/text/fmt.h"

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

struct trace_rights rights_read(struct cursor *c)
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
