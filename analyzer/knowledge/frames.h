/*
 * frames.h - finds a frame's role: patterns of functions, indexed by file name. For knowledge.c
 * only.
 */
#ifndef ANALYZER_KNOWLEDGE_FRAMES_H
#define ANALYZER_KNOWLEDGE_FRAMES_H

#include "knowledge/knowledge.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/vec.h"

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

/* Add a pattern: "transformers/cache_utils.py: DynamicLayer.update" for Python; "llama_kv_cache* @
 * libllama*", or without the module, for native code. 0; -EINVAL: it is neither; -ENOMEM. */
int frames_add_python(
    struct frames *frames, const char *text, struct knowledge_place place, struct arena *arena);
int frames_add_native(
    struct frames *frames, const char *text, struct knowledge_place place, struct arena *arena);
int frames_add_package(struct frames *frames, const char *name, bool native,
    const struct knowledge_framework *framework);
/* The same as knowledge_match() and knowledge_owner(): the patterns and packages added last win. */
bool frames_match(const struct frames *frames, const char *function, const char *file,
    const char *module, struct knowledge_place *place);
const struct knowledge_framework *frames_owner(
    const struct frames *frames, const char *file, const char *module);
/* Take back what was added since a mark. */
struct frames_mark {
	size_t patterns, packages;
};
void frames_undo(struct frames *frames, struct frames_mark mark);
void frames_free(struct frames *frames);

#endif
