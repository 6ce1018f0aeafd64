/*
 * witness.h - tells a signal sent to the supervisor alone from one sent to everybody.
 *
 * The supervisor passes on what is sent to it. A signal to the whole process group (Ctrl-C, `kill
 * %1`) or service (systemd's stop) reaches the target by itself, and passing it on would deliver it
 * twice, which many servers take as "stop at once". The two cannot be told apart by what the signal
 * carries, so a second process in the same group, which does nothing else, says whether it got the
 * signal as well.
 */
#ifndef ANALYZER_CMD_RUN_WITNESS_H
#define ANALYZER_CMD_RUN_WITNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RUN_WITNESS_SIGNALS 65

struct run_witness_page; /* shared with it */

struct run_witness {
	pid_t pid; /* 0: there is none, and every signal counts as sent to us alone */
	struct run_witness_page *page;
	unsigned noted[RUN_WITNESS_SIGNALS]; /* of its counts */
	uint64_t asked_ns[RUN_WITNESS_SIGNALS]; /* the last time */
};

/* All signals must be blocked. `argv` is blanked in the witness, so that it is not found by name.
 */
void run_witness_start(struct run_witness *w, char **argv);

/* Did the signal that just arrived go to the whole group? Waits some milliseconds for the witness,
 * longer on a busy machine. */
bool run_witness_saw(struct run_witness *w, int sig);

void run_witness_stop(struct run_witness *w);

#endif
