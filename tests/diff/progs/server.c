/* server.c - a server of one thread: tables, a bounded cache, sessions that end, a log that keeps
 * its last lines, and requests of random sizes by another seed in each run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "whyoom/mark.h"

/*@top*/
#define TABLES 48
#define CACHE 300
#define SESSIONS 64
#define LINES 500
static char *tables[TABLES], *cache[CACHE], *lines[LINES];
static struct session {
	char *state;
	char *history[16];
	int turns;
} * sessions[SESSIONS];
static struct index {
	long *items;
	size_t count, room;
} seen;
static char *kept[100000];
static size_t kept_count;
static unsigned long chance;

static unsigned any(unsigned below)
{
	chance = chance * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(chance >> 33) % below;
}

static void *filled(void *p, size_t n)
{
	if (!p)
		abort();
	return memset(p, 1, n);
}

static void load_tables(void)
{
	for (int i = 0; i < TABLES; i++)
		tables[i] = filled(malloc(160 << 10), 160 << 10); /*@table*/
	/*@loaded*/
}

/*@swap*/
static void remember(unsigned key)
{
	size_t n = 1024 + any(4096);

	free(cache[key % CACHE]);
	cache[key % CACHE] = filled(malloc(n), n); /*@cache*/
}

static void log_line(const char *what)
{
	static int at;

	free(lines[at % LINES]);
	lines[at++ % LINES] = strdup(what); /*@log*/
}
/*@swapped*/

static void turn(unsigned user)
{
	struct session *s = sessions[user % SESSIONS];

	if (s && s->turns == 16) {
		for (int i = 0; i < 16; i++)
			free(s->history[i]);
		free(s->state);
		free(s);
		s = sessions[user % SESSIONS] = NULL;
	}
	if (!s) {
		s = sessions[user % SESSIONS] = calloc(1, sizeof(*s));
		s->state = filled(malloc(8 << 10), 8 << 10); /*@state*/
	}
	s->history[s->turns++] = filled(malloc(600), 600); /*@history*/
}

static void note_seen(long id)
{
	if (seen.count == seen.room) {
		seen.room = seen.room ? 2 * seen.room : 64;
		seen.items = realloc(seen.items, seen.room * sizeof(*seen.items)); /*@seen*/
	}
	seen.items[seen.count++] = id;
}

static size_t render(size_t n)
{
	char *body = filled(malloc(n), n); /*@body*/
	char *packed = filled(malloc(256 << 10), 256 << 10); /*@packed*/
	size_t sum = strlen(tables[n % TABLES] + 100) + (size_t)body[n / 2] + (size_t)packed[n];

	free(packed);
	free(body);
	return sum;
}

static void handle(int n)
{
	size_t length = 2000 + any(60000);
	char *query = filled(malloc(length), length); /*@query*/
	char line[120];

	snprintf(line, sizeof(line), "request %d of %zu bytes", n, length);
	log_line(line);
	turn(any(1000));
	remember(any(5000));
	note_seen(n);
	render(length);
	/*@handle*/
	free(query);
}

int main(int argc, char **argv)
{
	int requests = argc > 1 ? atoi(argv[1]) : 2000;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	chance = (unsigned long)now.tv_nsec ^ (unsigned long)getpid() << 20;
	load_tables();
	/* Another run of this server gets some more requests, or less. */
	requests += (int)any((unsigned)requests / 10);
	for (int i = 0; i < requests; i++) {
		uint64_t id = whyoom_request_begin("query");

		handle(i);
		whyoom_request_end(id);
	}
	return kept_count == 99999;
}
