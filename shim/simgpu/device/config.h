/*
 * config.h - which devices there are and how they misbehave, from WHYOOM_SIMGPU (the grammar is in
 * docs/simgpu.md) and the table in options.def. Read once. Of a wrong value the default holds, but
 * devices that make no sense are none: nobody should take a figure for what he asked for.
 */
#ifndef SIMGPU_CONFIG_H
#define SIMGPU_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIMGPU_DEVICES 16 /* at most */
#define SIMGPU_DEFAULT "24GiB"

struct device_spec {
	char name[64];
	uint64_t bytes; /* in all */
	uint64_t context; /* that a context takes */
	int major, minor, multiprocessors;
};

struct config {
	struct device_spec devices[SIMGPU_DEVICES];
	int count;
	char machine[64]; /* characters that a file name may have; empty: none was named */
	uint64_t backing;
	bool quiet;
	struct {
		char call[64];
		uint64_t nth, from, size, rate, seed; /* 0: off */
	} fail;
};

/* `text` as in WHYOOM_SIMGPU. 0, or -1 with the reason in `why`; then `config` is as it was. */
int config_devices(struct config *config, const char *text, char why[96]);
/* All of it, from the environment. What was wrong, as one line, in `why`, else empty. */
void config_read(struct config *config, char why[96]);

/* Bytes with a unit (K, M, G, T, with or without iB, a fraction allowed). */
bool config_size(const char *text, uint64_t *bytes);

#endif
