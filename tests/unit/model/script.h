/* script.h - a feed written by a test: events pushed one by one, a live table, and a stack for
 * each named chain of functions. Shared by the tests of model, detect, verdict and report. */
#ifndef TESTS_UNIT_MODEL_SCRIPT_H
#define TESTS_UNIT_MODEL_SCRIPT_H

#include "model/feed.h"

struct script;

struct script *script_new(void);
void script_free(struct script *s);
struct feed script_feed(struct script *s);

/* Return the id of a stack. "main;handle;build" is outermost first. A frame is
 * "name@/path/file.py:12" (Python), "name@/path/file.c:12" (native) or "name" (native, in the
 * program "/opt/app/prog"). "lib+0x123@/path/lib.so" is nameless. Equal texts give equal ids. */
uint32_t script_stack(struct script *s, const char *text);

/* Each moves the clock on by script_step() nanoseconds (1,000 at first). */
/* Set the thread (1 at first) and task (0: none) of the following events. */
void script_thread(struct script *s, uint32_t thread, uint32_t task);
void script_step(struct script *s, uint64_t ns);
void script_wait(struct script *s, uint64_t ns);
uint64_t script_alloc(struct script *s, uint32_t stack, uint64_t size); /* its address */
void script_release(struct script *s, uint64_t address);
uint64_t script_realloc(struct script *s, uint64_t address, uint32_t stack, uint64_t size);
uint64_t script_map(
    struct script *s, uint32_t stack, uint64_t size, uint32_t flags, uint32_t backing);
void script_read_only(struct script *s); /* the last mapping */
/* A file of a file system in memory with the given bytes free before. */
struct script_volume {
	uint64_t device, total, free, file, written;
};
uint64_t script_map_shm(
    struct script *s, uint32_t stack, uint64_t size, const struct script_volume *of);
void script_map_at(
    struct script *s, uint32_t stack, uint64_t address, uint64_t size, uint32_t flags);
void script_unmap(struct script *s, uint64_t address, uint64_t size);
void script_ununmap(struct script *s, uint64_t address, uint64_t size);
void script_failed(struct script *s, uint32_t stack, uint64_t size);
void script_level(struct script *s, uint32_t key, uint64_t value); /* one LEVEL event */
/* Set a key and value for EV_FAILED and later LEVEL events. */
void script_set(struct script *s, uint32_t key, uint64_t value);
void script_sample(struct script *s); /* a LEVEL event with all that were set */
void script_exit(struct script *s, uint32_t code);
void script_killed(struct script *s, uint32_t signal); /* the facts say so; no event */
void script_info(struct script *s, const char *key, const char *value);
struct trace_facts *script_facts(struct script *s);

/* Spaces beside the host's: ids from 1, by name. */
uint32_t script_space(struct script *s, const char *name);
/* An event of any kind, to be filled in before the next one is made. */
struct event *script_event(struct script *s, enum event_kind kind, uint32_t space);
void script_space_alloc(
    struct script *s, uint32_t space, uint32_t stack, uint64_t address, uint64_t size);
void script_space_free(struct script *s, uint32_t space, uint64_t address);
/* One event of that space with one or two levels; key 0: none. */
void script_space_level(
    struct script *s, uint32_t space, uint32_t key, uint64_t value, uint32_t key2, uint64_t value2);
/* A refusal of a device or a framework; `retry`: its group of attempts. */
struct event *script_space_failed(
    struct script *s, uint32_t space, uint32_t stack, uint64_t size, uint32_t retry);

uint64_t script_live(const struct script *s);
uint64_t script_now(const struct script *s);

#endif
