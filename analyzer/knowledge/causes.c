/* causes.c - the only file that compares the name of a cause. See knowledge.h. */
#include "knowledge/knowledge.h"

#include <string.h>

static const struct {
	const char *name, *what_if;
} causes[] = {
    [CAUSE_UNKNOWN] = {"unknown", NULL},
#define CAUSE(id, name, detect, class, wording, fixes, what_if, claim)                             \
	[CAUSE_##id] = {name, what_if},
#include "knowledge/causes.def"
};

static const struct {
	const char *text;
	enum unit unit;
} facts[] = {
#define FACT(id, text, unit) [FACT_##id] = {text, UNIT_##unit},
#include "knowledge/causes.def"
};

const char *cause_name(enum cause cause)
{
	return causes[cause].name;
}

enum cause cause_by_name(const char *name)
{
	enum cause cause = CAUSE_COUNT;

	while (--cause > CAUSE_UNKNOWN && strcmp(name, causes[cause].name) != 0)
		;
	return cause;
}

const char *cause_what_if(enum cause cause)
{
	return causes[cause].what_if;
}

const char *fact_text(enum fact fact)
{
	return facts[fact].text;
}

enum unit fact_unit(enum fact fact)
{
	return facts[fact].unit;
}

const char *unit_name(enum unit unit)
{
	static const char *const names[] = {"bytes", "blocks", "share", "ns", "1"};

	return names[unit];
}
