/*
 * device_replay.h - replays PyTorch's requests on the device that failed, on a model of its
 * allocator, without each cause and with other settings: would the refused request have been
 * granted?
 */
#ifndef ANALYZER_VERDICT_DEVICE_REPLAY_H
#define ANALYZER_VERDICT_DEVICE_REPLAY_H

#include "verdict/device/device.h"

/* The device that failed, and the results of its replay. */
struct device_replay {
	const struct callsites *callsites; /* the candidates' claims refer to them */
	uint64_t failed_ns; /* time of the refusal */
	struct device_report *device; /* its settings and match are filled */
	struct notes *notes; /* receives a note if the model does not reproduce the recording */
	struct arena *words; /* keeps the settings' names */
};

/* Fill the candidates' trials: judge_trial's ask, with a struct device_replay as `self`. If PyTorch
 * refused nothing on that device, nothing is filled; if the model does not reproduce the recording,
 * only the match is. 0; negative errno with err. */
int device_replay(void *self, struct feed feed, struct ranking *ranking, struct err *err);

#endif
