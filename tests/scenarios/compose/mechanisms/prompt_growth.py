"""Blocks of one place get larger with the prompt: its history, or what a request brings."""


class GrowingHistory:
    """Each turn adds a message; the prompt is rendered from all and freed after the call."""
    cause = "prompt-growth"
    blame = ["render", "add"]
    carriers = BLOCKS + ["cuda"]  # not torch: its messages would pin cached segments
    structures = ALONE
    factors = [0.5, 1]
    messages = store()

    def add(i):
        keep(messages, make(B // 250 + length(i) * 8))

    def render(n):
        return make(n * 3)

    def handle(i):
        add(i)
        x = render(total(messages))
        drop(x)


class CacheByConcatenation:
    """Each step makes the caches of all layers anew, a step longer, and frees the old ones after
    the copy. https://github.com/huggingface/transformers/pull/30536"""
    cause = "prompt-growth"
    blame = ["update_cache"]
    carriers = ["numpy", "py_bytes", "cpp_vector"] + DEVICE
    structures = ALONE
    factors = [0.5, 1]
    layers = store()

    def update_cache(token):
        for layer in range(16):
            put(layers, layer, make((token + 1) * (B // 960)))

    def generate_token(token):
        x = make(B // 200)
        update_cache(token)
        drop(x)

    def handle(i):
        generate_token(i)


class CapacityForLongestPrompt:
    """A cache is made for the first prompt; a longer one makes a whole new cache, 256 tokens at a
    time. https://github.com/openvinotoolkit/openvino.genai/pull/4051"""
    cause = "prompt-growth"
    blame = ["ensure_capacity"]
    carriers = ["c_mmap", "numpy", "cpp_vector", "cpp_string", "torch"]
    structures = ["loop", "asyncio", "nested"]
    cache = store()

    def first_prompt_setup():
        put(cache, 0, make(512 * (B // 8000)))

    def ensure_capacity(tokens):
        while size(item(cache, 0)) < tokens * (B // 8000):
            put(cache, 0, make(size(item(cache, 0)) + 256 * (B // 8000)))

    def prefill(tokens):
        ensure_capacity(tokens)
        x = make(B // 90)
        drop(x)

    def handle(i):
        prefill(length(i) + i * 12)


class CapIgnored:
    """The prompt is to be cut at so many tokens, and a larger number stands in the code: each turn
    is longer than the last. https://github.com/oobabooga/textgen/issues/960"""
    cause = "prompt-growth"
    blame = ["generate_reply"]
    carriers = ["numpy", "py_bytes", "py_text", "cpp_vector"] + DEVICE
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    turns = store()

    def build_prompt(tokens):
        if tokens > 2048:
            tokens = 2048
        return make(tokens * (B // 1400))

    def generate_reply(tokens):
        x = build_prompt(tokens)
        drop(x)

    def handle(i):
        keep(turns, make(400 + length(i)))
        generate_reply(len(turns) * 24)


class TurnsConcatenated:
    """Each question joins the embeddings of all earlier turns with its own.
    https://github.com/JIA-Lab-research/LLaMA-VID/issues/57"""
    cause = "prompt-growth"
    blame = ["answer_with_video", "concat_turns"]
    carriers = ["numpy", "cpp_vector", "py_bytes", "cuda"]  # not torch, as in GrowingHistory
    structures = ["loop"]
    factors = [0.5, 1]
    turns = store()

    def concat_turns():
        return make(total(turns))

    def answer_with_video(i):
        x = concat_turns()
        y = make(size(x) * 2 + B // 300)
        drop(y)
        drop(x)

    def handle(i):
        keep(turns, make(B // 400 + length(i) * (B // 500000)))
        answer_with_video(i)


class StaircaseCache:
    """Every 256 tokens each buffer is replaced by one that is 256 tokens longer.
    https://github.com/ml-explore/mlx-lm/pull/1038"""
    cause = "prompt-growth"
    blame = ["grow_buffer"]
    carriers = ["c_mmap", "c_malloc", "numpy", "cpp_vector"] + DEVICE
    structures = ALONE
    keys = store()

    def grow_buffer(layer, steps):
        put(keys, layer, make(steps * (B // 400)))

    def decode(token):
        if token % 256 == 0:
            for layer in range(24):
                grow_buffer(layer, token // 256 + 1)
        x = make(B // 500)
        drop(x)

    def handle(i):
        for k in range(8):
            decode(i * 8 + k)


class TurnsCarryHistory:
    """Turn k runs on all turns before it: keys and values of k turns are made and freed, layer for
    layer. https://github.com/zai-org/ChatGLM-6B/issues/1175"""
    cause = "prompt-growth"
    blame = ["chat_turn", "extend_history"]
    carriers = ["numpy", "py_bytes", "cpp_vector", "cpp_string"] + DEVICE
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    history = store()
    values = store()

    def extend_history(i):
        keep(history, make(1200 + length(i)))

    def chat_turn(i):
        extend_history(i)
        for layer in range(12):
            keep(values, make(len(history) * (B // 720)))
        clear(values)

    def handle(i):
        chat_turn(i)


class PaddedChunks:
    """Ten chunks of a file are padded to the longest and run at once; one file is ten times as
    long. https://github.com/run-llama/llama_index/issues/11500"""
    cause = "prompt-growth"
    also = ["oversized-intermediate"]
    blame = ["embed_nodes"]
    carriers = ["numpy", "cpp_vector"] + DEVICE
    structures = ["loop"]

    def pad_batch(tokens):
        return make(tokens * 10 * (B // 400000))

    def embed_nodes(tokens):
        x = pad_batch(tokens)
        y = make(tokens * tokens // 100 * (B // 400000))
        drop(y)
        drop(x)

    def handle(i):
        tokens = length(i)
        if i % 90 == 89:
            tokens = 10000 + length(i)
        embed_nodes(tokens)


class FullAttention:
    """Scores of each layer are as large as the square of the recording; some recordings are longer,
    and then one is far longer. https://github.com/BasedHardware/omi/pull/8428"""
    cause = "prompt-growth"
    also = ["oversized-intermediate"]
    blame = ["encode_audio"]
    carriers = ["numpy", "cpp_vector", "py_bytes"] + DEVICE
    structures = ["loop", "threads"]

    def attention_scores(tokens):
        return make(tokens * tokens // 100 * (B // 500000))

    def encode_audio(tokens):
        for layer in range(4):
            x = attention_scores(tokens)
            drop(x)

    def handle(i):
        tokens = length(i)
        if i % 25 == 24:
            tokens = tokens * 2
        if i % 160 == 159:
            tokens = 10500
        encode_audio(tokens)


class WindowsOfWholeFile:
    """All windows of a file become one array, and its hidden outputs one five times as large; files
    differ, and one is far longer. https://github.com/SYSTRAN/faster-whisper/pull/1198"""
    cause = "prompt-growth"
    also = ["oversized-intermediate"]
    blame = ["detect_speech", "stack_windows"]
    carriers = ["numpy", "cpp_vector", "cpp_string"]
    structures = ["loop", "threads", "forked"]

    def stack_windows(windows):
        return make(windows * (B // 120000))

    def detect_speech(seconds):
        x = stack_windows(seconds * 4)
        y = make(size(x) * 5)
        drop(y)
        drop(x)

    def handle(i):
        seconds = length(i)
        if i % 140 == 139:
            seconds = seconds + 14000
        detect_speech(seconds)
