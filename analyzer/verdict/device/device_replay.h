/*
 * device_replay.h - PyTorch's requests on the device that failed, put to the model of its allocator
 * once more without each cause, and with other settings: would the refused one have been granted?
 */
#ifndef ANALYZER_VERDICT_DEVICE_REPLAY_H
#define ANALYZER_VERDICT_DEVICE_REPLAY_H

#include "verdict/device/device.h"

/* Fills the trials of r->candidates, and of r->device settings and match; where PyTorch refused
 * nothing on that device, or the model does not do as the record shows, only the last, which a note
 * then says. The places are r's. 0 or negative, err filled. */
int device_replay(struct verdict_result *r, struct feed feed, struct err *err);

#endif
