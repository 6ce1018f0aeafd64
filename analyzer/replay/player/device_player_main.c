/*
 * device_player_main.c - whyoom-device-player STREAM BYTES ALLOWED: what a program asked of a
 * device's driver, asked once more of the driver that is found: the machine's, or the simulated
 * one's where that is preloaded. `whyoom replay` starts it and writes STREAM, a file of lines;
 * numbers are decimal, sizes bytes:
 *
 *     r BYTES                        so much was free on the device then; may be negative
 *     a SERIAL BYTES KIND GRANTED    a request. KIND 0: cuMemAlloc, 1: cuMemCreate,
 *                                    2: cuMemAllocAsync. GRANTED: 0 when the record was refused it
 *     f SERIAL                       what that request got is released
 *
 * At each `r` memory is taken or given back beside what is replayed, until as much is free here:
 * contexts, modules, libraries and other processes had it. The answer goes to standard output, a
 * line for each fact; it ends at the first request that the record was granted and this driver
 * refuses. Exit status 0: answered; 3: this device will not do, another may.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHER_DEVICE 3
#define OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY */
#define PAGE (2ull << 20) /* less than this apart is as much */

enum kind { MEMORY, HANDLE, POOL, KINDS };

/* CUmemAllocationProp, as far as it is set. */
struct properties {
	int type, handles, location_type, location_id;
	void *unused;
	unsigned char flags[16];
};

static struct {
	int (*init)(unsigned flags);
	int (*device)(int *device, int ordinal);
	int (*name)(char *name, int room, int device);
	int (*total)(size_t *bytes, int device);
	int (*retain)(void **context, int device);
	int (*current)(void *context);
	int (*info)(size_t *free, size_t *total);
	int (*alloc)(uint64_t *address, size_t bytes);
	int (*release)(uint64_t address);
	int (*create)(uint64_t *handle, size_t bytes, const struct properties *p, uint64_t flags);
	int (*drop)(uint64_t handle);
	int (*alloc_async)(uint64_t *address, size_t bytes, void *stream);
	int (*free_async)(uint64_t address, void *stream);
	int (*synchronize)(void);
} driver;

struct block {
	uint64_t value, size; /* an address, or a handle; value 0: none */
	enum kind kind;
};

static struct block *blocks; /* by serial */
static size_t blocks_room;
static struct block beside[4096]; /* what others held */
static size_t beside_count;
static uint64_t live, peak_live, events, asked, granted;

static void __attribute__((noreturn)) give_up(int status, const char *why)
{
	printf("error %s\n", why);
	fflush(stdout);
	_Exit(status);
}

static void find(void *library, const char *name, void *slot)
{
	void *at = dlsym(library, name);
	char why[128];

	if (!at) {
		snprintf(why, sizeof(why), "the driver has no %s", name);
		give_up(OTHER_DEVICE, why);
	}
	memcpy(slot, &at, sizeof(at));
}

static void open_driver(void)
{
	static const struct {
		const char *name;
		void *slot;
	} calls[] = {{"cuInit", &driver.init}, {"cuDeviceGet", &driver.device},
	    {"cuDeviceGetName", &driver.name}, {"cuDeviceTotalMem_v2", &driver.total},
	    {"cuDevicePrimaryCtxRetain", &driver.retain}, {"cuCtxSetCurrent", &driver.current},
	    {"cuMemGetInfo_v2", &driver.info}, {"cuMemAlloc_v2", &driver.alloc},
	    {"cuMemFree_v2", &driver.release}, {"cuMemCreate", &driver.create},
	    {"cuMemRelease", &driver.drop}, {"cuMemAllocAsync", &driver.alloc_async},
	    {"cuMemFreeAsync", &driver.free_async}, {"cuCtxSynchronize", &driver.synchronize}};
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library)
		give_up(OTHER_DEVICE, "there is no driver: libcuda.so.1 cannot be opened");
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		find(library, calls[i].name, calls[i].slot);
}

static void begin(uint64_t memory)
{
	char name[128] = "";
	void *context;
	size_t total;
	int device;

	open_driver();
	if (driver.init(0) || driver.device(&device, 0) ||
	    driver.name(name, sizeof(name), device) || driver.total(&total, device) ||
	    driver.retain(&context, device) || driver.current(context))
		give_up(OTHER_DEVICE, "the driver has no device");
	if (total < memory)
		give_up(OTHER_DEVICE, "the device has less memory than is asked for");
	printf("device %s\n", name);
}

static uint64_t free_bytes(void)
{
	size_t free_now = 0, total;

	if (driver.info(&free_now, &total))
		give_up(OTHER_DEVICE, "the driver does not say how much memory is free");
	return free_now;
}

static int acquire(struct block *b, enum kind kind, uint64_t size)
{
	struct properties p = {.type = 1, .location_type = 1};
	uint64_t rounded = (size + PAGE - 1) / PAGE * PAGE;
	int rc = kind == HANDLE ? driver.create(&b->value, rounded, &p, 0)
		 : kind == POOL ? driver.alloc_async(&b->value, size, NULL)
				: driver.alloc(&b->value, size);

	if (rc)
		b->value = 0;
	b->kind = kind;
	b->size = size;
	return rc;
}

static void release(struct block *b)
{
	if (!b->value)
		return;
	if (b->kind == HANDLE)
		driver.drop(b->value);
	else if (b->kind == POOL)
		driver.free_async(b->value, NULL);
	else
		driver.release(b->value);
	b->value = 0;
}

/* Until as much is free, to a page, or as near as it gets. */
static void match_free(int64_t want)
{
	uint64_t now = free_bytes(), target = want > 0 ? (uint64_t)want : 0, part;

	if (!asked && now + PAGE <= target)
		give_up(OTHER_DEVICE, "others hold more of the device than they did");
	while (now + PAGE <= target && beside_count) {
		release(&beside[--beside_count]);
		now = free_bytes();
	}
	part = now > target ? (now - target) / PAGE * PAGE : 0;
	while (part && beside_count < sizeof(beside) / sizeof(*beside)) {
		if (!acquire(&beside[beside_count], MEMORY, part))
			beside_count++;
		else
			part = part / 2 / PAGE * PAGE;
		now = free_bytes();
		if (now < target || (now - target) / PAGE * PAGE < part)
			part = now > target ? (now - target) / PAGE * PAGE : 0;
	}
}

static struct block *block_of(uint64_t serial)
{
	size_t room = blocks_room ? blocks_room : 1024;

	while (room <= serial)
		room *= 2;
	if (room > blocks_room) {
		blocks = realloc(blocks, room * sizeof(*blocks));
		if (!blocks)
			give_up(1, "no memory for the blocks' addresses");
		memset(blocks + blocks_room, 0, (room - blocks_room) * sizeof(*blocks));
		blocks_room = room;
	}
	return &blocks[serial];
}

/* True: it ends here. */
static bool request(uint64_t serial, uint64_t size, unsigned kind, bool was_granted)
{
	struct block *b = block_of(serial);
	char why[96];
	int rc;

	asked++;
	if (kind >= KINDS)
		give_up(1, "not a kind of memory");
	rc = acquire(b, (enum kind)kind, size);
	if (rc && rc != OUT_OF_MEMORY) {
		snprintf(why, sizeof(why),
		    "the driver answered %d to a request for %" PRIu64 " bytes", rc, size);
		give_up(OTHER_DEVICE, why);
	}
	if (rc) {
		printf("refused %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", serial, size,
		    live, live);
		return true;
	}
	live += size;
	if (live > peak_live && was_granted)
		peak_live = live;
	granted += !was_granted;
	return false;
}

static void play(FILE *stream)
{
	uint64_t serial, size;
	char line[128];
	unsigned kind, was;
	int64_t want;

	while (fgets(line, sizeof(line), stream)) {
		events++;
		if (sscanf(line, "a %" SCNu64 " %" SCNu64 " %u %u", &serial, &size, &kind, &was) ==
		    4) {
			if (request(serial, size, kind, was))
				return;
		} else if (sscanf(line, "f %" SCNu64, &serial) == 1) {
			struct block *b = block_of(serial);

			live -= b->value ? b->size : 0;
			release(b);
		} else if (sscanf(line, "r %" SCNd64, &want) == 1) {
			/* What is freed in a stream's order goes back to the device then. */
			driver.synchronize();
			match_free(want);
		} else {
			give_up(1, "not a line of a stream");
		}
	}
}

int main(int argc, char **argv)
{
	FILE *stream = argc >= 3 ? fopen(argv[1], "r") : NULL;

	if (!stream)
		give_up(1, "usage: whyoom-device-player STREAM BYTES");
	begin(strtoull(argv[2], NULL, 10));
	play(stream);
	printf("peak_allocated %" PRIu64 "\nfree %" PRIu64 "\nevents %" PRIu64 "\ngranted %" PRIu64
	       "\ndone 1\n",
	    peak_live, free_bytes(), events, granted);
	fflush(stdout);
	_Exit(0);
}
