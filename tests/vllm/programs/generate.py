"""generate.py MODEL - vLLM's own engine, in a process of its own, answers prompts of several
lengths; then a line of JSON."""
import json
import sys

from vllm import LLM, SamplingParams


def main():
    llm = LLM(model=sys.argv[1], gpu_memory_utilization=0.8, max_model_len=16384,
              max_num_batched_tokens=16384, enforce_eager=True, seed=0)
    prompts = [" ".join(f"w{3 + i}" for i in range(n)) for n in (5, 500, 5000)]
    sampling = SamplingParams(max_tokens=16, min_tokens=16, ignore_eos=True)
    answers = llm.generate(prompts, sampling, use_tqdm=False)
    print(json.dumps({"prompts": [len(a.prompt_token_ids) for a in answers],
                      "answers": [len(a.outputs[0].token_ids) for a in answers]}), flush=True)


if __name__ == "__main__":
    main()
