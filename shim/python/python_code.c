/*
 * python_code.c - see python_code.h.
 *
 * Invariant: an id that is found under an address is that of the code object that lives there now.
 * Slots change only by compare-and-swap, and a thread that loses a race gives up: at worst the same
 * code is defined twice. Objects are read once, by process_vm_readv() on this process if the system
 * allows it, which cannot fault.
 *
 * Must not: call into the interpreter, take its reference counts, wait, allocate from the host.
 */
#include "python/python_code.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/sys.h"
#include "base/varint.h"
#include "trace/definitions.h"

#define FIRST_SLOTS 4096u
#define MAX_SLOTS (1u << 22)
#define MAX_PROBES 64u
#define NAME_MAX_CHARS 4096u
#define TABLE_MAX_BYTES (256u << 10)
#define BUSY UINT32_MAX
#define NAMELESS (UINT32_MAX - 1)
#define LAST_ID (UINT32_MAX - 65536)

/* id: 0: free, or its code object is freed; BUSY: a thread changes the slot; NAMELESS: there was no
 * room for the definition, and it is not tried again. */
struct slot {
	_Atomic uintptr_t code;
	_Atomic uint32_t id;
	_Atomic uint32_t fingerprint; /* of the object's contents, if deallocation is not watched */
};

/* Outgrown tables stay, as a reader may be in one. Together they are smaller than the present one:
 * only live objects make it grow, as slots of freed ones are reused. */
struct table {
	struct table *outgrown;
	size_t bytes;
	uint32_t mask;
	_Atomic uint32_t used;
	_Atomic bool full; /* there was no memory for a larger one */
	struct slot slots[];
};

static struct {
	struct python_abi abi;
	uintptr_t type;
	void (*dealloc)(void *); /* the interpreter's own */
	bool watched;
	_Atomic(struct table *) table, next;
	_Atomic uint32_t last_id;
	_Atomic bool no_readv;
} state;

_Atomic uint32_t python_code_deaths;

static inline uint32_t hash(uintptr_t code)
{
	return (uint32_t)((code >> 4) * 0x9e3779b97f4a7c15ull >> 32);
}

/* ---- reading objects ---- */

struct part {
	void *to;
	uintptr_t from;
	size_t bytes;
};

static bool plausible(uintptr_t p, size_t bytes)
{
	return p > 65536 && p < (uintptr_t)1 << 48 && bytes < (size_t)1 << 40;
}

/* Reads all parts, or returns false. */
static bool read_parts(const struct part *parts, unsigned n)
{
	struct iovec to[4], from[4];
	size_t total = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!plausible(parts[i].from, parts[i].bytes))
			return false;
		to[i] = (struct iovec){parts[i].to, parts[i].bytes};
		from[i] = (struct iovec){(void *)parts[i].from, parts[i].bytes};
		total += parts[i].bytes;
	}
	if (!atomic_load_explicit(&state.no_readv, memory_order_relaxed)) {
		long pid = sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
		long got = sys_call(SYS_process_vm_readv, pid, (long)to, n, (long)from, n, 0);

		if (got == (long)total)
			return true;
		if (got != -EPERM && got != -ENOSYS && got != -EACCES)
			return false;
		atomic_store_explicit(&state.no_readv, true, memory_order_relaxed);
	}
	/* a sandbox forbids the call; the frame that led here keeps the object alive */
	for (unsigned i = 0; i < n; i++)
		memcpy(parts[i].to, (const void *)parts[i].from, parts[i].bytes);
	return true;
}

static uint32_t u32_at(const uint8_t *p, size_t offset)
{
	uint32_t v;

	memcpy(&v, p + offset, sizeof v);
	return v;
}

static uint64_t u64_at(const uint8_t *p, size_t offset)
{
	uint64_t v;

	memcpy(&v, p + offset, sizeof v);
	return v;
}

struct text {
	uintptr_t data;
	uint32_t chars;
	uint32_t width; /* bytes of a character: 1, 2, 4; 0: the string cannot be read */
};

#define STR_HEAD 40u /* bytes of a str object up to and with its length and kind */

static struct text text_of(const uint8_t *head, uintptr_t address)
{
	uint32_t flags = u32_at(head, PYTHON_STR_STATE);
	uint32_t width = flags >> 2 & 7;
	bool compact = flags >> 5 & 1, ascii = flags >> 6 & 1;
	uint64_t chars = u64_at(head, PYTHON_STR_LENGTH);
	struct text t = {0};

	if (!compact || (width != 1 && width != 2 && width != 4) || chars > UINT32_MAX)
		return t;
	t.chars = chars > NAME_MAX_CHARS ? NAME_MAX_CHARS : (uint32_t)chars;
	t.width = width;
	t.data = address + (ascii ? state.abi.str_ascii : state.abi.str_compact);
	return t;
}

static uint32_t char_at(const uint8_t *p, uint32_t width, uint32_t i)
{
	if (width == 1)
		return p[i];
	if (width == 2)
		return (uint32_t)p[2 * i] | (uint32_t)p[2 * i + 1] << 8;
	return u32_at(p, 4 * (size_t)i);
}

/* Python keeps undecodable bytes of a file name as surrogates U+DC80 to U+DCFF; they become those
 * bytes again. UTF-8 cannot express other surrogates. */
static size_t to_utf8(uint8_t *out, const uint8_t *raw, const struct text *t)
{
	uint8_t *p = out;

	for (uint32_t i = 0; i < t->chars; i++) {
		uint32_t c = char_at(raw, t->width, i);

		if (c < 0x80) {
			*p++ = (uint8_t)c;
		} else if (c < 0x800) {
			*p++ = (uint8_t)(0xc0 | c >> 6);
			*p++ = (uint8_t)(0x80 | (c & 63));
		} else if (c >= 0xdc80 && c <= 0xdcff) {
			*p++ = (uint8_t)c;
		} else if ((c >= 0xd800 && c < 0xe000) || c > 0x10ffff) {
			*p++ = '?';
		} else if (c < 0x10000) {
			*p++ = (uint8_t)(0xe0 | c >> 12);
			*p++ = (uint8_t)(0x80 | (c >> 6 & 63));
			*p++ = (uint8_t)(0x80 | (c & 63));
		} else {
			*p++ = (uint8_t)(0xf0 | c >> 18);
			*p++ = (uint8_t)(0x80 | (c >> 12 & 63));
			*p++ = (uint8_t)(0x80 | (c >> 6 & 63));
			*p++ = (uint8_t)(0x80 | (c & 63));
		}
	}
	return (size_t)(p - out);
}

static bool scratch_room(struct python_scratch *s, size_t bytes)
{
	size_t size;

	if (s->size >= bytes)
		return true;
	size = s->size ? s->size : 16384;
	while (size < bytes)
		size *= 2;
	if (!sys_pages_replace((void **)&s->bytes, s->size, 0, size))
		return false;
	s->size = size;
	return true;
}

/* ---- definitions ---- */

/* Reads must end with the object, as the page behind it may be unmapped. The line table is the last
 * field that is read. */
#define CODE_HEAD_MAX 192u

enum defined { DEFINED, UNREADABLE, NO_ROOM };

static size_t utf8_max(const struct text *t)
{
	return (size_t)t->chars * (t->width == 1 ? 2 : t->width == 2 ? 3 : 4);
}

static uint8_t *put_text(uint8_t *p, uint8_t *room, const uint8_t *raw, const struct text *t)
{
	if (!t->width)
		return varint_put_bytes(p, "?", 1);
	return varint_put_bytes(p, room, to_utf8(room, raw, t));
}

static enum defined define_code(uint32_t id, uintptr_t code, struct python_scratch *scratch)
{
	const struct python_abi *abi = &state.abi;
	uint8_t head[CODE_HEAD_MAX], name_head[STR_HEAD], file_head[STR_HEAD], table_head[24], *raw,
	    *text, *body, *p;
	int32_t first;
	size_t converted, text_at, body_at, name_raw, file_raw;
	struct text names, files;
	bool qualified;
	struct part heads[3], strings[2];
	unsigned n = 0;
	uintptr_t name, file, table;
	uint64_t table_bytes;

	if (!read_parts(&(struct part){head, code, abi->code_linetable + 8u}, 1))
		return UNREADABLE;
	if (u64_at(head, PYTHON_TYPE) != state.type || u32_at(head, PYTHON_REFCOUNT) == 0)
		return UNREADABLE;
	qualified = abi->code_qualname != 0;
	name = u64_at(head, qualified ? abi->code_qualname : abi->code_name);
	file = u64_at(head, abi->code_filename);
	table = u64_at(head, abi->code_linetable);
	heads[0] = (struct part){name_head, name, sizeof name_head};
	heads[1] = (struct part){file_head, file, sizeof file_head};
	heads[2] = (struct part){table_head, table, sizeof table_head};
	if (!read_parts(heads, 3))
		return UNREADABLE;

	names = text_of(name_head, name);
	files = text_of(file_head, file);
	name_raw = (size_t)names.chars * names.width;
	file_raw = (size_t)files.chars * files.width;
	table_bytes = u64_at(table_head, PYTHON_BYTES_LENGTH);
	/* half a line table would give wrong lines; without one every line is the first */
	if (table_bytes > TABLE_MAX_BYTES)
		table_bytes = 0;

	/* scratch holds both raw strings, one converted string, and the body */
	converted = utf8_max(&names) > utf8_max(&files) ? utf8_max(&names) : utf8_max(&files);
	text_at = name_raw + file_raw;
	body_at = text_at + converted;
	if (!scratch_room(scratch,
		body_at + utf8_max(&names) + utf8_max(&files) + 8 * VARINT_BYTES_MAX + table_bytes))
		return NO_ROOM;
	raw = scratch->bytes;
	text = raw + text_at;
	body = raw + body_at;
	if (name_raw)
		strings[n++] = (struct part){raw, names.data, name_raw};
	if (file_raw)
		strings[n++] = (struct part){raw + name_raw, files.data, file_raw};
	if (n && !read_parts(strings, n))
		return UNREADABLE;

	first = (int32_t)u32_at(head, abi->code_firstlineno);
	p = varint_put(body, id);
	p = varint_put(p, abi->version >> 16);
	p = varint_put(p, first > 0 ? (uint32_t)first : 0);
	p = varint_put(p, qualified ? 0 : 1);
	p = put_text(p, text, raw, &names);
	p = put_text(p, text, raw + name_raw, &files);
	p = varint_put(p, table_bytes);
	if (table_bytes) {
		if (!read_parts(&(struct part){p, table + PYTHON_BYTES_DATA, table_bytes}, 1))
			return UNREADABLE;
		p += table_bytes;
	}
	return definition_write(TRACE_DEF_CODE, body, (size_t)(p - body)) ? DEFINED : NO_ROOM;
}

/* ---- the table ---- */

static struct table *table_new(uint32_t slots)
{
	size_t bytes = sizeof(struct table) + slots * sizeof(struct slot);
	struct table *t = sys_pages(bytes);

	if (t) {
		t->bytes = bytes;
		t->mask = slots - 1;
	}
	return t;
}

/*
 * An object that is freed while the table grows must not survive in the new one. So table_grow()
 * publishes `next`, copies a slot, then checks the old slot again; code_dealloc() clears the old
 * slot, then checks for `next`. In either order one of them sees the other.
 */
static void table_grow(struct table *old)
{
	uint32_t live = 0, slots = FIRST_SLOTS;
	struct table *t, *none = NULL;

	if (atomic_load(&old->full) || atomic_load(&state.next))
		return;
	for (uint32_t i = 0; i <= old->mask; i++)
		live += atomic_load_explicit(&old->slots[i].id, memory_order_relaxed) != 0;
	while (slots < live * 4)
		slots *= 2;
	if (slots <= old->mask)
		slots = (old->mask + 1) * 2; /* probes are long, though objects are few */
	t = slots <= MAX_SLOTS ? table_new(slots) : NULL;
	if (!t) {
		atomic_store(&old->full, true);
		return;
	}
	if (!atomic_compare_exchange_strong(&state.next, &none, t)) {
		sys_pages_free(t, t->bytes);
		return;
	}
	if (atomic_load(&state.table) != old) {
		/* another thread grew it meanwhile; t was visible, so it stays as an outgrown one
		 */
		struct table *now = atomic_load(&state.table);
		t->outgrown = now->outgrown;
		now->outgrown = t;
		atomic_store(&state.next, NULL);
		return;
	}
	for (uint32_t i = 0; i <= old->mask; i++) {
		uint32_t id = atomic_load(&old->slots[i].id);
		uintptr_t code;
		uint32_t k;

		if (!id || id == BUSY)
			continue;
		code = atomic_load(&old->slots[i].code);
		k = hash(code) & t->mask;
		while (atomic_load_explicit(&t->slots[k].code, memory_order_relaxed))
			k = (k + 1) & t->mask;
		atomic_store(&t->slots[k].fingerprint, atomic_load(&old->slots[i].fingerprint));
		atomic_store(&t->slots[k].id, id);
		atomic_store(&t->slots[k].code, code);
		atomic_fetch_add_explicit(&t->used, 1, memory_order_relaxed);
		if (atomic_load(&old->slots[i].id) != id ||
		    atomic_load(&old->slots[i].code) != code)
			atomic_store(&t->slots[k].id, 0);
	}
	t->outgrown = old;
	atomic_store(&state.table, t);
	atomic_store(&state.next, NULL);
}

/* Says whether the slot was never used, so that the probe ends here. A slot is busy before it has
 * an address. */
static inline bool never_used(struct slot *s, uintptr_t code, uint32_t id)
{
	return !code && !id && !atomic_load_explicit(&s->code, memory_order_acquire);
}

/* Clears all slots of an address: two threads may both have stored it. */
static void table_forget(struct table *t, uintptr_t code)
{
	uint32_t i = hash(code) & t->mask;

	for (uint32_t n = 0; n < MAX_PROBES; n++, i = (i + 1) & t->mask) {
		struct slot *s = &t->slots[i];
		uintptr_t at = atomic_load(&s->code);
		uint32_t id = atomic_load(&s->id);

		if (never_used(s, at, id))
			return;
		if (at == code && id && id != BUSY)
			atomic_compare_exchange_strong(&s->id, &id, 0);
	}
}

/* Replaces PyCode_Type.tp_dealloc. */
static void code_dealloc(void *object)
{
	struct table *t = atomic_load(&state.table);
	struct table *now, *next;

	if (t)
		table_forget(t, (uintptr_t)object);
	next = atomic_load(&state.next);
	if (next)
		table_forget(next, (uintptr_t)object);
	now = atomic_load(&state.table);
	if (now != t && now != next && now)
		table_forget(now, (uintptr_t)object);
	atomic_fetch_add_explicit(&python_code_deaths, 1, memory_order_release);
	state.dealloc(object);
}

/*
 * Identifies an object while deallocation is not watched: by its version, which is unique, or else
 * by a hash of the contents that we would define.
 */
static uint32_t fingerprint_of(uintptr_t code)
{
	const struct python_abi *abi = &state.abi;
	const uint8_t *p = (const uint8_t *)code;
	const uint16_t strings[] = {
	    abi->code_filename, abi->code_qualname ? abi->code_qualname : abi->code_name};
	uint64_t h = u32_at(p, abi->code_firstlineno), bytes;
	uintptr_t table;

	if (u32_at(p, PYTHON_REFCOUNT) == 0)
		return 0; /* its strings may be freed */
	if (abi->code_version && u32_at(p, abi->code_version))
		return u32_at(p, abi->code_version);
	for (unsigned k = 0; k < 2; k++) {
		uintptr_t s = u64_at(p, strings[k]);
		struct text t;

		if (!plausible(s, 0))
			return 0;
		t = text_of((const uint8_t *)s, s);
		for (uint32_t i = 0; i < t.chars * t.width; i++)
			h = (h ^ ((const uint8_t *)t.data)[i]) * 0x100000001b3ull;
	}
	table = u64_at(p, abi->code_linetable);
	if (!plausible(table, 0))
		return 0;
	bytes = u64_at((const uint8_t *)table, PYTHON_BYTES_LENGTH);
	for (uint64_t i = 0; i < bytes && i < TABLE_MAX_BYTES; i++)
		h = (h ^ ((const uint8_t *)table)[PYTHON_BYTES_DATA + i]) * 0x100000001b3ull;
	return (uint32_t)(h ^ h >> 32);
}

static void table_store(uintptr_t code, uint32_t id, uint32_t fingerprint)
{
	struct table *t = atomic_load(&state.table);
	uint32_t i = hash(code) & t->mask;

	/* the first slot that is empty or whose object is freed */
	for (uint32_t n = 0; n < MAX_PROBES; n++, i = (i + 1) & t->mask) {
		struct slot *s = &t->slots[i];
		uint32_t free_id = 0;

		if (atomic_load_explicit(&s->id, memory_order_relaxed) != 0 ||
		    !atomic_compare_exchange_strong(&s->id, &free_id, BUSY))
			continue;
		if (!atomic_load_explicit(&s->code, memory_order_relaxed))
			atomic_fetch_add_explicit(&t->used, 1, memory_order_relaxed);
		atomic_store(&s->code, code);
		atomic_store(&s->fingerprint, fingerprint);
		atomic_store(&s->id, id);
		return;
	}
}

static uint32_t table_find(struct table *t, uintptr_t code, uint32_t fingerprint, bool *room)
{
	uint32_t i = hash(code) & t->mask;

	*room = false;
	for (uint32_t n = 0; n < MAX_PROBES; n++, i = (i + 1) & t->mask) {
		struct slot *s = &t->slots[i];
		uintptr_t at = atomic_load_explicit(&s->code, memory_order_acquire);
		uint32_t id = atomic_load_explicit(&s->id, memory_order_acquire);

		*room |= id == 0;
		if (never_used(s, at, id))
			return 0;
		/* read the address twice: in between the slot may have got another object */
		if (at == code && id && id != BUSY &&
		    atomic_load_explicit(&s->code, memory_order_acquire) == at) {
			uint32_t seen = atomic_load_explicit(&s->fingerprint, memory_order_relaxed);

			if (state.watched || seen == fingerprint)
				return id;
			atomic_compare_exchange_strong(&s->id, &id, 0);
			*room = true;
		}
	}
	return 0;
}

static struct table *table_now(void)
{
	struct table *t = atomic_load_explicit(&state.table, memory_order_acquire);

	if (!t) {
		struct table *fresh = table_new(FIRST_SLOTS);

		if (fresh && atomic_compare_exchange_strong(&state.table, &t, fresh))
			return fresh;
		if (fresh)
			sys_pages_free(fresh, fresh->bytes);
	}
	return t;
}

uint32_t python_code_id(uintptr_t code, struct python_scratch *scratch)
{
	struct table *t = table_now();
	bool room;
	enum defined how;
	uint32_t fingerprint, id;

	if (!t || (code & 7) || !plausible(code, 0))
		return 0;
	fingerprint = state.watched ? 0 : fingerprint_of(code);
	id = table_find(t, code, fingerprint, &room);
	if (__builtin_expect(id != 0, 1))
		return id == NAMELESS ? 0 : id;
	if (atomic_load_explicit(&t->used, memory_order_relaxed) > t->mask / 2 || !room) {
		table_grow(t);
		t = atomic_load(&state.table);
		table_find(t, code, fingerprint, &room);
		if (!room)
			return 0; /* without a slot it would be defined at each look-up */
	}
	id = atomic_fetch_add(&state.last_id, 1) + 1;
	how = id < LAST_ID ? define_code(id, code, scratch) : NO_ROOM;
	if (how == UNREADABLE)
		return 0;
	table_store(code, how == DEFINED ? id : NAMELESS, fingerprint);
	return how == DEFINED ? id : 0;
}

/* ---- life ---- */

bool python_code_watched(void)
{
	return state.watched;
}

void python_code_init(const struct python_abi *abi, const void *code_type, bool watch)
{
	_Atomic(uintptr_t) *dealloc_field;
	uintptr_t own;

	state.abi = *abi;
	state.type = (uintptr_t)code_type;
	if (!watch)
		return;
	dealloc_field = (void *)((uintptr_t)code_type + PYTHON_TYPE_DEALLOC);
	own = atomic_load(dealloc_field);
	if (!own || own == (uintptr_t)code_dealloc)
		return;
	state.dealloc = (void (*)(void *))own;
	state.watched = true;
	atomic_store(dealloc_field, (uintptr_t)code_dealloc);
}

void python_code_fork_child(void)
{
	struct table *t = atomic_load(&state.table);
	struct table *next = atomic_load(&state.next);

	atomic_store(&state.table, NULL);
	atomic_store(&state.next, NULL);
	atomic_store(&state.last_id, 0);
	if (next && next != t)
		sys_pages_free(next, next->bytes);
	while (t) {
		struct table *outgrown = t->outgrown;

		sys_pages_free(t, t->bytes);
		t = outgrown;
	}
}
