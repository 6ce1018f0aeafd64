/*
 * vocabulary.h - what words mean in sentences about memory that ran out: nouns of memory, verbs of
 * asking, words of refusal, limits, and words that make a sentence no claim.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_VOCABULARY_H
#define ANALYZER_EXPLAIN_CLAIM_VOCABULARY_H

enum {
	WORD_MEMORY = 1u << 0, /* memory, ram, vram */
	WORD_POOL = 1u << 1, /* a program's own part of memory: cache, pool, buffer */
	WORD_ALLOCATE = 1u << 2, /* allocate, malloc, mmap */
	WORD_TAKE = 1u << 3, /* reserve, commit, grow: of memory only if that is named */
	WORD_FAIL = 1u << 4, /* failed, unable, cannot, refused */
	WORD_OVER = 1u << 5, /* exceeded, above, reached */
	WORD_LIMIT = 1u << 6, /* limit, maximum, budget */
	WORD_KILL = 1u << 7, /* killed, evicted */
	WORD_SHORT = 1u << 8, /* insufficient, exhausted, full */
	WORD_MAYBE = 1u << 9, /* may, would, avoid: no claim */
	WORD_RETRY = 1u << 10, /* retrying, falling back: the program got over it */
	WORD_DEVICE = 1u << 11, /* gpu, cuda */
	WORD_SHARED = 1u << 12, /* shm */
	WORD_RUNTIME = 1u << 13, /* heap, metaspace: bounded by the language's runtime */
	WORD_DISK = 1u << 14, /* disk, storage, volume */
	WORD_ASKED = 1u << 15, /* requested, needs: the number is what was wanted */
	WORD_USED = 1u << 16, /* used, allocated: the number is what was held */
	WORD_FREE = 1u << 17, /* free, available: the number is what was left */
	WORD_ERROR = 1u << 18, /* error, fatal, panic */
	WORD_COUNTED = 1u << 19, /* tokens, threads: the number counts these, and no bytes */
	WORD_QUIET = 1u << 20, /* debug, info, trace: no failure is told there */
	WORD_TOKENS = 1u << 21, /* tokens, context, prompt */
	WORD_THREADS = 1u << 22, /* thread, process, fork */
	WORD_HOST = 1u << 23, /* host, system, cpu, pinned: before memory, the host's */
	WORD_CODE = 1u << 24, /* def, import, except: source code */
	WORD_THING = 1u << 25, /* tensor, array: what is allocated */
};

/* Return the flags of a word in small letters; 0 for any other word. */
unsigned vocabulary_of(const char *word);

#endif
