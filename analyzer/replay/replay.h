/*
 * replay.h - repeats the recorded requests on real allocators, or on a model of a device's
 * allocator, and says where that fails and whether the record failed there. struct replay_result
 * has everything that the reports print; nothing here prints.
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
	size_t allocator_count; /* 0: the recorded one, or glibc if that is not installed */
	struct group_parent parent; /* where to make a cgroup */
	uint64_t room; /* bytes left in our own cgroup; UINT64_MAX: it has no limit */
	uint64_t memory; /* replaces the limit, or the device's memory; 0: as recorded */
	double speed; /* factor on the recorded speed, for the host; 0: as fast as possible */
	bool no_touch;
	bool hold; /* the first allocator's process stops at the failure */
	bool hold_at_end; /* it also stops at the end */
	/* PyTorch's allocator: */
	const char *alloc_conf; /* settings that replace the recorded ones; NULL: as recorded */
	const char *python; /* runs PyTorch's own allocator as well; NULL: only the model */
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
	size_t frame; /* index of the frame to blame in words */
};

/* One allocator's run. */
struct replay_row {
	const char *name;
	char missing[160]; /* why it did not run, or empty */
	enum play_state state;
	struct replay_point failed; /* where it failed, if it did */
	bool granted; /* granted the request that the record was refused at its end */
	uint64_t later; /* bytes of the refused request that were granted before */
	uint64_t lent; /* bytes above the limit that were granted before */
	uint64_t peak_live;
	uint64_t peak_resident; /* of private memory; the next three are of that moment */
	uint64_t touched; /* live bytes that were written to */
	uint64_t held, used; /* as the allocator reports them; 0: it does not */
	uint64_t end_live, end_resident;
	uint64_t ops, ns;
};

struct replay_result {
	struct replay_point original, replayed; /* replayed: the first allocator's */
	bool same;
	uint64_t memory; /* the request's, or 0 */
	double speed; /* the request's; 0 for a device */
	enum limit_kind limit_kind;
	uint64_t limit_bytes; /* 0: none */
	/* "rlimit", "cgroup", or "emulated" from what is resident; NULL: none was set. */
	const char *limit_by;
	uint64_t peak_live; /* recorded, of the replayed blocks */
	/* Host: */
	struct replay_row rows[REPLAY_ALLOCATORS];
	size_t row_count;
	int held; /* the process that is stopped at the failure, or 0; the caller ends it */
	struct plan_facts plan;
	struct touch_fit touch;
	double shares[PLAN_KINDS]; /* of the live bytes at the peak that are written to; -1: no such
				      blocks */
	bool touched;
	uint64_t beside; /* bytes beside the blocks at the failure, as the limit counts them */
	/* The second half of the resident curve; the shares are fitted to the first half. */
	struct {
		bool known;
		uint64_t recorded, replayed; /* peaks */
		/* bounds of the replayed peak, given what the first half says */
		uint64_t least, most;
		bool told; /* the bounds are close enough to compare */
		double deviation;
	} curve;
	/* A device: */
	bool modelled;
	bool changed; /* torch.settings replace the recorded ones */
	struct torch_match match;
	int64_t headroom;
	bool asked_driver;
	struct through_answer driver; /* from the driver, or the simulated one */
	struct {
		bool asked; /* PyTorch's requests were replayed */
		const char *settings; /* of the replay; NULL: PyTorch's defaults */
		struct torch_outcome model;
		bool through; /* PyTorch's own allocator ran, too */
		struct through_answer own;
		double deviation; /* of the model's peak of reserved bytes from PyTorch's */
		bool agree; /* on the failing request and on that peak */
	} torch;
	/* With other memory, if the replay reaches the record's end: how much longer that memory
	 * lasts at the pace of the second half. 0: unknown, UINT64_MAX: nothing grew. */
	uint64_t lasts_ns;
	const char *notes[NOTES_MAX];
	size_t note_count;
	struct arena arena;
};

/* Replay the host's requests. `verdict` is the set's. 0; negative with err: this machine cannot
 * replay them, and err says what would make it possible. */
int replay_host(const struct trace_set *set, const struct verdict_result *verdict,
    const struct replay_request *request, struct replay_result *out, struct err *err);
/* Replay a device's requests: of the device that failed or, with PyTorch's settings or allocator,
 * of the first one that has PyTorch's blocks. Returns as replay_host(). */
int replay_device(const struct verdict_result *verdict, const struct replay_request *request,
    struct replay_result *out, struct err *err);
/* Return the model's refusal; serial 0: none. */
struct through_refusal replay_refusal(const struct torch_outcome *o);
void replay_fini(struct replay_result *result);

void replay_stack(struct replay_point *p, const struct feed *feed, uint32_t stack);
/* Set where the replay of a device failed; `at` has the request, time, event and stack. */
void replay_set_replayed(
    struct replay_result *out, struct feed feed, const char *space, const struct replay_point *at);
/* Replay the requests to a driver on a driver (driver.c). 0, or negative with err. */
int replay_driver(const struct verdict_result *verdict, struct feed feed,
    const struct replay_request *request, struct replay_result *out, struct err *err);
/* Return whether the request asks for PyTorch's allocator. */
bool replay_wants_torch(const struct replay_request *request);
/* Return how many ns `more` bytes last at the pace of the second half of the time until `time_ns`;
 * UINT64_MAX: nothing grew in it. */
uint64_t replay_lasts(const struct model *m, uint64_t time_ns, uint64_t more);

#endif
