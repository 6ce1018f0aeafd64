/* model_stacks.c - by which stack and kind a site of the model is found; see model.h. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/heap/maps.h"

void model_sites_close(struct model *m)
{
	for (int k = 0; k < SITE_KINDS; k++) {
		for (uint32_t i = 0; m->pages[k] && i < m->limits[k] / SITE_PAGE; i++)
			free(m->pages[k][i]);
		free(m->pages[k]);
		m->pages[k] = NULL;
	}
}

static int grow_table(struct model *m, uint32_t stack, enum site_kind kind)
{
	uint64_t limit = m->limits[kind] ? m->limits[kind] : SITE_PAGE;
	uint32_t had = m->limits[kind] / SITE_PAGE;
	struct site_page **grown;

	while (limit <= stack)
		limit *= 2;
	grown = realloc(m->pages[kind], limit / SITE_PAGE * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + had, 0, (limit / SITE_PAGE - had) * sizeof(struct site_page *));
	m->pages[kind] = grown;
	m->limits[kind] = (uint32_t)limit;
	return 0;
}

struct site *model_site_at(const struct model *m, uint32_t stack, enum site_kind kind)
{
	if (stack < m->limits[kind] && m->pages[kind])
		return model_site_open(m, stack, kind);
	for (size_t i = 0; i < m->site_count && stack < m->limits[kind]; i++) {
		struct site *s = model_site_number(m, i);

		if (s->stack == stack && s->kind == kind)
			return s;
	}
	return NULL;
}

int model_site_of(struct model *m, uint32_t stack, enum site_kind kind, struct site **out)
{
	struct site_page **page;
	uint32_t *slot;

	stack = model_stack_of(stack);
	if (stack >= m->limits[kind]) {
		int rc = grow_table(m, stack, kind);
		if (rc)
			return rc;
	}
	assert(m->pages[kind]);
	page = &m->pages[kind][stack / SITE_PAGE];
	if (!*page)
		*page = calloc(1, sizeof(**page));
	if (!*page)
		return -ENOMEM;
	slot = &(*page)->sites[stack % SITE_PAGE];
	if (!*slot) {
		if (m->site_count == m->batches.count * SITE_BATCH) {
			struct site *batch;

			if (vec_reserve(&m->batches, m->batches.count + 1) ||
			    !(batch = malloc(SITE_BATCH * sizeof(*batch))))
				return -ENOMEM;
			m->batches.items[m->batches.count++] = batch;
		}
		site_init(model_site_number(m, m->site_count), stack, kind);
		*slot = (uint32_t)++m->site_count;
	}
	*out = model_site_number(m, *slot - 1);
	return 0;
}
