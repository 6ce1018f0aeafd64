/*
 * device_replay.h - PyTorch's requests on the device that failed, put to the model of its allocator
 * once more with other settings: would the refused one have been granted?
 */
#ifndef ANALYZER_VERDICT_DEVICE_REPLAY_H
#define ANALYZER_VERDICT_DEVICE_REPLAY_H

#include "verdict/device.h"

/* Fills d->settings and d->match; nothing where PyTorch refused nothing on that device, or the
 * model does not do as the record shows. Words are the arena's. 0 or negative, err filled. */
int device_replay(struct feed feed, struct device_report *d, struct arena *words, struct err *err);

#endif
