#include "knowledge/frames.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Split at `mark`, without blanks; `right` is NULL if there is no mark. */
static int halves(
    const char *text, const char *mark, struct arena *arena, const char **left, const char **right)
{
	const char *at = strstr(text, mark);
	size_t bytes = at ? (size_t)(at - text) : strlen(text);

	while (bytes && text[bytes - 1] == ' ')
		bytes--;
	*left = arena_copy(arena, text, bytes);
	*right = NULL;
	if (at) {
		at += strlen(mark);
		at += strspn(at, " ");
		*right = arena_copy(arena, at, strlen(at));
	}
	return !*left || (at && !*right) ? -ENOMEM : 0;
}

static uint64_t file_key(const char *path)
{
	const char *base = base_name(path);

	return map_hash_bytes(base, strlen(base));
}

/* True if the pattern is found by its file's name; else it is among the others. */
static bool by_file(const struct frame_pattern *pattern)
{
	return !pattern->native && *base_name(pattern->file);
}

static int add_folder(struct frames *frames, const char *folder)
{
	return map_put(&frames->folders, map_hash_bytes(folder, strcspn(folder, "/"))) ? 0
										       : -ENOMEM;
}

/* False: the path of a Python file matches no folder's pattern and no package. It would have to
 * contain a folder that begins like one of the many patterns; few paths do. */
static bool may_match(const struct frames *frames, const char *path)
{
	const char *end;

	if (!path || frames->path_ends)
		return path;
	for (; (end = strchr(path, '/')); path = end + 1)
		if (map_find(&frames->folders, map_hash_bytes(path, (size_t)(end - path))))
			return true;
	return false;
}

static int add(struct frames *frames, struct frame_pattern pattern)
{
	uint32_t index = (uint32_t)frames->patterns.count;
	uint64_t *first = NULL;

	pattern.literal = strcspn(pattern.function, "*?[\\");
	if (by_file(&pattern)) {
		first = map_put(&frames->by_file, file_key(pattern.file));
		if (!first)
			return -ENOMEM;
		pattern.next = (uint32_t)*first;
	} else if ((!pattern.native && add_folder(frames, pattern.file)) ||
		   vec_push(&frames->others, index)) {
		return -ENOMEM;
	}
	if (vec_push(&frames->patterns, pattern))
		return -ENOMEM;
	if (first)
		*first = index + 1;
	return 0;
}

int frames_add_python(
    struct frames *frames, const char *text, struct knowledge_place place, struct arena *arena)
{
	struct frame_pattern pattern = {.place = place};
	int rc = halves(text, ":", arena, &pattern.file, &pattern.function);

	if (rc)
		return rc;
	if (!pattern.function)
		pattern.function = "*";
	/* Only functions are globs: files are found by name. */
	if (!*pattern.file || !*pattern.function || strpbrk(pattern.file, "*?["))
		return -EINVAL;
	return add(frames, pattern);
}

int frames_add_native(
    struct frames *frames, const char *text, struct knowledge_place place, struct arena *arena)
{
	struct frame_pattern pattern = {.place = place, .native = true};
	int rc = halves(text, "@", arena, &pattern.function, &pattern.file);

	if (rc)
		return rc;
	if (!pattern.file)
		pattern.file = "";
	if (!*pattern.function)
		return -EINVAL;
	return add(frames, pattern);
}

int frames_add_package(struct frames *frames, const char *name, bool native,
    const struct knowledge_framework *framework)
{
	struct frame_package package = {.name = name, .native = native, .framework = framework};

	/* A package that is no folder ends a path, so folders alone cannot rule a path out. */
	frames->path_ends |= !native && !strchr(name, '/');
	if (!native && add_folder(frames, name))
		return -ENOMEM;
	return vec_push(&frames->packages, package);
}

/* True if the path ends in `file`, at a folder's border. A `file` ending in '/' may be anywhere. */
static bool file_matches(const char *file, const char *path)
{
	size_t want = strlen(file), have = strlen(path);
	const char *at = path;

	if (want && file[want - 1] == '/') {
		while ((at = strstr(at, file))) {
			if (at == path || at[-1] == '/')
				return true;
			at++;
		}
		return false;
	}
	return have >= want && memcmp(path + have - want, file, want) == 0 &&
	       (have == want || path[have - want - 1] == '/');
}

/* Before 3.11, CPython knows a method by its bare name only: then the last part decides. */
static bool python_matches(const char *pattern, const char *function)
{
	const char *last = strrchr(pattern, '.');

	if (fnmatch(pattern, function, 0) == 0)
		return true;
	return last && !strchr(function, '.') && fnmatch(last + 1, function, 0) == 0;
}

static bool pattern_matches(
    const struct frame_pattern *p, const char *function, const char *file, const char *module)
{
	if (p->native)
		return module && strncmp(p->function, function, p->literal) == 0 &&
		       (!*p->file || fnmatch(p->file, base_name(module), 0) == 0) &&
		       fnmatch(p->function, function, 0) == 0;
	return !module && file && file_matches(p->file, file) &&
	       python_matches(p->function, function);
}

const struct knowledge_framework *frames_owner(
    const struct frames *frames, const char *file, const char *module)
{
	if (!module && !may_match(frames, file))
		return NULL;
	for (size_t i = frames->packages.count; i-- > 0;) {
		const struct frame_package *p = &frames->packages.items[i];

		if (p->native ? module && fnmatch(p->name, base_name(module), 0) == 0
			      : !module && file && file_matches(p->name, file))
			return p->framework;
	}
	return NULL;
}

/* Find a frame's pattern; NULL: none. Code that runs at import is none of the file's functions. */
static const struct frame_pattern *pattern_of(
    const struct frames *frames, const char *function, const char *file, const char *module)
{
	if (!module && strcmp(function, "<module>") == 0)
		return NULL;
	if (file && !module) {
		uint64_t *first = map_find(&frames->by_file, file_key(file));

		for (uint32_t i = first ? (uint32_t)*first : 0; i;
		     i = frames->patterns.items[i - 1].next)
			if (pattern_matches(&frames->patterns.items[i - 1], function, file, module))
				return &frames->patterns.items[i - 1];
	}
	if (!module && !may_match(frames, file))
		return NULL;
	for (size_t i = frames->others.count; i-- > 0;) {
		const struct frame_pattern *p = &frames->patterns.items[frames->others.items[i]];

		if (pattern_matches(p, function, file, module))
			return p;
	}
	return NULL;
}

bool frames_match(const struct frames *frames, const char *function, const char *file,
    const char *module, struct knowledge_place *place)
{
	const struct frame_pattern *p = pattern_of(frames, function ? function : "", file, module);

	if (p)
		*place = p->place;
	return p;
}

void frames_undo(struct frames *frames, struct frames_mark mark)
{
	while (frames->patterns.count > mark.patterns) {
		struct frame_pattern *last = &frames->patterns.items[--frames->patterns.count];

		if (by_file(last))
			*map_find(&frames->by_file, file_key(last->file)) = last->next;
		else
			frames->others.count--;
	}
	frames->packages.count = mark.packages;
}

void frames_free(struct frames *frames)
{
	vec_free(&frames->patterns);
	vec_free(&frames->packages);
	vec_free(&frames->others);
	map_free(&frames->by_file);
	map_free(&frames->folders);
}
