"""vllm_tokens.py DIRECTORY - vLLM with a Llama of random weights, whose description goes into the directory; its
tokens are the last line."""
import json
import os
import sys

from transformers import LlamaConfig
from vllm import LLM, SamplingParams

LlamaConfig(vocab_size=1000, hidden_size=512, intermediate_size=1024, num_hidden_layers=8, num_attention_heads=8,
            num_key_value_heads=4, max_position_embeddings=2048, architectures=["LlamaForCausalLM"],
            torch_dtype="float16").save_pretrained(sys.argv[1])
os.environ.setdefault("HF_HUB_OFFLINE", "1")
server = LLM(model=sys.argv[1], load_format="dummy", skip_tokenizer_init=True, enforce_eager=True, seed=7,
             max_model_len=1024, gpu_memory_utilization=0.3)
asked = [{"prompt_token_ids": list(range(1, 33))}]
made = server.generate(asked, SamplingParams(temperature=0, max_tokens=64, detokenize=False, ignore_eos=True))
print(json.dumps({"tokens": list(made[0].outputs[0].token_ids)}), flush=True)
