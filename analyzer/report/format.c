/* format.c - see format.h. */
#include "report/format.h"

#include <string.h>

static const struct format *const formats[] = {
#define FORMAT(name) &format_##name,
#include "report/formats.def"
#undef FORMAT
};
#define FORMATS (sizeof(formats) / sizeof(*formats))

static bool writes(const struct format *f, enum format_result result)
{
	switch (result) {
	case FORMAT_OF_NOTHING:
		break;
#define RESULT(member, type)                                                                       \
	case FORMAT_OF_##member:                                                                   \
		return f->member != NULL;
		FORMAT_RESULTS(RESULT)
#undef RESULT
	}
	return false;
}

const struct format *format_find(enum format_result result, const char *name)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (!strcmp(formats[i]->name, name) && writes(formats[i], result))
			return formats[i];
	return NULL;
}

void format_names(enum format_result result, const char *between, struct str *out)
{
	const char *before = "";

	for (size_t i = 0; i < FORMATS; i++)
		if (writes(formats[i], result)) {
			str_printf(out, "%s%s", before, formats[i]->name);
			before = between;
		}
}
