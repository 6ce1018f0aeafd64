/* moment.c - see moment.h. */
#include "cmd/common/moment.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "util/num.h"
#include "util/text/str.h"
#include "verdict/subject.h"
#include "verdict/verdict.h"

bool moment_parse(const char *text, struct moment_request *out)
{
	char *end;

	out->at = NULL;
	out->seconds = 0;
	if (!strcmp(text, "failure") || !strcmp(text, "peak") || !strcmp(text, "end")) {
		out->at = text;
		return true;
	}
	errno = 0;
	out->seconds = strtod(text, &end) + 1e-12; /* apart from "not given" */
	if (end != text && *end == 's')
		end++;
	return !errno && end != text && !*end && isfinite(out->seconds) && out->seconds > 0 &&
	       out->seconds <= 1e9;
}

int moment_process(const struct trace_set *set, uint64_t pid, struct trace **out, struct err *err)
{
	struct verdict_result result;
	int rc;

	for (size_t i = set->count; pid && i-- > 0;) {
		if (trace_facts(set->images[i])->pid == pid) {
			*out = set->images[i];
			return 0;
		}
	}
	if (pid)
		return err_set(
		    err, -ENOENT, "no process %llu in this trace", (unsigned long long)pid);
	if (set->count == 1) {
		*out = set->images[0];
		return 0;
	}
	rc = verdict_of_set(set, NULL, &result, err);
	if (rc)
		return rc;
	*out = result.trace;
	verdict_fini(&result);
	return 0;
}

/* The failure that matters: one that nobody recovered from, else the latest. */
static const struct device_failure *failure_of(const struct spaces *s)
{
	const struct device_failure *f = spaces_failure(s);

	if (!f && s && s->failure_count)
		f = &s->failures[s->failure_count - 1];
	return f;
}

/* Is it a failure of that space, or of one above or below it? */
static bool concerns(const struct spaces *s, const struct device_failure *f, const struct space *sp)
{
	const struct space *of = s->list[f->space];

	return of == sp || f->below == sp->index ||
	       (sp->device == of->device && sp->kind <= SPACE_TORCH && sp->kind != SPACE_OTHER &&
		   of->kind <= SPACE_TORCH && of->kind != SPACE_OTHER);
}

const struct space *moment_default_space(const struct model *m)
{
	const struct spaces *s = m->spaces;
	const struct device_failure *f = failure_of(s);
	const struct space *best = NULL;

	if (f && (!model_failure(m) || !f->retried))
		return s->list[f->space];
	if (model_failure(m))
		return NULL;
	for (uint32_t i = 0; s && i < s->count; i++) {
		const struct space *sp = s->list[i];

		if (sp->kind != SPACE_TORCH && sp->kind != SPACE_CUDA)
			continue;
		if (!best || (sp->kind == SPACE_TORCH) > (best->kind == SPACE_TORCH) ||
		    (sp->kind == best->kind && sp->model->peak.bytes > best->model->peak.bytes))
			best = sp;
	}
	return best;
}

static int named_space(
    const struct model *m, const char *name, const struct space **out, struct err *err)
{
	struct str known = {0};
	int rc;

	*out = NULL;
	if (strcmp(name, "host") == 0 || (*out = spaces_find(m->spaces, name)))
		return 0;
	str_puts(&known, "host");
	for (uint32_t i = 0; m->spaces && i < m->spaces->count; i++)
		str_printf(&known, ", %s", m->spaces->list[i]->name);
	rc = err_set(err, -ENOENT, "no space '%.40s' in this trace; there is %.200s", name,
	    str_text(&known));
	str_free(&known);
	return rc;
}

static int choose(const struct model *m, const struct space *sp,
    const struct moment_request *request, struct moment_view *out, struct err *err)
{
	const struct device_failure *f = sp ? failure_of(m->spaces) : NULL;
	bool failed;

	out->others = out->until_ns = UINT64_MAX;
	if (f && !concerns(m->spaces, f, sp))
		f = NULL;
	failed = sp ? f != NULL : m->refusals.count > 0;
	if (request->seconds > 0) {
		snprintf(out->name, sizeof(out->name), "%gs", request->seconds);
		out->until_ns = num_ns(request->seconds);
		out->time_ns = out->until_ns < m->run.last_ns ? out->until_ns : m->run.last_ns;
		return 0;
	}
	out->at = request->at					       ? request->at
		  : (sp ? f && !f->retried : model_failure(m) != NULL) ? "failure"
								       : "peak";
	out->time_ns = m->run.last_ns;
	if (strcmp(out->at, "failure") == 0) {
		if (!failed)
			return err_set(err, -ENOENT,
			    "no request failed in %s of this trace: use --at peak",
			    sp ? sp->name : "host");
		out->failed = true;
		if (sp) {
			out->failure = *f;
			out->request = f->size;
			out->time_ns = f->time_ns;
			out->others = f->event;
		} else {
			const struct failure *h = &m->refusals.list[m->refusals.count - 1];

			out->request = h->size;
			out->time_ns = out->until_ns = h->time_ns;
		}
	} else if (strcmp(out->at, "peak") == 0) {
		if (sp)
			out->others = sp->peak_event;
		else
			out->until_ns = m->peak.time_ns;
		out->time_ns = sp ? sp->model->peak.time_ns : m->peak.time_ns;
	}
	return 0;
}

static int find_point(const struct model *all, const struct moment_request *request,
    const struct space **sp, struct moment_view *out, struct err *err)
{
	int rc = 0;

	memset(out, 0, sizeof(*out));
	*sp = NULL;
	if (request->space)
		rc = named_space(all, request->space, sp, err);
	else
		*sp = moment_default_space(all);
	return rc ? rc : choose(all, *sp, request, out, err);
}

int moment_point(const struct model *all, const struct moment_request *request,
    struct moment_view *out, struct err *err)
{
	const struct space *sp;

	return find_point(all, request, &sp, out, err);
}

int moment_of(struct trace *t, const struct model *all, const struct moment_request *request,
    struct moment_view *out, struct err *err)
{
	const struct space *sp;
	int rc = find_point(all, request, &sp, out, err);

	out->trace = t;
	if (!rc)
		rc = feed_until_model(
		    feed_of_trace(t), out->others, out->until_ns, &out->model, err);
	if (!rc && sp) {
		out->space = spaces_find(out->model->spaces, sp->name);
		if (!out->space)
			rc = err_set(err, -ENOENT, "%s had no memory yet at that moment", sp->name);
	}
	if (rc)
		moment_fini(out);
	return rc;
}

int moment_find(const struct trace_set *set, const struct moment_request *request,
    struct moment_view *out, struct err *err)
{
	struct model *all = NULL;
	struct trace *t;
	int rc = moment_process(set, request->pid, &t, err);

	memset(out, 0, sizeof(*out));
	if (!rc)
		rc = subject_model(feed_of_trace(t), &all, err);
	if (!rc)
		rc = moment_of(t, all, request, out, err);
	model_free(all);
	return rc;
}

void moment_fini(struct moment_view *view)
{
	model_free(view->model);
	view->model = NULL;
}

/* The host's moments are kept in its model; only a time in seconds needs another. */
static int host_at(struct trace *t, struct model *all, const struct moment_request *request,
    struct space_at *out, struct err *err)
{
	const char *at = request->at;

	out->model = all;
	out->moment = AT_END;
	out->time_ns = all->run.last_ns;
	if (request->seconds > 0) {
		snprintf(out->view.name, sizeof(out->view.name), "%gs", request->seconds);
		out->at = out->view.name;
		out->time_ns = num_ns(request->seconds);
		return feed_until_model(
		    feed_of_trace(t), UINT64_MAX, out->time_ns, &out->view.model, err);
	}
	out->at = at ? at : model_failure(all) ? "failure" : "peak";
	if (strcmp(out->at, "failure") == 0) {
		if (!all->refusals.count)
			return err_set(
			    err, -ENOENT, "no request failed in this trace: use --at peak");
		out->moment = AT_FAILURE;
		out->time_ns = all->refusals.list[all->refusals.count - 1].time_ns;
	} else if (strcmp(out->at, "peak") == 0) {
		out->moment = AT_PEAK;
		out->time_ns = all->peak.time_ns;
	}
	return 0;
}

int moment_space(struct trace *t, struct model *all, const struct moment_request *request,
    struct space_at *out, struct err *err)
{
	int rc;

	memset(out, 0, sizeof(*out));
	if (!request->space || strcmp(request->space, "host") == 0) {
		rc = host_at(t, all, request, out, err);
		if (!rc && out->view.model)
			out->model = out->view.model;
		return rc;
	}
	rc = moment_of(t, all, request, &out->view, err);
	if (rc)
		return rc;
	out->model = out->view.space->model;
	out->moment = AT_END;
	out->at = out->view.name[0] ? out->view.name : out->view.at;
	out->time_ns = out->view.time_ns;
	return 0;
}
