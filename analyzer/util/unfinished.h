/*
 * unfinished.h - cleans up when a command ends before its work is done: removes unfinished files
 * and directories and kills helper processes, the latest first. This runs when a signal ends the
 * command, which then dies by that signal as shells expect, and at exit(). Only SIGKILL leaves them
 * behind, under hidden names that no command takes for a result. One thread.
 */
#ifndef ANALYZER_UTIL_UNFINISHED_H
#define ANALYZER_UTIL_UNFINISHED_H

#include <sys/types.h>

/* Start it for SIGHUP, SIGINT, SIGQUIT and SIGTERM, unless these are ignored, and for exit(). Also
 * ignores SIGXFSZ, so that write() fails beyond a limit of file size. */
void unfinished_watch(void);
/* Restore the handler of one of these signals. */
void unfinished_watch_signal(int signal);

/* Register before creating it. 0; -ENAMETOOLONG; -ENOSPC: too many at once. */
int unfinished_file(const char *path);
int unfinished_directory(const char *path); /* with the files in it */
int unfinished_child(pid_t pid); /* killed, and waited for */
/* Unregister one that is finished, renamed or removed. Unknown ones are ignored. */
void unfinished_done(const char *path);
void unfinished_child_done(pid_t pid);
/* Remove a registered one now. Unknown ones are ignored. */
void unfinished_remove(const char *path);

#endif
