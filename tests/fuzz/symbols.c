/*
 * symbols.c - fuzz target: the files that keep answers about ELF files. Mostly one with a sound
 * checksum, identity and lengths, so that its entries are asked for; an added entry must be there
 * afterwards.
 *
 * An input: flags, number of entries, number of frames; then the bytes after the header.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target.h"
#include "trace/symbols/symcache.h"
#include "trace/symbols/symcache_store.h"
#include "trace/xxh64.h"

#define HEAD 3u
#define DAMAGED 1u /* the input is the file as it is */
#define OPEN_TEXT 2u /* the text does not end */
#define ODD_LENGTH 4u

/* In symcache.c's header. */
#define SUM_AT 16u
#define ENTRIES_AT 24u
#define FRAMES_AT 28u
#define TEXT_AT 32u
#define HEADER 600u
#define ENTRY 16u
#define FRAME 12u

static char dir[256], file[600];
static uint8_t header[HEADER];
static const uint8_t id[20] = {1, 2, 3};
static const struct symcache_mark mark = {1, 2, 3, 4, 5};

static void forget(void)
{
	unlink(file);
	rmdir(dir);
}

static struct symcache *begin(struct symcache_store **store)
{
	struct symcache *c;

	*store = symcache_store_open();
	c = *store ? symcache_open(*store, id, sizeof(id), &mark) : NULL;
	if (!c)
		abort();
	return c;
}

static void end(struct symcache *c, struct symcache_store *store)
{
	symcache_close(c);
	symcache_store_close(store);
}

static void must_have(const struct symcache *c, uint64_t address)
{
	struct objfile_frame found[OBJFILE_FRAMES_MAX];

	if (symcache_find(c, address, found) != 2 || strcmp(found[0].function, "inner") ||
	    strcmp(found[1].file, "a.c") || found[1].line != 7 || !found[0].inlined)
		abort();
}

static void add(struct symcache *c, uint64_t address)
{
	struct objfile_frame frames[2] = {{.function = "inner", .inlined = true},
	    {.function = "outer", .file = "a.c", .line = 7}};

	if (!symcache_add(c, address, frames, 2))
		abort();
}

/* A written file, for its name and its header. */
static void prepare(void)
{
	const char *where = getenv("TMPDIR");
	struct symcache_debug debug = {.link = "debug"};
	struct symcache_store *store;
	struct symcache *c;
	struct dirent *e;
	FILE *f;
	DIR *d;

	snprintf(dir, sizeof(dir), "%.200s/whyoom-fuzz-XXXXXX", where && *where ? where : "/tmp");
	if (!mkdtemp(dir) || setenv("WHYOOM_CACHE", dir, 1))
		abort();
	atexit(forget);
	c = begin(&store);
	symcache_renew(c, &debug);
	add(c, 0x1000);
	end(c, store);
	d = opendir(dir);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			snprintf(file, sizeof(file), "%s/%s", dir, e->d_name);
	if (!d || closedir(d))
		abort();
	f = fopen(file, "re");
	if (!f || fread(header, sizeof(header), 1, f) != 1 || fclose(f))
		abort();
	c = begin(&store);
	must_have(c, 0x1000);
	end(c, store);
}

static void set(uint8_t *at, uint64_t value, size_t bytes)
{
	memcpy(at, &value, bytes);
}

static void write_file(const uint8_t *data, size_t bytes)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes || close(fd))
		abort();
}

/* The input's content, sound except for the parts that flags damage. */
static void make_file(const uint8_t *data, size_t bytes)
{
	size_t entries = data[1], frames = data[2], rest, whole;
	uint8_t *out = calloc(1, HEADER + entries * ENTRY + frames * FRAME + bytes);
	struct xxh64 hash;

	if (!out)
		abort();
	memcpy(out, header, HEADER);
	memcpy(out + HEADER, data + HEAD, bytes - HEAD);
	rest = entries * ENTRY + frames * FRAME;
	whole = bytes - HEAD > rest ? bytes - HEAD : rest + 1;
	if (!(data[0] & OPEN_TEXT))
		out[HEADER + whole - 1] = 0;
	set(out + ENTRIES_AT, entries, 4);
	set(out + FRAMES_AT, frames, 4);
	set(out + TEXT_AT, whole - rest + (data[0] & ODD_LENGTH ? 1 : 0), 8);
	xxh64_init(&hash);
	xxh64_add(&hash, out + SUM_AT + 8, HEADER + whole - SUM_AT - 8);
	set(out + SUM_AT, xxh64_done(&hash), 8);
	write_file(out, HEADER + whole);
	free(out);
}

static size_t lengths; /* so that strings are read */

static void ask(const struct symcache *c, uint64_t address)
{
	struct objfile_frame found[OBJFILE_FRAMES_MAX];
	int n = symcache_find(c, address, found);

	if (n > (int)OBJFILE_FRAMES_MAX)
		abort();
	for (int i = 0; i < n; i++)
		lengths += (found[i].function ? strlen(found[i].function) : 0) +
			   (found[i].file ? strlen(found[i].file) : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct symcache_store *store;
	struct objfile_frame found[OBJFILE_FRAMES_MAX];
	struct symcache *c;
	uint64_t address;

	if (bytes < HEAD)
		return 0;
	if (!*dir)
		prepare();
	still_begin();
	if (data[0] & DAMAGED)
		write_file(data + HEAD, bytes - HEAD);
	else
		make_file(data, bytes);
	c = begin(&store);
	for (size_t at = HEAD; at + 8 <= bytes; at += ENTRY) {
		memcpy(&address, data + at, 8);
		ask(c, address);
	}
	/* Without debug information's marks no answer is kept of a new file. */
	if (!symcache_kept(c))
		symcache_renew(c, &(struct symcache_debug){.link = "debug"});
	if (symcache_find(c, 0x4711, found) < 0)
		add(c, 0x4711);
	end(c, store);
	c = begin(&store);
	ask(c, 0x4711);
	end(c, store);
	return 0;
}
