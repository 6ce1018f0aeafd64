/* space.c - see space.h. */
#include "explain/claim/space.h"

#include "explain/claim/vocabulary.h"

static bool names_device(const struct sentence *line)
{
	/* the drivers' own calls: cuMemCreate, cuMemoryAllocate, cuStreamCreate, rtMalloc; "video
	 * memory" */
	if (any_two(line, "cu", "mem") || any_two(line, "cu", "memory") ||
	    any_two(line, "cu", "stream") || any_two(line, "rt", "malloc") ||
	    any_two(line, "video", "memory"))
		return true;
	/* An accelerator's memory lies in banks. */
	if (any_word(line, "dram") && (any_word(line, "bank") || any_word(line, "banks")))
		return true;
	for (size_t i = line->from; i < line->to; i++) {
		if (!has_flag(line, i, WORD_DEVICE))
			continue;
		/* "no space left on device", "block device" */
		if (word_is(line, i, "device") &&
		    ((i > line->from && word_is(line, i - 1, "on")) ||
			(i > line->from && word_is(line, i - 1, "block"))) &&
		    !any_word(line, "gpu") && !any_word(line, "cuda") &&
		    (any_word(line, "space") || any_word(line, "block")))
			continue;
		return true;
	}
	return false;
}

static bool names_host(const struct sentence *line)
{
	/* "out of GPU and shared host memory", "no GPU or CPU memory" */
	for (size_t i = line->from; i < line->to; i++)
		if (has_flag(line, i, WORD_DEVICE) &&
		    (word_is(line, i + 1, "and") || word_is(line, i + 1, "or")))
			return false;
	for (size_t i = line->from; i < line->to; i++)
		if (has_flag(line, i, WORD_HOST) &&
		    (has_flag(line, i, WORD_MEMORY) || has_flag(line, i + 1, WORD_MEMORY) ||
			has_flag(line, i + 2, WORD_MEMORY)))
			return true;
	return any_two(line, "host", "malloc") || any_two(line, "host", "alloc") ||
	       any_two(line, "alloc", "host");
}

bool space_is_shared(const struct sentence *line)
{
	return any_two(line, "shared", "memory") || any_flag(line, WORD_SHARED) ||
	       any_two(line, "dev", "shm") || any_word(line, "semaphore");
}

/* A runtime's heap; not an allocator's that is called after it: DynamicHeapAllocator. */
static bool names_runtime(const struct sentence *line)
{
	for (size_t i = line->from; i < line->to; i++)
		if (has_flag(line, i, WORD_RUNTIME) &&
		    !(lexeme(line, i + 1)->joined && has_flag(line, i + 1, WORD_ALLOCATE)))
			return true;
	return false;
}

/* "from the mempool", "in the packet pool": a pool of the program's own. */
static bool takes_from_pool(const struct sentence *line)
{
	for (size_t i = line->from; i < line->to; i++) {
		const char *word = lexeme(line, i)->word;
		size_t bytes = strlen(word);

		if (bytes < 4 || strcmp(word + bytes - 4, "pool") != 0)
			continue;
		for (size_t back = 1; back <= 3 && back <= i - line->from; back++)
			if (word_is(line, i - back, "from") || word_is(line, i - back, "in"))
				return true;
	}
	return false;
}

enum claim_kind space_of(const struct sentence *line, bool over)
{
	/* CMA is a range of the host's memory that drivers take their buffers from. */
	bool device = names_device(line) && !names_host(line) && !any_word(line, "cma");

	if (space_is_shared(line) && !any_two(line, "per", "block") && !any_word(line, "kernel") &&
	    !device)
		return CLAIM_SHARED;
	if (device)
		return CLAIM_DEVICE;
	/* A compiler's heap has no limit of its own. */
	if (any_word(line, "compiler") || any_word(line, "linker"))
		return CLAIM_HOST;
	if (names_runtime(line) || any_two(line, "direct", "memory") ||
	    any_two(line, "direct", "buffer") || any_two(line, "off", "heap") ||
	    any_two(line, "gc", "overhead"))
		return CLAIM_RUNTIME;
	if (any_word(line, "cgroup") || any_word(line, "container") || any_word(line, "pod") ||
	    any_two(line, "memory", "quota") || any_two(line, "memory", "budget"))
		return CLAIM_LIMIT;
	if (any_two(line, "object", "store") || any_two(line, "kv", "cache") ||
	    any_two(line, "kv", "pool") || any_word(line, "breaker") || any_word(line, "arena") ||
	    any_two(line, "buffer", "pool") || any_two(line, "memory", "pool") ||
	    takes_from_pool(line) || any_word(line, "fielddata") || any_word(line, "cma") ||
	    any_word(line, "workspace") || any_two(line, "cache", "blocks") ||
	    any_two(line, "memory", "management") ||
	    (any_word(line, "zone") && !any_two(line, "red", "zone")))
		return CLAIM_POOL;
	if (any_word(line, "mmap") || any_word(line, "mprotect") || any_two(line, "map", "file") ||
	    any_two(line, "backed", "map") || any_two(line, "memory", "map") ||
	    any_two(line, "to", "map") || any_two(line, "be", "mapped"))
		return CLAIM_MAPPING;
	return over ? CLAIM_LIMIT : CLAIM_HOST;
}
