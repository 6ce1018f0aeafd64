/* programs.c - see programs.h. */
#include "cmd/doctor/programs.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <paths.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The versions whose frames are recorded: the rows of shim/python/python_abi.c. */
#define PYTHON_FIRST 8
#define PYTHON_LAST 14
#define PYTHONS 64 /* minor versions to come */
#define WORDS                                                                                      \
	32u /* of a command, or of a script's first line: enough to see past env's options         \
	     */

/* The next word that env(1) would run; NULL: none. */
static const char *behind_env(char *const *words)
{
	static const char *const with_value[] = {
	    "-u", "--unset", "-C", "--chdir", "-a", "--argv0", NULL};

	for (; *words; words++) {
		const char *w = *words;
		bool value = false;

		if (strchr(w, '=') && w[0] != '-')
			continue;
		if (w[0] != '-')
			return w;
		for (const char *const *v = with_value; *v; v++)
			value |= !strcmp(w, *v);
		if (value && words[1])
			words++;
	}
	return NULL;
}

/* The words of a script's first line, behind "#!": its interpreter comes first. Cuts up `line`. */
static size_t first_line(const char *path, char line[512], char *words[WORDS + 1])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t bytes = fd < 0 ? -1 : read(fd, line, 511);
	size_t n = 0;

	if (fd >= 0)
		close(fd);
	if (bytes < 3 || memcmp(line, "#!", 2))
		return 0;
	line[bytes] = '\0';
	line[strcspn(line, "\n")] = '\0';
	for (char *save, *w = strtok_r(line + 2, " \t", &save); w && n < WORDS;
	     w = strtok_r(NULL, " \t", &save))
		words[n++] = w;
	words[n] = NULL;
	return n;
}

static bool is_env(const char *file)
{
	return !strcmp(str_base_name(file), "env");
}

void doctor_resolve(char *const *command, struct run_program *out)
{
	char line[512], *words[WORDS + 1];
	char *const *rest = command + 1;
	const char *name = command[0];

	/* env may call env; each turn drops at least one word. */
	for (unsigned turn = 0; turn < 8; turn++) {
		const char *next;

		run_program_look(name, out);
		if (out->error || !is_env(out->file))
			return;
		/* a script by env, or env itself */
		if (!is_env(out->path)) {
			if (first_line(out->path, line, words) < 2)
				return;
			rest = words + 1;
		}
		next = behind_env(rest);
		if (!next)
			return;
		while (*rest != next)
			rest++;
		rest++;
		name = next;
	}
}

static const char *way_out_of(enum run_program_kind kind)
{
	switch (kind) {
	case RUN_PROGRAM_SEEN:
		break;
	case RUN_PROGRAM_STATIC:
		return "link it dynamically; Go: CGO_ENABLED=1 and -ldflags=-linkmode=external";
	case RUN_PROGRAM_MUSL:
		return "take a build for glibc: an image on Debian or Ubuntu in place of Alpine";
	case RUN_PROGRAM_SETUID:
		return "start it as the user that it becomes, from a copy without the bit or the "
		       "capabilities";
	case RUN_PROGRAM_ASAN:
		return "record a build without the sanitizer";
	case RUN_PROGRAM_OTHER:
		return "record a 64-bit build for this machine";
	}
	return "";
}

void doctor_program(struct diagnosis *d, const char *name, const struct run_program *program)
{
	if (program->error) {
		diagnosis_add(d, "program", DIAGNOSIS_FAIL, "cannot run '%.200s': %s", name,
		    strerror(program->error));
		diagnosis_way_out(d, "is its name right, is it in PATH, may you execute it?");
	} else if (run_program_warning(program->kind)) {
		diagnosis_add(d, "program", DIAGNOSIS_FAIL, "%.200s %s", program->file,
		    run_program_warning(program->kind));
		diagnosis_way_out(d, "%s", way_out_of(program->kind));
	} else {
		diagnosis_add(d, "program", DIAGNOSIS_OK, "%.200s is linked dynamically%s%.200s",
		    program->file, *program->interpreter ? ", its loader is " : "",
		    program->interpreter);
	}
}

/* Without the number in its name, an installation tells by its folder of modules. */
static int version_by_folder(const char *path, char *kind)
{
	char folder[PATH_MAX + 16];
	int minor = -1;
	struct dirent *e;
	char *slash;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (!slash)
		return -1;
	strcpy(slash, "/../lib");
	dir = opendir(folder);
	while (dir && (e = readdir(dir))) {
		if (strncmp(e->d_name, "python3.", 8) || !isdigit((unsigned char)e->d_name[8]))
			continue;
		if (minor >= 0) { /* two: which is it? */
			minor = -1;
			break;
		}
		minor = atoi(e->d_name + 8);
		*kind = strchr(e->d_name, 't') > e->d_name + 8 ? 't' : '\0';
	}
	if (dir)
		closedir(dir);
	return minor;
}

int doctor_python_version(const char *path, char *kind)
{
	const char *name = str_base_name(path);
	char *end;
	int minor;

	*kind = '\0';
	if (strncmp(name, "python", 6))
		return -1;
	if (strncmp(name, "python3.", 8) || !isdigit((unsigned char)name[8]))
		return !name[6] || !strcmp(name, "python3") ? version_by_folder(path, kind) : -1;
	minor = (int)strtol(name + 8, &end, 10);
	if (!strcmp(end, "t") || !strcmp(end, "d"))
		*kind = *end;
	else if (*end)
		return -1; /* python3.11-config */
	return minor;
}

static bool recorded(int minor, char kind)
{
	return !kind && minor >= PYTHON_FIRST && minor <= PYTHON_LAST;
}

static const char *kind_words(char kind)
{
	return kind == 't' ? " (free threading)" : kind == 'd' ? " (a debugging build)" : "";
}

static void advise_python(struct diagnosis *d)
{
	diagnosis_way_out(d,
	    "native stacks and the cause are recorded as ever; for the lines of Python code use "
	    "CPython 3.%d to 3.%d, without free threading",
	    PYTHON_FIRST, PYTHON_LAST);
}

/* Versions that were found. */
struct pythons {
	bool has[PYTHONS][3]; /* by the minor version and an index of kinds */
};
static const char kinds[] = {'\0', 't', 'd'};

static void add_python(struct pythons *p, const char *path)
{
	char real[PATH_MAX], kind;
	int minor = realpath(path, real) ? doctor_python_version(real, &kind) : -1;

	for (size_t i = 0; minor >= 0 && minor < PYTHONS && i < sizeof(kinds); i++)
		p->has[minor][i] |= kinds[i] == kind;
}

/* Append those whose frames are recorded, or those whose are not. Returns whether there are any. */
static bool put_pythons(const struct pythons *p, bool which, const char *before, struct str *out)
{
	size_t start = out->length;

	for (int minor = 0; minor < PYTHONS; minor++)
		for (size_t i = 0; i < sizeof(kinds); i++)
			if (p->has[minor][i] && recorded(minor, kinds[i]) == which)
				str_printf(out, "%s3.%d%s", out->length > start ? ", " : before,
				    minor, kind_words(kinds[i]));
	return out->length > start;
}

static int is_python(const struct dirent *e)
{
	return !strncmp(e->d_name, "python", 6) &&
	       e->d_name[6 + strspn(e->d_name + 6, "0123456789.td")] == '\0';
}

static void search_pythons(struct pythons *p)
{
	const char *path = getenv("PATH");

	for (path = path ? path : _PATH_DEFPATH; *path;) {
		char folder[PATH_MAX], file[PATH_MAX + 256];
		size_t n = strcspn(path, ":");
		struct dirent **names;
		int count;

		snprintf(folder, sizeof(folder), "%.*s", (int)n, path);
		count = n ? scandir(folder, &names, is_python, alphasort) : 0;
		for (int i = 0; i < count; i++) {
			snprintf(file, sizeof(file), "%s/%s", folder, names[i]->d_name);
			if (!access(file, X_OK))
				add_python(p, file);
			free(names[i]);
		}
		if (n && count >= 0)
			free(names);
		path += n + (path[n] == ':');
	}
}

void doctor_python(struct diagnosis *d, const struct run_program *program)
{
	struct pythons pythons = {.has = {{false}}};
	char real[PATH_MAX], kind;
	struct str text = {0};
	bool any, others;
	int minor;

	if (!program) {
		search_pythons(&pythons);
		any = put_pythons(&pythons, true, "frames are recorded of ", &text);
		others = put_pythons(&pythons, false,
		    any ? "; native stacks only: " : "native stacks only: ", &text);
		if (any || others)
			diagnosis_add(d, "python", DIAGNOSIS_OK, "in PATH: %s", str_text(&text));
		if (others && !any)
			advise_python(d);
		str_free(&text);
		return;
	}
	if (program->error || !realpath(program->file, real) ||
	    strncmp(str_base_name(real), "python", 6))
		return;
	minor = doctor_python_version(real, &kind);
	if (minor < 0) {
		diagnosis_add(d, "python", DIAGNOSIS_OK,
		    "the version of %.200s shows in the trace: whyoom check", real);
		return;
	}
	diagnosis_add(d, "python", recorded(minor, kind) ? DIAGNOSIS_OK : DIAGNOSIS_WARN,
	    recorded(minor, kind) ? "CPython 3.%d%s: its frames are recorded"
				  : "CPython 3.%d%s: its frames are not recorded, native ones are",
	    minor, kind_words(kind));
	if (!recorded(minor, kind))
		advise_python(d);
}

/* Why another preloaded library is in the way; NULL: it is not. */
static const char *in_the_way(const char *name)
{
	static const struct {
		const char *part, *why;
	} all[] = {{"libasan", "a sanitizer insists on being first and replaces malloc itself"},
	    {"libtsan", "a sanitizer insists on being first and replaces malloc itself"},
	    {"libheaptrack", "heaptrack records the same calls"},
	    {"libbytehound", "bytehound records the same calls"},
	    {"_memray", "memray records the same calls"}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (strstr(name, all[i].part))
			return all[i].why;
	return NULL;
}

/* Look at one list of libraries, which blanks or colons part. False: something was said. */
static bool look_at(
    struct diagnosis *d, const char *root, const char *where, const char *list, const char *library)
{
	char path[PATH_MAX], real[PATH_MAX];

	for (; *list; list += strspn(list, ": \t\n")) {
		size_t n = strcspn(list, ": \t\n");
		const char *why;

		snprintf(path, sizeof(path), "%s%.*s", *list == '/' ? root : "", (int)n, list);
		list += n;
		if (!n || !*path)
			continue;
		why = in_the_way(str_base_name(path));
		if (why) {
			diagnosis_add(
			    d, "preload", DIAGNOSIS_WARN, "%s holds %.200s: %s", where, path, why);
			diagnosis_way_out(d, "record with one of them at a time");
			return false;
		}
		if (strchr(path, '/') && !strstr(path, "$") && access(path, R_OK)) {
			diagnosis_add(d, "preload", DIAGNOSIS_WARN,
			    "%s holds %.200s, which cannot be read: the loader says so at the "
			    "start "
			    "of each program",
			    where, path);
			diagnosis_way_out(d, "take it out of %s", where);
			return false;
		}
		if (library && realpath(path, real) && strcmp(real, library) &&
		    !strcmp(str_base_name(real), "libwhyoom.so")) {
			diagnosis_add(d, "preload", DIAGNOSIS_WARN,
			    "%s holds another libwhyoom.so, %.200s", where, real);
			diagnosis_way_out(d, "leave one of the two");
			return false;
		}
	}
	return true;
}

void doctor_preload(struct diagnosis *d, const char *root, const char *value, const char *library)
{
	char path[PATH_MAX], all[4096] = "";
	size_t n;
	FILE *f;

	if (value && !look_at(d, root, "LD_PRELOAD", value, library))
		return;
	snprintf(path, sizeof(path), "%s/etc/ld.so.preload", root);
	f = fopen(path, "re");
	if (f) {
		n = fread(all, 1, sizeof(all) - 1, f);
		all[n] = '\0';
		fclose(f);
	}
	if (!look_at(d, root, "/etc/ld.so.preload", all, library))
		return;
	if (value && *value)
		diagnosis_add(d, "preload", DIAGNOSIS_OK,
		    "LD_PRELOAD holds %.300s, and whyoom goes in front of it", value);
	else
		diagnosis_add(d, "preload", DIAGNOSIS_OK, "nothing else is preloaded");
}
