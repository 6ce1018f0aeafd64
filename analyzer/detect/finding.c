/* finding.c - what detectors share: adding to a finding, and weighing. */
#include "detect/detect.h"

#include <math.h>
#include <string.h>

void finding_claim(
    struct finding *f, uint32_t place, enum rule rule, uint64_t value, uint64_t bytes)
{
	f->bytes += bytes;
	if (f->claim_count < CLAIMS_MAX) {
		f->claims[f->claim_count++] = (struct claim){place, rule, value, bytes};
		return;
	}
	/* Full: the smallest gives way. Its bytes leave the sum, for no row may hold what nobody
	 * claims. */
	uint32_t least = 0;
	for (uint32_t i = 1; i < CLAIMS_MAX; i++)
		if (f->claims[i].bytes < f->claims[least].bytes)
			least = i;
	if (f->claims[least].bytes < bytes) {
		f->bytes -= f->claims[least].bytes;
		f->claims[least] = (struct claim){place, rule, value, bytes};
	} else {
		f->bytes -= bytes;
	}
}

void finding_evidence(struct finding *f, const char *fact, double value, const char *unit)
{
	if (f->evidence_count < EVIDENCE_MAX)
		f->evidence[f->evidence_count++] = (struct evidence){fact, value, unit};
}

double finding_stays(const struct place *p)
{
	double many = p->keep.count >= 16 ? 1 : 0.6 + 0.4 / 12 * (double)(p->keep.count - 4);

	return p->keep.even * many * fmin(1, 0.4 + p->keep.late * 1.8);
}

uint64_t finding_claim_tables(const struct scene *scene, struct finding *f,
    bool (*of)(const struct scene *scene, const struct place *p))
{
	const struct places *places = scene->places;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < places->count; i++) {
		const struct place *p = &places->list[i];

		if (p->index_of == PLACE_NONE || !of(scene, &places->list[p->index_of]))
			continue;
		if (p->index_of != i)
			finding_claim(f, i, RULE_CAP_SIZE, p->size.first, p->grown_bytes);
		bytes += p->size.live_bytes;
		if (i == places->failed && scene->failure && scene->failure->size > p->size.first)
			f->request_bytes = scene->failure->size - p->size.first;
	}
	return bytes;
}

double dominance(double part, double rest)
{
	if (part <= 0)
		return 0;
	return rest <= 0 ? 1 : fmax(0, fmin(1, (log2(part / rest) + 3) / 3));
}

double scene_churn(const struct scene *scene)
{
	const struct model *m = scene->model;
	uint64_t live = scene->model->live_count + scene->model->map_count;

	return m->total_count > live ? 1 - (double)live / (double)m->total_count : 0;
}

bool scene_asks_for(const struct scene *scene, enum role role)
{
	return scene->failure && scene->roles && scene->places->failed != PLACE_NONE &&
	       scene->roles[scene->places->failed] == role;
}

/* Text takes up to four times as much in wide characters, some ten times as objects or numbers; a
 * call of a model that is known as one makes nothing else of it. */
#define FORM_TIMES 32u
#define WIDE_TIMES 8u
/* The square of the input may be anything that compares its parts with each other. */
#define SQUARE_SLOPE 1.4

bool scene_amplifies(const struct scene *scene, uint32_t place)
{
	const struct proportion_found *found = &scene->places->proportion;
	enum role role;
	bool model;

	if (place == PLACE_NONE || found->place != place)
		return false;
	role = scene->roles ? scene->roles[place] : ROLE_NONE;
	model = role == ROLE_MODEL_CALL || role == ROLE_KV_CACHE || role == ROLE_ATTENTION;
	return found->target / found->input >= (model ? WIDE_TIMES : FORM_TIMES) &&
	       role != ROLE_EMBEDDING && (model || found->slope < SQUARE_SLOPE);
}

double scene_share_of(const struct scene *scene, enum role role)
{
	uint64_t bytes = 0, whole = scene->places->live_bytes + scene->places->map_bytes;

	for (uint32_t i = 0; scene->roles && i < scene->places->count; i++)
		if (scene->roles[i] == role)
			bytes += scene->places->list[i].live_bytes;
	return whole ? (double)bytes / (double)whole : 0;
}

/* What a request is made of is no smaller than so. */
#define INPUT_PART 1024u

bool scene_asks_beside_weights(const struct scene *scene)
{
	const struct places *places = scene->places;
	uint64_t size, others = 0;

	if (!scene->space || !scene->failure || places->failed == PLACE_NONE || !scene->roles)
		return false;
	size = scene->failure->size;
	for (uint32_t i = 0; i < places->count; i++)
		if (scene->roles[i] != ROLE_WEIGHTS_LOAD)
			others += places->list[i].live_bytes;
	return !places->list[places->failed].total_count && places->live_bytes &&
	       size > places->live_bytes && others < size / INPUT_PART &&
	       others < places->live_bytes / 2 && !scene_asks_for(scene, ROLE_WEIGHTS_LOAD);
}

bool scene_in_store(const struct scene *scene, const struct place *p)
{
	enum role role = scene->roles ? scene->roles[p - scene->places->list] : ROLE_NONE;

	return role == ROLE_CHECKPOINTER || role == ROLE_CACHE;
}

double scene_worked_since(const struct scene *scene, uint64_t since_ns)
{
	double acquired = 0, released = 0;

	for (uint32_t i = 0; i < scene->places->count; i++) {
		const struct place *p = &scene->places->list[i];

		for (uint32_t k = 0; k < p->step_count; k++) {
			const struct step *s = &p->steps[k];
			double part = 1;

			if (s->last_ns < since_ns)
				continue;
			if (s->time_ns < since_ns)
				part = (double)(s->last_ns - since_ns) /
				       (double)(s->last_ns - s->time_ns);
			acquired += part * (double)s->bytes;
			released += part * (double)s->freed_bytes;
		}
	}
	return acquired > 0 ? released / acquired : 0;
}

#define WORKED_BEFORE_PART 64u

bool scene_worked_before(
    const struct scene *scene, uint64_t since_ns, uint64_t bytes, uint64_t copy)
{
	double released = 0;

	for (uint32_t i = 0; i < scene->places->count; i++) {
		const struct place *p = &scene->places->list[i];

		if (p->owner != OWNER_USER || strcmp(p->function, "<module>") == 0)
			continue;
		for (uint32_t k = 0; k < p->step_count && p->steps[k].last_ns < since_ns; k++)
			released += (double)p->steps[k].freed_bytes;
	}
	return released > (double)bytes / WORKED_BEFORE_PART + (double)copy;
}

/* No more than a few hundred hold it all. */
#define FEW_BLOCKS 512u

bool scene_few_large(const struct scene *scene, const struct place *p)
{
	uint64_t whole = scene->places->live_bytes + scene->places->map_bytes;

	return p->live_count && p->live_bytes / p->live_count >= whole / FEW_BLOCKS / 4;
}

#define TURNS_MIN 4u
#define LINES_MIN 3u

bool scene_in_turns(const struct scene *scene, const struct place *p)
{
	uint32_t lines = 0;

	if (p->live_count < TURNS_MIN || p->freed_count)
		return false;
	for (uint32_t i = 0; i < scene->places->count; i++) {
		const struct place *o = &scene->places->list[i];
		uint64_t from = o->first_ns > p->first_ns ? o->first_ns : p->first_ns;
		uint64_t until = o->last_ns < p->last_ns ? o->last_ns : p->last_ns;

		lines += !o->freed_count && o->live_count + 1 >= p->live_count &&
			 o->live_count <= p->live_count + 1 &&
			 o->live_bytes >= p->live_bytes / 64 && until > from &&
			 until - from >= (p->last_ns - p->first_ns) / 4 * 3;
	}
	return lines >= LINES_MIN;
}

bool scene_sizes_recur(const struct scene *scene, uint32_t place)
{
	uint64_t sizes[SITE_COHORTS];
	bool recur = false;

	for (size_t i = 0; i < scene->model->site_count; i++) {
		uint64_t live, count;
		const struct site *s = model_site(
		    scene->model, scene->model->all[i], scene->places->moment, &live, &count);
		uint32_t distinct = 0, kinds = 0;

		if (s->kind != SITE_HEAP || s->freed_count || !s->used ||
		    places_of_stack(scene->places, SITE_HEAP, s->stack) != place ||
		    live < scene->places->list[place].live_bytes / 4)
			continue;
		for (uint32_t c = 0; c < s->used; c++, kinds++) {
			/* Of several blocks, which then recur as a sequence. */
			uint64_t mean =
			    s->cohorts[c].bytes / (s->cohorts[c].count ? s->cohorts[c].count : 1);
			uint32_t k = 0;

			while (k < distinct && sizes[k] != mean)
				k++;
			if (k == distinct)
				sizes[distinct++] = mean;
		}
		recur |= distinct >= 2 && distinct <= kinds / 3;
	}
	return recur;
}

/* A staged copy is as large as what is kept, or there are two of it. */
#define STAGED_SHARE 0.72

bool scene_is_staged(const struct scene *scene, const struct place *p)
{
	return p->open_call != OPEN_CALL_NO && scene_few_large(scene, p) &&
	       scene_worked_since(scene, p->first_ns) < STAGED_SHARE;
}
