/* knowledge.c - fuzz target: knowledge files, and a log that is read with them. Their patterns
 * of messages are regular expressions, which must not take for ever either. */
#include <stdlib.h>
#include <string.h>

#include "explain/explain.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const char log[] =
	    "2024-05-01 12:00:00 worker INFO loading "
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
	    "Traceback (most recent call last):\n"
	    "  File \"server.py\", line 12, in main\n    serve()\n"
	    "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array "
	    "with "
	    "shape (1000, 1000000) and data type float64\n"
	    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
	    "total capacity of 23.65 GiB of which 1.25 GiB is free.\n";
	struct knowledge *k = knowledge_new();
	const struct knowledge_fix *fixes[4];
	struct explanation explanation;
	struct err err;

	if (!k)
		abort();
	if (!knowledge_add(k, target_file(data, bytes), &err)) {
		struct knowledge_place place =
		    knowledge_place(k, "Engine.step", "/usr/lib/vllm/engine/core.py", NULL);

		knowledge_place(k, "ggml_backend_alloc", NULL, "/usr/lib/libggml.so");
		if (place.framework)
			knowledge_fixes(k, place.framework, CAUSE_LEAK, place.role, fixes, 4);
		if (!explain_buffer(log, sizeof(log) - 1, k, &explanation, &err))
			explain_fini(&explanation);
	}
	knowledge_free(k);
	return 0;
}
