/*
 * library.c - see library.h. The places are relative to the program, so that an unpacked
 * tarball can lie anywhere.
 */
#include "cmd/run/library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "libwhyoom.so"
#define SIMGPU "libwhyoom-simgpu.so"
#define NVML "whyoom-nvml"
#define NVTX "libwhyoom-nvtx.so"
#define PLAYER "whyoom-player"
#define DEVICE_PLAYER "whyoom-device-player"
#define THROUGH "through_torch.py"

static const char *const callsites[] = {
    ("../" WHYOOM_LIBDIR), /* meson install; the tarball's is plain lib */
    "../lib/whyoom", /* Debian's package, where the libraries have a folder of their own */
    "../lib", "../../shim", /* the build tree */
};

/* The directory of `program`, or of this one. 0, or negative with err. */
static int folder_of(const char *program, char self[PATH_MAX], struct err *err)
{
	char *slash;

	if (program) {
		snprintf(self, PATH_MAX, "%s", program);
	} else {
		ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);

		if (n < 0)
			return err_set(
			    err, -errno, "cannot read /proc/self/exe: %s", strerror(errno));
		self[n] = '\0';
	}
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	return 0;
}

int run_library_find(const char *program, char path[PATH_MAX], struct err *err)
{
	char self[PATH_MAX], trial[PATH_MAX + 64];
	int rc = folder_of(program, self, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(callsites) / sizeof(*callsites); i++) {
		snprintf(trial, sizeof(trial), "%s/%s/" NAME, self, callsites[i]);
		if (!realpath(trial, path))
			continue;
		if (strpbrk(path, ": "))
			return err_set(err, -EINVAL,
			    "%s: LD_PRELOAD cannot hold a path with a blank or a colon; move "
			    "whyoom to another directory",
			    path);
		return 0;
	}
	return err_set(err, -ENOENT,
	    NAME " is missing: looked in %s/{../lib,../%s,../lib/whyoom,../../shim}", self,
	    WHYOOM_LIBDIR);
}

/* A file beside the library, as installed, or where the build tree has it. */
static bool beside(
    const char *library, const char *installed, const char *built, char path[PATH_MAX])
{
	const char *const names[] = {installed, built};
	int n = (int)(strrchr(library, '/') - library);
	char trial[PATH_MAX + 64];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(trial, sizeof(trial), "%.*s/%s", n, library, names[i]);
		if (realpath(trial, path))
			return true;
	}
	return false;
}

int run_library_simgpu(const char *library, char path[PATH_MAX], struct err *err)
{
	if (beside(library, "simgpu/" SIMGPU, SIMGPU, path))
		return 0;
	return err_set(
	    err, -ENOENT, "simgpu/" SIMGPU " is not beside %s: there is no simulated GPU", library);
}

int run_library_nvtx(const char *library, char path[PATH_MAX], struct err *err)
{
	if (beside(library, NVTX, NVTX, path))
		return 0;
	return err_set(
	    err, -ENOENT, NVTX " is not beside %s: NVTX's ranges cannot be recorded", library);
}

bool run_library_nvml(const char *library, char path[PATH_MAX])
{
	return beside(library, NVML, "../analyzer/cmd/" NVML, path);
}

bool run_library_player(const char *library, char path[PATH_MAX])
{
	return beside(library, PLAYER, "../analyzer/replay/" PLAYER, path);
}

bool run_library_device_player(const char *library, char path[PATH_MAX])
{
	return beside(library, DEVICE_PLAYER, "../analyzer/replay/" DEVICE_PLAYER, path);
}

int run_library_through(char path[PATH_MAX], struct err *err)
{
	static const char *const data[] = {
	    "../" WHYOOM_DATADIR "/whyoom/" THROUGH, /* meson install */
	    "../share/whyoom/" THROUGH, /* the tarball */
	    "../replay/" THROUGH, /* the build tree */
	};
	char self[PATH_MAX], trial[PATH_MAX + 128];
	int rc = folder_of(NULL, self, err);

	for (size_t i = 0; !rc && i < sizeof(data) / sizeof(*data); i++) {
		snprintf(trial, sizeof(trial), "%s/%s", self, data[i]);
		if (realpath(trial, path))
			return 0;
	}
	return rc ? rc
		  : err_set(err, -ENOENT, THROUGH " is missing: looked in %s/../%s", self,
			WHYOOM_DATADIR "/whyoom");
}

char *run_library_preload(const char *path, const char *before)
{
	size_t n = strlen(path);
	char *all;

	if (!before || !*before)
		return strdup(path);
	/* A run inside a run: it is in front already. */
	if (!strncmp(before, path, n) && (!before[n] || strchr(": ", before[n])))
		return strdup(before);
	return asprintf(&all, "%s:%s", path, before) < 0 ? NULL : all;
}
