/*
 * spare.h - keeps the OOM killer from the supervisor, which is small and has the verdict to tell:
 * oom_score_adj -1000, where it has the right. memory.oom.group spares such a process, too. Others
 * that it starts, and the target above all, must have the value that it had before.
 */
#ifndef ANALYZER_CMD_RUN_SPARE_H
#define ANALYZER_CMD_RUN_SPARE_H

/* Spare this process from now on. Without the right nothing happens. Call it after the fork of the
 * target, which then never has had another value than its own. */
void run_spare_begin(void);
/* Take the value from before again; also in a child that was forked meanwhile. While nothing else
 * could be killed, a spared process would wait for memory without an end. */
void run_spare_end(void);

#endif
