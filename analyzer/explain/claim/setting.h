/*
 * setting.h - finds the settings that a message itself says to change: "try increasing
 * --mem-fraction-static", "you need to decrease `max_batch_size`", "query.max-memory exceeded".
 *
 * A setting is a name that no prose has (--option, snake_case, dotted.name, camelCase, -Xmx), with
 * a word of memory or of amounts in it, beside a word that says what to do with it.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_SETTING_H
#define ANALYZER_EXPLAIN_CLAIM_SETTING_H

#include <stddef.h>

enum setting_change {
	SETTING_RAISE,
	SETTING_LOWER,
	SETTING_CHANGE, /* the message does not say in which direction */
	SETTING_CHANGES,
};

struct setting {
	enum setting_change change;
	const char *name; /* in the text, not terminated */
	size_t bytes;
};
#define SETTINGS_MAX 4u

/* Write at most SETTINGS_MAX settings, each once, in the order of the text; returns how many. */
size_t settings_read(const char *text, size_t bytes, struct setting *out);

/* What a setting bounds, by the words of its name. */
enum setting_of {
	SETTING_OF_UNKNOWN,
	SETTING_OF_SHARE, /* of the device that is taken at the start */
	SETTING_OF_LENGTH, /* of the context, or the cache for it */
	SETTING_OF_BATCH,
	SETTING_OF_WORKERS, /* requests, threads, processes at once */
	SETTING_OF_LIMIT,
};
enum setting_of setting_of(const char *name, size_t bytes);

#endif
