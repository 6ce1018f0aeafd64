/*
 * python_abi.c - the layout table, and its check against the running interpreter. The table comes
 * from the public headers of each version; docs/python-frames.md explains the columns.
 *
 * Reads only static data of the interpreter, so that it works before Py_Initialize().
 */
#include "python/python_abi.h"

#include <string.h>

/* clang-format off */
static const struct python_abi layouts[] = {
	{ .kind = PYTHON_OBJECTS, .minor = 8, .tested = true,
	  .thread_frame = 24, .thread_context = 240, .thread_id = 176, .interpreters = 32,
	  .frame_previous = 24, .frame_code = 32, .frame_instr = 104,
	  .code_filename = 104, .code_name = 112, .code_firstlineno = 40, .code_linetable = 120,
	  .str_ascii = 48, .str_compact = 72 },
	{ .kind = PYTHON_OBJECTS, .minor = 9, .tested = true,
	  .thread_frame = 24, .thread_context = 240, .thread_id = 176, .interpreters = 32,
	  .frame_previous = 24, .frame_code = 32, .frame_instr = 104,
	  .code_filename = 104, .code_name = 112, .code_firstlineno = 40, .code_linetable = 120,
	  .str_ascii = 48, .str_compact = 72 },
	{ .kind = PYTHON_OBJECTS, .minor = 10, .tested = true,
	  .thread_frame = 24, .thread_cframe = 48, .cframe_previous = 8,
	  .thread_context = 240, .thread_id = 176,
	  .interpreters = 32,
	  .frame_previous = 24, .frame_code = 32, .frame_instr = 96,
	  .code_filename = 104, .code_name = 112, .code_firstlineno = 40, .code_linetable = 120,
	  .str_ascii = 48, .str_compact = 72 },
	{ .kind = PYTHON_ENTRIES, .minor = 11, .tested = true,
	  .thread_cframe = 56, .cframe_current = 8, .cframe_previous = 16,
	  .thread_context = 224, .thread_id = 152,
	  .interpreters = 40,
	  .frame_previous = 48, .frame_code = 32, .frame_instr = 56, .frame_owner = 68,
	  .code_filename = 112, .code_name = 120, .code_qualname = 128, .code_firstlineno = 72,
	  .code_linetable = 136, .code_instructions = 184, .code_firsttraceable = 168,
	  .str_ascii = 48, .str_compact = 72 },
	{ .kind = PYTHON_SHIMS, .minor = 12, .tested = true,
	  .thread_cframe = 56, .cframe_current = 0, .cframe_previous = 8,
	  .thread_context = 208, .thread_id = 136,
	  .frame_previous = 8, .frame_code = 0, .frame_instr = 56, .frame_owner = 70,
	  .code_filename = 112, .code_name = 120, .code_qualname = 128, .code_firstlineno = 68,
	  .code_linetable = 136, .code_instructions = 192, .code_firsttraceable = 176,
	  .code_version = 92, .str_ascii = 40, .str_compact = 56 },
	{ .kind = PYTHON_SHIMS, .minor = 13, .tested = true,
	  .thread_frame = 72, .thread_context = 208, .thread_id = 152,
	  .frame_previous = 8, .frame_code = 0, .frame_instr = 56, .frame_owner = 70,
	  .code_filename = 112, .code_name = 120, .code_qualname = 128, .code_firstlineno = 68,
	  .code_linetable = 136, .code_instructions = 200, .code_firsttraceable = 184,
	  .code_version = 92, .str_ascii = 40, .str_compact = 56 },
	{ .kind = PYTHON_SHIMS, .minor = 14, .tested = true,
	  .thread_frame = 72, .thread_context = 208, .thread_id = 152,
	  .frame_previous = 8, .frame_code = 0, .frame_instr = 56, .frame_owner = 74,
	  .code_filename = 112, .code_name = 120, .code_qualname = 128, .code_firstlineno = 68,
	  .code_linetable = 136, .code_instructions = 208, .code_firsttraceable = 192,
	  .code_version = 92, .str_ascii = 40, .str_compact = 56 },
};
/* clang-format on */

#define WORD(p, offset) (*(const uint64_t *)((const char *)(p) + (offset)))

static uint32_t read_version(const struct python_symbols *s)
{
	uint32_t part[3] = {0, 0, 0}, n = 0, level = 0xf;
	const char *text;

	if (s->version)
		return *(const uint32_t *)s->version;
	if (!s->get_version)
		return 0;
	/* "3.8.18 (default, ...", a static buffer. Letters after the numbers (a1, rc2) mean a
	 * pre-release; level 0xf is a final release. */
	text = s->get_version();
	for (; n < 3; n++, text++) {
		while (*text >= '0' && *text <= '9' && part[n] < 1000)
			part[n] = part[n] * 10 + (uint32_t)(*text++ - '0');
		if (*text != '.')
			break;
	}
	if (*text == 'a' || *text == 'b' || *text == 'r')
		level = 0xa;
	return (part[0] & 255) << 24 | (part[1] & 255) << 16 | (part[2] & 255) << 8 | level << 4;
}

/* Compares with PyCode_Type.tp_members, which has the true offset of each visible field. */
static bool check_members(const void *code_type, const struct python_abi *abi)
{
	const struct {
		const char *name;
		uint16_t offset;
	} wanted[] = {
	    {"co_filename", abi->code_filename},
	    {"co_name", abi->code_name},
	    {"co_firstlineno", abi->code_firstlineno},
	    {"co_qualname", abi->code_qualname},
	    {abi->minor < 10 ? "co_lnotab" : "co_linetable", abi->code_linetable},
	};
	const char *member = (const char *)WORD(code_type, PYTHON_TYPE_MEMBERS);
	unsigned found = 0;

	if (!member)
		return false;
	for (unsigned rows = 0; rows < 64; rows++, member += 40) {
		const char *name = (const char *)WORD(member, 0);

		if (!name)
			break;
		for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++) {
			if (strcmp(name, wanted[i].name) != 0)
				continue;
			if (WORD(member, 16) != wanted[i].offset)
				return false;
			found |= 1u << i;
		}
	}
	/* all versions list the first three; from 3.11 also the qualified name and the table */
	return (found & 7) == 7 && (abi->kind == PYTHON_OBJECTS || (found & 24) == 24);
}

/*
 * _Py_DebugOffsets, the first member of _PyRuntime from 3.13 on: a cookie, the version, whether the
 * build is free-threaded, then groups of 64-bit words whose order is fixed per minor version.
 */
static const char *debug_offsets_agree(const void *runtime, const struct python_abi *abi)
{
	const uint64_t *w = runtime;
	const uint64_t *thread, *frame, *code, *object;

	if (memcmp(w, "xdebugpy", 8) != 0)
		return "its debugging offsets have another form";
	if (w[1] != abi->version)
		return "its debugging offsets are of another version";
	if (w[2] != 0)
		return "it is a free-threaded build";
	thread = w + 3 + 3 + (abi->minor == 13 ? 13 : 16);
	frame = thread + 9;
	code = frame + (abi->minor == 13 ? 6 : 8);
	object = code + (abi->minor == 13 ? 10 : 11);
	if (thread[4] != abi->thread_frame || frame[1] != abi->frame_previous ||
	    frame[2] != abi->frame_code || frame[3] != abi->frame_instr ||
	    frame[5] != abi->frame_owner || code[1] != abi->code_filename ||
	    code[2] != abi->code_name || code[3] != abi->code_qualname ||
	    code[4] != abi->code_linetable || code[5] != abi->code_firstlineno ||
	    code[9] != abi->code_instructions || object[1] != PYTHON_TYPE)
		return "its layout is not that of its version";
	return NULL;
}

const char *python_abi_detect(
    const struct python_symbols *symbols, bool force, struct python_abi *abi)
{
	uint32_t version = read_version(symbols);
	const struct python_abi *layout = NULL;

	memset(abi, 0, sizeof *abi);
	abi->version = version;
	if (!symbols->runtime || !symbols->code_type || !symbols->gilstate || !symbols->unchecked ||
	    !symbols->finalizing)
		return "it does not export what is needed";
	for (unsigned i = 0; i < sizeof layouts / sizeof *layouts; i++)
		if (version >> 16 == (3u << 8 | layouts[i].minor))
			layout = &layouts[i];
	if (!layout)
		return "this version is not known";
	*abi = *layout;
	abi->version = version;
	if (symbols->debug)
		return "it is a debugging build";
	if (!force && !layout->tested)
		return "this version was never tested (WHYOOM_PYTHON=force tries it)";
	if (!force && (version >> 4 & 15) != 15)
		return "it is a pre-release (WHYOOM_PYTHON=force tries it)";
	if (!check_members(symbols->code_type, abi))
		return "its layout is not that of its version";
	return layout->minor >= 13 ? debug_offsets_agree(symbols->runtime, abi) : NULL;
}
