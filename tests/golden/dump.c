/* dump.c - prints the analyzer's reading of a trace in the words of read.py, for the test that
 * compares the two. dump events|stacks TRACE */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/reader.h"
#include "trace/symbols/pylines.h"

static void print_frame(FILE *out, const struct trace *t, const struct frame *f)
{
	const struct def_code *code;

	switch (f->kind) {
	case FRAME_NATIVE:
		fprintf(out, "%s 0x%" PRIx64 "%s",
		    f->module ? t->defs.modules.items[f->module - 1].path : "?", f->address,
		    f->exact ? " exact" : "");
		break;
	case FRAME_PYTHON:
		code = f->module ? &t->defs.codes.items[f->module - 1] : NULL;
		if (code)
			fprintf(out, "%s %s:%u", code->name, code->file,
			    pylines_line(code->version, code->first_line, code->lines,
				code->line_bytes, (int64_t)f->address - 1, NULL));
		else
			fprintf(out, "python None %" PRId64, (int64_t)f->address - 1);
		break;
	case FRAME_CUT:
		fprintf(out, "cut %u", f->module);
		break;
	case FRAME_END:
		fprintf(out, "end %u", f->module);
		break;
	}
}

static void print_innermost(const struct trace *t, uint32_t stack)
{
	const struct frame *frames;
	size_t n = trace_stack(t, stack, &frames);

	putchar(' ');
	if (n)
		print_frame(stdout, t, &frames[n - 1]);
	else
		putchar('-');
}

static void print_levels(const struct event *e)
{
	for (uint32_t i = 0; i < e->level_count; i++)
		printf(" %u=%" PRIu64, e->levels[i].key, e->levels[i].value);
}

static const char *word(const char *text)
{
	return text ? text : "-";
}

static void print_event(const struct trace *t, const struct event *e)
{
	printf("%" PRIu64 " %u ", e->time_ns, e->thread);
	switch (e->kind) {
	case EV_ALLOC:
		printf("ALLOC %" PRIu64 " %" PRIu64 " %u", e->address, e->size, e->api);
		if (e->block->mean > 0)
			printf(" %.6g", (double)e->size * block_weight(e->block));
		print_innermost(t, e->stack);
		break;
	case EV_FREE:
		printf("%s %" PRIu64, e->block && e->flags & EVENT_REPAIRED ? "DROP" : "FREE",
		    e->address);
		if (e->block)
			printf(" %" PRIu64, e->block->size);
		else
			printf(" ?");
		break;
	case EV_UNFREE:
		printf("UNFREE %" PRIu64 " %" PRIu64, e->address, e->size);
		break;
	case EV_MAP:
		printf("MAP %" PRIu64 " %" PRIu64 " %u %u %u %u %s %" PRIu64, e->address, e->size,
		    e->u.map.prot, e->api, e->u.map.flags, e->u.map.backing,
		    e->u.map.name ? e->u.map.name : "-", e->u.map.offset);
		print_innermost(t, e->stack);
		print_levels(e);
		break;
	case EV_UNMAP:
		printf("UNMAP %" PRIu64 " %" PRIu64 " %u %u", e->address, e->size, e->api,
		    e->u.map.flags);
		break;
	case EV_UNUNMAP:
		printf("UNUNMAP %" PRIu64 " %" PRIu64, e->address, e->size);
		break;
	case EV_ADVISE:
		printf(
		    "ADVISE %" PRIu64 " %" PRIu64 " %u", e->address, e->size, e->u.advise.advice);
		break;
	case EV_BRK:
		printf("BRK %" PRIu64 " %" PRIu64, e->u.brk.old_end, e->u.brk.new_end);
		print_innermost(t, e->stack);
		break;
	case EV_FAILED:
		printf("FAILED %u %u %u %d %" PRIu64 " %" PRIu64 " %" PRIu64, e->space, e->api,
		    e->u.failed.why, e->u.failed.result, e->size, e->u.failed.alignment,
		    e->u.failed.old_address);
		print_innermost(t, e->stack);
		if (e->u.failed.why == TRACE_FAIL_DEVICE || e->u.failed.why == TRACE_FAIL_FRAMEWORK)
			printf(" %s %s %u %u", word(e->u.failed.api), word(e->u.failed.label),
			    e->u.failed.retry, e->u.failed.flags);
		print_levels(e);
		break;
	case EV_LEVEL:
		if (!e->u.child.pid)
			printf("LEVEL %u", e->space);
		else if (!e->space)
			printf("LEVEL_OF %u", e->u.child.pid);
		else
			printf("LEVEL_OF %u %u", e->u.child.pid, e->space);
		print_levels(e);
		break;
	case EV_THREAD_EXIT:
		printf("THREAD_EXIT");
		break;
	case EV_EXIT:
		printf("EXIT %u %u", e->u.end.how, e->u.end.code);
		break;
	case EV_SIGNAL:
		printf("SIGNAL %u %" PRIu64, e->u.end.code, e->address);
		break;
	case EV_FORK:
		printf("FORK %u", e->u.child.pid);
		break;
	case EV_NOTICE:
		printf("NOTICE %u %" PRIu64, e->u.notice.what, e->u.notice.value);
		if (e->u.notice.exact_from)
			printf(" %" PRIu64 " %" PRIu64, e->u.notice.mean, e->u.notice.exact_from);
		break;
	case EV_CHILD_END:
		printf("CHILD_END %u %u %u %u", e->u.child.pid, e->u.child.how, e->u.child.code,
		    e->u.child.flags);
		break;
	case EV_SPACE_ALLOC:
		printf("SPACE_ALLOC %u %s %" PRIu64 " %" PRIu64, e->space, word(e->u.space.api),
		    e->address, e->size);
		print_innermost(t, e->stack);
		printf(" %" PRIu64 " %" PRIu64 " %u %s %u", e->u.space.stream, e->u.space.context,
		    e->u.space.flags, word(e->u.space.label), e->u.space.retry);
		break;
	case EV_SPACE_FREE:
		printf("SPACE_FREE %u %s %" PRIu64 " %" PRIu64 " %u %s", e->space,
		    word(e->u.space.api), e->address, e->u.space.stream, e->u.space.flags,
		    word(e->u.space.label));
		break;
	case EV_SPACE_UNFREE:
		printf("SPACE_UNFREE %u %" PRIu64 " %u", e->space, e->address, e->u.space.flags);
		break;
	case EV_SPACE_MAP:
		printf("SPACE_MAP %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
		    word(e->u.space.api), e->address, e->size, e->u.space.offset,
		    e->u.space.handle);
		print_innermost(t, e->stack);
		break;
	case EV_SPACE_UNMAP:
		printf("SPACE_UNMAP %s %" PRIu64 " %" PRIu64, word(e->u.space.api), e->address,
		    e->size);
		break;
	case EV_SPACE_UNUNMAP:
		printf("SPACE_UNUNMAP %" PRIu64 " %" PRIu64, e->address, e->size);
		break;
	case EV_MARK:
		printf("MARK %u %u %" PRIu64 " %s %s", e->u.mark.phase, e->u.mark.what,
		    e->u.mark.id, word(e->u.mark.name), word(e->u.mark.domain));
		if (e->u.mark.phase == TRACE_MARK_LENGTH)
			printf(" %" PRIu64, e->u.mark.tokens);
		print_innermost(t, e->stack);
		break;
	case EV_TASK_END:
		printf("TASK_END");
		break;
	case EV_CHECKPOINT:
		printf("CHECKPOINT %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		       " %" PRIu64 " %" PRIu64,
		    e->u.period.trace_bytes, e->u.period.acquired, e->u.period.acquired_bytes,
		    e->u.period.released, e->u.period.released_bytes, e->u.period.most_bytes,
		    e->u.period.left_out);
		break;
	case EV_WENT:
		printf("WENT %u %" PRIu64 " %" PRIu64 " %" PRIu64, e->space, e->u.went.count,
		    e->u.went.bytes, e->size);
		print_innermost(t, e->stack);
		break;
	case EV_OUTSIDE: /* not of this file */
		break;
	case EV_SPACE_CLEAR:
		printf("SPACE_CLEAR %u %s %u %" PRIu64 " %s", e->space, word(e->u.space.api),
		    e->u.space.what, e->u.space.handle, word(e->u.space.label));
		break;
	case EV_SPACE_CALL:
		printf("SPACE_CALL %u %s %" PRIu64 " %" PRIu64 " %d", e->space,
		    word(e->u.space.api), e->u.space.handle, e->u.space.offset, e->u.space.result);
		print_innermost(t, e->stack);
		printf(" %s", word(e->u.space.label));
		print_levels(e);
		break;
	}
	if (e->task)
		printf(" task %u", e->task);
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct err err = {""};
	struct trace *t;
	struct event event;
	int r;

	if (argc != 3)
		return 2;
	r = trace_open(argv[2], &t, &err);
	if (r) {
		fprintf(stderr, "dump: %s\n", err.text);
		return 1;
	}
	if (!strcmp(argv[1], "events")) {
		while ((r = trace_next(t, &event, &err)) > 0)
			print_event(t, &event);
	} else {
		for (uint32_t id = 1; id < trace_stack_limit(t); id++) {
			const struct frame *frames;
			size_t n = trace_stack(t, id, &frames);

			for (size_t i = 0; i < n; i++) {
				print_frame(stdout, t, &frames[i]);
				putchar('\n');
			}
			putchar('\n');
		}
	}
	trace_close(t);
	if (r)
		fprintf(stderr, "dump: %s\n", err.text);
	return r != 0;
}
