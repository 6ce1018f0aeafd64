/*
 * unfinished.h - what must not stay when a command ends before its work is done: files and
 * directories that are not whole yet, and processes that work for it. They are removed, last first,
 * when a signal ends the command, which then ends by that signal, as a shell expects of it; and
 * when it calls exit() halfway. SIGKILL alone leaves them: their names are hidden ones, which no
 * command takes for a result.
 *
 * One thread.
 */
#ifndef ANALYZER_UTIL_UNFINISHED_H
#define ANALYZER_UTIL_UNFINISHED_H

#include <sys/types.h>

/* From here on SIGHUP, SIGINT, SIGQUIT and SIGTERM clean up, but for those that are ignored. A full
 * quota of file sizes is an error of write(), as a full disk is. Who has not called it is cleaned
 * up after by nobody. */
void unfinished_watch(void);
/* One of those signals ends the command again, after something else was done with it. */
void unfinished_watch_signal(int signal);

/* Before it is made. 0; -ENAMETOOLONG; -ENOSPC: too many at once. */
int unfinished_file(const char *path);
int unfinished_directory(const char *path); /* with the files in it */
int unfinished_child(pid_t pid); /* killed, and waited for */
/* It is whole, has its own name, or was removed: nothing is done about it any more. What is not
 * known is passed over. */
void unfinished_done(const char *path);
void unfinished_child_done(pid_t pid);
/* As a signal would; nothing where it is not known. */
void unfinished_remove(const char *path);

#endif
