/* prospect.c - see prospect.h. */
#include "verdict/forecast/prospect.h"

#include <math.h>

#include "model/callsite/callsite.h"
#include "model/model.h"
#include "model/space/space.h"
#include "util/num.h"
#include "util/text/fmt.h"
#include "verdict/forecast/growth.h"
#include "verdict/forecast/rooms.h"

/* `of`: the model that is forecast; `limited`: its room is known. */
static int see(struct prospect *p, const char *name, const struct model *of, bool limited,
    const struct room *room, uint64_t warm_up_ns, struct err *err)
{
	struct prospect_space *s = &p->spaces[p->count++];
	struct callsites *all;
	int rc;

	*s = (struct prospect_space){.name = name,
	    .curve = name,
	    .limited = limited,
	    .left = room->left,
	    .live_bytes = of->blocks.bytes + of->maps.bytes};
	forecast_make(NULL, 0, 0, &s->forecast);
	if (!limited || p->now_ns < warm_up_ns)
		return 0;
	rc = callsites_new(of, AT_END, &all, err);
	if (rc)
		return rc;
	growth_forecast(of, all, p->now_ns, room, &s->forecast);
	callsites_free(all);
	return 0;
}

static const char *name_of(const struct spaces *all, const struct model *m)
{
	uint32_t i = 0;

	while (all->list[i]->model != m)
		i++;
	return all->list[i]->name;
}

int prospect_of(const struct model *m, uint64_t warm_up_ns, struct prospect *out, struct err *err)
{
	struct prospect p = {.running = true, .now_ns = m->run.last_ns};
	struct room room = {.left = 0};
	bool limited = rooms_of_host(m, &room);
	int rc = see(&p, "host", m, limited, &room, warm_up_ns, err);

	for (uint32_t i = 0; !rc && m->spaces && i < m->spaces->count; i++) {
		const struct space *sp = m->spaces->list[i];
		struct device_growth of;

		if (sp->kind != SPACE_CUDA || p.count == PROSPECT_SPACES)
			continue;
		room.left = 0;
		limited = rooms_of_device(sp, &room);
		of = growth_of_device(m->spaces, sp, room.left);
		room = (struct room){.left = of.room};
		rc = see(&p, sp->name, of.model, limited, &room, warm_up_ns, err);
		p.spaces[p.count - 1].curve = name_of(m->spaces, of.model);
	}
	if (!rc)
		*out = p;
	return rc;
}

void prospect_rate(double rate, struct str *out)
{
	struct fmt f;

	if (rate >= 100 * 1024)
		str_printf(out, "%s/s", fmt_size(&f, (uint64_t)rate));
	else
		str_printf(out, "%s/h", fmt_size(&f, (uint64_t)(rate * 3600)));
}

static const char *rough(struct fmt *f, double seconds)
{
	return fmt_duration(f, num_ns(seconds));
}

void prospect_when(const struct forecast *f, struct str *out)
{
	struct fmt a, b, c;

	if (f->state == FORECAST_STEADY)
		str_puts(out, "does not grow");
	if (f->state != FORECAST_GROWS)
		return;
	str_printf(out, "full in %s", rough(&a, f->seconds));
	if (isinf(f->latest))
		str_printf(out, " (%s at the soonest)", rough(&b, f->soonest));
	else if (strcmp(rough(&b, f->soonest), rough(&c, f->latest)) != 0)
		str_printf(out, " (%s to %s)", b.text, c.text);
}
