/*
 * device_replay.h - put PyTorch's requests on the device that failed to a model of its allocator
 * again, without each cause and with other settings: would the refused one have been granted?
 */
#ifndef ANALYZER_VERDICT_DEVICE_REPLAY_H
#define ANALYZER_VERDICT_DEVICE_REPLAY_H

#include "verdict/device/device.h"

/* The device that failed, and what a replay fills of it. */
struct device_replay {
	const struct callsites *callsites; /* that the candidates' claims are of */
	uint64_t failed_ns; /* time of the refusal */
	struct device_report *device; /* its settings and match are filled */
	struct notes *notes; /* says when the model does not do what the recording shows */
	struct arena *words; /* keeps the settings' names */
};

/* Fill the candidates' trials: judge_trial's ask, whose `self` is a struct device_replay. Where
 * PyTorch refused nothing on that device, nothing is filled; where the model does not do what the
 * recording shows, the match alone. 0; negative errno with err. */
int device_replay(void *self, struct feed feed, struct ranking *ranking, struct err *err);

#endif
