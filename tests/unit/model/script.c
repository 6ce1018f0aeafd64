/* script.c - see script.h. */
#include "model/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS 32

struct entry {
	struct event event;
	struct block block, old;
	bool has_block, has_old;
	struct event_level *levels;
};

struct framework_stack {
	char text[512];
	struct symbol symbols[32];
	char words[32][192];
	size_t count;
};

struct script {
	struct entry *entries;
	size_t count, room, at;
	struct framework_stack **stacks;
	uint32_t stack_count;
	struct block *live;
	size_t live_count, live_room;
	uint64_t serial, now, step, next, sum;
	struct event_level set[LEVELS];
	uint32_t set_count;
	struct {
		char key[64], value[256];
	} info[16];
	size_t info_count;
	char spaces[16][32];
	uint32_t space_count;
	struct trace_facts facts;
	uint32_t thread, task;
};

static void *checked(void *p)
{
	if (!p)
		abort();
	return p;
}

struct script *script_new(void)
{
	struct script *s = checked(calloc(1, sizeof(*s)));

	s->step = 1000;
	s->thread = 1;
	s->next = 0x10000;
	s->facts.pid = 4711;
	s->facts.root = true;
	s->facts.path = "script";
	s->facts.end_how = TRACE_END_NONE;
	script_info(s, "exe", "/opt/app/prog");
	return s;
}

void script_free(struct script *s)
{
	for (uint32_t i = 0; i < s->stack_count; i++)
		free(s->stacks[i]);
	for (size_t i = 0; i < s->count; i++)
		free(s->entries[i].levels);
	free(s->stacks);
	free(s->entries);
	free(s->live);
	free(s);
}

uint32_t script_stack(struct script *s, const char *text)
{
	struct framework_stack *k;
	char copy[512], *frame, *rest;

	for (uint32_t i = 0; i < s->stack_count; i++)
		if (strcmp(s->stacks[i]->text, text) == 0)
			return i + 1;
	k = checked(calloc(1, sizeof(*k)));
	snprintf(k->text, sizeof(k->text), "%s", text);
	snprintf(copy, sizeof(copy), "%s", text);
	for (frame = strtok_r(copy, ";", &rest); frame && k->count < 32;
	     frame = strtok_r(NULL, ";", &rest)) {
		struct symbol *to = &k->symbols[k->count];
		char *words = k->words[k->count++], *at, *colon;

		snprintf(words, sizeof(k->words[0]), "%s", frame);
		to->function = words;
		to->known = true;
		to->module = "/opt/app/prog";
		at = strchr(words, '@');
		if (!at)
			continue;
		*at = '\0';
		if (strstr(words, "+0x")) {
			to->known = false;
			to->address = strtoull(strstr(words, "+0x") + 1, NULL, 16);
		}
		to->file = at + 1;
		colon = strrchr(at + 1, ':');
		if (colon) {
			*colon = '\0';
			to->line = (uint32_t)atoi(colon + 1);
		}
		if (strstr(to->file, ".py") || to->file[0] == '<') {
			to->python = true;
			to->module = NULL;
		} else if (strstr(to->file, ".so")) {
			to->module = to->file;
			to->file = NULL;
			to->line = 0;
		}
	}
	s->stacks = checked(realloc(s->stacks, (s->stack_count + 1) * sizeof(*s->stacks)));
	s->stacks[s->stack_count++] = k;
	return s->stack_count;
}

static struct entry *push(struct script *s, enum event_kind kind)
{
	struct entry *e;

	if (s->count == s->room) {
		s->room = s->room ? s->room * 2 : 1024;
		s->entries = checked(realloc(s->entries, s->room * sizeof(*s->entries)));
	}
	e = &s->entries[s->count++];
	memset(e, 0, sizeof(*e));
	s->now += s->step;
	e->event.kind = kind;
	e->event.time_ns = s->now;
	e->event.thread = s->thread;
	e->event.task = s->task;
	s->facts.last_ns = s->now;
	return e;
}

void script_thread(struct script *s, uint32_t thread, uint32_t task)
{
	s->thread = thread;
	s->task = task;
}

void script_step(struct script *s, uint64_t ns)
{
	s->step = ns;
}

void script_wait(struct script *s, uint64_t ns)
{
	s->now += ns;
}

static struct block *find(struct script *s, uint64_t address)
{
	/* Newest first: most releases are of young blocks. */
	for (size_t i = s->live_count; i-- > 0;)
		if (s->live[i].address == address)
			return &s->live[i];
	return NULL;
}

static uint64_t acquire(struct script *s, struct entry *e, uint32_t stack, uint64_t size)
{
	struct block b = {.address = s->next,
	    .size = size,
	    .birth_ns = s->now,
	    .serial = ++s->serial,
	    .stack = stack,
	    .thread = s->thread,
	    .task = s->task};

	s->next += (size + 31) / 16 * 16;
	if (s->live_count == s->live_room) {
		s->live_room = s->live_room ? s->live_room * 2 : 1024;
		s->live = checked(realloc(s->live, s->live_room * sizeof(*s->live)));
	}
	s->live[s->live_count++] = b;
	s->sum += size;
	e->block = b;
	e->has_block = true;
	e->event.address = b.address;
	e->event.size = size;
	e->event.stack = stack;
	return b.address;
}

uint64_t script_alloc(struct script *s, uint32_t stack, uint64_t size)
{
	struct entry *e = push(s, EV_ALLOC);

	return acquire(s, e, stack, size);
}

void script_release(struct script *s, uint64_t address)
{
	struct entry *e = push(s, EV_FREE);
	struct block *b = find(s, address);

	e->event.address = address;
	if (!b)
		return;
	e->block = *b;
	e->has_block = true;
	s->sum -= b->size;
	*b = s->live[--s->live_count];
}

uint64_t script_realloc(struct script *s, uint64_t address, uint32_t stack, uint64_t size)
{
	struct block *b = find(s, address), old = b ? *b : (struct block){0};
	struct entry *e;

	script_release(s, address);
	s->entries[s->count - 1].event.flags = EVENT_REALLOC;
	e = push(s, EV_ALLOC);
	e->event.flags = EVENT_REALLOC;
	e->old = old;
	e->has_old = true;
	return acquire(s, e, stack, size);
}

void script_map_at(
    struct script *s, uint32_t stack, uint64_t address, uint64_t size, uint32_t flags)
{
	struct entry *e = push(s, EV_MAP);

	e->event.address = address;
	e->event.size = size;
	e->event.stack = stack;
	e->event.api = TRACE_API_MMAP;
	e->event.u.map.prot = 3;
	e->event.u.map.flags = flags;
}

uint64_t script_map(
    struct script *s, uint32_t stack, uint64_t size, uint32_t flags, uint32_t backing)
{
	uint64_t address = (s->next + 4095) & ~4095ull;

	s->next = address + ((size + 4095) & ~4095ull);
	script_map_at(s, stack, address, size, flags);
	s->entries[s->count - 1].event.u.map.backing = backing;
	return address;
}

void script_read_only(struct script *s)
{
	s->entries[s->count - 1].event.u.map.prot = 1;
}

uint64_t script_map_shm(
    struct script *s, uint32_t stack, uint64_t size, const struct script_volume *of)
{
	uint64_t address = script_map(s, stack, size, TRACE_MAP_SHARED, TRACE_BACKING_SHM);
	struct entry *e = &s->entries[s->count - 1];
	const struct event_level levels[] = {{TRACE_LEVEL_SHM_TOTAL, of->total},
	    {TRACE_LEVEL_SHM_FREE, of->free}, {TRACE_LEVEL_SHM_DEVICE, of->device},
	    {TRACE_LEVEL_SHM_FILE, of->file}, {TRACE_LEVEL_SHM_WRITTEN, of->written}};

	e->levels = checked(malloc(sizeof(levels)));
	memcpy(e->levels, levels, sizeof(levels));
	e->event.level_count = sizeof(levels) / sizeof(*levels);
	e->event.api = TRACE_API_MMAP;
	e->event.u.map.name = "/dev/shm/segment";
	return address;
}

void script_unmap(struct script *s, uint64_t address, uint64_t size)
{
	struct entry *e = push(s, EV_UNMAP);

	e->event.address = address;
	e->event.size = size;
}

void script_ununmap(struct script *s, uint64_t address, uint64_t size)
{
	struct entry *e = push(s, EV_UNUNMAP);

	e->event.address = address;
	e->event.size = size;
}

static void carry(struct script *s, struct entry *e)
{
	e->levels = checked(malloc(sizeof(s->set)));
	memcpy(e->levels, s->set, sizeof(s->set));
	e->event.level_count = s->set_count;
}

void script_failed(struct script *s, uint32_t stack, uint64_t size)
{
	struct entry *e = push(s, EV_FAILED);

	e->event.stack = stack;
	e->event.size = size;
	e->event.u.failed.why = TRACE_FAIL_ERRNO;
	e->event.u.failed.result = 12;
	carry(s, e);
}

void script_set(struct script *s, uint32_t key, uint64_t value)
{
	for (uint32_t i = 0; i < s->set_count; i++) {
		if (s->set[i].key == key) {
			s->set[i].value = value;
			return;
		}
	}
	if (s->set_count == LEVELS)
		abort();
	s->set[s->set_count++] = (struct event_level){key, value};
}

void script_sample(struct script *s)
{
	carry(s, push(s, EV_LEVEL));
}

void script_level(struct script *s, uint32_t key, uint64_t value)
{
	struct entry *e = push(s, EV_LEVEL);

	e->levels = checked(malloc(sizeof(*e->levels)));
	e->levels[0] = (struct event_level){key, value};
	e->event.level_count = 1;
}

void script_exit(struct script *s, uint32_t code)
{
	struct entry *e = push(s, EV_EXIT);

	e->event.u.end.how = TRACE_END_EXIT;
	e->event.u.end.code = code;
	s->facts.end_how = TRACE_END_EXIT;
	s->facts.end_code = code;
}

void script_killed(struct script *s, uint32_t signal)
{
	s->facts.end_how = TRACE_END_SIGNAL;
	s->facts.end_code = signal;
}

void script_info(struct script *s, const char *key, const char *value)
{
	if (s->info_count == 16)
		abort();
	snprintf(s->info[s->info_count].key, sizeof(s->info[0].key), "%s", key);
	snprintf(s->info[s->info_count++].value, sizeof(s->info[0].value), "%s", value);
}

struct trace_facts *script_facts(struct script *s)
{
	return &s->facts;
}

uint64_t script_live(const struct script *s)
{
	return s->sum;
}

uint64_t script_now(const struct script *s)
{
	return s->now;
}

uint32_t script_space(struct script *s, const char *name)
{
	for (uint32_t i = 0; i < s->space_count; i++)
		if (strcmp(s->spaces[i], name) == 0)
			return i + 1;
	if (s->space_count == 16)
		abort();
	snprintf(s->spaces[s->space_count++], sizeof(s->spaces[0]), "%s", name);
	return s->space_count;
}

struct event *script_event(struct script *s, enum event_kind kind, uint32_t space)
{
	struct entry *e = push(s, kind);

	e->event.space = space;
	return &e->event;
}

void script_space_alloc(
    struct script *s, uint32_t space, uint32_t stack, uint64_t address, uint64_t size)
{
	struct event *e = script_event(s, EV_SPACE_ALLOC, space);

	e->stack = stack;
	e->address = address;
	e->size = size;
}

void script_space_free(struct script *s, uint32_t space, uint64_t address)
{
	script_event(s, EV_SPACE_FREE, space)->address = address;
}

void script_space_level(
    struct script *s, uint32_t space, uint32_t key, uint64_t value, uint32_t key2, uint64_t value2)
{
	struct entry *e = push(s, EV_LEVEL);

	e->event.space = space;
	e->levels = checked(malloc(2 * sizeof(*e->levels)));
	e->levels[0] = (struct event_level){key, value};
	e->levels[1] = (struct event_level){key2, value2};
	e->event.level_count = key2 ? 2 : 1;
}

struct event *script_space_failed(
    struct script *s, uint32_t space, uint32_t stack, uint64_t size, uint32_t retry)
{
	struct event *e = script_event(s, EV_FAILED, space);
	bool torch = strncmp(s->spaces[space - 1], "torch", 5) == 0;

	e->stack = stack;
	e->size = size;
	e->u.failed.why = torch ? TRACE_FAIL_FRAMEWORK : TRACE_FAIL_DEVICE;
	e->u.failed.result = 2;
	e->u.failed.retry = retry;
	e->u.failed.api = torch ? "torch" : "cuMemAlloc_v2";
	return e;
}

static int next_event(void *self, struct event *out, struct err *err)
{
	struct script *s = self;
	struct entry *e;

	(void)err;
	if (s->at == s->count)
		return 0;
	e = &s->entries[s->at++];
	*out = e->event;
	out->block = e->has_block ? &e->block : NULL;
	out->old = e->has_old ? &e->old : NULL;
	if (e->levels)
		out->levels = e->levels;
	return 1;
}

static int rewind_script(void *self, struct err *err)
{
	(void)err;
	((struct script *)self)->at = 0;
	return 0;
}

static size_t symbols(void *self, uint32_t stack, const struct symbol **out)
{
	struct script *s = self;

	if (!stack || stack > s->stack_count)
		return 0;
	*out = s->stacks[stack - 1]->symbols;
	return s->stacks[stack - 1]->count;
}

static const char *info(void *self, const char *key)
{
	struct script *s = self;

	for (size_t i = s->info_count; i-- > 0;)
		if (strcmp(s->info[i].key, key) == 0)
			return s->info[i].value;
	return NULL;
}

static const struct trace_facts *facts(void *self)
{
	return &((struct script *)self)->facts;
}

static const char *space_name(void *self, uint32_t id)
{
	struct script *s = self;

	return id && id <= s->space_count ? s->spaces[id - 1] : NULL;
}

/* As far as events were handed out. */
static int each_live(void *self, int (*fn)(void *arg, const struct block *b), void *arg)
{
	struct script *s = self;
	uint8_t *released = checked(calloc(s->serial + 1, 1));
	int rc = 0;

	for (size_t i = s->at; i-- > 0 && !rc;) {
		const struct entry *e = &s->entries[i];

		if (!e->has_block)
			continue;
		if (e->event.kind == EV_FREE)
			released[e->block.serial] = 1;
		else if (e->event.kind == EV_ALLOC && !released[e->block.serial])
			rc = fn(arg, &e->block);
	}
	free(released);
	return rc;
}

struct feed script_feed(struct script *s)
{
	return (struct feed){s, next_event, rewind_script, symbols, info, facts, NULL, space_name,
	    each_live, NULL, NULL, NULL, NULL, NULL, NULL};
}
