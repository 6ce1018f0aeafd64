/* knowledge.c - gives the sections of a knowledge file their meaning, and finds what they say of a
 * frame. See knowledge.h. */
#include "knowledge/knowledge.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "knowledge/sections.h"
#include "util/map.h"
#include "util/text/note.h"
#include "util/text/str.h"

/* The patterns of functions, indexed by file name. */
struct frame_pattern {
	/* Python: the end of a path, "cache_utils.py" or "transformers/cache_utils.py", or a folder
	 * anywhere in it, "vllm/v1/". Native: "" or a glob of the module's base name. */
	const char *file;
	const char *function; /* a glob; for a Python method of its qualified name */
	size_t literal; /* bytes before the first wildcard */
	bool native;
	struct knowledge_place place;
	uint32_t next; /* next pattern of the same file name: index + 1 */
};

struct frame_package {
	const char *name; /* a folder that holds only this framework, or a module's base name */
	bool native;
	const struct knowledge_framework *framework;
};

struct frames {
	VEC(struct frame_pattern) patterns;
	VEC(struct frame_package) packages;
	struct map by_file; /* hash of a Python file's base name to its first pattern, index + 1 */
	VEC(uint32_t) others; /* patterns of folders, and of native code */
	struct map folders; /* hashes of Python folders' beginnings, up to the first '/' */
	bool path_ends; /* some Python package is not recognised by a folder */
};

struct knowledge {
	struct arena arena;
	struct frames frames;
	VEC(struct knowledge_framework *) frameworks;
	VEC(struct knowledge_fix) fixes;
	VEC(const struct knowledge_message *) messages;
};

struct adding {
	struct knowledge *k;
	struct sections *file;
	struct knowledge_framework *framework;
	struct err *err;
};

static const char *const role_names[] = {
    "none",
#define ROLE(id, name, what) name,
#include "knowledge/roles.def"
#undef ROLE
};

static const char *const kind_names[] = {
#define KIND(id, name, what) name,
#include "knowledge/kinds.def"
#undef KIND
};

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

/* Return the index of the word among the names; `count`: it is none of them. */
static size_t index_of(const char *word, const char *const *names, size_t count)
{
	size_t i = 0;

	while (i < count && strcmp(word, names[i]) != 0)
		i++;
	return i;
}

const char *role_name(enum role role)
{
	return role_names[role];
}

const char *message_kind_name(enum message_kind kind)
{
	return kind_names[kind];
}

/* ROLE_NONE: no such name. */
static enum role role_by_name(const char *name)
{
	size_t i = index_of(name, role_names, COUNT(role_names));

	return i < COUNT(role_names) ? (enum role)i : ROLE_NONE;
}

struct knowledge *knowledge_new(void)
{
	map_seed();
	return calloc(1, sizeof(struct knowledge));
}

void knowledge_free(struct knowledge *k)
{
	if (!k)
		return;
	vec_free(&k->frames.patterns);
	vec_free(&k->frames.packages);
	vec_free(&k->frames.others);
	map_free(&k->frames.by_file);
	map_free(&k->frames.folders);
	vec_free(&k->frameworks);
	vec_free(&k->fixes);
	vec_free(&k->messages);
	arena_free(&k->arena);
	free(k);
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
	const char *base = str_base_name(path);

	return map_hash_bytes(base, strlen(base));
}

/* True if the pattern is found by its file's name; else it is among the others. */
static bool by_file(const struct frame_pattern *pattern)
{
	return !pattern->native && *str_base_name(pattern->file);
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

static int add_pattern(struct frames *frames, struct frame_pattern pattern)
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

/* Add "transformers/cache_utils.py: DynamicLayer.update". 0; -EINVAL: it is none; -ENOMEM. */
static int add_python(
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
	return add_pattern(frames, pattern);
}

/* Add "llama_kv_cache* @ libllama*", or without the module. 0; -EINVAL: it is none; -ENOMEM. */
static int add_native(
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
	return add_pattern(frames, pattern);
}

static int add_package(struct frames *frames, const char *name, bool native,
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
		       (!*p->file || fnmatch(p->file, str_base_name(module), 0) == 0) &&
		       fnmatch(p->function, function, 0) == 0;
	return !module && file && file_matches(p->file, file) &&
	       python_matches(p->function, function);
}

/* Take back what was added when there were that many patterns and packages. */
static void undo_frames(struct frames *frames, size_t patterns, size_t packages)
{
	while (frames->patterns.count > patterns) {
		struct frame_pattern *last = &frames->patterns.items[--frames->patterns.count];

		if (by_file(last))
			*map_find(&frames->by_file, file_key(last->file)) = last->next;
		else
			frames->others.count--;
	}
	frames->packages.count = packages;
}

static int mistake(const struct adding *a, unsigned line, const char *what, const char *word)
{
	return err_set(a->err, -EINVAL, "%s:%u: %s '%s'", a->file->path, line, what, word);
}

static int no_memory(const struct adding *a)
{
	return err_set(a->err, -ENOMEM, "%s: no memory to read it", a->file->path);
}

static int is_unknown_key(const struct adding *a, const struct section_line *l)
{
	return mistake(a, l->line, "there is no such key here:", l->key);
}

/* Read the lines before the first section: the framework of this file. */
static int add_framework(struct adding *a, const struct section *s)
{
	struct knowledge_framework *f = a->framework;

	f->path = a->file->path;
	for (size_t i = 0; i < s->lines.count; i++) {
		const struct section_line *l = &s->lines.items[i];
		bool native = strcmp(l->key, "library") == 0;

		if (strcmp(l->key, "framework") == 0)
			f->id = l->value;
		else if (strcmp(l->key, "name") == 0)
			f->name = l->value;
		else if (!native && strcmp(l->key, "package") != 0)
			return is_unknown_key(a, l);
		else if (add_package(&a->k->frames, l->value, native, f))
			return no_memory(a);
	}
	if (!f->id || !*f->id)
		return mistake(a, 1, "the file begins without the key", "framework");
	if (!f->name)
		f->name = f->id;
	return 0;
}

static int add_role(struct adding *a, const struct section *s)
{
	struct knowledge_place place = {role_by_name(s->name), a->framework};
	int rc = 0;

	if (place.role == ROLE_NONE)
		return mistake(a, s->line, "there is no role", s->name);
	a->framework->serves |= place.role == ROLE_REQUEST_ENTRY;
	for (size_t i = 0; i < s->lines.count && !rc; i++) {
		const struct section_line *l = &s->lines.items[i];

		if (strcmp(l->key, "python") == 0)
			rc = add_python(&a->k->frames, l->value, place, &a->k->arena);
		else if (strcmp(l->key, "native") == 0)
			rc = add_native(&a->k->frames, l->value, place, &a->k->arena);
		else
			return is_unknown_key(a, l);
		if (rc == -EINVAL)
			return mistake(a, l->line, "no pattern of a frame:", l->value);
	}
	return rc ? no_memory(a) : 0;
}

static const char *const spaces[] = {"", "host", "device"};

/* Read "[fix CAUSE]": `text`, with optional `setting`, `role`, `space`, `where`; each `text` ends a
 * fix. */
static int add_fix(struct adding *a, const struct section *s)
{
	const struct knowledge_fix empty = {
	    .framework = a->framework, .cause = cause_by_name(s->name), .setting = "", .space = ""};
	struct knowledge_fix fix = empty;
	bool any = false;

	if (empty.cause == CAUSE_UNKNOWN)
		return mistake(a, s->line, "there is no cause", s->name);
	for (size_t i = 0; i < s->lines.count; i++) {
		const struct section_line *l = &s->lines.items[i];

		if (strcmp(l->key, "setting") == 0) {
			fix.setting = l->value;
		} else if (strcmp(l->key, "role") == 0) {
			fix.role = role_by_name(l->value);
			if (fix.role == ROLE_NONE)
				return mistake(a, l->line, "there is no role", l->value);
		} else if (strcmp(l->key, "space") == 0) {
			if (index_of(l->value, spaces, COUNT(spaces)) == COUNT(spaces))
				return mistake(a, l->line, "there is no space", l->value);
			fix.space = l->value;
		} else if (strcmp(l->key, "where") == 0) {
			fix.threads = strcmp(l->value, "threads") == 0;
			fix.resident = strcmp(l->value, "resident") == 0;
			if (!fix.threads && !fix.resident)
				return mistake(a, l->line, "there is no condition", l->value);
		} else if (strcmp(l->key, "text") == 0) {
			fix.text = l->value;
			if (vec_push(&a->k->fixes, fix))
				return no_memory(a);
			fix = empty;
			any = true;
		} else {
			return is_unknown_key(a, l);
		}
	}
	return any ? 0 : mistake(a, s->line, "a fix without the key", "text");
}

/* "oversized-model 0.7, external 0.2" */
static int read_causes(struct adding *a, struct knowledge_message *m, const struct section_line *l)
{
	const char *p = l->value;

	while (*p) {
		size_t bytes = strcspn(p, " ,");
		struct knowledge_cause *c = &m->causes[m->cause_count];
		char name[32], *end;

		if (m->cause_count == KNOWLEDGE_CAUSES_MAX)
			return mistake(a, l->line, "too many causes:", l->value);
		snprintf(name, sizeof(name), "%.*s", (int)bytes, p);
		c->cause = cause_by_name(name);
		if (c->cause == CAUSE_UNKNOWN)
			return mistake(a, l->line, "there is no cause", name);
		c->confidence = strtod(p + bytes, &end);
		if (end == p + bytes || !(c->confidence >= 0 && c->confidence <= 1))
			return mistake(a, l->line, "no confidence from 0 to 1 after", name);
		if (m->cause_count && c->confidence > c[-1].confidence)
			return mistake(a, l->line, "the likeliest cause comes first:", l->value);
		m->cause_count++;
		p = end + strspn(end, " ,");
	}
	return 0;
}

/* Append to a list, which has room for every line of the section. */
static void append(const char *const **list, size_t *count, const char *value)
{
	((const char **)*list)[(*count)++] = value;
}

static int read_message_line(
    struct adding *a, struct knowledge_message *m, const struct section_line *l)
{
	const struct {
		const char *key, **value;
	} texts[] = {{"from", &m->from}, {"space", &m->space}, {"pattern", &m->pattern},
	    {"group", &m->group}, {"meaning", &m->meaning}, {"claim", &m->claim}};
	const char *colon;

	for (size_t i = 0; i < COUNT(texts); i++)
		if (strcmp(l->key, texts[i].key) == 0) {
			*texts[i].value = l->value;
			return 0;
		}
	if (strcmp(l->key, "cause") == 0)
		return read_causes(a, m, l);
	if (strcmp(l->key, "kind") == 0) {
		m->kind = (enum message_kind)index_of(l->value, kind_names, COUNT(kind_names));
		return m->kind < MESSAGE_KIND_COUNT
			   ? 0
			   : mistake(a, l->line, "there is no kind", l->value);
	}
	if (strcmp(l->key, "alone") == 0) {
		m->alone = (enum message_kind)index_of(l->value, kind_names, COUNT(kind_names));
		return m->alone < MESSAGE_KIND_COUNT
			   ? 0
			   : mistake(a, l->line, "there is no kind", l->value);
	}
	if (strcmp(l->key, "yields") == 0) {
		m->yields = strcmp(l->value, "yes") == 0;
		return m->yields ? 0 : mistake(a, l->line, "'yields' is yes, not", l->value);
	}
	if (strcmp(l->key, "fallback") == 0) {
		m->fallback = strcmp(l->value, "yes") == 0;
		return m->fallback ? 0 : mistake(a, l->line, "'fallback' is yes, not", l->value);
	}
	if (strcmp(l->key, "fix") == 0) {
		append(&m->fixes, &m->fix_count, l->value);
		return 0;
	}
	if (strcmp(l->key, "overrules") == 0) {
		append(&m->overrules, &m->overrule_count, l->value);
		return 0;
	}
	if (strcmp(l->key, "needle") == 0) {
		if (strlen(l->value) < 4)
			return mistake(a, l->line, "too short to look for:", l->value);
		append(&m->needles, &m->needle_count, l->value);
		return 0;
	}
	if (strcmp(l->key, "each") != 0)
		return is_unknown_key(a, l);
	colon = strchr(l->value, ':');
	if (!colon || colon == l->value)
		return mistake(a, l->line, "'each' is NAME: PATTERN, not", l->value);
	m->each_name = arena_copy(&a->k->arena, l->value, (size_t)(colon - l->value));
	m->each = colon + 1 + strspn(colon + 1, " ");
	return m->each_name ? 0 : no_memory(a);
}

static int check_message(
    const struct adding *a, const struct section *s, const struct knowledge_message *m)
{
	bool found = m->claim ? !m->pattern && !m->needle_count : m->pattern && m->needle_count;

	if (!found || m->kind == MESSAGE_KIND_COUNT || !m->meaning)
		return mistake(a, s->line,
		    "pattern and needle (or claim), kind or meaning is missing in message",
		    s->name);
	if (index_of(m->space, spaces, COUNT(spaces)) == COUNT(spaces))
		return mistake(a, s->line, "there is no space", m->space);
	for (size_t i = 0; i < a->k->messages.count; i++)
		if (a->k->messages.items[i]->framework == a->framework &&
		    strcmp(a->k->messages.items[i]->name, m->name) == 0)
			return mistake(a, s->line, "there are two messages", m->name);
	return 0;
}

static int add_message(struct adding *a, const struct section *s)
{
	struct knowledge_message *m = arena_alloc(&a->k->arena, sizeof(*m));
	const char **lists = arena_alloc(&a->k->arena, 3 * (s->lines.count + 1) * sizeof(*lists));
	int rc = 0;

	if (!m || !lists)
		return no_memory(a);
	*m = (struct knowledge_message){.framework = a->framework,
	    .name = s->name,
	    .from = a->framework->name,
	    .kind = MESSAGE_KIND_COUNT,
	    .alone = MESSAGE_KIND_COUNT,
	    .space = "",
	    .group = "",
	    .needles = lists,
	    .fixes = lists + s->lines.count + 1,
	    .overrules = lists + 2 * (s->lines.count + 1),
	    .line = s->line};
	for (size_t i = 0; i < s->lines.count && !rc; i++)
		rc = read_message_line(a, m, &s->lines.items[i]);
	if (!rc)
		rc = check_message(a, s, m);
	return !rc && vec_push(&a->k->messages, m) ? no_memory(a) : rc;
}

static int add_sections(struct adding *a)
{
	static const struct {
		const char *kind;
		int (*add)(struct adding *a, const struct section *s);
	} kinds[] = {
	    {"", add_framework}, {"role", add_role}, {"fix", add_fix}, {"message", add_message}};

	for (size_t i = 0; i < a->file->list.count; i++) {
		const struct section *s = &a->file->list.items[i];
		size_t kind = 0;
		int rc;

		while (kind < COUNT(kinds) && strcmp(kinds[kind].kind, s->kind) != 0)
			kind++;
		if (kind == COUNT(kinds))
			return mistake(a, s->line, "there is no section", s->kind);
		rc = kinds[kind].add(a, s);
		if (rc)
			return rc;
	}
	return 0;
}

int knowledge_add(struct knowledge *k, const char *path, struct err *err)
{
	struct sections file;
	struct adding a = {.k = k, .file = &file, .err = err};
	size_t fixes = k->fixes.count, messages = k->messages.count;
	size_t patterns = k->frames.patterns.count, packages = k->frames.packages.count;
	int rc = sections_read(&file, path, &k->arena, err);

	if (rc)
		return rc;
	a.framework = arena_alloc(&k->arena, sizeof(*a.framework));
	rc = a.framework ? add_sections(&a) : no_memory(&a);
	if (!rc && vec_push(&k->frameworks, a.framework))
		rc = no_memory(&a);
	if (rc) {
		k->fixes.count = fixes;
		k->messages.count = messages;
		undo_frames(&k->frames, patterns, packages);
	}
	sections_free(&file);
	return rc;
}

static int is_knowledge(const struct dirent *entry)
{
	size_t bytes = strlen(entry->d_name);

	return bytes > 5 && strcmp(entry->d_name + bytes - 5, ".know") == 0;
}

int knowledge_add_dir(struct knowledge *k, const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, is_knowledge, alphasort), rc = 0;

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		struct str whole = {0};
		struct err err;

		if (rc != -ENOMEM) {
			str_printf(&whole, "%s/%s", path, names[i]->d_name);
			rc = whole.failed ? -ENOMEM : knowledge_add(k, str_text(&whole), &err);
			if (rc && rc != -ENOMEM)
				note("left out: %s", err.text);
		}
		str_free(&whole);
		free(names[i]);
	}
	free(names);
	return rc == -ENOMEM ? rc : 0;
}

const struct knowledge_framework *knowledge_owner(
    const struct knowledge *k, const char *file, const char *module)
{
	const struct frames *frames = &k->frames;

	if (!module && !may_match(frames, file))
		return NULL;
	/* The latest entry wins, here and below. */
	for (size_t i = frames->packages.count; i-- > 0;) {
		const struct frame_package *p = &frames->packages.items[i];

		if (p->native ? module && fnmatch(p->name, str_base_name(module), 0) == 0
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

bool knowledge_match(const struct knowledge *k, const char *function, const char *file,
    const char *module, struct knowledge_place *place)
{
	const struct frame_pattern *p =
	    pattern_of(&k->frames, function ? function : "", file, module);

	if (p)
		*place = p->place;
	return p;
}

struct knowledge_place knowledge_place(
    const struct knowledge *k, const char *function, const char *file, const char *module)
{
	struct knowledge_place place;

	if (!knowledge_match(k, function, file, module, &place))
		place = (struct knowledge_place){ROLE_NONE, knowledge_owner(k, file, module)};
	return place;
}

const struct knowledge_framework *knowledge_framework(const struct knowledge *k, const char *id)
{
	for (size_t i = k->frameworks.count; i-- > 0;)
		if (strcmp(k->frameworks.items[i]->id, id) == 0)
			return k->frameworks.items[i];
	return NULL;
}

size_t knowledge_fixes(const struct knowledge *k, const struct knowledge_framework *framework,
    enum cause cause, enum role role, const struct knowledge_fix **out, size_t room)
{
	size_t count = 0;

	/* Fixes for this role come before those for any role; among each, the user's files, which
	 * were added later, come first. */
	for (int pass = role == ROLE_NONE; pass < 2; pass++)
		for (size_t n = k->frameworks.count; n-- > 0;)
			for (size_t i = 0; i < k->fixes.count && count < room; i++) {
				const struct knowledge_fix *f = &k->fixes.items[i];

				if (f->framework == k->frameworks.items[n] &&
				    strcmp(f->framework->id, framework->id) == 0 &&
				    f->role == (pass ? ROLE_NONE : role) && f->cause == cause)
					out[count++] = f;
			}
	return count;
}

bool knowledge_fix_applies(const struct knowledge_fix *fix, const char *space)
{
	return !*fix->space || !*space || strcmp(fix->space, space) == 0;
}

size_t knowledge_messages(const struct knowledge *k, const struct knowledge_message *const **out)
{
	*out = (const struct knowledge_message *const *)k->messages.items;
	return k->messages.count;
}
