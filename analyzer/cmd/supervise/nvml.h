/*
 * nvml.h - the protocol between the supervisor and its helper: the supervisor sends a byte, and the
 * helper answers with one struct nvml_answer, cut after the last device. Both come from one build
 * and run on one machine.
 */
#ifndef ANALYZER_CMD_NVML_H
#define ANALYZER_CMD_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVML_DEVICES 16u /* further ones are left out */
#define NVML_PROCESSES 128u /* of a device */

struct nvml_process {
	uint64_t bytes;
	uint32_t pid, unused;
};

struct nvml_device {
	uint64_t free, total; /* total 0: it did not answer */
	char uuid[96], name[96];
	uint32_t process_count;
	bool named; /* the library listed its processes */
	struct nvml_process processes[NVML_PROCESSES];
};

struct nvml_answer {
	uint64_t asked_ns; /* CLOCK_MONOTONIC */
	uint64_t cost_ns; /* of the helper's CPU time */
	uint32_t count, unused;
	struct nvml_device devices[NVML_DEVICES];
};

#endif
