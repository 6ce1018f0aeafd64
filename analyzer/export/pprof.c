/*
 * pprof.c - pprof's profile.proto: one message, whose parts are written as they become known; its
 * readers take them in any order. A location is a frame of the trace. It has no address, because
 * pprof would look that up in local files, which may differ from those of the recorded run.
 */
#include <errno.h>

#include "export/encode/proto.h"
#include "export/export.h"
#include "util/map.h"
#include "util/num.h"
#include "util/vec.h"

/* Fields of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14,
	TYPE_TYPE = 1,
	TYPE_UNIT = 2,
	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_STRING = 2,
	MAPPING_ID = 1,
	MAPPING_FILE = 5,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILES = 8,
	MAPPING_HAS_LINES = 9,
	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	LINE_NUMBER = 2,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILE = 4,
};

/* The first four are those of Go's heap profiles, in their order. */
static const struct {
	const char *type, *unit;
} types[] = {{"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"},
    {"inuse_space", "bytes"}, {"peak_space", "bytes"}, {"temporary_space", "bytes"}};
#define TYPES (sizeof(types) / sizeof(*types))

struct pprof {
	struct proto out;
	struct intern strings, functions, mappings;
	VEC(uint8_t) located; /* by the symbol's id: its location is written */
	bool unknown; /* the location of unknown stacks is written */
	uint32_t space; /* string of the space under way */
	int error;
};

/* Location ids: the symbol's, and one that no symbol has. */
#define UNKNOWN_LOCATION (1ull << 32)

/* Return the index of a string, written when it is new; string 0 is the empty one. pprof prints
 * strings as they are, so they must not control a terminal. */
static uint32_t string_of(struct pprof *t, const char *text)
{
	size_t before = t->strings.count;
	struct str safe = {0};
	uint32_t id = 0;

	str_safe(&safe, text ? text : "");
	if (safe.length)
		id = intern_add(&t->strings, str_text(&safe), safe.length);
	if (safe.failed || (safe.length && !id))
		t->error = -ENOMEM;
	if (t->strings.count > before)
		proto_bytes(&t->out, PROFILE_STRING, str_text(&safe), safe.length);
	str_free(&safe);
	return id;
}

/* Return the id of a key, and whether it is new. */
static uint32_t id_of(
    struct pprof *t, struct intern *table, const char *a, const char *b, bool *is_new)
{
	size_t before = table->count;
	struct str key = {0};
	uint32_t id = 0;

	str_puts(&key, a ? a : "");
	str_putc(&key, '\n');
	str_puts(&key, b ? b : "");
	if (!key.failed)
		id = intern_add(table, str_text(&key), key.length);
	str_free(&key);
	if (!id)
		t->error = -ENOMEM;
	*is_new = table->count > before;
	return id;
}

/* All names are here: without these marks pprof would look for symbols in local files. */
static uint32_t mapping_of(struct pprof *t, const char *path)
{
	uint32_t file = string_of(t, path);
	bool is_new;
	uint32_t id = id_of(t, &t->mappings, path, NULL, &is_new);

	if (!is_new)
		return id;
	proto_begin(&t->out, PROFILE_MAPPING);
	proto_u64(&t->out, MAPPING_ID, id);
	proto_u64(&t->out, MAPPING_FILE, file);
	proto_u64(&t->out, MAPPING_HAS_FUNCTIONS, 1);
	proto_u64(&t->out, MAPPING_HAS_FILES, 1);
	proto_u64(&t->out, MAPPING_HAS_LINES, 1);
	proto_end(&t->out);
	return id;
}

static uint32_t function_of(struct pprof *t, const char *name, const char *full, const char *file)
{
	uint32_t named = string_of(t, name), whole = string_of(t, full), from = string_of(t, file);
	bool is_new;
	uint32_t id = id_of(t, &t->functions, full, file, &is_new);

	if (!is_new)
		return id;
	proto_begin(&t->out, PROFILE_FUNCTION);
	proto_u64(&t->out, FUNCTION_ID, id);
	proto_u64(&t->out, FUNCTION_NAME, named);
	proto_u64(&t->out, FUNCTION_SYSTEM_NAME, whole);
	proto_u64(&t->out, FUNCTION_FILE, from);
	proto_end(&t->out);
	return id;
}

static void write_location(
    struct pprof *t, uint64_t id, uint32_t mapping, uint32_t function, uint32_t line)
{
	proto_begin(&t->out, PROFILE_LOCATION);
	proto_u64(&t->out, LOCATION_ID, id);
	proto_u64(&t->out, LOCATION_MAPPING, mapping);
	proto_begin(&t->out, LOCATION_LINE);
	proto_u64(&t->out, LINE_FUNCTION, function);
	if (line)
		proto_u64(&t->out, LINE_NUMBER, line);
	proto_end(&t->out);
	proto_end(&t->out);
}

static void locate(struct pprof *t, const struct symbol *s)
{
	struct str name = {0};
	uint32_t function;

	if (vec_reach(&t->located, s->id + 1u)) {
		t->error = -ENOMEM;
		return;
	}
	if (t->located.items[s->id])
		return;
	t->located.items[s->id] = 1;
	export_function(&name, s);
	function = function_of(t, str_text(&name), s->function, s->file);
	write_location(
	    t, s->id, mapping_of(t, s->python ? "[python]" : s->module), function, s->line);
	str_free(&name);
}

static void value_type(struct pprof *t, uint32_t field, const char *type, const char *unit)
{
	uint32_t a = string_of(t, type), b = string_of(t, unit);

	proto_begin(&t->out, field);
	proto_u64(&t->out, TYPE_TYPE, a);
	proto_u64(&t->out, TYPE_UNIT, b);
	proto_end(&t->out);
}

/* Send what is whole. */
static int send(struct export *x)
{
	struct pprof *t = x->state;

	sink_str(x->out, &t->out.text);
	return t->error;
}

static int pprof_begin(struct export *x, struct err *err)
{
	struct pprof *t = x->state;
	uint64_t every = 1;
	uint32_t id;

	(void)err;
	proto_text(&t->out, PROFILE_STRING, "");
	for (size_t i = 0; i < TYPES; i++)
		value_type(t, PROFILE_SAMPLE_TYPE, types[i].type, types[i].unit);
	value_type(t, PROFILE_PERIOD_TYPE, "space", "bytes");
	if (!feed_number(&x->feed, "sampled.every", &every) || !every)
		every = 1;
	proto_u64(&t->out, PROFILE_PERIOD, every);
	id = string_of(t, x->options.measure == MEASURE_TOTAL ? "alloc_space" : "inuse_space");
	proto_u64(&t->out, PROFILE_DEFAULT_TYPE, id);
	/* The facts of a running process are older than the events that were read. */
	proto_u64(&t->out, PROFILE_DURATION, num_most(x->facts->last_ns, x->all->run.last_ns));
	mapping_of(t, x->facts->exe ? x->facts->exe : "[program]"); /* the first is the program */
	return send(x);
}

static int pprof_space(struct export *x, const struct export_space *s, struct err *err)
{
	struct pprof *t = x->state;
	struct str text = {0};
	uint32_t id;

	(void)err;
	if (!t->space)
		proto_u64(&t->out, PROFILE_TIME, x->facts->start_real_ns + s->time_ns);
	t->space = string_of(t, s->name);
	str_printf(
	    &text, "whyoom " WHYOOM_VERSION ": pid %u, %s at %s", x->facts->pid, s->name, s->at);
	id = string_of(t, str_text(&text));
	proto_u64(&t->out, PROFILE_COMMENT, id);
	str_free(&text);
	return send(x);
}

static void write_sample(struct pprof *t, const struct export_sum *s, uint32_t space_key)
{
	const uint64_t values[TYPES] = {s->value[MEASURE_COUNT], s->value[MEASURE_TOTAL],
	    s->live_blocks, s->value[MEASURE_LIVE], s->value[MEASURE_PEAK],
	    s->value[MEASURE_TEMPORARY]};

	proto_begin(&t->out, PROFILE_SAMPLE);
	proto_begin(&t->out, SAMPLE_LOCATION);
	for (size_t i = s->stack->count; i-- > 0;) /* leaf first */
		proto_varint(&t->out, s->stack->symbols[i].id);
	if (!s->stack->count)
		proto_varint(&t->out, UNKNOWN_LOCATION);
	proto_end(&t->out);
	proto_begin(&t->out, SAMPLE_VALUE);
	for (size_t i = 0; i < TYPES; i++)
		proto_varint(&t->out, values[i]);
	proto_end(&t->out);
	proto_begin(&t->out, SAMPLE_LABEL);
	proto_u64(&t->out, LABEL_KEY, space_key);
	proto_u64(&t->out, LABEL_STRING, t->space);
	proto_end(&t->out);
	proto_end(&t->out);
}

static int pprof_sum(struct export *x, const struct export_sum *s, struct err *err)
{
	struct pprof *t = x->state;
	uint32_t key = string_of(t, "space");

	(void)err;
	for (size_t i = 0; i < s->stack->count; i++)
		locate(t, &s->stack->symbols[i]);
	if (!s->stack->count && !t->unknown) {
		write_location(t, UNKNOWN_LOCATION, mapping_of(t, "[unknown]"),
		    function_of(t, "(unknown)", "(unknown)", NULL), 0);
		t->unknown = true;
	}
	write_sample(t, s, key);
	return send(x);
}

static void pprof_fini(struct export *x)
{
	struct pprof *t = x->state;

	proto_free(&t->out);
	intern_free(&t->strings);
	intern_free(&t->functions);
	intern_free(&t->mappings);
	vec_free(&t->located);
}

const struct exporter exporter_pprof = {
    .name = "pprof",
    .summary = "`go tool pprof`, pprof, Perfetto: all measures, the space as a label",
    .needs = EXPORT_SUMS,
    .binary = true,
    .adds_spaces = true,
    .gzip = true,
    .state = sizeof(struct pprof),
    .begin = pprof_begin,
    .space = pprof_space,
    .sum = pprof_sum,
    .fini = pprof_fini,
};
