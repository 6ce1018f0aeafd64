/*
 * through.h - repeats requests on a device's own allocator, in a process of its own, on a simulated
 * or real device. Two programs read the stream of requests: through_torch.py runs PyTorch's
 * allocator in the user's Python, and whyoom-device-player calls the driver.
 */
#ifndef ANALYZER_REPLAY_THROUGH_H
#define ANALYZER_REPLAY_THROUGH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/torch/torch_replay.h"
#include "util/map.h"
#include "util/text/err.h"

struct through_request {
	const char *program; /* as execvp() finds it */
	const char *script; /* its first argument, NULL: none */
	const char *simgpu; /* libwhyoom-simgpu.so */
	const char *settings; /* PYTORCH_CUDA_ALLOC_CONF, NULL: none */
	uint64_t memory; /* bytes of the device */
	uint64_t allowed; /* bytes that may be reserved, UINT64_MAX: all */
};

/* A refusal, in bytes; serial 0: there was none. */
struct through_refusal {
	uint64_t serial, size, reserved, allocated;
};

struct through_answer {
	char torch[32], device[96];
	bool simulated;
	uint64_t events, ns;
	uint64_t peak_reserved, peak_allocated, end_reserved, segments, peak_segments;
	uint64_t granted; /* refusals of the record that were granted */
	uint64_t free; /* left on the device at the end, or at the refusal */
	struct through_refusal refused;
};

/* The stream, written while the model runs: through_stream_change() makes `change` write it. */
struct through_stream {
	FILE *file; /* without a name; owned */
	struct map serials; /* of live blocks, by recorded address */
	uint64_t room; /* the value written last */
	int error;
};
/* Open an empty stream. 0, or negative with err. */
int through_stream_open(struct through_stream *s, struct err *err);
void through_stream_close(struct through_stream *s);
void through_stream_change(struct through_stream *s, struct torch_change *change);

/* Run the program once. `what` names the allocator in messages. 0; negative with err: there is no
 * such program, it has no PyTorch, PyTorch rejects the settings, or there is no device. */
int through_run(const char *what, const struct through_request *request, struct through_stream *s,
    struct through_answer *out, struct err *err);

#endif
