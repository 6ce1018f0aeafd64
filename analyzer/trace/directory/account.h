/*
 * account.h - reads disk.account: the disk space of all traces of a directory, its bound and use.
 */
#ifndef ANALYZER_TRACE_ACCOUNT_H
#define ANALYZER_TRACE_ACCOUNT_H

#include "trace/trace.h"

/* .known is false if the file is absent or damaged. */
struct trace_account account_read(const char *directory);

#endif
