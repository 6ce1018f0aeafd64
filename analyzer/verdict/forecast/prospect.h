/*
 * prospect.h - of a process that still runs: what is left of each space's limit, whether it grows,
 * and when what is left will be used up.
 */
#ifndef ANALYZER_VERDICT_PROSPECT_H
#define ANALYZER_VERDICT_PROSPECT_H

#include "util/text/err.h"
#include "util/text/str.h"
#include "verdict/forecast/forecast.h"

#define PROSPECT_SPACES 17u /* the host and each device */
#define PROSPECT_WARM_UP_NS 60000000000u /* nothing is forecast of a younger process */

struct model;
struct prospect_space {
	const char *name; /* "host", "cuda:0"; the model's */
	const char *curve; /* the space whose live bytes these are: "torch:0" */
	bool limited; /* a limit is known: */
	uint64_t left; /* of the limit that is reached first, for what the forecast is of */
	uint64_t live_bytes; /* of what the forecast is of: of blocks and mappings, or of PyTorch */
	struct forecast forecast; /* FORECAST_UNKNOWN without a limit, or in the warm-up */
};

struct prospect {
	bool running; /* else the rest is nothing */
	uint64_t now_ns; /* the latest event, since the start */
	struct prospect_space spaces[PROSPECT_SPACES];
	size_t count;
};

/* Look ahead from the end of a model. 0; negative errno with err. */
int prospect_of(const struct model *m, uint64_t warm_up_ns, struct prospect *out, struct err *err);

/* Append "full in 8 min (7 min to 9 min)"; of a steady space "does not grow"; nothing while it is
 * not known. */
void prospect_when(const struct forecast *f, struct str *out);
/* Append a rate: "2.61 MiB/s", or per hour where little comes each second. */
void prospect_rate(double rate, struct str *out);

#endif
