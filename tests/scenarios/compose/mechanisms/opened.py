"""Judges of an earlier time: mechanisms of every cause that were set aside, until rules had been
mended with some of them in view. They are ordinary ones since; judges.py has others."""


class RegionsNeverEmpty:
    """Chunks of five sizes with mixed lifetimes: what is free lies in holes, each too small.
    https://github.com/tensorflow/tensorflow/issues/22586"""
    cause = "fragmentation"
    blame = ["arena_alloc", "run_op", "product"]
    carriers = ["c_malloc", "torch"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none", "BoundedPool", "Sawtooth"]
    chunks = store()

    def arena_alloc(k):
        return make(B // 12000 * (1 + k * 7 % 5))

    def run_op(i):
        for k in range(10):
            put(chunks, i * 10 + k, arena_alloc(i * 10 + k))

    def retire(i):
        for k in range(i * 20, i * 20 + 20):
            if k % 2 == 0:
                put(chunks, k, make(48))

    def product(n):
        return make(n)

    def batch_matmul(n):
        x = product(n)
        drop(x)

    def handle(i):
        if i < 300:
            run_op(i)
        elif i < 450:
            retire(i - 300)
        if i % 20 == 19:
            if i < 100:
                batch_matmul(B * 7 // 20)
            elif i > 449:
                batch_matmul(B * 7 // 20)
        batch_matmul(B // 3000)


class HandlerPerClient:
    """Each client adds a handler and its lock to the logger of the process.
    https://github.com/PaddleHQ/paddle-python-sdk/issues/144"""
    cause = "leak"
    blame = ["make_handler", "make_lock", "add_to_shared_logger"]
    carriers = ["c_malloc", "c_malloc", "cpp_string", "cpp_vector", "py_small"]
    handlers = store()
    locks = store()

    def make_handler(i):
        return make(B // 40000 + i % 4 * 48)

    def make_lock():
        return make(B // 160000)

    def add_to_shared_logger(i):
        keep(handlers, make_handler(i))
        keep(locks, make_lock())

    def handle(i):
        for k in range(20):
            add_to_shared_logger(i + k)
        x = make(B // 300)
        drop(x)


class RawSamplesAsList:
    """A recording becomes a list of samples and then features, all of which live to the end.
    https://github.com/openvinotoolkit/openvino.genai/issues/3501"""
    cause = "prompt-growth"
    unnamed = ["oversized-intermediate"]
    blame = ["read_audio", "features_of", "transcribe"]
    carriers = ["numpy", "cpp_vector", "py_large", "py_small"]
    structures = ["loop", "nested", "forked"]

    def read_audio(seconds):
        return make(seconds * (B // 40000))

    def features_of(seconds):
        return make(seconds * (B // 200000))

    def transcribe(seconds):
        x = read_audio(seconds)
        y = features_of(seconds)
        z = make(4096 + seconds * 8)
        drop(x)
        drop(y)
        return z

    def handle(i):
        seconds = length(i)
        if i % 30 > 27:
            seconds = seconds * (2 + i // 30) * (2 + i // 30)
        x = transcribe(seconds)
        drop(x)


class MillionTokenProfile:
    """At start one batch of the longest possible prompt is run, to see what it takes.
    https://github.com/vllm-project/vllm/issues/5847"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model", "oversized-intermediate"]
    blame = ["alloc_max_batch", "profile_run"]
    carriers = ["numpy"] + DEVICE
    structures = ALONE
    weights = store()

    def load_layers():
        for k in range(30):
            keep(weights, make(B // 170))

    def alloc_max_batch(tokens):
        return make(tokens * (B // 300000))

    def profile_run(tokens):
        ids = make(tokens // 2)
        x = alloc_max_batch(tokens)
        y = alloc_max_batch(tokens // 2)
        drop(y)
        drop(x)
        drop(ids)

    def engine_setup():
        load_layers()
        profile_run(1048576)

    def handle(i):
        x = make(length(i) * (B // 1000000))
        drop(x)


class SlicePinsArray:
    """The head of each signal is kept in a list; it is a view, so all of the signal stays.
    https://github.com/numpy/numpy/issues/15746"""
    cause = "leak"
    blame = ["load_signal", "keep_head"]
    carriers = ["numpy", "numpy", "py_bytes"]
    structures = ["loop", "threads", "nested", "forked"]
    heads = store()

    def load_signal():
        return make(B // 250)

    def keep_head(x):
        keep(heads, x)

    def handle(i):
        x = load_signal()
        y = make(B // 600)
        keep_head(x)
        drop(y)


class FractionOfDevice:
    """The first computation takes three quarters in one block; a second framework has no room.
    https://github.com/jax-ml/jax/pull/1075"""
    cause = "batch-prealloc"
    also = ["external"]
    unnamed = ["oversized-model", "oversized-intermediate"]
    blame = ["preallocate", "create_backend"]
    carriers = ["c_mmap"] + DEVICE
    structures = ["loop"]
    factors = [0.5, 1]
    backgrounds = ["none", "WarmCache", "Sawtooth"]
    arena = store()
    buffers = store()

    def preallocate():
        keep(arena, make(B * 3 // 4))

    def create_backend():
        preallocate()

    def first_setup():
        create_backend()

    def other_framework(k):
        keep(buffers, make(B // 50))

    def handle(i):
        if i % 3 == 0 and len(buffers) < 24:
            other_framework(i)
        x = make(B // 2000)
        drop(x)


class FixedCacheBigContext:
    """A context is created for the largest window: a cache, then one buffer to compute in.
    https://github.com/ollama/ollama/issues/4225"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model", "oversized-intermediate"]
    blame = ["reserve_compute", "new_context", "kv_cache"]
    carriers = ["c_mmap", "cuda", "torch"]
    structures = ["loop"]
    cells = store()
    scratch = store()

    def kv_cache(layers):
        for k in range(layers):
            keep(cells, make(B // 120))

    def reserve_compute(n):
        return make(n)

    def new_context(n):
        kv_cache(32)
        keep(scratch, reserve_compute(B * n // 20000))

    def server_setup():
        new_context(65536)

    def handle(i):
        x = make(B // 700 + length(i) * 16)
        drop(x)


class PrimitiveCacheLevelsOff:
    """A primitive for each shape, in a cache that keeps the last two hundred.
    https://github.com/uxlfoundation/oneDNN/issues/489"""
    cause = "healthy"
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "numpy"]
    structures = ["loop", "threads"]
    factors = [1, 2]
    requests = 600
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    primitives = store()

    def get_primitive(i):
        keep(primitives, make(B // 2000 + length(i) * (B // 600000)))
        if len(primitives) > 200:
            pop(primitives)

    def infer_image(i):
        get_primitive(i)
        x = make(B // 60)
        drop(x)

    def handle(i):
        infer_image(i)


class OneBufferForAllTensors:
    """All tensors of a model lie in one buffer, which is asked for at load.
    https://github.com/ggml-org/llama.cpp/issues/20431"""
    cause = "oversized-model"
    unnamed = ["batch-prealloc", "oversized-intermediate"]
    blame = ["alloc_model_buffer", "load_tensors"]
    carriers = ["c_mmap", "py_mmap", "c_malloc"] + DEVICE
    structures = ["loop"]
    tensors = store()

    def alloc_model_buffer(n):
        return make(n)

    def load_tensors():
        x = make(B // 2000)
        keep(tensors, alloc_model_buffer(B * 3))
        drop(x)

    def model_setup():
        load_tensors()

    def handle(i):
        x = make(B // 400)
        drop(x)


class UploadsTimesClients:
    """Each upload holds its body, and twice as much while it is parsed; all clients come at once.
    https://github.com/AnuranjanJain/LegalEase/issues/132"""
    cause = "concurrency"
    blame = ["read_body", "parsed", "handle_upload"]
    carriers = ["py_bytes", "py_text", "c_malloc", "cpp_vector", "cpp_string"]
    structures = ["asyncio", "threads"]
    crowd = 12
    limiters = ["data", "cgroup", "rss"]

    def read_body(n):
        return make(n)

    def parsed(x):
        return make(size(x) * 2)

    def handle_upload(n, ms):
        x = read_body(n)
        y = parsed(x)
        wait(ms)
        drop(y)
        drop(x)

    def handle(i):
        if i < 90:
            if i % 50 == 15:
                handle_upload(B // 13, 1)
            handle_upload(B // 2500 + length(i), 1)
        else:
            handle_upload(B // 13, 3000)


class OneGiantCheckpoint:
    """Every rank reads the single file whole and keeps its share of each tensor.
    https://github.com/vllm-project/vllm/issues/304"""
    cause = "oversized-model"
    blame = ["unpickle_weights", "shard_to_ranks", "load_rank"]
    carriers = ["py_bytes", "numpy", "py_mmap"]
    structures = ["forked", "loop"]
    state = store()
    own = store()

    def unpickle_weights():
        for k in range(96):
            keep(state, make(B // 40 + k % 6 * (B // 1000)))

    def shard_to_ranks():
        for k in range(96):
            keep(own, make(size(item(state, k)) // 8))
        clear(state)

    def load_rank():
        unpickle_weights()
        shard_to_ranks()

    def rank_setup():
        load_rank()

    def handle(i):
        x = make(B // 200)
        drop(x)


class FinishedSpanList:
    """Finished spans go to an exporter that was meant for tests: a list that nobody reads.
    https://github.com/DHCW-Digital-Health-and-Care-Wales/Integration-Hub-Beta/pull/247"""
    cause = "leak"
    also = ["state-retention"]
    blame = ["start_span", "export_span", "process_message"]
    carriers = ["cpp_string", "cpp_vector", "py_large", "py_large", "py_small"]
    structures = ["loop", "threads", "asyncio"]
    spans = store()

    def start_span(k):
        return make(B // 40000 * (1 + k % 3))

    def export_span(x):
        keep(spans, x)

    def process_message(i):
        for k in range(20):
            x = start_span(i + k)
            export_span(x)

    def handle(i):
        y = make(B // 500 + length(i) * 32)
        process_message(i)
        drop(y)


class TokenCacheSawtooth:
    """A map of tokens loses a quarter when it is full, for hours.
    https://github.com/huggingface/tokenizers/issues/1539"""
    cause = "healthy"
    carriers = ["cpp_string", "cpp_vector", "c_malloc", "c_malloc", "py_small"]
    structures = ["loop", "threads"]
    factors = [1, 2]
    requests = 700
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    merges = store()

    def bpe_cache(i):
        keep(merges, make(B // 1200 + i % 5 * (B // 20000)))
        if len(merges) > 320:
            for k in range(80):
                pop(merges)

    def encode(i):
        x = make(B // 700)
        bpe_cache(i)
        drop(x)

    def handle(i):
        encode(i)


class MemoizedMethodPins:
    """A memoized method has its object in the key: the helpers of all jobs stay, unused.
    https://github.com/getsentry/seer/pull/2512"""
    cause = "leak"
    also = ["state-retention"]
    blame = ["build_repo_client", "memoized"]
    carriers = ["py_bytes", "py_text", "py_large", "numpy"]
    structures = ["loop", "threads", "asyncio"]
    memo = store()

    def memoized(i, x, y, z):
        put(memo, i * 3, x)
        put(memo, i * 3 + 1, y)
        put(memo, i * 3 + 2, z)

    def build_repo_client(i):
        x = make(B // 2000 + length(i) * (B // 360000))
        y = make(B // 2000 + length(i + 1) * (B // 360000))
        z = make(B // 1000)
        memoized(i, x, y, z)

    def handle(i):
        build_repo_client(i)
        x = make(B // 150)
        drop(x)


class MediaOfWaitingRequests:
    """Requests that wait for the engine hold their decoded media already.
    https://github.com/vllm-project/vllm/issues/35191"""
    cause = "concurrency"
    blame = ["preprocess_media", "queue_request"]
    carriers = ["numpy", "py_bytes"]
    structures = ["asyncio", "threads"]
    crowd = 14
    limiters = ["data", "cgroup", "rss"]

    def preprocess_media(i):
        return make(B // 8 + length(i) * (B // 8000))

    def queue_request(i, ms):
        x = preprocess_media(i)
        wait(ms)
        drop(x)

    def text_request(i):
        x = make(B // 1500 + length(i))
        wait(1)
        drop(x)

    def handle(i):
        if i < 70:
            if i % 40 == 15:
                queue_request(i, 1)
            text_request(i)
        else:
            queue_request(i, 3000)


class MediaInSharedMemory:
    """Decoded media wait for the engine in segments of shared memory, one for each request.
    https://github.com/vllm-project/vllm/issues/35191"""
    cause = "concurrency"
    blame = ["decode_media", "enqueue"]
    carriers = SHARED
    structures = ["asyncio", "threads"]
    crowd = 20

    def decode_media(n):
        return make(n)

    def enqueue(n, ms):
        x = decode_media(n)
        y = decode_media(n // 20)
        wait(ms)
        drop(y)
        drop(x)

    def handle(i):
        if i < 90:
            enqueue(B // 900, 1)
        else:
            enqueue(B // 9 + length(i) * (B // 12000), 3000)


class ContextRemains:
    """A tensor comes and goes; what the runtime took for itself stays, and is the same for ever.
    https://github.com/pytorch/pytorch/issues/60150"""
    cause = "healthy"
    carriers = DEVICE
    structures = ["loop"]
    factors = [1, 2]
    requests = 300
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    modules = store()

    def context_setup():
        for k in range(7):
            keep(modules, make(B // 60))

    def run_once():
        return make(B // 7)

    def free_all(x):
        drop(x)

    def handle(i):
        x = run_once()
        free_all(x)


class PerTokenScores:
    """One request asks for the scores of all tokens of its prompt, and has them sorted.
    https://github.com/vllm-project/vllm/issues/5907"""
    cause = "oversized-intermediate"
    blame = ["collect_logprobs", "sorted_copy", "serve_completion"]
    carriers = ["numpy"] + DEVICE
    structures = ["loop", "asyncio", "threads"]
    blocks = store()

    def pool_of_blocks_setup():
        for k in range(12):
            keep(blocks, make(B // 120))

    def collect_logprobs(rows):
        return make(rows * (B // 1500))

    def sorted_copy(x):
        return make(size(x))

    def serve_completion(rows):
        x = collect_logprobs(rows)
        y = sorted_copy(x)
        drop(x)
        drop(y)

    def handle(i):
        x = make(length(i) * (B // 90000))
        if i % 66 == 65:
            serve_completion(3500)
        else:
            serve_completion(1)
        drop(x)


class HalfWeightsSmallCard:
    """Two hundred and ninety-one parameters are a little more than the card has.
    https://github.com/vllm-project/vllm/issues/1354"""
    cause = "oversized-model"
    blame = ["alloc_param", "load_model"]
    carriers = DEVICE
    structures = ALONE + ["asyncio"]
    factors = [0.5, 1]
    parameters = store()

    def alloc_param(n):
        keep(parameters, make(n))

    def load_model():
        alloc_param(B // 48)
        for k in range(32):
            for j in range(4):
                alloc_param(B // 400)
            for j in range(3):
                alloc_param(B // 110)
            for j in range(2):
                alloc_param(8192)
        alloc_param(B // 48)

    def model_setup():
        load_model()

    def handle(i):
        x = make(B // 200 + length(i) * 64)
        drop(x)


class RequestCycles:
    """Each request is in a cycle with its own callback, and a full collection hardly ever comes.
    https://github.com/vllm-project/vllm/pull/34183"""
    cause = "leak"
    blame = ["build_request", "link_hasher"]
    carriers = ["py_large", "numpy", "py_bytes"]
    structures = ["loop", "asyncio", "threads"]
    unreachable = store()

    def build_request(i):
        return make(B // 2000 + length(i) // 50 * (B // 2500))

    def link_hasher(x):
        keep(unreachable, x)

    def young_collection():
        pop(unreachable)
        pop(unreachable)

    def handle(i):
        x = build_request(i)
        y = make(B // 300)
        link_hasher(x)
        drop(y)
        if i % 40 == 39:
            young_collection()


class LastEntryIsHuge:
    """One cached prompt collects a rollback copy each turn; the limit never looks inside it.
    https://github.com/ikawrakow/ik_llama.cpp/issues/2320"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["append_checkpoint", "decode_turn"]
    carriers = ["cpp_vector", "cpp_string", "c_malloc", "numpy", "py_bytes"]
    structures = ["loop", "nested", "asyncio"]
    prompts = store()
    rollbacks = store()

    def append_checkpoint(i):
        keep(rollbacks, make(B // 350 * (1 + i % 3)))

    def enforce_limit():
        while len(prompts) > 1:
            pop(prompts)

    def decode_turn(i):
        x = make(B // 120)
        append_checkpoint(i)
        drop(x)

    def handle(i):
        if i % 10 == 0:
            keep(prompts, make(B // 400))
        enforce_limit()
        decode_turn(i)


class CollectionsStayLoaded:
    """A collection is loaded when it is first asked for; the cache's bound is a count of files.
    https://github.com/chroma-core/chroma/issues/3336"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["load_segment", "query_collection"]
    carriers = ["c_mmap", "py_mmap", "cpp_vector", "numpy", "c_malloc"]
    structures = ["loop", "asyncio", "forked"]
    segments = store()

    def load_segment(k):
        put(segments, k, make(B // 1000 + length(k) // 50 * (B // 2000)))
        if len(segments) > 40000:
            pop(segments)

    def query_collection(i):
        if i % 3 == 0:
            load_segment(i // 3)
        x = make(B // 400 + length(i) * 16)
        drop(x)

    def handle(i):
        query_collection(i)


class IdleSessionCopies:
    """When a slot goes to another conversation the old state is copied, whole, and kept.
    https://github.com/TheTom/llama-cpp-turboquant/pull/350"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["save_prompt_state", "evaluate_prompt"]
    carriers = ["c_malloc", "c_mmap", "cpp_vector", "numpy", "py_bytes"]
    structures = ["loop", "asyncio"]
    slot = store()
    saved = store()

    def slot_setup():
        keep(slot, make(B // 12))

    def save_prompt_state(tokens):
        keep(saved, make(tokens * (B // 90000)))

    def evaluate_prompt(i):
        if i % 2 == 1:
            save_prompt_state(length(i))
        x = make(length(i) * (B // 60000))
        drop(x)

    def handle(i):
        evaluate_prompt(i)
