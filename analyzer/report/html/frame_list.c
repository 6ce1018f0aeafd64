/* frame_list.c - see frame_list.h. */
#include "report/html/frame_list.h"

#include <stdlib.h>

enum frame_flag {
	FLAG_PYTHON = 1,
	FLAG_USER = 2,
	FLAG_LIBRARY = 4,
	FLAG_INTERPRETER = 8,
	FLAG_CUT = 16,
	FLAG_INLINED = 32,
	FLAG_FRAMEWORK = 64
};

uint32_t frame_list_flags(const struct symbol *s, enum frame_role role)
{
	static const uint32_t of_role[] = {[FRAME_OWN] = FLAG_USER,
	    [FRAME_FRAMEWORK] = FLAG_FRAMEWORK | FLAG_LIBRARY,
	    [FRAME_LIBRARY] = FLAG_LIBRARY,
	    [FRAME_RUNTIME] = 0};

	return of_role[role] | (s->python ? FLAG_PYTHON : 0) |
	       (s->interpreter ? FLAG_INTERPRETER : 0) | (s->cut ? FLAG_CUT : 0) |
	       (s->inlined ? FLAG_INLINED : 0);
}

static bool same_frame(const struct listed_frame *a, const struct listed_frame *b)
{
	return a->function == b->function && a->file == b->file && a->line == b->line &&
	       a->module == b->module && a->flags == b->flags;
}

uint32_t frame_list_add(
    struct frame_list *list, struct block_texts *texts, const struct symbol *symbol, uint32_t flags)
{
	struct listed_frame f = {.function = block_text_id(texts, symbol->function),
	    .file = block_text_id(texts, symbol->file),
	    .module = block_text_id(texts, symbol->file ? NULL : str_base_name(symbol->module)),
	    .line = symbol->line,
	    .flags = flags};
	uint64_t key, *slot;

	key = ((uint64_t)f.function << 32 ^ (uint64_t)f.file << 12 ^ f.line) * 31 + f.module;
	for (key = key * 64 + f.flags;; key++) {
		slot = map_put(&list->by_text, key);
		if (!slot)
			return FRAME_NONE;
		if (!*slot) {
			if (vec_push(&list->frames, f))
				return FRAME_NONE;
			*slot = list->frames.count;
		}
		if (same_frame(&list->frames.items[*slot - 1], &f))
			return (uint32_t)*slot - 1;
	}
}

void frame_list_write(const struct frame_list *f, struct str *to)
{
	block_number(to, f->frames.count);
	for (size_t i = 0; i < f->frames.count; i++)
		block_number(to, f->frames.items[i].function);
	for (size_t i = 0; i < f->frames.count; i++)
		block_number(to, f->frames.items[i].file);
	for (size_t i = 0; i < f->frames.count; i++)
		block_number(to, f->frames.items[i].line);
	for (size_t i = 0; i < f->frames.count; i++)
		block_number(to, f->frames.items[i].flags);
	for (size_t i = 0; i < f->frames.count; i++)
		block_number(to, f->frames.items[i].module);
}

void frame_list_fini(struct frame_list *list)
{
	map_free(&list->by_text);
	vec_free(&list->frames);
}
