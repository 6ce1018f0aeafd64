"""Set aside: these are run and counted like all others, and nobody who mends rules opens them.

The second part of judges.py, whose first lines say why."""


class TwoReplicasOfSegments:
    """A collection is loaded twice on one node, each segment with its vectors and its index; one
    replica would not have left much. https://github.com/milvus-io/milvus/issues/16887"""
    cause = "oversized-model"
    blame = ["load_segment", "load_index", "load_replica", "load_collection"]
    carriers = ["c_mmap", "c_malloc", "cpp_vector", "numpy", "py_mmap"]
    structures = ALONE
    vectors = store()
    indexes = store()

    def load_index(k):
        return make(B // 110 + k % 5 * (B // 900))

    def load_segment(k):
        x = make(B // 900)
        keep(vectors, make(B // 60 + k % 7 * (B // 400)))
        keep(indexes, load_index(k))
        drop(x)

    def load_replica():
        for k in range(34):
            load_segment(k)

    def load_collection(replicas):
        for k in range(replicas):
            load_replica()

    def node_setup():
        load_collection(2)

    def handle(i):
        x = make(B // 300 + length(i) * 64)
        drop(x)


class FullThenHalfPrecision:
    """Weights go to the device in full precision, and then again in half of it, while the first
    ones still lie there. https://github.com/NVIDIA/FasterTransformer/issues/367"""
    cause = "oversized-model"
    blame = ["load_full", "to_half", "init_model", "load_layer"]
    carriers = DEVICE
    structures = ALONE
    factors = [0.5, 1]
    full = store()
    half = store()

    def load_layer(k):
        keep(full, make(B // 80))
        keep(full, make(B // 44 + k % 3 * (B // 900)))

    def load_full(count):
        for k in range(count):
            load_layer(k)

    def to_half():
        for k in range(len(full)):
            keep(half, make(size(item(full, k)) // 2))

    def init_model():
        load_full(26)
        to_half()
        clear(full)

    def engine_setup():
        init_model()

    def handle(i):
        x = make(B // 90)
        drop(x)


class PolicyInFullPrecision:
    """An image encoder, a language model and a head of large layers are built in full precision,
    one after the other. https://github.com/NVIDIA/Isaac-GR00T/issues/38"""
    cause = "oversized-model"
    blame = ["build_encoder", "build_language", "build_head", "load_policy", "parameter"]
    carriers = ["torch", "torch", "cuda", "cuda", "numpy"]
    structures = ALONE + ["asyncio"]
    parameters = store()

    def parameter(n):
        keep(parameters, make(n))

    def build_encoder():
        for layer in range(24):
            parameter(B // 240)
            parameter(B // 120)

    def build_language():
        parameter(B // 9)
        for layer in range(28):
            parameter(B // 60)
            parameter(B // 28)

    def build_head():
        for layer in range(16):
            parameter(B // 20)

    def load_policy():
        build_encoder()
        build_language()
        build_head()

    def policy_setup():
        load_policy()

    def handle(i):
        x = make(B // 120 + length(i) * 512)
        drop(x)


class RepositoryOfModels:
    """A server loads each model of its repository at start; all of them together are too much.
    https://github.com/triton-inference-server/server/issues/1440"""
    cause = "oversized-model"
    blame = ["load_model", "read_weight", "poll_repository"]
    carriers = ["c_mmap", "py_mmap", "cpp_vector"] + DEVICE
    structures = ALONE
    weights = store()

    def read_weight(model, k):
        return make(B // (70 + model * 9) + k % 6 * (B // 1500))

    def load_model(model):
        keep(weights, make(B // (14 + model)))
        for k in range(22 + model * 3):
            keep(weights, read_weight(model, k))

    def poll_repository(count):
        for model in range(count):
            load_model(model)

    def server_setup():
        poll_repository(7)

    def handle(i):
        x = make(B // 200)
        drop(x)


class CacheForMaxBatch:
    """Each layer of attention makes its keys and values for the largest batch and the longest text
    as it is built; one prompt comes at a time. https://github.com/meta-llama/llama/issues/42"""
    cause = "batch-prealloc"
    blame = ["make_cache", "build_attention", "build_model"]
    carriers = ["numpy", "torch", "torch", "cuda", "cuda"]
    structures = ALONE
    weights = store()
    cache_keys = store()
    cache_values = store()

    def make_cache(batch, tokens):
        return make(batch * tokens * (B // 2000000))

    def build_attention(layer):
        for k in range(4):
            keep(weights, make(B // 900))
        keep(cache_keys, make_cache(32, 2048))
        keep(cache_values, make_cache(32, 2048))

    def build_feed_forward(layer):
        for k in range(3):
            keep(weights, make(B // 450))

    def build_model(layers):
        for layer in range(layers):
            build_attention(layer)
            build_feed_forward(layer)

    def generator_setup():
        build_model(32)

    def handle(i):
        x = make(B // 400)
        drop(x)


class WarmupWithLargestPrefill:
    """Before it serves, an engine runs one made-up prefill of as many tokens as it may ever have.
    https://github.com/huggingface/text-generation-inference/issues/1692"""
    cause = "batch-prealloc"
    unnamed = ["oversized-intermediate"]  # who ran it is told by names alone
    blame = ["warmup", "prefill", "hidden", "projected"]
    carriers = DEVICE
    structures = ["loop"]
    shards = store()

    def load_shards():
        for k in range(30):
            keep(shards, make(B // 110 + k % 4 * (B // 900)))

    def hidden(tokens):
        return make(tokens * (B // 40000))

    def projected(tokens):
        return make(tokens * (B // 28000))

    def prefill(tokens):
        x = hidden(tokens)
        y = projected(tokens)
        z = hidden(tokens)
        drop(x)
        drop(y)
        drop(z)

    def warmup(tokens):
        prefill(tokens)

    def server_setup():
        load_shards()
        warmup(27000)

    def handle(i):
        prefill(length(i))


class ScratchPerSearcher:
    """Each thread of a pool makes its own resources at start, which reserve a fifth of the device
    for temporary data, however little is searched.
    https://github.com/facebookresearch/faiss/issues/835"""
    cause = "batch-prealloc"
    blame = ["reserve_temporary", "make_resources", "start_searchers"]
    carriers = DEVICE
    structures = ["loop"]
    flat_index = store()
    stacks = store()

    def reserve_temporary():
        return make(B // 5)

    def make_resources():
        keep(stacks, reserve_temporary())
        keep(stacks, make(65536))

    def start_searchers(count):
        for k in range(count):
            make_resources()

    def index_setup():
        for k in range(10):
            keep(flat_index, make(B // 120))
        start_searchers(12)

    def handle(i):
        x = make(B // 3000 + length(i) * 256)
        drop(x)


class ContextsForLargestShape:
    """Each context of an engine has memory for the largest shape of its profile; what comes in is a
    twentieth of it. https://github.com/NVIDIA/TensorRT/issues/3501"""
    cause = "batch-prealloc"
    blame = ["create_context", "allocate_for_profile", "create_contexts"]
    carriers = ["c_mmap"] + DEVICE
    structures = ["loop"]
    plan = store()
    contexts = store()

    def deserialize_plan():
        for k in range(24):
            keep(plan, make(B // 300 + k % 5 * (B // 2000)))

    def allocate_for_profile(batch):
        return make(batch * (B // 130))

    def create_context():
        keep(contexts, allocate_for_profile(32))
        keep(contexts, make(B // 200))

    def create_contexts(count):
        for k in range(count):
            create_context()

    def engine_setup():
        deserialize_plan()
        create_contexts(10)

    def handle(i):
        x = make(B // 900)
        drop(x)


class ModelsExercisedTogether:
    """Four models are loaded, and each takes working memory when it runs; one at a time they fit,
    and now requests come for all. https://github.com/triton-inference-server/server/issues/1507"""
    cause = "concurrency"
    blame = ["execute_model", "workspace", "infer"]
    carriers = DEVICE
    structures = ["threads", "asyncio"]
    crowd = 12
    weights = store()

    def models_setup():
        for k in range(32):
            keep(weights, make(B // 300))

    def workspace(n):
        return make(n)

    def execute_model(n, ms):
        x = workspace(n)
        y = workspace(n // 2)
        wait(ms)
        drop(y)
        drop(x)

    def infer(model, n, ms):
        execute_model(n + model * (n // 40), ms)

    def handle(i):
        if i < 90:
            infer(i % 4, B // 900, 1)
        else:
            infer(i % 4, B // 7, 3000)


class JobsWithoutMaximum:
    """Each recording is worked on as soon as it is sent, with its own samples, features and
    alignment; sixteen are sent at once. https://github.com/pavelzbornik/whisperX-FastAPI/issues/466
    """
    cause = "concurrency"
    blame = ["transcribe", "extract_features", "align", "process_audio"]
    carriers = DEVICE
    structures = ["asyncio", "threads"]
    crowd = 16

    def extract_features(n):
        return make(n)

    def align(n):
        return make(n // 2)

    def transcribe(n, ms):
        x = extract_features(n)
        wait(ms)
        y = align(n)
        wait(ms)
        drop(y)
        drop(x)

    def process_audio(n, ms):
        samples = make(n // 3)
        transcribe(n, ms)
        drop(samples)

    def handle(i):
        if i < 80:
            process_audio(B // 700 + length(i) * 500, 1)
        else:
            process_audio(B // 9, 2500)


class ImagesOfAllCallers:
    """A caller sends five images, and the ingress holds them and their copies for the pipeline till
    the answer is back; many call at once. https://github.com/ray-project/ray/issues/52174"""
    cause = "concurrency"
    blame = ["decode_image", "call_pipeline", "ingress"]
    carriers = ["numpy", "py_bytes", "c_malloc", "cpp_vector"]
    structures = ["threads", "asyncio"]
    crowd = 14
    limiters = ["data", "cgroup", "rss"]

    def decode_image(n):
        return make(n)

    def call_pipeline(n, ms):
        copies = make(n * 5)
        wait(ms)
        drop(copies)

    def ingress(n, ms):
        first = decode_image(n)
        second = decode_image(n)
        third = decode_image(n)
        fourth = decode_image(n)
        fifth = decode_image(n)
        call_pipeline(n, ms)
        drop(first)
        drop(second)
        drop(third)
        drop(fourth)
        drop(fifth)

    def handle(i):
        if i < 84:
            ingress(B // 9000 + length(i) * 4, 1)
        else:
            ingress(B // 55, 3000)


class ChunksGathered:
    """All chunks of a corpus are extracted at once, each with its prompt and its reply, where a
    document before had a few. https://github.com/circlemind-ai/fast-graphrag/issues/32"""
    cause = "concurrency"
    blame = ["build_prompt", "extract_from_chunk", "extract_all"]
    carriers = ["py_text", "py_bytes", "py_large"]
    structures = ["asyncio"]
    crowd = 700

    def build_prompt(chunk):
        return make(B // 340 + length(chunk) * (B // 3000000))

    def extract_from_chunk(chunk, ms):
        x = build_prompt(chunk)
        wait(ms)
        y = make(B // 1500)
        drop(x)
        drop(y)

    def extract_all(chunk, ms):
        extract_from_chunk(chunk, ms)

    def handle(i):
        if i < 120:
            extract_all(i, 0)
        else:
            extract_all(i, 3000)


class AdaptersTillTheirTurn:
    """An adapter that nobody asks for lies on in its slot till another one needs it; there are 24
    slots. https://github.com/vllm-project/vllm/issues/54839"""
    cause = "healthy"
    carriers = DEVICE
    structures = ["loop", "asyncio"]
    factors = [1, 2]
    requests = 300
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    slots = store()

    def load_adapter(i):
        for part in range(4):
            keep(slots, make(B // 480 + part * (B // 4000)))
        while len(slots) > 96:
            pop(slots)

    def generate(i):
        x = make(B // 40 + length(i) * (B // 100000))
        drop(x)

    def handle(i):
        if i % 3 == 0:
            load_adapter(i)
        generate(i)


class WarmBankInBudget:
    """Every conversation leaves its state in a bank, which fills for a long time and then drops the
    oldest for each new one. https://github.com/youssofal/MTPLX/issues/438"""
    cause = "healthy"
    carriers = ["c_mmap"] + DEVICE
    structures = ["loop"]
    factors = [1, 2]
    requests = 280
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    weights = store()
    bank = store()

    def weights_setup():
        for k in range(20):
            keep(weights, make(B // 100))

    def store_entry(n):
        while total(bank) + n > B * 3 // 10:
            pop(bank)
        keep(bank, make(n))

    def answer(i):
        x = make(B // 120 + length(i) * (B // 200000))
        store_entry(B // 90 + length(i) * (B // 180000))
        drop(x)

    def handle(i):
        answer(i)


class TablesReadAgain:
    """A table is read and turned into another form, time after time; its large pieces go back and
    come again. https://github.com/apache/arrow/issues/46929"""
    cause = "healthy"
    carriers = ["c_malloc", "c_mmap", "cpp_vector", "numpy", "py_bytes"]
    structures = ["loop", "nested"]
    requests = 200
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    columns = store()

    def read_columns(i):
        for k in range(8):
            keep(columns, make(B // 240 + length(i * 8 + k) * (B // 480000)))

    def to_frame():
        x = make(total(columns))
        clear(columns)
        return x

    def handle(i):
        read_columns(i)
        x = to_frame()
        y = make(B // 300)
        drop(y)
        drop(x)


class IdleSessionsHaveABound:
    """Sessions that nobody ends stay with their buffers of events, as far as a number of them; then
    the idlest goes for each new one. https://github.com/IvanMurzak/MCP-Plugin-dotnet/pull/120"""
    cause = "healthy"
    carriers = ["py_bytes", "py_text", "py_large", "cpp_string", "cpp_vector", "c_malloc"]
    structures = ["asyncio", "threads", "loop"]
    factors = [1, 2]
    requests = 500
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    sessions = store()

    def open_session(i):
        keep(sessions, make(B // 1400 + length(i) * (B // 1600000)))
        if len(sessions) > 200:
            pop(sessions)

    def serve_call(i):
        x = make(B // 250)
        open_session(i)
        drop(x)

    def handle(i):
        serve_call(i)


class ArenaKeepsItsHighest:
    """An arena grows for the largest input so far and does not shrink for the small ones after it;
    larger ones get rare. https://github.com/microsoft/onnxruntime/issues/22297"""
    cause = "healthy"
    carriers = ["c_malloc", "c_mmap", "cpp_vector", "cuda", "torch"]
    structures = ["loop"]
    factors = [1, 2]
    requests = 320
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    arena = store()

    def arena_setup():
        put(arena, 0, make(B // 60))

    def reserve(n):
        if n > size(item(arena, 0)):
            put(arena, 0, make(n))

    def run_session(i):
        reserve(length(i) * length(i + 1) // 1000 * (B // 4000))
        x = make(B // 500)
        drop(x)

    def handle(i):
        run_session(i)


class TenAtATime:
    """Chunks are embedded ten at a time, however many wait: ten bodies and replies at most.
    https://github.com/asciimoo/hister/issues/482"""
    cause = "healthy"
    carriers = ["py_bytes", "py_text", "numpy", "cpp_vector", "cpp_string"]
    structures = ["asyncio", "threads"]
    crowd = 10
    requests = 500
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]

    def post_chunk(i):
        x = make(B // 130 + length(i) * (B // 250000))
        wait(2)
        y = make(B // 900)
        drop(x)
        drop(y)

    def handle(i):
        post_chunk(i)
