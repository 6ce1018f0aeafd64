/*
 * python_abi.h - the layout of each CPython version: where it keeps the fields that frames are read
 * from, and a check of the running interpreter against them before any is used.
 *
 * LP64 only; x86-64 and aarch64 agree. Knows no threads and no walks.
 */
#ifndef SHIM_PYTHON_ABI_H
#define SHIM_PYTHON_ABI_H

#include <stdbool.h>
#include <stdint.h>

/* How frames are linked. */
enum python_kind {
	PYTHON_OBJECTS, /* up to 3.10: a list of frame objects, one evaluation each */
	PYTHON_ENTRIES, /* 3.11: interpreter frames; is_entry marks the first of an evaluation */
	PYTHON_SHIMS, /* from 3.12: interpreter frames; a boundary frame on the C stack precedes it
		       */
};

/* Offsets in bytes. 0: the version has no such field, except for frame_code, frame_previous and
 * cframe_current, which may lie at 0. */
struct python_abi {
	enum python_kind kind;
	uint32_t version; /* PY_VERSION_HEX of the running interpreter */
	uint32_t minor;
	bool tested; /* the tests run this minor version */

	/* PyThreadState, and the _PyCFrame of 3.10 to 3.12 */
	uint16_t thread_frame, thread_cframe, thread_id, thread_context;
	uint16_t cframe_current, cframe_previous;
	uint16_t interpreters; /* interpreters.head in _PyRuntime, up to 3.11 */

	uint16_t frame_previous, frame_code, frame_instr;
	uint16_t frame_owner; /* u8; 3.11: is_entry */

	uint16_t code_filename, code_name, code_qualname, code_firstlineno, code_linetable;
	uint16_t code_instructions; /* co_code_adaptive, 3.11 on */
	uint16_t code_firsttraceable;
	uint16_t code_version; /* co_version, 3.12 on */

	uint16_t str_ascii, str_compact; /* header bytes of the two compact forms */
};

/* The same in all supported versions. */
#define PYTHON_REFCOUNT 0 /* its low 32 bits are 0 only in an object that is being freed */
#define PYTHON_TYPE 8
#define PYTHON_STR_LENGTH 16
#define PYTHON_STR_STATE 32
#define PYTHON_BYTES_LENGTH 16
#define PYTHON_BYTES_DATA 32
#define PYTHON_TYPE_BASICSIZE 32
#define PYTHON_TYPE_DEALLOC 48
#define PYTHON_TYPE_WEAKREFS 208 /* where an object keeps its weak references */
#define PYTHON_TYPE_MEMBERS 240

#define PYTHON_OWNER_BOUNDARY 3 /* owners from here on are not Python code */

/* The exported symbols of an interpreter; NULL: not exported. */
struct python_symbols {
	const void *runtime; /* _PyRuntime */
	const void *code_type; /* PyCode_Type */
	const void *context_type; /* PyContext_Type */
	const void *version; /* Py_Version, 3.11 on */
	const char *(*get_version)(void);
	void *(*gilstate)(void); /* PyGILState_GetThisThreadState */
	void *(*unchecked)(void); /* _PyThreadState_UncheckedGet, PyThreadState_GetUnchecked */
	int (*finalizing)(void); /* _Py_IsFinalizing, Py_IsFinalizing */
	const void *eval; /* _PyEval_EvalFrameDefault */
	bool debug; /* a build with reference debugging: other layouts */
};

/*
 * Fills *abi for the interpreter behind `symbols` and checks it against the interpreter's own
 * statements. Returns NULL if it may be used, otherwise the reason in words for a person.
 * `force`: accept a version that was never tested if its own statements agree.
 */
const char *python_abi_detect(
    const struct python_symbols *symbols, bool force, struct python_abi *abi);

#endif
