/* kv_pool.c - see kv_pool.h. The names are those of the engines' sources, old and new. */
#include "watch/engine/kv_pool.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/tuned.h"
#include "watch/engine/exposition.h"

TUNED(double, NEARLY_FULL, 0.95,
    "of the pool: a request of average length no longer fits into a pool of twenty of them");

enum figure { USAGE, TOKENS, RUNNING, WAITING, PREEMPTIONS, PREEMPTED, FIGURES };

static const struct name {
	const char *kind;
	enum figure figure;
	const char *name; /* as normal() makes it; of one figure, the better one first */
} names[] = {
    /* vllm/v1/metrics/loggers.py; before 0.9: vllm/engine/metrics.py */
    {"vllm", USAGE, "vllm_kv_cache_usage_perc"},
    {"vllm", USAGE, "vllm_gpu_cache_usage_perc"},
    {"vllm", RUNNING, "vllm_num_requests_running"},
    {"vllm", WAITING, "vllm_num_requests_waiting"},
    {"vllm", PREEMPTIONS, "vllm_num_preemptions_total"},
    {"vllm", PREEMPTIONS, "vllm_num_preemptions"},
    /* python/sglang/srt/metrics/collector.py; the counter is newer than the gauge */
    {"sglang", USAGE, "sglang_token_usage"},
    {"sglang", TOKENS, "sglang_max_total_num_tokens"},
    {"sglang", RUNNING, "sglang_num_running_reqs"},
    {"sglang", WAITING, "sglang_num_queue_reqs"},
    {"sglang", PREEMPTIONS, "sglang_num_retracted_requests_total"},
    {"sglang", PREEMPTIONS, "sglang_num_retracted_reqs_total"},
    {"sglang", PREEMPTED, "sglang_num_retracted_reqs"},
    /* router/src/infer; it publishes neither the pool's size nor its use */
    {"tgi", RUNNING, "tgi_batch_current_size"},
    {"tgi", WAITING, "tgi_queue_size"},
    /* tools/server/server.cpp; newer ones have no usage */
    {"llama.cpp", USAGE, "llamacpp_kv_cache_usage_ratio"},
    {"llama.cpp", RUNNING, "llamacpp_requests_processing"},
    {"llama.cpp", WAITING, "llamacpp_requests_deferred"},
};
#define NAMES (sizeof(names) / sizeof(*names))

/* Servers of Ray write ray_vllm_x for vllm:x, newer ones of SGLang sglang_x. */
static void normal(const struct exposition_text *name, char out[64])
{
	static const char ray[] = "ray_";
	size_t skip =
	    name->length > strlen(ray) && !memcmp(name->at, ray, strlen(ray)) ? strlen(ray) : 0;
	size_t n = name->length - skip;

	*out = '\0';
	if (n >= 64)
		return;
	for (size_t i = 0; i < n; i++)
		out[i] = name->at[skip + i] == ':' ? '_' : name->at[skip + i];
	out[n] = '\0';
}

/* What is found of a figure, and under which name. */
struct found {
	size_t name; /* NAMES: nothing */
	double value;
};

/* All ranks of a parallel model say the same of one pool: the first speaks for them. */
static bool is_other_rank(const struct exposition_sample *s)
{
	static const char *const ranks[] = {"tp_rank", "pp_rank", "moe_ep_rank"};
	char rank[16];

	for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++)
		if (exposition_label(s, ranks[i], rank, sizeof(rank)) && strcmp(rank, "0") != 0)
			return true;
	return false;
}

static void see_model(const struct exposition_sample *s, struct kv_pool *out, bool *several)
{
	char model[KV_POOL_MODEL];

	if (*several ||
	    (!exposition_label(s, "model_name", model, sizeof(model)) &&
		!exposition_label(s, "name", model, sizeof(model))) ||
	    !*model)
		return;
	*several = *out->model && strcmp(model, out->model) != 0;
	strcpy(out->model, *several ? "" : model);
}

static void see(struct found found[FIGURES], size_t name, double value)
{
	struct found *f = &found[names[name].figure];

	if (isnan(value) || value < 0 || name > f->name)
		return;
	if (name < f->name)
		*f = (struct found){name, value};
	else if (names[name].figure == USAGE)
		f->value = fmax(f->value, value);
	else
		f->value += value;
}

/* vLLM says how many blocks its pool has in labels. */
static double tokens_of(const struct exposition_sample *s)
{
	char blocks[24], size[24], *end;
	double count, each;

	if (!exposition_label(s, "num_gpu_blocks", blocks, sizeof(blocks)) ||
	    !exposition_label(s, "block_size", size, sizeof(size)))
		return NAN;
	count = strtod(blocks, &end);
	if (!*blocks || *end)
		return NAN; /* "None" */
	each = strtod(size, &end);
	return !*size || *end || !(count > 0) || !(each > 0) ? NAN : count * each;
}

int kv_pool_read(const char *page, size_t length, struct kv_pool *out, struct err *err)
{
	struct exposition e = {.rest = page, .left = length};
	struct found found[FIGURES];
	struct exposition_sample s;
	bool several = false;
	char name[64];

	*out = (struct kv_pool){.tokens = NAN};
	for (size_t i = 0; i < FIGURES; i++)
		found[i] = (struct found){NAMES, NAN};
	while (exposition_next(&e, &s)) {
		normal(&s.name, name);
		if (!strcmp(name, "vllm_cache_config_info")) {
			double tokens = tokens_of(&s);

			if (!isnan(tokens))
				out->tokens = (isnan(out->tokens) ? 0 : out->tokens) + tokens;
		}
		for (size_t i = 0; i < NAMES; i++)
			if (!strcmp(name, names[i].name) && !is_other_rank(&s)) {
				out->kind = names[i].kind;
				see_model(&s, out, &several);
				see(found, i, s.value);
			}
	}
	if (!out->kind)
		return err_set(err, -ENODATA,
		    e.samples ? "no metrics of vLLM, SGLang, TGI or llama.cpp's server"
			      : "no page of metrics");
	out->usage = fmin(found[USAGE].value, 1); /* fmin() takes NaN for missing: */
	if (isnan(found[USAGE].value))
		out->usage = NAN;
	if (!isnan(found[TOKENS].value))
		out->tokens = found[TOKENS].value;
	out->running = found[RUNNING].value;
	out->waiting = found[WAITING].value;
	out->preemptions = found[PREEMPTIONS].value;
	out->preempted = found[PREEMPTED].value;
	return 0;
}

double kv_pool_preempted_between(const struct kv_pool *before, const struct kv_pool *now)
{
	if (isnan(now->preemptions) || isnan(before->preemptions))
		return now->preempted;
	return now->preemptions < before->preemptions ? now->preemptions
						      : now->preemptions - before->preemptions;
}

double kv_pool_pressure(const struct kv_pool *now)
{
	if (now->preempted > 0)
		return 1;
	/* A full pool alone is normal: old blocks stay in it, and serve equal prompts again. */
	if (isnan(now->usage) || isnan(now->waiting))
		return NAN;
	return now->usage >= NEARLY_FULL && now->waiting > 0;
}
