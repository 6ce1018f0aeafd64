/* engine_words.c - see engine_words.h. */
#include "watch/engine/engine_words.h"

#include <math.h>
#include <stddef.h>

#include "util/text/fmt.h"

static void add_count(struct str *out, const char *before, double count, const char *after)
{
	struct fmt f;

	if (!isnan(count))
		str_printf(
		    out, "%s%s%s", before, fmt_count(&f, (uint64_t)fmin(count, 1e15)), after);
}

void engine_line(const struct engine *e, struct str *out)
{
	const struct kv_pool *p = &e->pool;
	struct fmt f;

	str_printf(out, "%s at ", e->answered ? p->kind : "engine");
	str_safe(out, e->url);
	if (!e->answered) {
		str_puts(out, ": ");
		str_safe(out, e->problem ? e->problem : "no answer yet");
		return;
	}
	if (*p->model) {
		str_puts(out, ", ");
		str_safe(out, p->model);
	}
	if (isnan(p->usage))
		str_puts(out, ": does not say how full its pool is");
	else
		str_printf(out, ": pool %.0f %% full", p->usage * 100);
	if (!isnan(p->tokens))
		str_printf(out, " of %s tokens", fmt_count(&f, (uint64_t)fmin(p->tokens, 1e15)));
	add_count(out, ", ", p->running, " run");
	add_count(out, ", ", p->waiting, " wait");
	add_count(out, ", ", p->preemptions, " preempted so far");
	if (e->pressure > 0)
		str_puts(out, "; the pool is too small for them");
}

void engine_lines(const struct engines *e, struct str *out)
{
	size_t count;
	const struct engine *list = engines_list(e, &count);

	for (size_t i = 0; i < count; i++) {
		engine_line(&list[i], out);
		str_putc(out, '\n');
	}
}

/* NaN: not published. */
static const struct family {
	const char *name, *type, *help;
	size_t offset; /* of the double in struct engine */
} families[] = {
    {"whyoom_kv_cache_usage_ratio", "gauge", "Part of the engine's pool that is in use.",
	offsetof(struct engine, pool.usage)},
    {"whyoom_kv_cache_capacity_tokens", "gauge", "Tokens that the engine's pool can hold.",
	offsetof(struct engine, pool.tokens)},
    {"whyoom_kv_cache_preemptions_total", "counter",
	"Requests that gave up their place in the pool, as the engine counts them.",
	offsetof(struct engine, pool.preemptions)},
    {"whyoom_kv_cache_pressure", "gauge",
	"1: the pool is nearly full and requests wait, or one lost its place in the last minute; "
	"NaN: the engine does not tell.",
	offsetof(struct engine, pressure)},
    {"whyoom_engine_requests_running", "gauge", "Requests that the engine works on.",
	offsetof(struct engine, pool.running)},
    {"whyoom_engine_requests_waiting", "gauge", "Requests that wait in the engine's queue.",
	offsetof(struct engine, pool.waiting)},
};

static void add_sample(const char *name, const struct engine *e, const struct metrics_label *labels,
    size_t label_count, double value, struct str *out)
{
	str_printf(out, "%s{", name);
	metrics_add_label(out, "engine", e->url);
	for (size_t i = 0; i < label_count; i++)
		metrics_add_label(out, labels[i].key, labels[i].value);
	if (isnan(value))
		str_puts(out, "} NaN\n");
	else
		str_printf(out, "} %.17g\n", value);
}

static void add_head(struct str *out, const char *name, const char *type, const char *help)
{
	str_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void engine_metrics(const struct engine *engines, size_t count, const struct metrics_label *labels,
    size_t label_count, struct str *out)
{
	if (!count)
		return;
	add_head(out, "whyoom_engine_up", "gauge", "Whether the engine answered of late.");
	for (size_t i = 0; i < count; i++)
		add_sample(
		    "whyoom_engine_up", &engines[i], labels, label_count, engines[i].answered, out);
	add_head(out, "whyoom_engine_info", "gauge", "What the engine is; join by engine.");
	for (size_t i = 0; i < count; i++)
		if (engines[i].answered) {
			str_puts(out, "whyoom_engine_info{");
			metrics_add_label(out, "engine", engines[i].url);
			for (size_t k = 0; k < label_count; k++)
				metrics_add_label(out, labels[k].key, labels[k].value);
			metrics_add_label(out, "kind", engines[i].pool.kind);
			metrics_add_label(out, "model", engines[i].pool.model);
			str_puts(out, "} 1\n");
		}
	for (size_t f = 0; f < sizeof(families) / sizeof(*families); f++) {
		add_head(out, families[f].name, families[f].type, families[f].help);
		for (size_t i = 0; i < count; i++) {
			const void *at = (const char *)&engines[i] + families[f].offset;
			double value = *(const double *)at;

			/* What is not published is absent; but the pressure is asked for. */
			if (engines[i].answered && (!isnan(value) || at == &engines[i].pressure))
				add_sample(
				    families[f].name, &engines[i], labels, label_count, value, out);
		}
	}
}
