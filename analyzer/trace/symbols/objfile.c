#include "trace/symbols/objfile.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/definitions/scopes.h"
#include "trace/symbols/symcache.h"
#include "util/memory.h"
#include "util/sort.h"
#include "util/vec.h"

#define NAME_MAX_MANGLED 16384u /* the demangler's work is bounded by its input */
#define DEBUG_ROOT "/usr/lib/debug"
#define PATH_ROOM 4352u

/* Addresses of one compilation unit, as in the file. */
struct unit {
	Dwarf_Addr start, end, bias;
	Dwarf_Die die;
};

/* libdw searches its table linearly: too slow for libraries of half a million symbols. */
struct elf_symbol {
	uint64_t start, size;
	const char *name;
	int rank; /* rank among symbols at the same address */
};

struct objfile {
	struct symcache *cache;
	char *path; /* NULL: no file */
	struct symcache_mark mark; /* of the file when it was found */
	Dwfl *dwfl; /* NULL: not loaded, while kept answers suffice */
	Dwfl_Module *dwfl_module;
	VEC(struct unit) units; /* by start; filled when libdw has no table of its own */
	VEC(struct elf_symbol)
	symbols; /* by start, the best of each last; filled at the first lookup */
	bool listed, indexed, watched;
	struct scopes scopes;
};

/* Open a regular file; -1: it is none. */
static int open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Build "/usr/lib/debug/.build-id/ab/cdef...": with ".debug" the separated file, else the
 * original. */
static void build_id_path(
    const uint8_t *id, size_t bytes, const char *suffix, char *path, size_t room)
{
	size_t n = (size_t)snprintf(path, room, DEBUG_ROOT "/.build-id/%02x/", id[0]);

	for (size_t i = 1; i < bytes && n + 16 < room; i++)
		n += (size_t)snprintf(path + n, room - n, "%02x", id[i]);
	snprintf(path + n, room - n, "%s", suffix);
}

/* Read the build id of an open file; 0: it has none; -1: no ELF. */
static ssize_t build_id_of(int fd, uint8_t *id, size_t room)
{
	const void *bits;
	ssize_t n;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf)
		return -1;
	n = elf_kind(elf) == ELF_K_ELF ? dwelf_elf_gnu_build_id(elf, &bits) : -1;
	if (n > 0 && (size_t)n <= room)
		memcpy(id, bits, (size_t)n);
	else if (n > 0)
		n = -1;
	else if (elf_kind(elf) == ELF_K_ELF)
		n = 0;
	elf_end(elf);
	return n;
}

/* Without build ids: compare size and time, if they were recorded. */
static bool same_times(const struct def_module *m, const struct stat *st)
{
	if (m->build_id_bytes)
		return true;
	return (!m->file_size || (uint64_t)st->st_size == m->file_size) &&
	       (!m->mtime_ns ||
		   (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec ==
		       m->mtime_ns);
}

static bool same_file(const struct def_module *m, int fd)
{
	uint8_t id[64];
	ssize_t n = build_id_of(fd, id, sizeof(id));
	struct stat st;

	if (m->build_id_bytes)
		return n == (ssize_t)m->build_id_bytes && !memcmp(id, m->build_id, (size_t)n);
	return n >= 0 && !fstat(fd, &st) && same_times(m, &st);
}

static uint32_t crc32_of(int fd, bool *ok)
{
	uint32_t crc = 0xffffffffu;
	uint8_t buffer[8192];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, buffer, sizeof(buffer), at)) > 0) {
		at += n;
		for (ssize_t i = 0; i < n; i++) {
			crc ^= buffer[i];
			for (int bit = 0; bit < 8; bit++)
				crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
		}
	}
	*ok = n == 0;
	return ~crc;
}

/* Name a place for a file's debug information: by build id, else by .gnu_debuglink's name, beside
 * the file, in .debug or below /usr/lib/debug. Empty: no such place. */
static void debug_place(unsigned place, const char *original, const uint8_t *id, size_t id_bytes,
    const char *link, char *path, size_t room)
{
	const char *slash = strrchr(original, '/');
	int folder = slash ? (int)(slash - original) : 0;

	*path = 0;
	if (place == 0) {
		if (id_bytes)
			build_id_path(id, id_bytes, ".debug", path, room);
		return;
	}
	if (!link || !*link || !slash || strchr(link, '/'))
		return;
	if (place == 1)
		snprintf(path, room, "%.*s/%s", folder, original, link);
	else if (place == 2)
		snprintf(path, room, "%.*s/.debug/%s", folder, original, link);
	else
		snprintf(path, room, DEBUG_ROOT "%.*s/%s", folder, original, link);
	if (!strcmp(path, original))
		*path = 0;
}

/* Open the file that .gnu_debuglink names; -1: none. */
static int find_by_link(const char *original, const char *link, GElf_Word crc, char **found)
{
	char path[PATH_ROOM];

	for (unsigned place = 1; place < SYMCACHE_PLACES; place++) {
		bool ok;
		int fd;

		debug_place(place, original, NULL, 0, link, path, sizeof(path));
		fd = *path ? open_regular(path) : -1;
		if (fd < 0)
			continue;
		if (crc32_of(fd, &ok) == crc && ok) {
			*found = strdup(path);
			return fd;
		}
		close(fd);
	}
	return -1;
}

/* A callback of libdwfl for a module's separate debug information. */
static int find_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
    const char *file, const char *link, GElf_Word crc, char **found)
{
	const unsigned char *id;
	GElf_Addr at;
	char path[PATH_ROOM];
	uint8_t other[64];
	int n = dwfl_module_build_id(module, &id, &at), fd;

	(void)user;
	(void)name;
	(void)base;
	if (n > 0) {
		debug_place(0, file ? file : "", id, (size_t)n, NULL, path, sizeof(path));
		fd = open_regular(path);
		if (fd >= 0 && build_id_of(fd, other, sizeof(other)) == n &&
		    !memcmp(other, id, (size_t)n)) {
			*found = strdup(path);
			return fd;
		}
		if (fd >= 0)
			close(fd);
	}
	return file ? find_by_link(file, link, crc, found) : -1;
}

static int find_no_elf(
    Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, char **found, Elf **elf)
{
	(void)module;
	(void)user;
	(void)name;
	(void)base;
	(void)found;
	(void)elf;
	return -1; /* each module comes with its file */
}

static char *no_debuginfo_path = (char *)"";
static const Dwfl_Callbacks callbacks = {
    .find_elf = find_no_elf,
    .find_debuginfo = find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &no_debuginfo_path,
};

/* Load the file. libdwfl then owns the descriptor; after false the caller still does. */
static bool load(struct objfile *o, int fd)
{
	o->dwfl = dwfl_begin(&callbacks);
	if (!o->dwfl)
		return false;
	dwfl_report_begin(o->dwfl);
	/* Base 0 keeps the file's own addresses, which the trace uses. */
	o->dwfl_module = dwfl_report_elf(o->dwfl, o->path, o->path, fd, 0, true);
	dwfl_report_end(o->dwfl, NULL, NULL);
	if (o->dwfl_module)
		return true;
	dwfl_end(o->dwfl);
	o->dwfl = NULL;
	return false;
}

/* Note which debug information exists: the answers depend on it and on the file. */
static void see_debug(
    const struct def_module *m, const char *path, const char *link, struct symcache_debug *debug)
{
	char place[PATH_ROOM];
	struct stat st;

	*debug = (struct symcache_debug){0};
	snprintf(debug->link, sizeof(debug->link), "%s", link);
	for (unsigned i = 0; i < SYMCACHE_PLACES; i++) {
		debug_place(i, path, m->build_id, m->build_id_bytes, link, place, sizeof(place));
		if (*place && !stat(place, &st))
			debug->places[i] = symcache_mark(&st);
	}
}

static bool is_kept(const struct objfile *o, const struct def_module *m)
{
	const struct symcache_debug *kept = symcache_kept(o->cache);
	struct symcache_debug now;

	if (!kept)
		return false;
	see_debug(m, o->path, kept->link, &now);
	return !memcmp(&now, kept, sizeof(now));
}

/* The file is loaded, and has no kept answers. */
static void begin_keeping(struct objfile *o, const struct def_module *m)
{
	struct symcache_debug debug;
	const char *link;
	Dwarf_Addr bias;
	GElf_Word crc;
	Elf *elf = dwfl_module_getelf(o->dwfl_module, &bias);

	link = elf ? dwelf_elf_gnu_debuglink(elf, &crc) : NULL;
	if (link && strlen(link) >= sizeof(debug.link)) {
		symcache_renew(o->cache, NULL);
		return;
	}
	see_debug(m, o->path, link ? link : "", &debug);
	symcache_renew(o->cache, &debug);
}

/* Open the module's file at `path`. False: it is not there, is another file, or cannot be read. */
static bool open_at(
    struct objfile *o, const struct def_module *m, struct symcache_store *store, const char *path)
{
	int fd = open_regular(path);
	struct stat st;

	if (fd < 0)
		return false;
	o->path = strdup(path);
	if (o->path && !fstat(fd, &st)) {
		o->mark = symcache_mark(&st);
		o->cache = symcache_open(store, m->build_id, m->build_id_bytes, &o->mark);
	}
	/* Kept answers are of the module's file, and the file is unchanged. */
	if (o->cache && is_kept(o, m) && same_times(m, &st)) {
		close(fd);
		return true;
	}
	if (o->cache && same_file(m, fd) && load(o, fd)) {
		begin_keeping(o, m);
		return true;
	}
	close(fd);
	symcache_close(o->cache);
	o->cache = NULL;
	free(o->path);
	o->path = NULL;
	return false;
}

struct objfile *objfile_open(const struct def_module *m, struct symcache_store *store)
{
	struct objfile *o = calloc(1, sizeof(*o));
	char path[PATH_ROOM];

	if (!o || m->path[0] != '/' || open_at(o, m, store, m->path))
		return o;
	/* Try the original by build id, or the debug information, which has symbols, too. */
	for (int i = 0; i < 2 && m->build_id_bytes >= 2 && m->build_id_bytes <= 64; i++) {
		build_id_path(
		    m->build_id, m->build_id_bytes, i ? ".debug" : "", path, sizeof(path));
		if (open_at(o, m, store, path))
			break;
	}
	return o;
}

/* True if names are in a second file, shared by several packages, that is missing. Kept answers
 * would stay unknown when it is installed. */
static bool lacks_part(const struct objfile *o)
{
	const char *name;
	const void *id;
	Dwarf_Addr bias;
	Dwarf *dwarf = dwfl_module_getdwarf(o->dwfl_module, &bias);

	return dwarf && dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id) > 0 && !dwarf_getalt(dwarf);
}

bool objfile_is_kept(const struct objfile *o)
{
	return o->cache && symcache_is_kept(o->cache) && !(o->indexed && lacks_part(o));
}

void objfile_close(struct objfile *o)
{
	if (!o)
		return;
	if (o->indexed && lacks_part(o))
		symcache_renew(o->cache, NULL);
	symcache_close(o->cache);
	if (o->dwfl)
		dwfl_end(o->dwfl);
	free(o->path);
	scopes_fini(&o->scopes);
	vec_free(&o->units);
	vec_free(&o->symbols);
	free(o);
}

/* libdw cannot go on, and would print its own message. */
static void __attribute__((noreturn)) no_memory(void)
{
	memory_give_up("the debug information of a module");
}

static void watch_memory(struct objfile *o)
{
	Dwarf_Addr bias;
	Dwarf *dwarf = dwfl_module_getdwarf(o->dwfl_module, &bias);

	if (!dwarf)
		return;
	dwarf_new_oom_handler(dwarf, no_memory);
	if (dwarf_getalt(dwarf))
		dwarf_new_oom_handler(dwarf_getalt(dwarf), no_memory);
}

static int by_start(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* List the units, as .debug_aranges would: clang and rustc do not write that. */
static void list_units(struct objfile *o)
{
	Dwarf_Addr bias, base, start, end;
	Dwarf_Die *die = NULL;

	o->listed = true;
	while ((die = dwfl_module_nextcu(o->dwfl_module, die, &bias))) {
		ptrdiff_t at = 0;

		while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
			if (start < end && vec_push(&o->units,
					       (struct unit){start + bias, end + bias, bias, *die}))
				return;
	}
	if (o->units.count)
		qsort(o->units.items, o->units.count, sizeof(*o->units.items), by_start);
}

static Dwarf_Die *unit_of(struct objfile *o, uint64_t address, Dwarf_Addr *bias)
{
	Dwarf_Die *die = dwfl_module_addrdie(o->dwfl_module, address, bias);
	struct unit *unit;
	size_t n;

	if (die)
		return die;
	if (!o->listed)
		list_units(o);
	n = sort_up_to(o->units.items, o->units.count, sizeof(*unit), address);
	unit = n ? &o->units.items[n - 1] : NULL;
	if (!unit || unit->end <= address)
		return NULL;
	*bias = unit->bias;
	return &unit->die;
}

static int by_place(const void *a, const void *b)
{
	const struct elf_symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return -strcmp(x->name, y->name);
}

static void index_symbols(struct objfile *o)
{
	int count = dwfl_module_getsymtab(o->dwfl_module);

	o->indexed = true;
	for (int i = 1; i < count; i++) {
		struct elf_symbol symbol;
		GElf_Addr start;
		GElf_Word section;
		GElf_Sym sym;
		int type, binding;

		symbol.name =
		    dwfl_module_getsym_info(o->dwfl_module, i, &sym, &start, &section, NULL, NULL);
		type = GELF_ST_TYPE(sym.st_info);
		if (!symbol.name || !*symbol.name || section == SHN_UNDEF || section == SHN_ABS ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
			continue;
		binding = GELF_ST_BIND(sym.st_info);
		symbol.start = start;
		symbol.size = sym.st_size;
		symbol.rank =
		    (sym.st_size ? 4 : 0) + (type != STT_NOTYPE ? 2 : 0) + (binding == STB_GLOBAL);
		if (vec_push(&o->symbols, symbol))
			break; /* no memory: go on with fewer */
	}
	if (o->symbols.count)
		qsort(o->symbols.items, o->symbols.count, sizeof(*o->symbols.items), by_place);
}

/* Find the innermost symbol at the address; else the nearest before it, if its size is unknown. */
static const char *symbol_at(struct objfile *o, uint64_t address)
{
	const struct elf_symbol *symbols;
	Dwarf_Addr end = 0;
	size_t n;

	if (!o->indexed)
		index_symbols(o);
	symbols = o->symbols.items;
	n = sort_up_to(symbols, o->symbols.count, sizeof(*symbols), address);
	for (size_t i = n; i > 0 && n - i < 64; i--)
		if (address - symbols[i - 1].start < symbols[i - 1].size)
			return symbols[i - 1].name;
	dwfl_module_info(o->dwfl_module, NULL, NULL, &end, NULL, NULL, NULL, NULL);
	return n && !symbols[n - 1].size && address < end ? symbols[n - 1].name : NULL;
}

/* The same as objfile_lookup(), with names as in the file. */
static size_t look_up(struct objfile *o, uint64_t address, struct objfile_frame *frames)
{
	struct objfile_frame line = {0}, swap;
	const char *symbol;
	Dwarf_Addr bias = 0;
	Dwarf_Line *source;
	Dwarf_Die *cu;
	int number = 0;
	size_t n = 0;

	if (!o->watched)
		watch_memory(o);
	o->watched = true;
	cu = unit_of(o, address, &bias);
	source = cu ? dwarf_getsrc_die(cu, address - bias) : NULL;
	if (source) {
		line.file = dwarf_linesrc(source, NULL, NULL);
		if (!dwarf_lineno(source, &number) && number > 0)
			line.line = (uint32_t)number;
	}
	symbol = symbol_at(o, address);
	if (cu)
		n = scopes_at(&o->scopes, cu, address - bias, &line, frames);
	if (!n) {
		if (!symbol)
			return 0;
		frames[0] = line;
		frames[0].function = symbol;
		return 1;
	}
	/* Only where DWARF has no name, as for split-off parts: it may be an alias. */
	if (!frames[n - 1].function && !frames[n - 1].inlined)
		frames[n - 1].function = symbol;
	for (size_t i = 0; i < n / 2; i++) {
		swap = frames[i];
		frames[i] = frames[n - 1 - i];
		frames[n - 1 - i] = swap;
	}
	return n;
}

char *objfile_demangle(const char *name)
{
	char *text;
	size_t n;

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') || strlen(name) > NAME_MAX_MANGLED)
		return NULL;
	/* No parameters: the file and the line identify the overload. */
	text = cplus_demangle(name, DMGL_AUTO);
	if (!text)
		return NULL;
	/* Drop a clone's " [clone .part.0]", which tells a user nothing. */
	n = strlen(text);
	if (n > 8 && text[n - 1] == ']') {
		char *clone = strstr(text, " [clone ");
		if (clone && clone != text)
			*clone = 0;
	}
	return text;
}

/* Load the file again. False: there is none, or it has changed. */
static bool reload(struct objfile *o)
{
	int fd = o->path ? open_regular(o->path) : -1;
	struct symcache_mark now;
	struct stat st;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st)) {
		now = symcache_mark(&st);
		if (!memcmp(&now, &o->mark, sizeof(now)) && load(o, fd))
			return true;
	}
	close(fd);
	return false;
}

size_t objfile_lookup(struct objfile *o, uint64_t address, struct objfile_frame *frames)
{
	int kept = o->cache ? symcache_find(o->cache, address, frames) : 0;
	char *readable[OBJFILE_FRAMES_MAX];
	size_t n;
	bool good;

	if (kept >= 0)
		return (size_t)kept;
	if (!o->dwfl_module && !reload(o))
		return 0;
	n = look_up(o, address, frames);
	for (size_t i = 0; i < n; i++) {
		readable[i] = frames[i].function ? objfile_demangle(frames[i].function) : NULL;
		if (readable[i])
			frames[i].function = readable[i];
	}
	good = symcache_add(o->cache, address, frames, n);
	for (size_t i = 0; i < n; i++)
		free(readable[i]);
	return good ? n : 0;
}
