/*
 * standins.c - puts stand-ins in the place of CUDA's libraries when an object that needs them is
 * opened, so that machines with and without these libraries behave the same.
 *
 * Collects what the object, those that it needs and its neighbours in the folder import from such a
 * library, makes a small shared object of the library's name (elf_write.c) in the user's own folder
 * below TMPDIR, and loads it first, so that the loader finds the name taken. A file that exists is
 * not written again.
 */
#include "simgpu/standins/standins.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "simgpu/device/heap.h"
#include "simgpu/standins/elf_scan.h"
#include "simgpu/standins/elf_write.h"

#define LIBRARIES 64 /* the most in one process */
#define TABLE 16384 /* the most symbols */
#define DEEPEST 8

static const struct kind {
	const char *file, *symbols;
	uint32_t result;
} kinds[] = {
#define STANDIN(file, symbols, result) {file, symbols, result},
#include "simgpu/standins/standins.def"
};

static const char *const successful[] = {
#define SUCCEEDS(symbols) symbols,
#include "simgpu/standins/standins.def"
};

struct library {
	char name[64];
	bool loaded;
	int kind;
};

struct symbol {
	const char *name, *version;
	int library; /* -1: done, or defined by us */
	int kind;
};

void *(*simgpu_real_dlopen)(const char *file, int mode);
const char *simgpu_open_name(const char *file);

static struct library libraries[LIBRARIES];
static int library_count;
static struct symbol *symbols; /* open addressing */
static size_t symbol_count;
static uint64_t scanned_paths[4096]; /* hashes of paths */
static int misc_count;
static void *self;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool busy __attribute__((tls_model("initial-exec")));

static uint64_t hash_of(const char *s, uint64_t hash)
{
	for (; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 1099511628211ull;
	return hash;
}

/* Returns true the first time. */
static bool mark_scanned(const char *path)
{
	uint64_t hash = hash_of(path, 14695981039346656037ull) | 1;
	size_t mask = sizeof(scanned_paths) / sizeof(*scanned_paths) - 1;

	for (size_t i = hash & mask, n = 0; n <= mask; i = (i + 1) & mask, n++) {
		if (scanned_paths[i] == hash)
			return false;
		if (!scanned_paths[i]) {
			scanned_paths[i] = hash;
			return true;
		}
	}
	return false;
}

static int kind_of_file(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncmp(name, kinds[i].file, strlen(kinds[i].file)))
			return (int)i;
	return -1;
}

static int kind_of_symbol(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i].symbols && !strncmp(name, kinds[i].symbols, strlen(kinds[i].symbols)))
			return (int)i;
	return -1;
}

static uint32_t result_of(const struct symbol *symbol)
{
	for (size_t i = 0; i < sizeof(successful) / sizeof(*successful); i++)
		if (!strncmp(symbol->name, successful[i], strlen(successful[i])))
			return 0;
	return kinds[symbol->kind].result;
}

static int library_of(const char *name)
{
	for (int i = 0; i < library_count; i++)
		if (!strcmp(libraries[i].name, name))
			return i;
	if (library_count == LIBRARIES || strlen(name) >= sizeof(libraries[0].name))
		return -1;
	strcpy(libraries[library_count].name, name);
	libraries[library_count].kind = kind_of_file(name);
	return library_count++;
}

static char *copy(const char *s)
{
	size_t n = strlen(s) + 1;
	char *to = heap_new(n);

	return to ? memcpy(to, s, n) : NULL;
}

static void symbol_add(const char *name, const char *version, int library, int kind)
{
	size_t i = hash_of(name, 14695981039346656037ull) & (TABLE - 1);
	struct symbol *s;

	if (!symbols)
		symbols = heap_new(TABLE * sizeof(*symbols));
	if (!symbols || symbol_count > TABLE / 2)
		return;
	for (; symbols[i].name; i = (i + 1) & (TABLE - 1))
		if (!strcmp(symbols[i].name, name))
			return;
	s = &symbols[i];
	s->name = copy(name);
	s->version = version ? copy(version) : NULL;
	s->library = dlsym(self, name) ? -1 : library;
	s->kind = kind;
	if (s->name)
		symbol_count++;
}

/* An object that is being scanned. */
struct object_file {
	const char *path;
	int depth;
	bool cuda; /* it needs one of those libraries */
	char runpath[1024];
	char needs[64][96];
	int need_count;
};

static void on_need(void *data, const char *library)
{
	struct object_file *o = data;

	if (kind_of_file(library) >= 0) {
		o->cuda = true;
		library_of(library);
	} else if (o->need_count < 64 && strlen(library) < sizeof(o->needs[0])) {
		strcpy(o->needs[o->need_count++], library);
	}
	if (!strncmp(library, "libcuda.so", 10))
		o->cuda = true;
}

static void on_path(void *data, const char *path)
{
	struct object_file *o = data;

	snprintf(o->runpath, sizeof(o->runpath), "%s", path);
}

static void on_undefined(void *data, const char *name, const char *library, const char *version)
{
	struct object_file *o = data;
	int kind;

	if (library && kind_of_file(library) >= 0) {
		symbol_add(name, version, library_of(library), kind_of_file(library));
		return;
	}
	if (library || !o->cuda)
		return;
	kind = kind_of_symbol(name);
	/* cuX belongs to the driver; the runtime's stand-in gets those that we do not define */
	if (kind >= 0 || (name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z'))
		symbol_add(name, NULL, LIBRARIES, kind < 0 ? 0 : kind);
}

static const struct elf_visitor needs_visitor = {.needs = on_need, .path = on_path};

static void folder_of(const char *path, char out[1024])
{
	const char *slash = strrchr(path, '/');

	snprintf(out, 1024, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

static void scan_file(const char *path)
{
	struct object_file *o = heap_new(sizeof(*o));
	struct elf_visitor needs = needs_visitor, undefined = {.undefined = on_undefined};

	if (!o)
		return;
	needs.data = undefined.data = o;
	if (elf_scan(path, &needs) && o->cuda)
		elf_scan(path, &undefined);
	heap_free(o, sizeof(*o));
}

/* Scans the neighbours, which are opened later and import other symbols of the same libraries.
 */
static void scan_neighbours(const char *folder)
{
	char buffer[8192], path[1400];
	long n;
	int fd = sys_open(folder, O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return;
	while ((n = sys_call(SYS_getdents64, fd, (long)buffer, sizeof(buffer), 0, 0, 0)) > 0)
		for (long at = 0; at < n;) {
			const struct sys_entry *e = (const void *)(buffer + at);

			at += e->bytes;
			if (!strstr(e->name, ".so") || kind_of_file(e->name) >= 0)
				continue;
			snprintf(path, sizeof(path), "%s/%s", folder, e->name);
			scan_file(path);
		}
	sys_close(fd);
}

static bool exists(const char *path)
{
	return sys_call(SYS_faccessat, AT_FDCWD, (long)path, R_OK, 0, 0, 0) == 0;
}

static void visit(const char *path, int depth);

static void visit_need(const struct object_file *o, const char *folder, const char *need)
{
	char path[2300];
	const char *run = o->runpath;

	snprintf(path, sizeof(path), "%s/%s", folder, need);
	if (exists(path)) {
		visit(path, o->depth + 1);
		return;
	}
	while (*run) {
		size_t n = strcspn(run, ":");

		if (n >= 7 && !strncmp(run, "$ORIGIN", 7))
			snprintf(
			    path, sizeof(path), "%s%.*s/%s", folder, (int)n - 7, run + 7, need);
		else
			snprintf(path, sizeof(path), "%.*s/%s", (int)n, run, need);
		if (exists(path)) {
			visit(path, o->depth + 1);
			return;
		}
		run += n + (run[n] == ':');
	}
}

static void visit(const char *path, int depth)
{
	struct elf_visitor v = needs_visitor;
	struct object_file *o;
	char folder[1024];

	if (depth > DEEPEST || !mark_scanned(path))
		return;
	o = heap_new(sizeof(*o));
	if (!o)
		return;
	o->path = path;
	o->depth = depth;
	v.data = o;
	folder_of(path, folder);
	if (elf_scan(path, &v)) {
		if (o->cuda) {
			char key[1100];

			scan_file(path);
			snprintf(key, sizeof(key), "%s/", folder);
			if (mark_scanned(key))
				scan_neighbours(folder);
		}
		for (int i = 0; i < o->need_count; i++)
			visit_need(o, folder, o->needs[i]);
	}
	heap_free(o, sizeof(*o));
}

/* Finds or makes the folder for stand-ins, which only this user may write; false: there is none. */
static bool own_folder(char out[512])
{
	const char *base = getenv("TMPDIR");
	struct stat st;

	snprintf(out, 512, "%.400s/whyoom-simgpu.%u", base && *base == '/' ? base : "/tmp",
	    (unsigned)geteuid());
	sys_call(SYS_mkdirat, AT_FDCWD, (long)out, 0700, 0, 0, 0);
	return !sys_call(
		   SYS_newfstatat, AT_FDCWD, (long)out, (long)&st, AT_SYMLINK_NOFOLLOW, 0, 0) &&
	       S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

static bool write_file(const char *path, const void *bytes, size_t size)
{
	char trial[700];
	int fd;
	bool done;

	if (exists(path))
		return true;
	snprintf(trial, sizeof(trial), "%.600s.%d", path, sys_getpid());
	fd = sys_open(trial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0700);
	if (fd < 0)
		return false;
	done = sys_call(SYS_write, fd, (long)bytes, (long)size, 0, 0, 0) == (long)size;
	sys_close(fd);
	done = done && !sys_call(SYS_renameat2, AT_FDCWD, (long)trial, AT_FDCWD, (long)path, 0, 0);
	if (!done)
		sys_call(SYS_unlinkat, AT_FDCWD, (long)trial, 0, 0, 0, 0);
	return done;
}

static bool load(const char *name, const struct elf_function *functions, size_t count)
{
	char folder[512], path[640];
	uint64_t hash = 14695981039346656037ull;
	size_t size;
	void *bytes = elf_write(name, "libcuda.so.1", functions, count, &size);
	bool done = false;

	if (!bytes)
		return false;
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ ((unsigned char *)bytes)[i]) * 1099511628211ull;
	if (own_folder(folder)) {
		snprintf(path, sizeof(path), "%s/%016llx", folder, (unsigned long long)hash);
		sys_call(SYS_mkdirat, AT_FDCWD, (long)path, 0700, 0, 0, 0);
		snprintf(
		    path, sizeof(path), "%s/%016llx/%.64s", folder, (unsigned long long)hash, name);
		done = write_file(path, bytes, size) &&
		       simgpu_real_dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
	}
	heap_free(bytes, size);
	if (!done) {
		char line[200];

		snprintf(line, sizeof(line), "simulated GPU: nothing can stand in for %s: %.100s",
		    name, dlerror());
		sys_say(line);
	}
	return done;
}

static bool returns_text(const char *name)
{
	static const char *const ends[] = {
	    "ErrorString", "StatusString", "StatusName", "ErrorName", NULL};
	size_t n = strlen(name);

	for (const char *const *end = ends; *end; end++)
		if (n > strlen(*end) && !strcmp(name + n - strlen(*end), *end))
			return true;
	return false;
}

/* Makes the stand-in of a library from its collected symbols. LIBRARIES: of the symbols without a
 * library, or whose library is loaded already. */
static void build_library(int library)
{
	struct elf_function *functions = heap_new(TABLE * sizeof(*functions));
	size_t count = 0;
	char name[64];

	for (size_t i = 0; functions && symbols && i < TABLE; i++) {
		struct symbol *s = &symbols[i];

		if (!s->name || s->library < 0)
			continue;
		if (library == LIBRARIES ? s->library != LIBRARIES && !libraries[s->library].loaded
					 : s->library != library)
			continue;
		functions[count++] = (struct elf_function){s->name, s->version, result_of(s),
		    returns_text(s->name) ? "not simulated" : NULL};
		s->library = -1;
	}
	if (library < LIBRARIES) {
		libraries[library].loaded = load(libraries[library].name, functions, count);
	} else if (count) {
		snprintf(name, sizeof(name), "libwhyoom-simgpu-more-%d.so", ++misc_count);
		load(name, functions, count);
	}
	heap_free(functions, TABLE * sizeof(*functions));
}

static void build_all(void)
{
	/* symbols without a library come first, as a look-up finds them in any object */
	build_library(LIBRARIES);
	for (int i = 0; i < library_count; i++)
		if (!libraries[i].loaded)
			build_library(i);
}

static void begin(void)
{
	Dl_info info;

	if (simgpu_real_dlopen)
		return;
	simgpu_real_dlopen = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
	if (simgpu_real_dlopen && dladdr((void *)begin, &info))
		self = simgpu_real_dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

/* Triton links its code with the driver, which it searches in the system's library cache or at the
 * path in this variable. Set early, as programs read their environment when they start.
 */
static void show_driver_to_triton(void)
{
	char folder[512], path[640];
	Dl_info info;

	if (getenv("TRITON_LIBCUDA_PATH") || !dladdr((void *)begin, &info) ||
	    info.dli_fname[0] != '/' || !own_folder(folder))
		return;
	snprintf(path, sizeof(path), "%s/%016llx", folder,
	    (unsigned long long)hash_of(info.dli_fname, 14695981039346656037ull));
	sys_call(SYS_mkdirat, AT_FDCWD, (long)path, 0700, 0, 0, 0);
	setenv("TRITON_LIBCUDA_PATH", path, 0);
	strcat(path, "/libcuda.so.1");
	sys_call(SYS_symlinkat, (long)info.dli_fname, AT_FDCWD, (long)path, 0, 0, 0);
}

static void __attribute__((constructor)) resolve(void)
{
	begin();
	show_driver_to_triton();
}

const char *simgpu_open_name(const char *file)
{
	const char *base, *answer = file;
	int error = errno;

	begin();
	if (!file || !*file || busy || !self)
		return file;
	busy = true;
	pthread_mutex_lock(&lock);
	base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	if (!strncmp(base, "libcuda.so", 10)) {
		answer = "libcuda.so.1";
	} else if (kind_of_file(base) >= 0) {
		int library =
		    library_of(strcmp(base, "libnvidia-ml.so") ? base : "libnvidia-ml.so.1");

		if (library >= 0 && !libraries[library].loaded)
			build_library(library);
		if (library >= 0 && libraries[library].loaded)
			answer = libraries[library].name;
	} else if (base != file) {
		visit(file, 0);
		build_all();
	}
	pthread_mutex_unlock(&lock);
	busy = false;
	errno = error;
	return answer;
}

void standins_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	busy = false;
}
