/* attach.c - see attach.h. */
#include "hooks/attach.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/sys.h"
#include "lifecycle.h"
#include "shim.h"

#define SETTINGS_BYTES 16384u
#define SETTINGS 128u

static struct {
	char text[SETTINGS_BYTES];
	char *lines[SETTINGS + 1];
} settings_of[2]; /* the present ones, and those of a new attach */
static unsigned newest;
static bool busy;

/* Returns 0 or -EINVAL. */
static int copy_settings(unsigned to, const char *settings, size_t size)
{
	char *text = settings_of[to].text, *end = text + size;
	size_t count = 0;

	if (size > SETTINGS_BYTES || (size && settings[size - 1]))
		return -EINVAL;
	memcpy(text, settings, size);
	for (char *p = text; p < end; p += strlen(p) + 1) {
		if (strncmp(p, "WHYOOM_", 7) != 0 || !strchr(p, '=') || count == SETTINGS)
			return -EINVAL;
		settings_of[to].lines[count++] = p;
	}
	settings_of[to].lines[count] = NULL;
	return 0;
}

static int attach(const char *settings, size_t size)
{
	unsigned to = 1 - newest;
	int rc = copy_settings(to, settings, size);

	if (!rc)
		rc = lifecycle_attach(settings_of[to].lines);
	if (!rc)
		newest = to;
	return rc;
}

static bool enter(void)
{
	return !__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE);
}

static int leave(int rc, uint64_t signals, int saved)
{
	sys_restore_signals(signals);
	__atomic_store_n(&busy, false, __ATOMIC_RELEASE);
	errno = saved;
	return rc;
}

SHIM_EXPORT int whyoom_attach(const char *settings, size_t size)
{
	int saved = errno;
	uint64_t signals;

	if (!enter())
		return -EAGAIN;
	signals = sys_block_signals();
	return leave(attach(settings, size), signals, saved);
}

SHIM_EXPORT int whyoom_detach(void)
{
	int saved = errno;
	uint64_t signals;

	if (!enter())
		return -EAGAIN;
	signals = sys_block_signals();
	return leave(lifecycle_detach(), signals, saved);
}
