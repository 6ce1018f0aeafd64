/* Lines of programs that nobody knows: what each says ran out, and what is no claim at all. */
#include "../../util/unit.h"

#include <string.h>

#include "explain/claim/claim.h"

static const struct {
	enum claim_kind kind;
	const char *line;
} lines[] = {
    {CLAIM_DEVICE, "FATAL: GPU 0 ran out of memory"},
    {CLAIM_DEVICE, "acme: cuMemAlloc failed for a tensor of 2 GiB on cuda:1"},
    {CLAIM_DEVICE, "AcmeError(Code=8): Insufficient Memory (IOAF code 8)"},
    {CLAIM_HOST, "acme: could not reserve enough memory for the batch"},
    {CLAIM_HOST, "CUDA host memory: failed to allocate 4 GiB of pinned memory"},
    {CLAIM_HOST, "virtual memory exhausted"},
    {CLAIM_SHARED, "no space left in shared memory segment 7: failed to allocate shared memory"},
    {CLAIM_LIMIT, "acme: RSS 3.1 GB exceeds the memory limit of 3 GB"},
    {CLAIM_LIMIT, "Maximum memory usage reached (131072000), cannot allocate chunk of 1048576"},
    {CLAIM_POOL, "no free KV cache blocks left for the request"},
    {CLAIM_POOL,
	"New used memory 9.5gb from field [f] would be larger than configured breaker: 9gb"},
    {CLAIM_RUNTIME, "AcmeVM: heap space exhausted"},
    {CLAIM_MAPPING, "failed to mmap file 'a.idx': Cannot allocate memory"},
    {CLAIM_MAPPING, "`mprotect` failed with `ENOMEM`"},
    {CLAIM_KILLED, "worker 3 was killed due to memory pressure"},
    {CLAIM_NEAR, "WARN memory usage 3.9 GB is near and over the limit of 3.8 GB"},
    {CLAIM_MAPS, "process is near the maximum number of memory mappings"},
    {CLAIM_DISK, "AcmeError: local disk is full"},
    {CLAIM_QUOTA, "429 Rate limit reached for acme-1"},
    {CLAIM_PROMPT, "the prompt is too long: 5016 tokens, and the model takes 4096"},
    {CLAIM_SIZE, "Message too large: 1048600 bytes exceeds the maximum of 1048576 bytes"},
    {CLAIM_THREADS, "cannot create worker thread: Resource temporarily unavailable"},
    {CLAIM_FAULT, "Segmentation fault (core dumped)"},
    {CLAIM_SIGKILL, "the command returned a non-zero code: 137"},
    {CLAIM_LOST, "executor 7 heartbeat timed out"},
    {CLAIM_AGAIN, "failed to allocate 2 GiB, falling back to 1 GiB"},
    {CLAIM_AGAIN, "ran out of GPU memory, will fall back to the host"},
    {CLAIM_AGAIN, "GPU memory allocation failed; attempting to free up memory"},
    {CLAIM_LIMIT, "INFO: worker stopped: memory limit of 128 MiB exceeded"},
    {CLAIM_NONE, "INFO: memory limit of 128 MiB exceeded"},
    {CLAIM_DEVICE, "cuFFT failed to allocate GPU or CPU memory"},
    {CLAIM_HOST, "failed to allocate memory, giving up after 3 retries"},
    {CLAIM_NONE, "failed to load the conversation memory from the store"},
    {CLAIM_NONE, "not enough data to fill the buffer"},
    {CLAIM_QUEUE, "the connection pool is exhausted"},
    {CLAIM_KILLED, "aborting due to memory pressure"},
    {CLAIM_LIMIT, "query would use more memory than allowed"},
    {CLAIM_THREADS, "cgroup: fork rejected by pids controller in /user.slice"},
    {CLAIM_LOCKED, "acme: ibv_reg_mr failed: Cannot allocate memory"},
    {CLAIM_LOCKED, "failed to lock memory: Cannot allocate memory"},
    {CLAIM_DENIED, "pthread_create failed for thread 3: Operation not permitted"},
    {CLAIM_QUEUE, "acme: request rejected: queue is full"},
    {CLAIM_STACK, "fatal: stack overflow in thread 3"},
    {CLAIM_LEAK, "There appear to be 2 leaked shared_memory objects to clean up"},
    {CLAIM_DEVICE, "pool.cc:12: cudaMalloc retry failed: out of memory"},
    {CLAIM_HOST, "cannot allocate sysmem for the client"},
    {CLAIM_POOL, "slab_alloc() failed: no memory in cache zone \"x\""},
    {CLAIM_NONE, "failed to get GPU memory usage"},
    {CLAIM_HOST, "acme: query 7 cancelled because of high memory usage"},
    {CLAIM_NONE, "acme: high memory usage"},
    {CLAIM_HOST, "Helper process oom"},
    {CLAIM_AGAIN, "encoder OOM on attempt 2, retrying with 128 tokens"},
    {CLAIM_NONE, "ERROR: oom: peak = 1.4 GB"},
    {CLAIM_NONE, "kernel: oom_kill_process: 16 callbacks suppressed"},
    {CLAIM_SETTING, "the memory arena cannot exceed 4293967295"},
    {CLAIM_NEAR, "[ warn] input 3 paused (mem buf overlimit)"},
    {CLAIM_SIZE, "chunk bytes limit exceeds for an emitted event stream: 20971733bytes"},
    {CLAIM_DEVICE, "Call rtMalloc fail, type = 2, size:2684354560, device_id:0"},
    {CLAIM_DEVICE, "mem.cpp:12: non-zero status: 2 cuMemCreate failed"},
    {CLAIM_DEVICE, "acme: out of GPU and shared host memory"},
    {CLAIM_DEVICE, "Acme: GPU out of memory: could not split the input and retry"},
    {CLAIM_SIZE, "query exceeds limits: limit_name=MaxBytesRead limit_bytes=1.0 GiB"},
    {CLAIM_NONE, "Error: Cannot get memory available for CUDA device"},
    {CLAIM_DISK, "the disk space used for spilling has exceeded the limit of 100 GB"},
    {CLAIM_LIMIT, "the query could not be executed in the allotted memory, limit exceeded"},
    {CLAIM_HOST, "the job could not be run in the available memory"},
    {CLAIM_HOST, "[Fri May 29 13:01:31 2026] acme: failed to get memory pages for x"},
    {CLAIM_GUESS, "runner exited, you may not have enough memory to run this"},
    {CLAIM_GUESS, "Matching failed. The cause is probably insufficient GPU memory"},
    {CLAIM_POOL, "[emerg] zone \"upstream_x\" is too small in a.conf:2"},
    {CLAIM_UNSURE_DEVICE, "error 11 (CUSPARSE_STATUS_INSUFFICIENT_RESOURCES)"},
    {CLAIM_NONE, "you may not have enough memory to run this"},
    {CLAIM_SETTING, "the memory size is larger than the maximum allowed size for functions"},
    {CLAIM_LIMIT, "ERROR 1 (X): Out Of Memory Quota!"},
    {CLAIM_LIMIT, "WARN report failed: memory of process exceeds limit, used 3 GB, limit 2 GB"},
    {CLAIM_DEVICE, "acme: no room for a DRAM buffer across 8 banks: out of memory"},
    {CLAIM_DEVICE, "cuMemoryAllocate failed res=2"},
    {CLAIM_DEVICE, "out of video memory trying to allocate a texture"},
    {CLAIM_DEVICE, "hip.cpp:12: memory not available to allocate buffer: 41943040"},
    {CLAIM_DEVICE, "instance of 'thrust::system_error'\n  what():  reduce failed: out of memory"},
    {CLAIM_MAPPING, "pack-1.pack cannot be mapped: Cannot allocate memory"},
    {CLAIM_SIZE, "the style of \"bundle.js\" exceeds the max of \"300KB\""},
    {CLAIM_SETTING, "Invalid value: memory must be between 1Gi and 8Gi inclusive"},
    {CLAIM_STACK, "ERROR: halt.: Out of global stack"},
    {CLAIM_LIMIT, "buffer binding 2 range 268435456 exceeds max_buffer_size limit 134217728"},
    {CLAIM_HOST, "out of memory. acme.RetryError[AcmeError]"},
    {CLAIM_AGAIN, "out of memory. retrying"},
    {CLAIM_HOST, "data refused due to high memory usage"},
    {CLAIM_LIMIT, "[CANCELLED] overcommit mem, used:9 GB, limit:8 GB"},
    {CLAIM_DEVICE, "the model does not fit: 23.1 GB needed, 15.9 GB VRAM"},
    {CLAIM_DEVICE, "requires at least 24 GB of GPU memory, found 16 GB"},
    {CLAIM_HOST, "unlikely to have enough memory. Requires 3 TB, has 14 GB available"},
    {CLAIM_SHARED, "failed to open the shared memory segment: No space left on device"},
    {CLAIM_POOL, "cannot allocate the buffer from mempool, size: 8192"},
    {CLAIM_POOL, "internal error: patch buffer overflow, please increase its size"},
    {CLAIM_POOL, "error when creating it: the KV cache must be large enough for one sequence"},
    {CLAIM_HOST, "acme FATAL ERROR: failed to allocate 19 groups"},
    {CLAIM_HOST, "fatal error C1060: the compiler is out of heap space"},
    {CLAIM_HOST, "DynamicHeapAllocator out of memory"},
    {CLAIM_RUNTIME, "heap overflow"},
    {CLAIM_HOST, "  Cause: Cannot allocate memory for the table"},
    {CLAIM_LIMIT, "Write passed its deadline: Soft memory limit exceeded"},
    {CLAIM_DEVICE, "device returned out-of-memory for tensor 3"},
    {CLAIM_LOCKED, "Failed to set RLIMIT_MEMLOCK: operation not permitted"},
    {CLAIM_NONE, "WARNING buffer too small, increase the size from 0 bytes to 64 MiB"},
    /* Advice, settings, what was got over, source code, other goods. */
    {CLAIM_NONE, "set ACME_CACHE=0 to avoid out of memory errors"},
    {CLAIM_NONE, "this may fail with out of memory"},
    {CLAIM_NONE, "    raise OutOfMemoryError('failed')"},
    {CLAIM_NONE, "# failed: out of memory"},
    {CLAIM_NONE, "error: could not allocate port 8080"},
    {CLAIM_NONE, "memory limit: 8 GiB, used 3 GiB"},
    {CLAIM_NONE, "memory limit of 8 GiB not exceeded"},
    {CLAIM_NONE, "DEBUG failed to allocate 4 KiB from the fast path"},
    {CLAIM_NONE, "[GC (Allocation Failure) 65536K->17433K(251392K)]"},
    {CLAIM_NONE, "mmap of 4 GiB failed: Invalid argument"},
    {CLAIM_NONE, "python /opt/acme/memory-allocation-failure.py (core dumped)"},
    {CLAIM_NONE, ""},
};

static void test_lines(void **state)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct claim claim;
		bool found = claim_read(lines[i].line, strlen(lines[i].line), &claim);

		if (claim.kind != lines[i].kind || found != (claim.kind != CLAIM_NONE))
			fail_msg("%s: '%s', not '%s'", lines[i].line, claim_name(claim.kind),
			    claim_name(lines[i].kind));
	}
	(void)state;
}

/* Each claim has one of the needles in it; else nobody would look at its line. */
static void test_needles(void **state)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		bool found = lines[i].kind == CLAIM_NONE;

		for (size_t n = 0; claim_needles[n] && !found; n++)
			found = strstr(lines[i].line, claim_needles[n]);
		if (!found)
			fail_msg("%s: no needle", lines[i].line);
	}
	(void)state;
}

static void test_keys(void **state)
{
	struct amounts a = {0};

	assert_true(claim_read_key("  Size: 33554432", 16, &a));
	assert_true(a.said[AMOUNT_ASKED] && a.bytes[AMOUNT_ASKED] == 33554432);
	assert_true(claim_read_key("2 MiB available", 15, &a));
	assert_true(a.said[AMOUNT_FREE] && a.bytes[AMOUNT_FREE] == 2 << 20);
	assert_false(claim_read_key("at frame 3 of the stack", 23, &a));
	assert_false(claim_read_key("", 0, &a));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_needles),
	    cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
