/* activity.c - see activity.h. */
#include "explain/claim/activity.h"

#include <stdbool.h>
#include <string.h>

#include "explain/claim/phrase.h"
#include "util/tuned.h"

TUNED(size_t, LINES_BEFORE, 6, "a activity that began further above may be over");
TUNED(size_t, LINES_BEHIND, 3, "what failed says behind the message what it failed to do");
#define LINE_MAX 600u

/* Each row's first phrase that a line has decides; earlier rows are surer. */
static const struct {
	enum activity activity;
	const char *phrase;
} phrases[] = {
    {ACTIVITY_LOAD, "loading model"},
    {ACTIVITY_LOAD, "load model"},
    {ACTIVITY_LOAD, "load_model"},
    {ACTIVITY_LOAD, "loading weights"},
    {ACTIVITY_LOAD, "load_weight"},
    {ACTIVITY_LOAD, "load weights"},
    {ACTIVITY_LOAD, "loading the model"},
    {ACTIVITY_LOAD, "load the model"},
    {ACTIVITY_LOAD, "loading checkpoint"},
    {ACTIVITY_LOAD, "checkpoint shards"},
    {ACTIVITY_LOAD, "from_pretrained"},
    {ACTIVITY_LOAD, "load_checkpoint"},
    {ACTIVITY_LOAD, "model loading"},
    {ACTIVITY_LOAD, "load all models"},
    {ACTIVITY_LOAD, "exception during initialization"},
    {ACTIVITY_LOAD, "load_state_dict"},
    {ACTIVITY_LOAD, "load_autosplit"},
    {ACTIVITY_LOAD, "modelloader"},
    {ACTIVITY_LOAD, "model_loader"},
    {ACTIVITY_LOAD, "loader.load"},
    {ACTIVITY_LOAD, "loadindex"},
    {ACTIVITY_LOAD, "load_index"},
    {ACTIVITY_LOAD, "read_index"},
    {ACTIVITY_LOAD, "loading index"},
    {ACTIVITY_LOAD, "load index"},
    {ACTIVITY_LOAD, "load segment"},
    {ACTIVITY_LOAD, "load collection"},
    {ACTIVITY_LOAD, "loading pipeline"},
    {ACTIVITY_LOAD, "loading checkpoints"},
    {ACTIVITY_START, "warmup"},
    {ACTIVITY_START, "warm-up"},
    {ACTIVITY_START, "warming up"},
    {ACTIVITY_START, "warm_up"},
    {ACTIVITY_START, "capture cuda graph"},
    {ACTIVITY_START, "cuda graph capture"},
    {ACTIVITY_START, "cuda_graph_runner"},
    {ACTIVITY_START, "profile_run"},
    {ACTIVITY_START, "profile run"},
    {ACTIVITY_START, "allocate_kv_cache"},
    {ACTIVITY_START, "init_kv_cache"},
    {ACTIVITY_START, "kv cache for"},
    {ACTIVITY_START, "allocate kv cache"},
    {ACTIVITY_START, "allocating kv cache"},
    {ACTIVITY_START, "kv_cache_init"},
    {ACTIVITY_START, "initialize the context"},
    {ACTIVITY_START, "create context"},
    {ACTIVITY_START, "temporarymemorybuffer"},
    {ACTIVITY_TRAIN, "epoch"},
    {ACTIVITY_TRAIN, "training step"},
    {ACTIVITY_TRAIN, "train_step"},
    {ACTIVITY_TRAIN, "backward"},
    {ACTIVITY_TRAIN, "optimizer"},
    {ACTIVITY_TRAIN, "gradients"},
    {ACTIVITY_TRAIN, "grad_fn"},
    {ACTIVITY_TRAIN, "trainer"},
    {ACTIVITY_SERVE, "prefill"},
    {ACTIVITY_SERVE, "decode"},
    {ACTIVITY_SERVE, "generate"},
    {ACTIVITY_SERVE, "post /"},
    {ACTIVITY_SERVE, "inference request"},
    /* The object that holds the model is made. */
    {ACTIVITY_LOAD, "in __init__"},
};

static enum activity activity_of(const char *line, size_t bytes)
{
	char copy[LINE_MAX + 1];

	if (bytes > LINE_MAX)
		bytes = LINE_MAX;
	for (size_t i = 0; i < bytes; i++)
		copy[i] = line[i] ? line[i] : ' ';
	copy[bytes] = '\0';
	for (size_t i = 0; i < sizeof(phrases) / sizeof(*phrases); i++)
		if (has_phrase(copy, phrases[i].phrase))
			return phrases[i].activity;
	return ACTIVITY_UNKNOWN;
}

enum activity activity_read(const char *text, size_t begin, size_t end, size_t bytes)
{
	enum activity activity = activity_of(text + begin, end - begin);
	size_t at = begin;

	for (size_t line = 0; line < LINES_BEFORE && at > 0 && !activity; line++) {
		size_t stop = at - 1;
		const char *newline = memrchr(text, '\n', stop);
		size_t from = newline ? (size_t)(newline - text) + 1 : 0;

		activity = activity_of(text + from, stop - from);
		at = from;
	}
	at = end;
	for (size_t line = 0; line <= LINES_BEHIND && at < bytes && !activity; line++) {
		const char *newline = memchr(text + at, '\n', bytes - at);
		size_t stop = newline ? (size_t)(newline - text) : bytes;

		activity = activity_of(text + at, stop - at);
		at = stop + 1;
	}
	return activity;
}
