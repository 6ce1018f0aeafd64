/*
 * format.h - the formats that a command can write its result in. A format is a row in formats.def
 * and a file that defines its `struct format`. It writes the results that it has a function for,
 * and `--format` offers it to those commands alone.
 */
#ifndef ANALYZER_REPORT_FORMAT_H
#define ANALYZER_REPORT_FORMAT_H

#include "diff/diff.h"
#include "reduce/reduce.h"
#include "replay/replay.h"
#include "report/attached.h"
#include "report/check.h"
#include "report/diagnosis.h"
#include "report/flame.h"
#include "report/fleet.h"
#include "report/map.h"
#include "report/report.h"
#include "report/what_if.h"

struct reduce_view {
	const struct reduce_result *result;
	const char *path; /* the small trace */
	const char *program; /* NULL: none was written */
};

struct diff_view {
	const struct diff_result *result;
	uint32_t limit; /* at most this many lines of a space; 0: all */
};

/* The results: RESULT(name, type). */
#define FORMAT_RESULTS(RESULT)                                                                     \
	RESULT(report, struct report_view)                                                         \
	RESULT(sites, struct sites_view)                                                           \
	RESULT(flame, struct flame_view)                                                           \
	RESULT(map, struct map_view)                                                               \
	RESULT(what_if, struct what_if_view)                                                       \
	RESULT(replay, struct replay_result)                                                       \
	RESULT(reduce, struct reduce_view)                                                         \
	RESULT(explain, struct explanation)                                                        \
	RESULT(check, struct check_view)                                                           \
	RESULT(doctor, struct diagnosis)                                                           \
	RESULT(diff, struct diff_view)                                                             \
	RESULT(fleet, struct fleet_answer)                                                         \
	RESULT(attach, struct attached_view)

enum format_result {
	FORMAT_OF_NOTHING, /* the command has no --format */
#define RESULT(name, type) FORMAT_OF_##name,
	FORMAT_RESULTS(RESULT)
#undef RESULT
};

/* Each appends the result to a str; out of memory shows as its `failed`. The style says what a
 * terminal can show; formats for programs ignore it. NULL: the format cannot write that result. */
struct format {
	const char *name;
	bool pictures; /* a report needs the data of pictures: report_view.page */
#define RESULT(member, type)                                                                       \
	void (*member)(const type *result, const struct report_style *style, struct str *out);
	FORMAT_RESULTS(RESULT)
#undef RESULT
};

/* Text is for a person, JSON an object of schemas/NAME-schema.json. */
#define RESULT(name, type)                                                                         \
	void name##_text(const type *result, const struct report_style *style, struct str *out);   \
	void name##_json(const type *result, const struct report_style *style, struct str *out);
FORMAT_RESULTS(RESULT)
#undef RESULT

#define FORMAT(name) extern const struct format format_##name;
#include "report/formats.def"
#undef FORMAT

/* Return the format of that name if it can write the result, else NULL. */
const struct format *format_find(enum format_result result, const char *name);
/* Append the names of the formats that can write the result, with `between` between them. */
void format_names(enum format_result result, const char *between, struct str *out);

#endif
