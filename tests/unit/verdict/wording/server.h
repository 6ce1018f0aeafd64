/*
 * server.h - the server whose verdict test_words.c words, as each of its examples finds it: it ran
 * into a limit, on a device, was killed, or is well.
 */
#ifndef TESTS_UNIT_VERDICT_WORDING_SERVER_H
#define TESTS_UNIT_VERDICT_WORDING_SERVER_H

#include "model/unit.h"

#include "verdict/device/device.h"
#include "verdict/failure/volume.h"
#include "verdict/ledger/ledger.h"
#include "verdict/wording/words.h"

static struct verdict_result r;
static struct callsites sites;
static struct callsite list[2], *p = &list[0];
static struct model model;
static struct volume_view volume;
static struct device_report device;
static struct finding *f;

static void evidence(enum fact fact, uint64_t value)
{
	finding_evidence(f, fact, (double)value);
}

/* A server that ran into RLIMIT_AS of 600 MiB; a second call site holds the state. */
static void stage(enum cause cause)
{
	memset(&r, 0, sizeof(r));
	memset(&sites, 0, sizeof(sites));
	memset(list, 0, sizeof(list));
	list[0] = (struct callsite){.function = "Chat.answer", .file = "/srv/chat.py", .line = 31};
	list[1] = (struct callsite){.function = "Chat.say", .file = "/srv/chat.py", .line = 12};
	list[0].relations.copies_of = list[1].relations.copies_of = CALLSITE_NONE;
	sites.list = list;
	sites.count = 2;
	sites.live_bytes = 340 * MiB;
	sites.proportion.callsite = CALLSITE_NONE;
	model.peak.bytes = 340 * MiB;
	r.callsites = &sites;
	r.model = &model;
	r.failure = (struct failure_view){.kind = FAILURE_HOST_ALLOC,
	    .requested_bytes = 8 * MiB,
	    .limit = LIMIT_AS,
	    .limit_bytes = 600 * MiB,
	    .usage_bytes = 594 * MiB,
	    .pid = 4711};
	r.verdict.cause = cause;
	r.verdict.blame.function = list[0].function;
	r.verdict.blame.file = list[0].file;
	r.verdict.blame.line = list[0].line;
	r.ranking.count = 1;
	f = &r.ranking.list[0].finding;
	f->cause = cause;
	f->blame = 0;
	f->bytes = 300 * MiB;
}

static void on_device(void)
{
	r.failure.kind = FAILURE_CUDA_OOM;
	r.failure.limit = LIMIT_DEVICE;
	r.failure.limit_bytes = 4 * GiB;
}

/* With 20 GiB free, by SIGKILL. */
static void killed(enum failure_kind kind, bool seen)
{
	r.failure.kind = kind;
	r.kill = (struct kill_view){.killed = true, .seen = seen, .counter = KILL_COUNTER_QUIET};
	r.kill.outlook.plenty = true;
	r.kill.outlook.left_bytes = 20 * GiB;
}

static void healthy(void)
{
	r.failure.kind = FAILURE_NONE;
	r.ranking.count = 0;
	r.ledger.limit = LIMIT_AS;
	r.ledger.limit_bytes = 600 * MiB;
	ledger_row(&r.ledger, "free", 240 * MiB);
}

static void healthy_without_limit(void)
{
	r.failure.kind = FAILURE_NONE;
	r.ranking.count = 0;
}

#endif
