/*
 * emit_c.c - writes a program for a bug report (steps.h). The program finds its own limit by
 * trying, so that it is right for any allocator, library and machine that it is compiled for; its
 * exit status says whether the request was refused.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "model/callsite/blame.h"
#include "reduce/steps.h"
#include "util/text/fmt.h"

#define LINES 200u
#define WIDTH 100u /* columns of a comment */
#define ROW_WIDTH 120u /* where a line of rows without comments ends */

static const char *const names[STEP_WHATS] = {"MALLOC", "CALLOC", "REALLOC", "ALIGNED", "FREE",
    "MAP", "RESERVE", "UNMAP", "DEVICE", "DEVICE_FREE"};

/* Appends text of a trace, in which nothing may end the comment. */
static void comment(struct str *out, const char *raw, const char *head)
{
	struct str safe = {0};
	const char *text;
	size_t column = 0;

	str_safe(&safe, raw);
	text = str_text(&safe);
	while (*text) {
		size_t n = strcspn(text, " ");

		if (!column || column + 1 + n > WIDTH - 3) {
			str_puts(out, column ? "\n" : "");
			str_puts(out, head);
			column = strlen(head);
		} else {
			str_putc(out, ' ');
			column++;
		}
		for (size_t i = 0; i < n; i++) {
			bool ends = text[i] == '*' && text[i + 1] == '/';

			str_putc(out, ends || text[i] == '\\' ? '.' : text[i]);
		}
		column += n;
		text += n + (text[n] != 0);
	}
	str_putc(out, '\n');
	str_free(&safe);
}

/* Appends "build_prompt (main.c:47)", or nothing. */
static void who(const struct feed *feed, uint32_t stack, struct str *out)
{
	struct blame_context context = {.malloc_owner = feed->info(feed->self, "malloc.owner"),
	    .interpreter = feed_interpreter(feed)};
	const struct symbol *symbols, *s;
	size_t count = stack ? feed->symbols(feed->self, stack, &symbols) : 0;
	const char *file;
	int at;

	if (!count)
		return;
	at = blame_frame(&context, symbols, count);
	s = &symbols[at >= 0 ? (size_t)at : count - 1];
	str_puts(out, s->function);
	file = s->file ? strrchr(s->file, '/') : NULL;
	if (s->file)
		str_printf(out, " (%s:%u)", file ? file + 1 : s->file, s->line);
}

static void row(struct str *out, const struct program_step *s)
{
	str_printf(out, "{%u, %u, %s, %u, %u, %" PRId64 ", %" PRIu64 ", %" PRId64 "},", s->rows,
	    s->times, names[s->what], s->thread, s->block, s->block_step, s->size, s->size_step);
}

/* Appends a line of comment where the function changes. */
static void callsite(
    const struct feed *feed, const struct program_step *s, struct str *last, struct str *out)
{
	struct str now = {0};

	if (!step_is_release(s->what))
		who(feed, s->stack, &now);
	if (now.length && strcmp(str_text(&now), str_text(last)) != 0) {
		str_puts(out, "\t/* ");
		comment(out, str_text(&now), "");
		out->length--; /* the end of its line */
		str_puts(out, " */\n");
		str_clear(last);
		str_puts(last, str_text(&now));
	}
	str_free(&now);
}

static void table(
    const struct program *steps, const struct feed *feed, bool callsites, struct str *out)
{
	struct program_step none = {.rows = 1};
	struct str last = {0};
	size_t begun = 0;

	str_puts(out, "static const struct step {\n"
		      "\tunsigned rows, times; /* so many rows are repeated so often: on the first "
		      "of them */\n"
		      "\tenum what what;\n"
		      "\tunsigned thread, block;\n"
		      "\tlong long block_step, size, size_step; /* more with each time */\n"
		      "} steps[] = {\n");
	if (!steps->rows.count)
		row(out, &none);
	for (size_t i = 0; i < steps->rows.count; i++) {
		if (callsites)
			callsite(feed, &steps->rows.items[i], &last, out);
		if (callsites || out->length - begun > ROW_WIDTH) {
			str_puts(out, i && !callsites ? "\n\t" : "\t");
			begun = out->length;
		} else {
			str_puts(out, i ? " " : "\t");
		}
		row(out, &steps->rows.items[i]);
		str_puts(out, callsites ? "\n" : "");
	}
	str_puts(out, callsites ? "};\n\n" : "\n};\n\n");
	str_free(&last);
}

static const char host_begin[] =
    "#define _GNU_SOURCE\n"
    "#include <errno.h>\n"
    "#include <pthread.h>\n"
    "#include <signal.h>\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "#include <sys/mman.h>\n"
    "#include <sys/resource.h>\n"
    "#include <sys/wait.h>\n"
    "#include <unistd.h>\n\n"
    "enum what { MALLOC, CALLOC, REALLOC, ALIGNED, FREE, MAP, RESERVE, UNMAP };\n";

static const char host_perform[] =
    "static void *blocks[BLOCKS];\n"
    "static size_t limit; /* resident bytes at which a killer would come */\n"
    "\n"
    "static size_t pages(int field)\n"
    "{\n"
    "\tFILE *f = fopen(\"/proc/self/statm\", \"r\");\n"
    "\tunsigned long v[6] = {0};\n\n"
    "\tif (f && fscanf(f, \"%lu %lu %lu %lu %lu %lu\", v, v + 1, v + 2, v + 3, v + 4, v + 5) == "
    "6)\n"
    "\t\tfclose(f);\n"
    "\treturn v[field] * (size_t)sysconf(_SC_PAGESIZE);\n"
    "}\n\n"
    "/* 0, or errno. */\n"
    "static int perform(enum what what, size_t block, size_t size)\n"
    "{\n"
    "\tstruct rusage use;\n"
    "\tvoid *p = NULL;\n\n"
    "\tswitch (what) {\n"
    "\tcase MALLOC: p = malloc(size); break;\n"
    "\tcase CALLOC: p = calloc(1, size); break;\n"
    "\tcase REALLOC: p = realloc(blocks[block], size); break;\n"
    "\tcase ALIGNED: p = aligned_alloc(64, (size + 63) / 64 * 64); break;\n"
    "\tcase FREE: free(blocks[block]); break;\n"
    "\tcase MAP:\n"
    "\tcase RESERVE:\n"
    "\t\tp = mmap(NULL, size, what == MAP ? PROT_READ | PROT_WRITE : PROT_NONE,\n"
    "\t\t    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);\n"
    "\t\tp = p == MAP_FAILED ? NULL : p;\n"
    "\t\tbreak;\n"
    "\tcase UNMAP: munmap(blocks[block], size); break;\n"
    "\t}\n"
    "\tif (!p && what != FREE && what != UNMAP)\n"
    "\t\treturn ENOMEM;\n"
    "\tif (p && what != RESERVE)\n"
    "\t\tmemset(p, 1, (size_t)((double)size * TOUCHED));\n"
    "\tblocks[block] = p;\n"
    "\tif (limit && !getrusage(RUSAGE_SELF, &use) && use.ru_maxrss * (size_t)1024 >= limit)\n"
    "\t\traise(SIGKILL);\n"
    "\treturn 0;\n"
    "}\n\n";

static const char threads_run[] =
    "/* Threads take turns: each has a part of the allocator to itself. */\n"
    "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n"
    "static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;\n"
    "static struct { enum what what; size_t block, size; unsigned thread; int due, rc; } now;\n\n"
    "static void *work(void *arg)\n"
    "{\n"
    "\tpthread_mutex_lock(&lock);\n"
    "\tfor (;;) {\n"
    "\t\twhile (!now.due || now.thread != (unsigned)(size_t)arg)\n"
    "\t\t\tpthread_cond_wait(&turn, &lock);\n"
    "\t\tnow.rc = perform(now.what, now.block, now.size);\n"
    "\t\tnow.due = 0;\n"
    "\t\tpthread_cond_broadcast(&turn);\n"
    "\t}\n"
    "\treturn NULL;\n"
    "}\n\n"
    "static int on(unsigned thread, enum what what, size_t block, size_t size)\n"
    "{\n"
    "\tstatic char begun[THREADS];\n"
    "\tpthread_t t;\n\n"
    "\tif (!thread)\n"
    "\t\treturn perform(what, block, size);\n"
    "\tif (!begun[thread] && pthread_create(&t, NULL, work, (void *)(size_t)thread))\n"
    "\t\treturn EAGAIN;\n"
    "\tbegun[thread] = 1;\n"
    "\tpthread_mutex_lock(&lock);\n"
    "\tnow.what = what, now.block = block, now.size = size, now.thread = thread, now.due = 1;\n"
    "\tpthread_cond_broadcast(&turn);\n"
    "\twhile (now.due)\n"
    "\t\tpthread_cond_wait(&turn, &lock);\n"
    "\tpthread_mutex_unlock(&lock);\n"
    "\treturn now.rc;\n"
    "}\n\n";

static const char one_thread[] =
    "static int on(unsigned thread, enum what what, size_t block, size_t size)\n"
    "{\n"
    "\t(void)thread;\n"
    "\treturn perform(what, block, size);\n"
    "}\n\n";

static const char run_steps[] =
    "/* All but the last request; 0, or the number of the one that was refused. */\n"
    "static unsigned long run(void)\n"
    "{\n"
    "\tunsigned long done = 0;\n\n"
    "\tfor (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i += steps[i].rows)\n"
    "\t\tfor (unsigned n = 0; n < steps[i].times; n++)\n"
    "\t\t\tfor (const struct step *s = &steps[i]; s < &steps[i] + steps[i].rows; s++)\n"
    "\t\t\t\tif (done++, on(s->thread, s->what, (size_t)(s->block + n * s->block_step),\n"
    "\t\t\t\t\t(size_t)(s->size + n * s->size_step)))\n"
    "\t\t\t\t\treturn done;\n"
    "\treturn 0;\n"
    "}\n\n";

static const char refused_main[] =
    "enum { REFUSED, GRANTED, EARLIER, ELSEWHERE }; /* what became of the last request */\n\n"
    "static int perform_all(size_t limit)\n"
    "{\n"
    "\tstruct rlimit r;\n"
    "\tint n = 0;\n\n"
    "\tgetrlimit(DATA ? RLIMIT_DATA : RLIMIT_AS, &r);\n"
    "\tr.rlim_cur = limit;\n"
    "\tif (setrlimit(DATA ? RLIMIT_DATA : RLIMIT_AS, &r))\n"
    "\t\treturn ELSEWHERE;\n"
    "\tif (run())\n"
    "\t\treturn EARLIER;\n"
    "\t/* A small one may still find a place in what the allocator has. */\n"
    "\twhile (n++ < NEAR && !on(LAST))\n"
    "\t\tblocks[BLOCKS - 1] = NULL;\n"
    "\treturn n > NEAR ? GRANTED : REFUSED;\n"
    "}\n\n"
    "int main(void)\n"
    "{\n"
    "\tsize_t low = pages(DATA ? 5 : 0), high = low + ALL, limit = high;\n"
    "\tint status = EARLIER << 8;\n\n"
    "\t/* The limit under which it is the last request that is refused, for this allocator. */\n"
    "\twhile (status && high - low > 4096) {\n"
    "\t\tlimit = low + (high - low) / 2;\n"
    "\t\tif (!fork())\n"
    "\t\t\t_exit(perform_all(limit));\n"
    "\t\twait(&status);\n"
    "\t\tif (status == GRANTED << 8)\n"
    "\t\t\thigh = limit;\n"
    "\t\telse\n"
    "\t\t\tlow = limit;\n"
    "\t}\n"
    "\tstatus = perform_all(limit);\n"
    "\tif (status)\n"
    "\t\treturn printf(\"there is no limit under which it is the last request that is "
    "refused\\n\"), 1;\n"
    "\tprintf(\"refused, as recorded: %zu bytes, under a limit of %zu\\n\", (size_t)SIZE, limit);\n"
    "\treturn 0;\n"
    "}\n";

static const char killed_main[] =
    "int main(void)\n"
    "{\n"
    "\tlimit = pages(1) + RESIDENT;\n"
    "\trun();\n"
    "\tprintf(\"not killed: %zu bytes resident, of %zu\\n\", pages(1), limit);\n"
    "\treturn 1;\n"
    "}\n";

static const char device_begin[] = "#include <dlfcn.h>\n"
				   "#include <stdio.h>\n"
				   "#include <stdlib.h>\n\n"
				   "enum what { DEVICE, DEVICE_FREE };\n";

static const char device_perform[] =
    "static unsigned long long blocks[BLOCKS];\n"
    "static int (*allocate)(unsigned long long *, size_t), (*release)(unsigned long long);\n\n"
    "static int on(unsigned thread, enum what what, size_t block, size_t size)\n"
    "{\n"
    "\t(void)thread;\n"
    "\treturn what == DEVICE ? allocate(&blocks[block], size) : release(blocks[block]);\n"
    "}\n\n"
    "static void *entry(const char *name)\n"
    "{\n"
    "\tstatic void *driver;\n"
    "\tvoid *p;\n\n"
    "\tif (!driver)\n"
    "\t\tdriver = dlopen(\"libcuda.so.1\", RTLD_NOW);\n"
    "\tp = driver ? dlsym(driver, name) : NULL;\n"
    "\tif (!p)\n"
    "\t\tfprintf(stderr, \"no CUDA driver here (%s)\\n\", name), exit(2);\n"
    "\treturn p;\n"
    "}\n\n";

static const char device_main[] =
    "int main(void)\n"
    "{\n"
    "\tint (*init)(unsigned) = (int (*)(unsigned))entry(\"cuInit\");\n"
    "\tint (*retain)(void **, int) = (int (*)(void **, int))entry(\"cuDevicePrimaryCtxRetain\");\n"
    "\tint (*set)(void *) = (int (*)(void *))entry(\"cuCtxSetCurrent\");\n"
    "\tint (*info)(size_t *, size_t *) = (int (*)(size_t *, size_t *))entry(\"cuMemGetInfo_v2\");\n"
    "\tunsigned long long ballast;\n"
    "\tunsigned long failed;\n"
    "\tsize_t available = 0, total = 0;\n"
    "\tvoid *context;\n"
    "\tint rc;\n\n"
    "\tallocate = (int (*)(unsigned long long *, size_t))entry(\"cuMemAlloc_v2\");\n"
    "\trelease = (int (*)(unsigned long long))entry(\"cuMemFree_v2\");\n"
    "\tif (init(0) || retain(&context, 0) || set(context) || info(&available, &total))\n"
    "\t\treturn fprintf(stderr, \"no device\\n\"), 2;\n"
    "\tif (available < NEED + (size_t)ROOM)\n"
    "\t\treturn fprintf(stderr, \"%zu bytes are free there, it takes %zu\\n\", available, "
    "(size_t)NEED), 2;\n"
    "\t/* What was not this program's, or lies beyond its card. */\n"
    "\tif (available > NEED + (size_t)ROOM && allocate(&ballast, (available - NEED - ROOM) >> 21 "
    "<< 21))\n"
    "\t\treturn fprintf(stderr, \"the rest of the card cannot be taken\\n\"), 2;\n"
    "\tfailed = run();\n"
    "\tif (failed)\n"
    "\t\treturn printf(\"request %lu was refused already\\n\", failed), 1;\n"
    "\trc = on(LAST);\n"
    "\tif (rc != 2)\n"
    "\t\treturn printf(\"the request was granted (%d)\\n\", rc), 1;\n"
    "\tprintf(\"refused, as recorded: %zu bytes, CUDA_ERROR_OUT_OF_MEMORY\\n\", (size_t)SIZE);\n"
    "\treturn 0;\n"
    "}\n";

static void head(const struct verdict_result *v, const struct program *steps, struct str *out)
{
	struct str line = {0};

	str_puts(out, "/*\n");
	str_printf(&line, "%s: %s", cause_name(v->verdict.cause), v->verdict.summary);
	comment(out, str_text(&line), " * ");
	str_puts(out, " *\n");
	str_clear(&line);
	str_puts(&line, "The requests of ");
	str_puts(&line, v->tree.count ? v->tree.processes[v->tree.subject].cmdline : "a program");
	str_puts(&line, ", as far as it takes them to fail so; written by whyoom.");
	comment(out, str_text(&line), " * ");
	str_puts(out, " *\n");
	str_printf(out, " *     cc -O1 -o reproduce reproduce.c %s && ./reproduce\n",
	    steps->device ? "-ldl" : "-pthread");
	str_puts(out, " *\n");
	if (steps->device)
		comment(out,
		    "It takes the rest of the card's memory first. Exit status 0: the request is "
		    "refused, as it was; 1: it is not, or another one is.",
		    " * ");
	else if (steps->last.size)
		comment(out,
		    "Exit status 0: the request is refused, as it was; 1: it is not, or another "
		    "one is.",
		    " * ");
	else
		comment(out,
		    "It kills itself when as much is resident as was when the program was killed; "
		    "without the line with SIGKILL, run it in a cgroup.",
		    " * ");
	if (steps->summed)
		comment(out,
		    "What had been given back by then is left out, and the blocks of each place "
		    "are of their mean size.",
		    " * ");
	if (steps->joined)
		comment(out, "What several threads requested, one does here.", " * ");
	str_puts(out, " */\n");
	str_free(&line);
}

static void numbers(const struct program *s, const struct verdict_result *v, struct str *out)
{
	str_printf(out, "#define BLOCKS %u\n", s->blocks + 1);
	if (s->threads > 1 && !s->device)
		str_printf(out, "#define THREADS %u\n", s->threads);
	if (!s->device)
		str_printf(out,
		    "#define TOUCHED %.3f /* of each block is written to */\n"
		    "#define DATA %d /* RLIMIT_DATA, else RLIMIT_AS */\n",
		    s->last.size ? 0.0 : s->touched, v->failure.limit == LIMIT_DATA);
	if (!s->last.size) {
		str_printf(out, "#define RESIDENT ((size_t)(%" PRIu64 "ll * 0.95))\n", s->resident);
		return;
	}
	if (s->device)
		str_printf(out,
		    "#define NEED %" PRIu64 "ull\n"
		    "#define ROOM %" PRIu64 "ull /* that is left, when it is refused */\n",
		    s->live, s->room && s->room < s->last.size ? s->room : s->last.size / 2);
	else
		str_printf(out, "#define ALL %" PRIu64 "ull /* more than all of it can take */\n",
		    s->requested + s->last.size + (1u << 30));
	str_printf(out, "#define SIZE %" PRIu64 "ull\n", s->last.size);
	str_printf(out, "#define LAST %u, %s, %u, SIZE\n", s->last.thread, names[s->last.what],
	    s->last.what == STEP_REALLOC ? s->last.block : s->blocks);
	if (!s->device)
		str_printf(out, "#define NEAR %" PRIu64 "\n", 1 + (1u << 20) / (s->last.size + 16));
}

static void write_program(
    const struct verdict_result *v, const struct program *s, bool callsites, struct str *out)
{
	head(v, s, out);
	str_puts(out, s->device ? device_begin : host_begin);
	numbers(s, v, out);
	str_putc(out, '\n');
	table(s, &v->model->feed, callsites, out);
	str_puts(out, s->device ? device_perform : host_perform);
	if (!s->device)
		str_puts(out, s->threads > 1 ? threads_run : one_thread);
	str_puts(out, run_steps);
	str_puts(out, s->device ? device_main : s->last.size ? refused_main : killed_main);
}

static uint32_t lines(const struct str *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->length; i++)
		n += s->text[i] == '\n';
	return n;
}

int emit_c(
    const struct verdict_result *verdict, struct program *steps, struct str *out, struct err *err)
{
	uint32_t n = 0;

	for (int callsites = 1; callsites >= 0; callsites--) {
		str_clear(out);
		write_program(verdict, steps, callsites, out);
		n = lines(out);
		if (out->failed)
			return err_set(err, -ENOMEM, "no memory for the program");
		if (n < LINES)
			return 0;
	}
	if (steps->threads > 1) {
		steps_join(steps);
		return emit_c(verdict, steps, out, err);
	}
	if (!steps->summed) {
		if (steps_sum(steps))
			return err_set(err, -ENOMEM, "no memory for the program");
		return emit_c(verdict, steps, out, err);
	}
	return err_set(err, -E2BIG,
	    "the program would have %u lines, and the limit is %u: the remaining %" PRIu64
	    " steps are too many",
	    n, LINES, steps->count);
}
