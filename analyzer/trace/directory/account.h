/*
 * account.h - the account of a directory: what all traces in it may take of the disk, and do.
 */
#ifndef ANALYZER_TRACE_ACCOUNT_H
#define ANALYZER_TRACE_ACCOUNT_H

#include "trace/trace.h"

/* Unknown where there is none, or what is there is damaged: nothing depends on it. */
struct trace_account account_read(const char *directory);

#endif
