/* engine_pages NAME: prints the page of metrics that this engine answers. */
#include <stdio.h>
#include <string.h>

#include "watch/engine/pages.h"

int main(int argc, char **argv)
{
	static const struct {
		const char *name, *page;
	} all[] = {{"vllm", VLLM}, {"vllm-old", VLLM_OLD}, {"sglang", SGLANG},
	    {"sglang-old", SGLANG_OLD}, {"tgi", TGI}, {"llama", LLAMA}, {"llama-old", LLAMA_OLD}};

	for (size_t i = 0; argc == 2 && i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(argv[1], all[i].name))
			return fputs(all[i].page, stdout) < 0;
	return 2;
}
