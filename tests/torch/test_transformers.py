#!/usr/bin/env python3
"""transformers' own Llama runs out of the device's memory, and what is recorded says that its KV
cache does."""
import message
from test_failures import refused
from wheel import Run, check, environment, equal, main, torch_layer

TRANSFORMERS = ("transformers", [
    "transformers==4.57.1", "huggingface_hub==0.36.0", "tokenizers==0.22.1", "safetensors", "regex",
    "requests",
    "urllib3", "idna", "certifi", "charset_normalizer", "tqdm", "packaging", "pyyaml", "hf_xet"])
LAYERS, TOKEN = 12, 128 << 10  # of the program; bytes of keys, and of values, a token


def case_llama(_):
    """Keys or values of one layer are what does not fit; they are as long as the text so far."""
    python = environment(torch_layer(), TRANSFORMERS)
    run = refused(Run(python, "programs/llama.py", memory="3GiB").end())
    message.same(run.report, run.last)
    length = run.figures["length"]
    check(500 < length < 1024, f"it failed at length {length}")
    stack = [frame["function"] for frame in run.report["failure"]["stack"]]
    check("c10::cuda::CUDACachingAllocator" in stack[0], f"the native part: {stack[:5]}")
    for function in "DynamicLayer.update", "Cache.update", "LlamaAttention.forward", "generate":
        check(function in stack, f"{function} is not in {stack}")
    most = run.report["device"]["sites"][0]
    check("DynamicLayer.update" in [frame["function"] for frame in most["stack"]],
          "the cache holds the most")
    # It is being made anew: the last layers' are one token shorter.
    equal(most["bytes"] // (2 * LAYERS * (length - 1) * TOKEN), 1, "what it holds, in whole caches")


if __name__ == "__main__":
    main(globals())
