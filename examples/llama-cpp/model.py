"""A llama of random weights as a GGUF file: what it says is noise, what it takes is real."""
import sys

import gguf
import numpy

LAYERS, WIDTH, HEADS, HIDDEN, CONTEXT = 8, 512, 8, 1024, 131072


def tokens():
    """A vocabulary of bytes, behind llama's three special tokens."""
    return ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % byte for byte in range(256)]


def write(path):
    random = numpy.random.default_rng(1)
    vocabulary = tokens()
    w = gguf.GGUFWriter(path, "llama")
    w.add_name("noise")
    w.add_context_length(CONTEXT)
    w.add_embedding_length(WIDTH)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(HIDDEN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(HEADS)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(WIDTH // HEADS)
    w.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    w.add_tokenizer_model("llama")
    w.add_token_list(vocabulary)
    w.add_token_scores([0.0] * len(vocabulary))
    w.add_token_types([gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2
                      + [gguf.TokenType.BYTE] * 256)
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)

    def add(name, *shape):
        values = random.standard_normal(shape, dtype=numpy.float32) * 0.02
        w.add_tensor(name, values.astype(numpy.float16))

    def norm(name):
        w.add_tensor(name, numpy.ones(WIDTH, dtype=numpy.float32))

    add("token_embd.weight", len(vocabulary), WIDTH)
    add("output.weight", len(vocabulary), WIDTH)
    norm("output_norm.weight")
    for layer in range(LAYERS):
        block = "blk.%d." % layer
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(block + name + ".weight", WIDTH, WIDTH)
        add(block + "ffn_gate.weight", HIDDEN, WIDTH)
        add(block + "ffn_up.weight", HIDDEN, WIDTH)
        add(block + "ffn_down.weight", WIDTH, HIDDEN)
        norm(block + "attn_norm.weight")
        norm(block + "ffn_norm.weight")
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    write(sys.argv[1])
