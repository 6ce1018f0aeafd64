/*
 * attach.h - what is called in a running process into which a dlopen has brought this library.
 * Until then the library does nothing there.
 */
#ifndef SHIM_ATTACH_H
#define SHIM_ATTACH_H

#include <stddef.h>

/*
 * Begin to record this process. `settings`: "NAME=VALUE" of WHYOOM_* options, each ended by NUL,
 * `size` bytes in all; they stand in for the environment. The caller must not be in a function of
 * malloc's family, but may be at its entry. Any thread, one at a time; other threads run on.
 *
 * Returns 0, or negative errno, and then nothing has changed:
 *	-EALREADY	the process is being recorded
 *	-EOPNOTSUPP	the library was there from the start, or a sanitizer is, or the process was
 *			forked from one that had been attached to
 *	-EINVAL		a setting is wrong, or WHYOOM_OFF=1
 *	-EBUSY		another tool has put itself into the slots of malloc
 *	-ENOSYS		the process has no malloc that can be found
 *	-EAGAIN		a thread is still writing the trace of an earlier attach, or another thread
 *			is attaching or detaching
 *	-ESHUTDOWN	the process is exiting
 *	others		the trace cannot be made
 */
int whyoom_attach(const char *settings, size_t size);

/*
 * End the recording that whyoom_attach() began: put the slots back and end the trace. The library
 * stays. Returns 0, or negative errno:
 *	-EINVAL		no such recording
 *	-EOPNOTSUPP	in a forked child
 *	-EPERM		the process has a filter of system calls
 *	-EBUSY		ended, but some thread is still writing an event
 */
int whyoom_detach(void);

#endif
