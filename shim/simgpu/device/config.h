/*
 * config.h - the configuration: which devices there are and which failures they inject, from
 * WHYOOM_SIMGPU (grammar in docs/simgpu.md) and the table in options.def. Read once. A wrong value
 * becomes its default, but a wrong list of devices means no device: a default would be taken for
 * the device that the user asked for.
 */
#ifndef SIMGPU_CONFIG_H
#define SIMGPU_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define SIMGPU_DEVICES 16 /* the most */
#define SIMGPU_DEFAULT "24GiB"

struct device_spec {
	char name[64];
	uint64_t bytes; /* total */
	uint64_t context; /* bytes that a context takes */
	int major, minor, multiprocessors;
};

struct config {
	struct device_spec devices[SIMGPU_DEVICES];
	int count;
	char machine[64]; /* a valid file name; empty: none was named */
	uint64_t backing;
	bool quiet;
	struct {
		char call[64];
		uint64_t nth, from, size, rate, seed; /* 0: off */
	} fail;
};

/* Reads everything from the environment. `why` becomes one line about a wrong value, or empty. */
void config_read(struct config *config, char why[96]);

#endif
