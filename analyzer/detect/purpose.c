#include "detect/purpose.h"

#include <ctype.h>
#include <string.h>

#include "util/text/str.h"
#include "util/tuned.h"

TUNED(size_t, CALLERS, 3u, "further out, names tell of the whole server");

/* Words for data that is read in before the first request. "model" and "embedding" are left out:
 * each request calls them, too. */
static const char *const weights[] = {"checkpoint", "layer", "load", "matrices", "matrix",
    "parameter", "param", "shard", "tensor", "vectors", "vocab", "vocabulary", "weight"};
static const char *const room[] = {"arena", "batch", "buffer", "cache", "capacity", "context",
    "graph", "kv", "lane", "pool", "prealloc", "preallocate", "reserve", "ring", "scratch", "slot",
    "window", "workspace"};

/* A model's buffer is no room for work. */
static const char *const models[] = {"model"};

/* Words come in lower case; a plural counts as the word. */
static bool is_one_of(const char *word, size_t length, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t n = strlen(list[i]);

		if (length >= n && !strncmp(word, list[i], n) &&
		    (length == n || (length == n + 1 && word[n] == 's') ||
			(length == n + 2 && !strncmp(word + n, "es", 2))))
			return true;
	}
	return false;
}

enum purpose purpose_of_name(const char *function)
{
	bool of_weights = false, of_room = false, of_model = false;
	char word[32];
	size_t length = 0;

	for (const char *p = function;; p++) {
		bool begins =
		    isupper((unsigned char)*p) && p > function && islower((unsigned char)p[-1]);

		if (!isalpha((unsigned char)*p) || begins) {
			of_weights |=
			    is_one_of(word, length, weights, sizeof(weights) / sizeof(*weights));
			of_room |= is_one_of(word, length, room, sizeof(room) / sizeof(*room));
			of_model |= is_one_of(word, length, models, 1);
			length = 0;
		}
		/* Parameters of C++ tell of types. */
		if (!*p || *p == '(')
			break;
		if (isalpha((unsigned char)*p) && length < sizeof(word))
			word[length++] = (char)tolower((unsigned char)*p);
	}
	of_room &= !of_model;
	return of_weights == of_room ? PURPOSE_UNTOLD : of_room ? PURPOSE_ROOM : PURPOSE_WEIGHTS;
}

enum purpose purpose_of(const struct scene *scene, uint32_t callsite)
{
	const struct callsite *p = &scene->callsites->list[callsite];
	const struct feed *feed = &scene->model->feed;
	const struct symbol *symbols;
	size_t count = p->stack ? feed->symbols(feed->self, p->stack, &symbols) : 0, asked = 0;
	enum purpose purpose = p->function ? purpose_of_name(p->function) : PURPOSE_UNTOLD;

	/* Outermost first: go out from the blamed function. */
	while (count && !str_same(symbols[count - 1].function, p->function))
		count--;
	while (purpose == PURPOSE_UNTOLD && count-- > 1 && asked++ < CALLERS)
		if (symbols[count - 1].function)
			purpose = purpose_of_name(symbols[count - 1].function);
	return purpose;
}

bool purpose_is_start(const struct scene *scene)
{
	const struct callsites *callsites = scene->callsites;
	const struct failure *refused = scene->end.refused;

	return refused && !scene_asks_for_thread(scene) && callsites->failed != CALLSITE_NONE &&
	       refused->size > scene_live(scene) &&
	       callsites->list[callsites->failed].facts.largest < refused->size / 4 &&
	       !scene_worked_before(scene, callsites->moment_ns, refused->size, 0);
}
