/* fleet_page.c - see fleet_page.h. */
#include "cmd/fleet_page.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "cmd/report.h"
#include "fleet/statements.h"
#include "fleet/store.h"
#include "report/html/html.h"
#include "util/progress.h"
#include "util/unfinished.h"

#define REPORTS 20u /* pages of single runs; each takes up to 300 KiB and a second */

/* A report's page, by a process of its own: a trace that crashes it costs this page alone. */
static bool write_report(char *run, const char *path)
{
	int status = 0, null;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		struct traces traces;
		struct err err;

		for (int s = 1; s < 32; s++)
			signal(s, SIG_DFL);
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		if (null >= 0)
			dup2(null, STDERR_FILENO);
		_exit(traces_open(&traces, &run, 1, &err) || report_page(&traces.set, path, &err));
	}
	if (pid > 0)
		unfinished_child(pid);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0)
		unfinished_child_done(pid);
	return pid > 0 && !status;
}

static int write_reports(struct fleet_section *s, const char *folder, struct err *err)
{
	size_t count = s->answer.row_count < REPORTS ? s->answer.row_count : REPORTS;
	struct str path = {0}, name = {0};

	s->links = calloc(s->answer.row_count + 1, sizeof(*s->links));
	progress_begin("writing reports", count);
	for (size_t row = 0; row < count && s->links; row++) {
		const char *run = fleet_word(&s->answer, row, "example");
		char *copy = run ? strdup(run) : NULL;

		str_clear(&name);
		str_clear(&path);
		str_printf(&name, "crash-%zu.html", row + 1);
		str_printf(&path, "%s/%s", folder, str_text(&name));
		if (copy && !path.failed && write_report(copy, path.text))
			s->links[row] = strdup(str_text(&name));
		free(copy);
		progress_step(row + 1);
	}
	progress_end();
	str_free(&name);
	str_free(&path);
	return s->links ? 0 : err_set(err, -ENOMEM, "no memory for the page");
}

static int ask_all(struct fleet_store *store, struct fleet_page *page, struct err *err)
{
	int rc = fleet_ask(store, (const char *)fleet_summary, &page->summary, err);

	for (const struct fleet_question *q = fleet_questions; q->name && !rc; q++) {
		struct fleet_section *s = &page->sections[page->count];

		s->name = q->name;
		s->title = q->sql + strlen("-- ");
		s->chart = !strcmp(q->name, "over_time");
		rc = fleet_ask(store, q->sql, &s->answer, err);
		page->count += !rc;
	}
	return rc;
}

static int write_all(struct fleet_page *page, const char *folder, struct err *err)
{
	struct str text = {0}, path = {0};
	int rc = 0;

	for (size_t i = 0; i < page->count && !rc; i++)
		if (!strcmp(page->sections[i].name, "same_crash"))
			rc = write_reports(&page->sections[i], folder, err);
	if (!rc) {
		fleet_page_html(page, &text);
		str_printf(&path, "%s/index.html", folder);
		rc = output_write(&text, str_text(&path), err);
	}
	str_free(&text);
	str_free(&path);
	return rc;
}

static void sections_free(struct fleet_page *page)
{
	for (size_t i = 0; i < page->count; i++) {
		struct fleet_section *s = &page->sections[i];

		for (size_t row = 0; s->links && row < s->answer.row_count; row++)
			free(s->links[row]);
		free(s->links);
		fleet_answer_free(&s->answer);
	}
	fleet_answer_free(&page->summary);
	free(page->sections);
}

int fleet_page_write(const char *database, const char *folder, struct err *err)
{
	struct fleet_page page = {0};
	struct fleet_store *store;
	size_t questions = 0;
	int rc = fleet_open(database, false, &store, err);

	if (rc)
		return rc;
	while (fleet_questions[questions].name)
		questions++;
	page.sections = calloc(questions + 1, sizeof(*page.sections));
	rc = page.sections ? ask_all(store, &page, err)
			   : err_set(err, -ENOMEM, "no memory for the page");
	fleet_close(store);
	if (!rc && (unfinished_directory(folder) || mkdir(folder, 0777))) {
		rc = err_set(
		    err, -errno, "%s: %s; -o names a folder that is made", folder, strerror(errno));
		unfinished_done(folder);
	} else if (!rc) {
		rc = write_all(&page, folder, err);
		if (rc)
			unfinished_remove(folder);
		else
			unfinished_done(folder);
	}
	sections_free(&page);
	return rc;
}
