"""Mechanisms after further public reports: what stays, grows or is put in place. They were written
by somebody who had seen no rule and no verdict. Most have blocks whose sizes differ from request to
request, phases that do no harm, or several places that grow together."""


class TokenStaysAfterFailure:
    """Each call has a token by which it may be cancelled; it goes when the call ends well or is
    cancelled, and stays with what was received so far when it fails in another way.
    https://github.com/gravity-ui/axios-wrapper/issues/40"""
    cause = "leak"
    blame = ["receive_part", "new_token", "send_call"]
    carriers = ["c_malloc", "c_small", "cpp_string", "cpp_map", "py_small", "py_text", "py_bytes"]
    structures = ["loop", "asyncio", "threads", "nested"]
    factors = [0.5, 1]
    tokens = store()
    parts = store()

    def receive_part(i):
        n = length(i) * length(i + 7) // 1000 * length(i + 19) // 1000
        return make(900 + n * (B // 60000))

    def new_token(i):
        return make(B // 30000 + i % 5 * 64)

    def send_call(i):
        x = new_token(i)
        y = receive_part(i)
        if length(3 * i + 1) < 330:
            keep(tokens, x)
            keep(parts, y)
        else:
            drop(y)
            drop(x)

    def handle(i):
        send_call(i)


class GraphBehindTheSpeaker:
    """The state of a recogniser is detached when an utterance ends; the running vector of the
    speaker never is, so the gates of each step hang on it, as many as the chunk is long.
    https://github.com/pytorch/pytorch/issues/2198"""
    cause = "leak"
    blame = ["speaker_gates", "save_for_backward", "recognise_chunk"]
    carriers = ["numpy", "c_malloc"] + DEVICE
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    weights = store()
    utterance = store()
    speaker = store()

    def weights_setup():
        for layer in range(9):
            keep(weights, make(B // 260 + layer % 3 * (B // 2000)))

    def speaker_gates(n):
        keep(speaker, make(n * (B // 1300000)))

    def save_for_backward(n):
        keep(speaker, make(B // 5200))
        speaker_gates(n)

    def recogniser_step(n):
        keep(utterance, make(n * (B // 500000)))

    def recognise_chunk(i):
        recogniser_step(length(i))
        if length(i + 5) > 400:
            save_for_backward(length(i))

    def handle(i):
        recognise_chunk(i)
        if length(i + 9) > 940:
            clear(utterance)
        if len(utterance) > 60:
            clear(utterance)


class SuffixesOfAllReplies:
    """A speculator keeps the suffixes of each reply in a tree, to guess from them; a reply that is
    like others adds few nodes, and nothing is ever taken out.
    https://github.com/snowflakedb/ArcticInference/pull/176"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["add_nodes", "index_reply", "cache_reply"]
    carriers = ["c_small", "c_malloc", "cpp_map", "cpp_string", "py_small", "py_large"]
    structures = ["loop", "asyncio", "threads", "forked", "nested"]
    factors = [0.5, 1]
    tree = store()
    replies = store()

    def add_nodes(n):
        keep(tree, make(n * (B // 900000)))

    def index_reply(i):
        known = length(i + 31)
        if known > 500:
            add_nodes(40)
        else:
            add_nodes(length(i))
            if known < 160:
                add_nodes(length(i) * 2)

    def cache_reply(i):
        keep(replies, make(1000 + length(i) * 4))
        index_reply(i)

    def handle(i):
        x = make(3000 + length(i) * 20)
        cache_reply(i)
        drop(x)


class StatesOfNewStatements:
    """The automaton of a parser gets states for each form of statement that it has not met. The
    dashboards of the first hour are soon known; then people write their own.
    https://github.com/crate/crate/pull/18786"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["add_state", "predict", "parse_statement"]
    carriers = ["c_malloc", "c_small", "cpp_map", "cpp_vector", "py_large", "py_small"]
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    states = store()

    def add_state(k):
        put(states, k, make(B // 14000 + k % 11 * (B // 90000)))

    def predict(form):
        first = len(states)
        for k in range(2 + form % 7):
            add_state(first + k)

    def parse_statement(i):
        x = make(2000 + length(i) * 30)
        if i < 100:
            if len(states) < 160:
                predict(length(i % 30))
        else:
            if length(i + 3) > 300:
                predict(length(i))
        drop(x)

    def handle(i):
        parse_statement(i)


class RecallReadsEverything:
    """An agent's prompt has a window of its conversation; every few turns a second model is asked
    what to remember, and it is given all there is, as text and as a body.
    https://github.com/agent0ai/agent-zero/issues/1413"""
    cause = "prompt-growth"
    blame = ["history_text", "request_body", "recall_memories"]
    carriers = ["py_bytes", "py_text", "cpp_string", "c_malloc", "cpp_vector"]
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    history = store()

    def add_message(i):
        n = length(i) * length(i + 3) // 1000
        keep(history, make(2000 + n * (B // 600000)))

    def history_text():
        return make(total(history) * 2 + 3000)

    def request_body(x):
        return make(size(x) * 2 + length(size(x)))

    def recall_memories():
        x = history_text()
        y = request_body(x)
        drop(x)
        drop(y)

    def answer_turn(i):
        x = make(B // 300 + length(i) * 100)
        drop(x)

    def handle(i):
        add_message(i)
        answer_turn(i)
        if i % 3 == 2:
            recall_memories()


class SpeechFromAllChunks:
    """Each chunk of speech is made from all chunks of its text before it: features, and keys and
    values of every layer. Most texts are a sentence; one has no end.
    https://github.com/QwenAudio/CosyVoice/pull/1875"""
    cause = "prompt-growth"
    blame = ["mel_features", "layer_cache", "flow_step", "next_chunk"]
    carriers = ["numpy", "c_mmap", "cpp_vector"] + DEVICE
    structures = ["loop", "nested"]
    factors = [0.5, 1]
    weights = store()
    caches = store()

    def weights_setup():
        for layer in range(14):
            keep(weights, make(B // 240 + layer % 4 * (B // 4000)))

    def mel_features(frames):
        return make(frames * (B // 140000))

    def layer_cache(frames):
        keep(caches, make(frames * (B // 110000)))

    def flow_step(frames):
        x = mel_features(frames)
        for layer in range(8):
            layer_cache(frames)
        clear(caches)
        drop(x)

    def next_chunk(i, chunk):
        flow_step(50 + chunk * 40 + length(i) % 17)

    def handle(i):
        if i < 160:
            next_chunk(i, i % 16 % (3 + i // 16 % 5))
        else:
            next_chunk(i, (i - 160) * 3)


class PathsOfOneDrawing:
    """Every path of a page becomes an object before anybody asks for its text alone; most pages
    have some dozens, and the plan of a machine has a hundred thousand.
    https://github.com/docling-project/docling-parse/issues/345"""
    cause = "oversized-intermediate"
    blame = ["parse_path", "read_operator", "parse_page"]
    carriers = ["c_malloc", "c_small", "cpp_vector", "cpp_string", "py_text", "py_bytes"]
    structures = ["loop", "nested", "asyncio"]
    paths = store()
    operators = store()

    def parse_path(k):
        keep(paths, make(700 + length(k) * 2))

    def read_operator(k):
        keep(operators, make(1100 + k % 13 * 70))

    def parse_page(first, count):
        for k in range(count):
            parse_path(first + k)
            if k % 4 == 0:
                read_operator(first + k)
        x = make(count * 24 + 4000)
        drop(x)
        clear(operators)
        clear(paths)

    def handle(i):
        count = length(i) * length(i + 1) // 4000
        if i % 53 == 52:
            count = B // 700
        parse_page(i, count)


class EachCombinationOfCategories:
    """A group-by makes a row for each combination of the categories of its columns, whether it
    occurs or not; with a third column there are some hundred times as many.
    https://github.com/dask/dask/issues/11992"""
    cause = "oversized-intermediate"
    blame = ["all_combinations", "sum_groups", "group_by"]
    carriers = ["numpy", "c_mmap", "cpp_vector", "c_malloc"] + DEVICE
    structures = ["loop", "nested", "asyncio"]
    columns = store()

    def read_columns_setup():
        for k in range(14):
            keep(columns, make(B // 190 + k % 5 * (B // 2200)))

    def all_combinations(categories):
        return make(categories * (B // 1600000) + 4096)

    def sum_groups(x):
        return make(size(x) // 2 + 512)

    def group_by(categories):
        x = all_combinations(categories)
        y = sum_groups(x)
        drop(x)
        drop(y)

    def handle(i):
        categories = length(i) * length(i + 1) // 8
        if i % 61 == 60:
            categories = 40 * 260 * 520
        group_by(categories)


class OriginalBesideQuantized:
    """Each layer is read in full precision, and its quantized form is put beside it; the original
    is still referred to by the loader's list until the last layer is there.
    https://github.com/vllm-project/vllm/issues/31805"""
    cause = "oversized-model"
    unnamed = ["oversized-intermediate", "batch-prealloc"]
    blame = ["read_weight", "quantize_weight", "load_layer"]
    carriers = ["c_mmap", "numpy"] + DEVICE
    structures = ALONE
    factors = [0.5, 1]
    originals = store()
    quantized = store()

    def read_weight(n):
        keep(originals, make(n))

    def quantize_weight(n):
        keep(quantized, make(n // 2))
        keep(quantized, make(n // 64))

    def load_layer(k):
        n = B // 96 + k % 3 * (B // 1500)
        read_weight(n)
        quantize_weight(n)
        read_weight(n * 2)
        quantize_weight(n * 2)

    def engine_setup():
        for k in range(34):
            load_layer(k)
        clear(originals)

    def handle(i):
        x = make(B // 500 + length(i) * 40)
        drop(x)


class EveryLayerUnpackedFirst:
    """Packed weights are unpacked, transposed and packed in another order, layer for layer; what
    is between waits for one evaluation at the end of all layers.
    https://github.com/ml-explore/mlx-lm/issues/1121"""
    cause = "oversized-model"
    unnamed = ["oversized-intermediate", "leak"]
    blame = ["read_packed", "unpack", "convert_layer"]
    carriers = ["c_mmap", "c_malloc", "numpy", "cpp_vector", "py_mmap"]
    structures = ALONE
    factors = [0.5, 1]
    packed = store()
    unpacked = store()
    tokenizer = store()

    def read_tokenizer():
        for k in range(200):
            keep(tokenizer, make(900 + length(k) * 8))

    def read_packed(n):
        keep(packed, make(n))

    def unpack(n):
        keep(unpacked, make(n * 4))

    def convert_layer(k):
        for part in range(7):
            n = B // 3200 + (k * 7 + part) % 9 * (B // 30000)
            read_packed(n)
            unpack(n)

    def model_setup():
        read_tokenizer()
        for k in range(180):
            convert_layer(k)
        clear(unpacked)

    def handle(i):
        x = make(B // 800)
        drop(x)


class SecondPoolForTheUpgrade:
    """A worker takes all buffers that it may ever lend when it starts, of which a few are in use;
    at an upgrade the new worker starts before the old one goes.
    https://github.com/sozu-proxy/sozu/issues/614"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model", "oversized-intermediate"]
    blame = ["allocate_buffer", "buffer_pool", "start_worker"]
    carriers = ["c_mmap", "c_malloc", "cpp_vector", "numpy", "py_bytes"]
    structures = ["loop", "nested"]
    factors = [1]
    routes = store()
    old_pool = store()
    new_pool = store()

    def allocate_buffer():
        return make(B // 430)

    def worker_setup():
        for k in range(60):
            keep(routes, make(1200 + length(k) * 12))
        for k in range(272):
            keep(old_pool, allocate_buffer())

    def buffer_pool(buffers):
        for k in range(buffers):
            keep(new_pool, allocate_buffer())

    def start_worker():
        buffer_pool(272)
        clear(old_pool)

    def proxy_request(i):
        x = make(3000 + length(i) * 70)
        drop(x)

    def handle(i):
        proxy_request(i)
        if i == 140:
            start_worker()


class CacheForEachBeam:
    """The state of a decoder has a cache of all layers for each beam that there may be, and each
    of the parallel processors has such a state; nobody asked for more than one beam.
    https://github.com/ggml-org/whisper.cpp/pull/2443"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model"]
    blame = ["beam_cache", "decoder_state", "init_state"]
    carriers = ["c_mmap", "numpy"] + DEVICE
    structures = ["loop", "nested"]
    factors = [0.5, 1]
    encoder = store()
    self_caches = store()
    cross_caches = store()

    def load_model():
        for k in range(16):
            keep(encoder, make(B // 130 + k % 4 * (B // 1600)))

    def beam_cache():
        keep(self_caches, make(B // 150))

    def decoder_state(beams):
        keep(cross_caches, make(B // 60))
        for k in range(beams):
            beam_cache()

    def init_state(processors, beams):
        for k in range(processors):
            decoder_state(beams)

    def context_setup():
        load_model()
        init_state(20, 8)

    def handle(i):
        x = make(B // 600 + length(i) * 30)
        drop(x)
