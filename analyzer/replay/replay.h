/*
 * replay.h - the recorded requests made once more, of real allocators or of a model of a device's:
 * where does that fail, and is it where the record failed? Everything the reports print is in
 * struct replay_result; nothing here prints.
 */
#ifndef ANALYZER_REPLAY_REPLAY_H
#define ANALYZER_REPLAY_REPLAY_H

#include "model/torch/torch_replay.h"
#include "replay/plan/planner.h"
#include "replay/play.h"
#include "replay/through.h"
#include "replay/touch.h"
#include "verdict/result.h"

#define REPLAY_ALLOCATORS 4u

struct replay_request {
	const char *player; /* whyoom-player */
	const struct play_allocator *allocators[REPLAY_ALLOCATORS];
	size_t allocator_count; /* 0: the recorded one, or where that is not to be had, glibc */
	struct group_callsite callsite; /* where a cgroup may be made */
	uint64_t room; /* that the cgroup we are in has left; UINT64_MAX: it has no limit */
	uint64_t memory; /* in place of the limit, or of the device's memory; 0: as recorded */
	double speed; /* of the host's requests: so many times the recorded one; 0: as fast as they
			 go */
	bool no_touch;
	bool hold; /* the first allocator's process stops where it fails, */
	bool hold_at_end; /* or at the end */
	/* PyTorch's allocator: */
	const char *alloc_conf; /* its settings, which the model knows; NULL: as recorded */
	const char *python; /* its own is asked as well as the model, in this Python; NULL: no */
	const char *through_torch; /* through_torch.py, with `python` */
	/* A device: */
	const char *device_player; /* whyoom-device-player */
	const char *simgpu; /* libwhyoom-simgpu.so */
};

/* A failure, recorded or replayed. */
struct replay_point {
	bool failed;
	const char *kind; /* failure_kind_name() */
	char space[32];
	uint64_t requested; /* bytes; 0: no request was refused */
	uint64_t time_ns; /* in the record, since the process' start */
	uint64_t event; /* of the host's, or of the device's requests */
	uint32_t stack; /* its id, 0: none */
	struct stack_view words;
	size_t frame; /* index of the one to blame in words */
};

/* One allocator's run. */
struct replay_row {
	const char *name;
	char missing[160]; /* why it did not run, or empty */
	enum play_state state;
	struct replay_point failed; /* where, if it did */
	bool granted; /* what the record was refused in the end */
	uint64_t later; /* bytes of the refused request that came before it was refused here */
	uint64_t lent; /* bytes above the limit that came before it */
	uint64_t peak_live;
	uint64_t peak_resident; /* of its private memory, most of all, and then: */
	uint64_t touched; /* of what lived, written to */
	uint64_t held, used; /* by the allocator's own account; 0: it keeps none */
	uint64_t end_live, end_resident;
	uint64_t ops, ns;
};

struct replay_result {
	struct replay_point original, replayed; /* replayed: the first allocator's */
	bool same;
	uint64_t memory; /* that was asked for in place of the limit, or 0 */
	double speed; /* that was asked for; 0: as fast as it goes, or a device's requests */
	enum limit_kind limit_kind;
	uint64_t limit_bytes; /* 0: none */
	/* "rlimit", "cgroup", or "emulated" from what is resident; NULL: none was set. */
	const char *limit_by;
	uint64_t peak_live; /* recorded, of what was performed */
	/* Host: */
	struct replay_row rows[REPLAY_ALLOCATORS];
	size_t row_count;
	int held; /* the process that stopped where it failed, or 0; the caller's to end */
	struct plan_facts plan;
	struct touch_fit touch;
	double shares[PLAN_KINDS]; /* that are written to, of what lived at the peak; -1: nothing */
	bool touched;
	uint64_t beside; /* at the failure: what was not replayed, of the limit's measure */
	/* The second half of the resident curve, where the first told how much is touched. */
	struct {
		bool known;
		uint64_t recorded, replayed; /* peaks */
		/* As far as the first half tells what is written to of the second. */
		uint64_t least, most;
		bool told; /* these are near enough to each other to call it a measure */
		double deviation;
	} curve;
	/* A device: */
	bool modelled;
	bool changed; /* torch.settings were asked for in place of the recorded ones */
	struct torch_match match;
	int64_t headroom;
	bool asked_driver;
	struct through_answer driver; /* of the driver, or of the simulated one */
	struct {
		bool asked; /* PyTorch's requests were replayed */
		const char *settings; /* that it was replayed with, NULL: PyTorch's own */
		struct torch_outcome model;
		bool through; /* PyTorch's own allocator was asked, too */
		struct through_answer own;
		double deviation; /* of the model's largest reserved bytes from PyTorch's */
		bool agree; /* the same failing request, and those bytes */
	} torch;
	/* With other memory, and the record's end reached: how much longer, at the pace of its
	 * second half. 0: not known, UINT64_MAX: nothing grew. */
	uint64_t lasts_ns;
	const char *notes[NOTES_MAX];
	size_t note_count;
	struct arena arena;
};

/* 0; negative with err: it cannot be replayed here, and what would. The verdict is the set's. */
int replay_host(const struct trace_set *set, const struct verdict_result *verdict,
    const struct replay_request *request, struct replay_result *out, struct err *err);
/* The same of a device: the one whose space failed, or with settings of PyTorch's, or through it,
 * the first that PyTorch has blocks on. */
int replay_device(const struct verdict_result *verdict, const struct replay_request *request,
    struct replay_result *out, struct err *err);
/* Where the model refused. */
struct through_refusal replay_refusal(const struct torch_outcome *o);
void replay_fini(struct replay_result *result);

/* --- inside replay/ --- */

void replay_stack(struct replay_point *p, const struct feed *feed, uint32_t stack);
/* What the replay of a device was refused. */
void replay_set_replayed(struct replay_result *out, struct feed feed, const char *space,
    uint64_t requested, uint64_t time_ns, uint64_t event, uint32_t stack);
/* driver.c: the requests that a driver refused in the end, made once more of a driver. 0, or
 * negative with err. */
int replay_driver(const struct verdict_result *verdict, struct feed feed,
    const struct replay_request *request, struct replay_result *out, struct err *err);
/* Does the request ask for PyTorch's allocator? */
bool replay_wants_torch(const struct replay_request *request);
/* How long `more` bytes last, at the pace of the second half of the time until then; UINT64_MAX:
 * nothing grew in it. */
uint64_t replay_lasts(const struct model *m, uint64_t time_ns, uint64_t more);

#endif
