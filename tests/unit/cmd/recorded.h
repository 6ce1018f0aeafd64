/* recorded.h - traces in the scratch directory, for tests of commands that read traces. */
#ifndef TESTS_UNIT_CMD_RECORDED_H
#define TESTS_UNIT_CMD_RECORDED_H

#include <stdio.h>
#include <string.h>

#include "compose.h"
#include "scratch.h"
#include "unit.h"

#define RECORDED_BLOCK 102400u

static inline void recorded_save(struct compose *c, const char *name)
{
	compose_end(c);
	scratch_bytes(name, c->bytes, c->size);
	compose_free(c);
}

/* A microsecond each: `kept` blocks that stay, each beside one that is released; then optionally
 * a request of 20 MiB that RLIMIT_AS refuses. */
static inline void recorded_process(const char *name, uint32_t pid, unsigned kept, bool fails)
{
	struct compose c;
	uint64_t ns = 0;

	compose_begin(&c);
	compose_header(&c)->pid = pid;
	compose_header(&c)->end_how = TRACE_END_EXIT;
	compose_header(&c)->end_code = fails;
	compose_header(&c)->start_real_ns += pid;
	if (fails)
		compose_header(&c)->flags |= TRACE_FLAG_FAILED;
	compose_chunk(&c, TRACE_CHUNK_DEFINITIONS, 0, 0, 0, TRACE_SLOT_BYTES);
	DEF_STACK(&c, 1, 0, 0, 0x1000, 0x2000);
	DEF_STACK(&c, 2, 0, 0, 0x1000, 0x3000);
	compose_chunk(&c, TRACE_CHUNK_EVENTS, 1, 0, 0, 16 * TRACE_SLOT_BYTES);
	for (uint64_t i = 0; i < kept; i++) {
		put_alloc(&c, ns += 1000, 0x100000 + i * 0x40000, RECORDED_BLOCK, 1);
		put_alloc(&c, ns += 1000, 0x120000 + i * 0x40000, 5000, 2);
		put_free(&c, ns += 1000, 0x120000 + i * 0x40000);
	}
	if (fails)
		PUT_EVENT(&c, ns += 1000, TRACE_FAILED, TRACE_SPACE_HOST, TRACE_API_MALLOC,
		    TRACE_FAIL_ERRNO, 12, 20u << 20, 16, 0, 1, 2, TRACE_LEVEL_LIMIT_AS,
		    (uint64_t)kept * RECORDED_BLOCK + (10u << 20), TRACE_LEVEL_VSIZE,
		    (uint64_t)kept * RECORDED_BLOCK + (2u << 20));
	recorded_save(&c, name);
}

static inline void recorded_supervisor(const char *name)
{
	struct compose c;

	compose_begin(&c);
	compose_header(&c)->mode = TRACE_MODE_SUPERVISOR;
	compose_chunk(&c, TRACE_CHUNK_EVENTS, 1, 0, 0, TRACE_SLOT_BYTES);
	PUT_EVENT(&c, 100, TRACE_CHILD_END, 7, TRACE_END_EXIT, 0, 0);
	recorded_save(&c, name);
}

#endif
