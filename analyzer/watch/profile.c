/* profile.c - see profile.h. */
#include "watch/profile.h"

#include <errno.h>
#include <string.h>

#include "model/space/space.h"

/* True if the bytes of a space are in no other one that is shown. */
static bool stands_alone(const struct spaces *all, const struct space *sp)
{
	switch (sp->kind) {
	case SPACE_CUDA:
	case SPACE_POOL:
		return !spaces_of(all, SPACE_TORCH, sp->device);
	case SPACE_TORCH:
	case SPACE_GRAPH:
	case SPACE_MANAGED:
	case SPACE_PINNED:
		return true;
	case SPACE_FOREIGN:
	case SPACE_VA:
	case SPACE_OTHER:
		break;
	}
	return false;
}

static int give(struct export *x, const char *name, const struct model *m, struct err *err)
{
	const struct export_space s = {.index = export_space_index(x, name),
	    .name = name,
	    .model = m,
	    .moment = AT_END,
	    .at = "the latest look",
	    .time_ns = x->all->run.last_ns};

	return export_space(x, &s, err);
}

static int give_spaces(struct export *x, const char *space, struct err *err)
{
	const struct spaces *all = x->all->spaces;
	const struct space *one;
	int r = 0;

	if (space && strcmp(space, "host")) {
		one = spaces_find(all, space);
		return one ? give(x, one->name, one->model, err)
			   : err_set(err, -ENOENT, "this process has no space of that name");
	}
	r = give(x, "host", x->all, err);
	for (uint32_t i = 0; !space && all && !r && i < all->count; i++)
		if (stands_alone(all, all->list[i]))
			r = give(x, all->list[i]->name, all->list[i]->model, err);
	return r;
}

int profile_write(
    const struct model *m, const char *space, enum export_measure measure, int fd, struct err *err)
{
	const struct exporter *to = export_find("pprof");
	const struct export_options options = {.measure = measure};
	struct export x = {0};
	struct sink sink;
	int r = sink_init(&sink, fd, to->gzip);

	if (r)
		err_set(err, r, "no memory for the profile");
	else
		r = export_begin(&x, to, &options, &sink, NULL, m, err);
	if (!r)
		r = give_spaces(&x, space, err);
	if (!r)
		r = export_end(&x, err);
	export_fini(&x);
	sink_fini(&sink);
	return r;
}
