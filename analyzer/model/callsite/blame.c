#include "model/callsite/blame.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "util/text/str.h"

static bool starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* True for "/lib/python3.11/", "/lib64/python3/", "/lib/python312.zip/": Python's own files. */
static bool in_python_library(const char *file)
{
	for (const char *at = strstr(file, "/lib"); at; at = strstr(at + 1, "/lib")) {
		const char *p = at + 4;

		while (isdigit((unsigned char)*p))
			p++;
		if (!starts(p, "/python"))
			continue;
		p += 7;
		if (!isdigit((unsigned char)*p))
			continue;
		while (isdigit((unsigned char)*p) || *p == '.' || *p == 't')
			p++;
		if (*p == '/' || starts(p, "zip/"))
			return true;
	}
	return false;
}

static bool in_packages(const char *file)
{
	return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/");
}

/* True for an installer's launcher, as "/usr/bin/uvicorn": it only starts the program. */
static bool is_launcher(const char *file)
{
	const char *base = str_base_name(file);

	return base - file >= 5 && starts(base - 5, "/bin/") && !strchr(base, '.');
}

static enum owner python_owner(const struct symbol *s)
{
	if (!s->file || starts(s->file, "<frozen"))
		return OWNER_RUNTIME;
	if (in_packages(s->file))
		return OWNER_LIBRARY;
	if (in_python_library(s->file) || is_launcher(s->file))
		return OWNER_RUNTIME;
	return OWNER_USER;
}

/* Return the qualified name within a demangled signature, without return type and parameters. */
static const char *qualified_name(const char *function)
{
	const char *name = function;
	int depth = 0;

	for (const char *p = function; *p; p++) {
		if (starts(p, "operator"))
			break; /* any character may follow */
		if (*p == '<')
			depth++;
		else if (*p == '>')
			depth -= depth > 0;
		else if (depth == 0 && *p == '(' && !starts(p, "(anonymous"))
			break;
		else if (depth == 0 && *p == ' ')
			name = p + 1;
	}
	return name;
}

/* True where an allocator that is linked into its user is entered, by a name that its inner
 * functions do not share: its callees are never blamed. The names are the documented interfaces of
 * mimalloc, jemalloc (and its prefix in Rust), tcmalloc and rpmalloc. */
static bool enters_allocator(const struct symbol *s)
{
	static const char *const prefixes[] = {"mi_", "mi_heap_", "mi_theap_", "_mi_", "_mi_heap_",
	    "_mi_theap_", "je_", "_rjem_", "_rjem_je_", "tc_", "rp"};
	static const char *const calls[] = {"malloc", "calloc", "zalloc", "realloc", "rezalloc",
	    "recalloc", "rallocx", "memalign", "aligned_", "posix_memalign", "valloc", "pvalloc",
	    "new"};

	for (size_t i = 0; !s->python && s->function && i < sizeof(prefixes) / sizeof(*prefixes);
	     i++)
		for (size_t k = 0; k < sizeof(calls) / sizeof(*calls); k++)
			if (starts(s->function, prefixes[i]) &&
			    starts(s->function + strlen(prefixes[i]), calls[k]))
				return true;
	return false;
}

/* True for names and namespaces that C, C++ and Rust reserve for the implementation. */
static bool is_reserved(const char *function)
{
	static const char *const rust[] = {"<alloc::", "<core::", "<std::", "alloc::alloc::",
	    "alloc::boxed::", "alloc::collections::", "alloc::raw_vec::", "alloc::rc::",
	    "alloc::slice::", "alloc::string::", "alloc::sync::", "alloc::vec::", "core::iter::",
	    "core::ops::function::", "core::slice::"};
	const char *name = qualified_name(function);

	/* Rust's own library; a trait's method starts with its type, in "<>". */
	for (size_t i = 0; i < sizeof(rust) / sizeof(*rust); i++)
		if (starts(function, rust[i]))
			return true;
	if (name[0] == '_' && (name[1] == '_' || isupper((unsigned char)name[1]) ||
				  strcmp(name, "_start") == 0 || strcmp(name, "_init") == 0))
		return strncmp(name, "_Z", 2) != 0 && strncmp(name, "_R", 2) != 0;
	return starts(name, "std::") || starts(name, "operator new") ||
	       starts(name, "operator delete");
}

static bool in_system_directory(const char *path)
{
	static const char *const directories[] = {"/lib/", "/lib64/", "/lib32/", "/usr/lib/",
	    "/usr/lib64/", "/usr/libexec/", "/usr/local/lib/"};

	for (size_t i = 0; i < sizeof(directories) / sizeof(*directories); i++)
		if (starts(path, directories[i]))
			return true;
	return false;
}

/* True for the libraries that every C or C++ program needs, and for allocators. */
static bool is_runtime_module(const char *path)
{
	static const char *const stems[] = {"libc", "ld", "ld-linux", "libpthread", "libstdc++",
	    "libc++", "libc++abi", "libgcc_s", "libm", "libdl", "librt", "libwhyoom", "linux-vdso",
	    "libasan", "libtcmalloc", "libjemalloc", "libmimalloc"};
	const char *base = str_base_name(path);
	size_t stem = strcspn(base, ".");

	/* A program may have any name. */
	if (!strstr(base, ".so"))
		return false;
	if (starts(base, "ld-") || starts(base, "libpython"))
		return true;
	for (size_t i = 0; i < sizeof(stems) / sizeof(*stems); i++) {
		size_t length = strlen(stems[i]);
		if (strncmp(base, stems[i], length) == 0 &&
		    (length == stem || base[length] == '_' || base[length] == '-'))
			return true;
	}
	return strstr(path, "/lib-dynload/") != NULL;
}

static bool in_system_header(const char *file)
{
	return strstr(file, "/include/c++/") || starts(file, "/usr/include/") ||
	       starts(file, "/usr/lib/gcc");
}

static enum owner native_owner(const struct blame_context *context, const struct symbol *s)
{
	if (s->interpreter || s->cut)
		return OWNER_RUNTIME;
	if (s->module) {
		if (context->interpreter && strcmp(s->module, context->interpreter) == 0)
			return OWNER_RUNTIME;
		if (is_runtime_module(s->module))
			return OWNER_RUNTIME;
		/* If the program itself owns malloc, its module does not classify a frame. */
		if (context->malloc_owner && strcmp(s->module, context->malloc_owner) == 0 &&
		    strstr(str_base_name(s->module), ".so"))
			return OWNER_RUNTIME;
	}
	if (s->function && s->known && is_reserved(s->function))
		return OWNER_RUNTIME;
	if (s->file && in_system_header(s->file))
		return OWNER_RUNTIME;
	if (s->module && (in_packages(s->module) || in_system_directory(s->module) ||
			     in_python_library(s->module)))
		return OWNER_LIBRARY;
	return OWNER_USER;
}

static enum owner owner_of(const struct blame_context *context, const struct symbol *symbol)
{
	return symbol->python ? python_owner(symbol) : native_owner(context, symbol);
}

bool blame_is_comprehension(const struct symbol *s)
{
	static const char *const names[] = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"};
	size_t length = s->function ? strlen(s->function) : 0;

	for (size_t i = 0; s->python && i < sizeof(names) / sizeof(*names); i++) {
		size_t n = strlen(names[i]);
		if (length >= n && strcmp(s->function + length - n, names[i]) == 0)
			return true;
	}
	return false;
}

/* True where Python's event loop runs the next callback: no frame outside called the frames inside,
 * least of all the line that started the loop. */
bool blame_is_event_loop(const struct symbol *s)
{
	size_t length = s->python && s->file ? strlen(s->file) : 0;
	static const char tail[] = "/asyncio/events.py";

	return length >= sizeof(tail) && strcmp(s->file + length - sizeof(tail) + 1, tail) == 0;
}

/* Traits of one symbol, in a byte: there are few symbols, so each is classified once. */
#define TRAIT_OWNER 3u
#define TRAIT_EVENT_LOOP 4u
#define TRAIT_COMPREHENSION 8u
#define TRAIT_IMPORTER 16u
#define TRAIT_ALLOCATOR 32u
#define TRAIT_SEEN 128u
#define MEMORY_LIMIT (1u << 28)

static uint8_t find_traits(const struct blame_context *context, const struct symbol *s)
{
	bool importer = s->python && s->file && starts(s->file, "<frozen importlib.");

	return (uint8_t)(owner_of(context, s) | TRAIT_SEEN |
			 (blame_is_event_loop(s) ? TRAIT_EVENT_LOOP : 0) |
			 (blame_is_comprehension(s) ? TRAIT_COMPREHENSION : 0) |
			 (importer ? TRAIT_IMPORTER : 0) |
			 (enters_allocator(s) ? TRAIT_ALLOCATOR : 0));
}

static uint8_t traits_of(const struct blame_context *context, const struct symbol *s)
{
	struct blame_memory *memory = context->memory;
	uint8_t *traits;

	if (!memory || !s->id || s->id >= MEMORY_LIMIT || vec_reach(&memory->traits, s->id + 1u))
		return find_traits(context, s);
	traits = &memory->traits.items[s->id];
	if (!*traits)
		*traits = find_traits(context, s);
	return *traits;
}

enum owner blame_owner(const struct blame_context *context, const struct symbol *symbol)
{
	return context->memory ? (enum owner)(traits_of(context, symbol) & TRAIT_OWNER)
			       : owner_of(context, symbol);
}

bool blame_is_import(const struct blame_mark *mark)
{
	return mark->importer > mark->user;
}

/* Step out of a comprehension: it is part of the function around it. */
static int out_of_comprehension(const struct symbol *symbols, int at)
{
	for (int i = at; i >= 0; i--) {
		/* A consumer, as join or sum, lies between a generator and its function. */
		if (!symbols[i].python)
			continue;
		if (!symbols[i].file || !symbols[at].file ||
		    strcmp(symbols[i].file, symbols[at].file) != 0)
			break;
		if (!blame_is_comprehension(&symbols[i]))
			return i;
	}
	return at;
}

static void see_part(const struct blame_context *context, const struct symbol *s, int at,
    struct blame_part_mark *mark)
{
	uint8_t traits;
	uint32_t k = 0;

	if (!s->python)
		return;
	traits = traits_of(context, s);
	if ((traits & TRAIT_OWNER) != OWNER_LIBRARY)
		return;
	if (!(traits & TRAIT_COMPREHENSION))
		mark->part = at;
	while (k < mark->files && mark->file[k] != s->file && strcmp(mark->file[k], s->file) != 0)
		k++;
	if (k == mark->files && mark->files < BLAME_FILES)
		mark->file[mark->files++] = s->file;
}

int blame_part(const struct blame_context *context, const struct stack_path *path, int at,
    struct blame_parts *parts)
{
	struct blame_part_mark mark;
	size_t from;

	if (parts->known > path->same)
		parts->known = path->same;
	if (at < 0 || !path->symbols[at].python || vec_reach(&parts->marks, path->count + 1))
		return -1;
	from = (size_t)at + 1;
	if (parts->at != at || parts->known < from) {
		parts->at = at;
		parts->known = from;
		parts->marks.items[from] = (struct blame_part_mark){.part = -1};
	}
	mark = parts->marks.items[parts->known];
	for (size_t i = parts->known; i < path->count; i++) {
		see_part(context, &path->symbols[i], (int)i, &mark);
		parts->marks.items[i + 1] = mark;
	}
	parts->known = path->count;
	return mark.files == BLAME_FILES ? mark.part : -1;
}

static void step_in(
    const struct blame_context *context, const struct symbol *s, int at, struct blame_mark *mark)
{
	uint8_t traits = traits_of(context, s);

	if (mark->allocator >= 0)
		return;
	if (traits & TRAIT_IMPORTER)
		mark->importer = at;
	if (!s->function)
		return;
	if (traits & TRAIT_ALLOCATOR) {
		mark->allocator = at;
		mark->named = mark->named < 0 ? at : mark->named;
		return;
	}
	switch ((enum owner)(traits & TRAIT_OWNER)) {
	case OWNER_USER:
		mark->user = at;
		break;
	case OWNER_LIBRARY:
		mark->library = at;
		mark->loop_before = mark->loop;
		if (s->python)
			mark->python_library = at;
		break;
	case OWNER_RUNTIME:
		if (traits & TRAIT_EVENT_LOOP)
			mark->loop = at;
		if (s->python)
			mark->python_runtime = at;
		break;
	}
	if (s->known)
		mark->named = at;
}

static const struct blame_mark no_frame = {-1, -1, -1, -1, -1, -1, -1, -1, -1};

int blame_marked(const struct blame_mark *mark, const struct symbol *symbols)
{
	if (mark->library < 0 && mark->user < 0)
		return mark->python_runtime >= 0 ? mark->python_runtime : mark->named;
	/* The frame that started an event loop did not call what the loop runs. */
	if (mark->user > mark->library || mark->user > mark->loop_before)
		return out_of_comprehension(symbols, mark->user);
	/* Python before native code: "json.loads" says more than a function of its extension. */
	if (mark->python_library > mark->user && mark->python_library > mark->loop_before)
		return out_of_comprehension(symbols, mark->python_library);
	return out_of_comprehension(symbols, mark->library);
}

int blame_frame(const struct blame_context *context, const struct symbol *symbols, size_t count)
{
	struct blame_mark mark = no_frame;

	for (size_t i = 0; i < count; i++)
		step_in(context, &symbols[i], (int)i, &mark);
	return blame_marked(&mark, symbols);
}

int blame_follow(
    const struct blame_context *context, const struct stack_path *path, blame_marks_t *marks)
{
	struct blame_mark mark;

	if (vec_reserve(marks, path->count + 1))
		return -ENOMEM;
	marks->items[0] = no_frame;
	mark = marks->items[path->same];
	for (size_t i = path->same; i < path->count; i++) {
		step_in(context, &path->symbols[i], (int)i, &mark);
		marks->items[i + 1] = mark;
	}
	marks->count = path->count + 1;
	return 0;
}
