/*
 * scope.h - whose memory a message says ran out: that of one request, of a store that keeps things,
 * of a pool that is taken at the start, of a model's weights; or that a limit is too low by itself.
 *
 * By the words of the message alone, whatever program wrote it.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_SCOPE_H
#define ANALYZER_EXPLAIN_CLAIM_SCOPE_H

enum scope {
	SCOPE_UNKNOWN,
	SCOPE_REQUEST, /* one query, a stage or an operator of it, a transaction, a result */
	SCOPE_REQUESTS, /* those at work at once, together */
	SCOPE_STORE, /* a cache or a store that keeps its entries */
	SCOPE_START, /* a pool that is taken whole before there is any work */
	SCOPE_WEIGHTS, /* a model that is loaded */
	SCOPE_LIMIT, /* the limit is below what is always needed */
	SCOPE_COUNT,
};

enum scope scope_read(const char *text);

#endif
