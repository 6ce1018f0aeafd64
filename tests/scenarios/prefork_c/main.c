/* A prefork server: a parent hands jobs to its workers by pipe, one worker for each group of
   tenants. A worker that dies is started again once. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 3, JOBS = 40000 };

struct job {
	int id, tenant;
	size_t length;
	char *body;
	float *scratch;
};

struct wire {
	int id, tenant;
	unsigned length, deadline;
};

struct worker {
	pid_t pid;
	int to, restarts;
};

static struct worker workers[WORKERS];

static struct job *job_open(const struct wire *w)
{
	struct job *job = malloc(sizeof *job);
	if (!job)
		return NULL;
	*job = (struct job){w->id, w->tenant, w->length, malloc(w->length), malloc(48 << 10)};
	if (!job->body || !job->scratch)
		return NULL;
	memset(job->body, 'x', w->length);
	memset(job->scratch, 0, 48 << 10);
	return job;
}

static void job_close(struct job *job)
{
	free(job->body);
	free(job->scratch);
	free(job);
}

/* 0: answered, 1: its deadline is over before the model was asked. */
static int answer(struct job *job, unsigned deadline)
{
	if (deadline < 20)
		return 1;
	for (size_t i = 0; i < 4096; i++)
		job->scratch[i] += job->body[i % job->length];
	return 0;
}

static int work(int from)
{
	float *weights = malloc(12 << 20);
	if (!weights)
		return 4;
	memset(weights, 1, 12 << 20);
	struct wire w;
	unsigned late = 0;
	while (read(from, &w, sizeof w) == sizeof w) {
		struct job *job = job_open(&w);
		if (!job) {
			fprintf(stderr, "worker %d: no memory for job %d\n", getpid(), w.id);
			return 3;
		}
		if (answer(job, w.deadline)) {
			late++;
			continue;
		}
		job_close(job);
	}
	free(weights);
	return late == 0xffffffff;
}

static void start(struct worker *w)
{
	int ends[2];
	if (pipe(ends))
		exit(2);
	w->pid = fork();
	if (!w->pid) {
		close(ends[1]);
		for (int i = 0; i < WORKERS; i++)
			if (workers[i].pid && &workers[i] != w)
				close(workers[i].to);
		_exit(work(ends[0]));
	}
	close(ends[0]);
	w->to = ends[1];
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < WORKERS; i++)
		start(&workers[i]);
	srand(5);
	for (int i = 0; i < JOBS; i++) {
		int tenant = rand() % 12;
		struct wire job = {i, tenant, 2000 + rand() % 30000, 100};
		if (tenant % WORKERS == 1 && i > 1500)
			job.deadline = rand() % 50;
		struct worker *w = &workers[tenant % WORKERS];
		if (write(w->to, &job, sizeof job) != sizeof job) {
			close(w->to);
			waitpid(w->pid, NULL, 0);
			if (w->restarts++) {
				fprintf(
				    stderr, "worker %d died twice, giving up\n", tenant % WORKERS);
				return 1;
			}
			start(w);
		}
		if (i % 8 == 0)
			usleep(200);
	}
	for (int i = 0; i < WORKERS; i++) {
		close(workers[i].to);
		waitpid(workers[i].pid, NULL, 0);
	}
	return 0;
}
