"""tiny_model.py FOLDER - a Llama of random weights on disk, as a hub would have it: configuration,
weights, tokenizer. Nothing is fetched. 24 KiB of KV cache a token."""
import json
import os
import sys

import torch
from safetensors.torch import save_file

HIDDEN, LAYERS, HEADS, HEAD, INNER, VOCABULARY, LENGTH = 512, 12, 8, 64, 4096, 32000, 16384


def configuration():
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
            "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "head_dim": HEAD,
            "vocab_size": VOCABULARY, "max_position_embeddings": LENGTH, "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0, "tie_word_embeddings": False, "bos_token_id": 1,
            "eos_token_id": 2, "torch_dtype": "bfloat16"}


def weights():
    made = torch.Generator().manual_seed(1)

    def some(*shape):
        return torch.empty(*shape, dtype=torch.bfloat16).normal_(0, 0.02, generator=made)

    tensors = {"model.embed_tokens.weight": some(VOCABULARY, HIDDEN),
               "lm_head.weight": some(VOCABULARY, HIDDEN),
               "model.norm.weight": torch.ones(HIDDEN, dtype=torch.bfloat16)}
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        for name in "qkvo":
            tensors[layer + f"self_attn.{name}_proj.weight"] = some(HIDDEN, HIDDEN)
        for name in "gate", "up":
            tensors[layer + f"mlp.{name}_proj.weight"] = some(INNER, HIDDEN)
        tensors[layer + "mlp.down_proj.weight"] = some(HIDDEN, INNER)
        for name in "input", "post_attention":
            tensors[layer + f"{name}_layernorm.weight"] = torch.ones(HIDDEN, dtype=torch.bfloat16)
    return tensors


def tokenizer():
    """One word a token."""
    words = {"<unk>": 0, "<s>": 1, "</s>": 2}
    words.update((f"w{i}", i) for i in range(3, VOCABULARY))
    special = [{"id": i, "content": word, "special": True, "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False} for word, i in list(words.items())[:3]]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
            "normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None,
            "decoder": None,
            "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"}}


def write(folder):
    os.makedirs(folder)
    for name, content in (("config", configuration()), ("tokenizer", tokenizer()),
                          ("tokenizer_config", {"tokenizer_class": "PreTrainedTokenizerFast",
                                                "unk_token": "<unk>", "bos_token": "<s>",
                                                "eos_token": "</s>"})):
        with open(os.path.join(folder, name + ".json"), "w") as file:
            json.dump(content, file)
    save_file(weights(), os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})


if __name__ == "__main__":
    write(sys.argv[1])
