/* tuned.c - see tuned.h. Only a build with -Dtuned=true has this file. */
#include "util/tuned.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((uintptr_t)4096)
#define NUMBERS_MAX 4096u

struct number {
	const char *file, *table, *name, *why;
	void *at;
	size_t size;
	enum tuned_kind kind;
	double value; /* the value that was set */
};

/* One number or table: its pages are closed until it is read. */
struct pages {
	uintptr_t start, end;
	uint32_t first, count; /* into the numbers */
	volatile sig_atomic_t read;
};

static struct number numbers[NUMBERS_MAX];
static struct pages areas[NUMBERS_MAX];
static uint32_t number_count, area_count;

extern char __stop_tuned[]; /* from the linker: the end of the section of TUNED_PAGES */

static void die(const char *what, const char *name)
{
	fprintf(stderr, "WHYOOM_TUNED: %s: %s\n", what, name);
	_exit(2);
}

/* Open a number's pages at its first read. Any other fault kills the process as usual. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr;

	(void)context;
	for (uint32_t i = 0; i < area_count; i++) {
		struct pages *p = &areas[i];

		if (at < p->start || at >= p->end || p->read)
			continue;
		p->read = 1;
		mprotect((void *)p->start, p->end - p->start, PROT_READ);
		return;
	}
	signal(sig, SIG_DFL);
}

static double get(const struct number *n)
{
	int64_t whole = 0;

	if (n->kind == TUNED_REAL)
		return n->size == sizeof(float) ? (double)*(float *)n->at : *(double *)n->at;
	memcpy(&whole, n->at, n->size);
	if (n->kind == TUNED_SIGNED && n->size < 8)
		whole = whole << (64 - 8 * n->size) >> (64 - 8 * n->size);
	return n->kind == TUNED_SIGNED ? (double)whole : (double)(uint64_t)whole;
}

static void put(const struct number *n, double value)
{
	uint64_t whole = n->kind == TUNED_UNSIGNED ? (uint64_t)value : (uint64_t)(int64_t)value;

	if (n->kind != TUNED_REAL)
		memcpy(n->at, &whole, n->size);
	else if (n->size == sizeof(float))
		*(float *)n->at = (float)value;
	else
		*(double *)n->at = value;
}

/* True if `text`, up to `len`, names that number, with or without its file. */
static bool is_named(const struct number *n, const char *text, size_t len)
{
	const char *colon = memchr(text, ':', len);
	char name[256];

	if (colon && (strlen(n->file) != (size_t)(colon - text) ||
			 memcmp(n->file, text, (size_t)(colon - text)) != 0))
		return false;
	if (colon) {
		len -= (size_t)(colon + 1 - text);
		text = colon + 1;
	}
	snprintf(
	    name, sizeof(name), "%s%s%s", n->table ? n->table : "", n->table ? "." : "", n->name);
	return strlen(name) == len && memcmp(name, text, len) == 0;
}

static void apply(struct number *n)
{
	const char *text = getenv("WHYOOM_TUNED"), *equals;

	for (; text && *text; text += strcspn(text, ","), text += *text == ',') {
		char *end;
		double value;

		equals = strchr(text, '=');
		if (!equals)
			die("write NAME=VALUE", text);
		value = strtod(equals + 1, &end);
		if (end == equals + 1 || (*end && *end != ','))
			die("not a number", text);
		if (is_named(n, text, (size_t)(equals - text)))
			put(n, value);
	}
	n->value = get(n);
}

static void write_text(FILE *out, const char *text)
{
	for (; *text; text++)
		fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
}

static void write_list(void)
{
	const char *path = getenv("WHYOOM_TUNED_LIST");
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;

	for (uint32_t i = 0; out && i < area_count; i++) {
		for (uint32_t k = 0; k < areas[i].count; k++) {
			const struct number *n = &numbers[areas[i].first + k];

			fprintf(out, "{\"file\":\"%s\",\"name\":\"%s%s%s\",\"value\":%.17g,",
			    n->file, n->table ? n->table : "", n->table ? "." : "", n->name,
			    n->value);
			fprintf(out, "\"whole\":%s,\"read\":%s,\"why\":\"",
			    n->kind == TUNED_REAL ? "false" : "true",
			    areas[i].read ? "true" : "false");
			write_text(out, n->why);
			fputs("\"}\n", out);
		}
	}
	/* One write: processes that end at once do not mix their lines. */
	if (!out || fclose(out) || fd < 0 || write(fd, text, len) != (ssize_t)len)
		die("cannot write the list", path ? path : "");
	free(text);
	close(fd);
}

/* At exit, when each number has registered: each name in WHYOOM_TUNED must exist. */
static void check_names(void)
{
	const char *text = getenv("WHYOOM_TUNED");

	for (; text && *text; text += strcspn(text, ","), text += *text == ',') {
		bool found = false;

		for (uint32_t i = 0; i < number_count; i++)
			found |= is_named(&numbers[i], text, strcspn(text, "="));
		if (!found)
			die("no such number", text);
	}
}

/* The first registration sets up the handler and the list. */
static void start(void)
{
	struct sigaction on = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

	sigaction(SIGSEGV, &on, NULL);
	atexit(check_names);
	if (getenv("WHYOOM_TUNED_LIST"))
		atexit(write_list);
}

static const char *short_path(const char *file)
{
	const char *at = strstr(file, "analyzer/");

	return at ? at + strlen("analyzer/") : file;
}

static void add(struct number n)
{
	if (number_count == NUMBERS_MAX)
		die("too many numbers", n.name);
	n.file = short_path(n.file);
	apply(&n);
	numbers[number_count++] = n;
}

static void close_pages(void *at, size_t size, uint32_t count)
{
	struct pages *p = &areas[area_count++];

	if (area_count == 1)
		start();
	*p = (struct pages){.start = (uintptr_t)at,
	    .end = ((uintptr_t)at + size + PAGE - 1) & ~(PAGE - 1),
	    .first = number_count - count,
	    .count = count};
	/* Other data shares the section's last page, so its number counts as read. */
	p->read = p->end > (uintptr_t)__stop_tuned;
	if (!p->read)
		mprotect(at, size, PROT_NONE);
}

void tuned_register(const char *file, const char *name, const char *why, void *number, size_t size,
    enum tuned_kind kind)
{
	add((struct number){
	    .file = file, .name = name, .why = why, .at = number, .size = size, .kind = kind});
	close_pages(number, size, 1);
}

void tuned_register_table(const char *file, const char *name, void *rows, size_t size, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct tuned_number *row = (struct tuned_number *)((char *)rows + i * size);

		add((struct number){.file = file,
		    .table = name,
		    .name = row->name,
		    .why = row->why,
		    .at = &row->value,
		    .size = sizeof(row->value),
		    .kind = TUNED_REAL});
	}
	close_pages(rows, size * count, (uint32_t)count);
}
