"""Memory for the largest batch or the whole window is taken before it is needed. Nobody serves with
threads where it is taken at start: the limit would leave room for stacks that do not exist yet."""


class StaticPoolFraction:
    """Most of the memory goes to a pool of equal blocks; the first long prefill has no room.
    https://github.com/sgl-project/sglang-omni/pull/292"""
    cause = "batch-prealloc"
    blame = ["init_memory_pool", "set_static_fraction"]
    carriers = ["c_mmap", "torch", "torch", "cuda", "cuda"]
    structures = ["loop", "asyncio"]
    factors = [0.5, 1]
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    weights = store()
    slots = store()

    def init_memory_pool(layers):
        for k in range(layers):
            keep(slots, make(B // 75))
            keep(slots, make(B // 75))

    def set_static_fraction():
        init_memory_pool(28)

    def engine_setup():
        for k in range(14):
            keep(weights, make(B // 180))
        set_static_fraction()

    def prefill(tokens):
        x = make(tokens * (B // 180000))
        y = make(tokens * (B // 180000))
        drop(y)
        drop(x)

    def handle(i):
        tokens = length(i)
        if i % 90 == 89:
            tokens = 36000
        prefill(tokens)


class ContextTimesParallel:
    """At load there is a cache for the context of all parallel slots, and a buffer to compute in.
    https://github.com/ollama/ollama/issues/10735"""
    cause = "batch-prealloc"
    blame = ["alloc_kv_buffers", "reserve_graph", "create_context"]
    carriers = ["c_mmap", "c_malloc"] + DEVICE
    structures = ["loop"]
    tensors = store()
    kv = store()

    def load_tensors():
        for k in range(20):
            keep(tensors, make(B // 400 + k % 3 * 8192))

    def alloc_kv_buffers(layers):
        for k in range(layers):
            keep(kv, make(B // 30))

    def reserve_graph():
        return make(B * 11 // 10)

    def create_context():
        alloc_kv_buffers(40)
        keep(kv, reserve_graph())

    def runner_setup():
        load_tensors()
        create_context()

    def handle(i):
        x = make(B // 900 + length(i) * 32)
        drop(x)


class CacheTakesTheRest:
    """After the weights the cache takes all that a profile left; the first batch needs some.
    https://github.com/vllm-project/vllm/issues/1298"""
    cause = "batch-prealloc"
    blame = ["init_kv_cache", "engine_setup"]
    carriers = ["c_mmap", "torch", "torch", "cuda", "cuda"]
    structures = ["loop", "asyncio"]
    factors = [0.5, 1]
    backgrounds = ["none", "WarmCache", "Sawtooth"]
    weights = store()
    cache = store()

    def load_weights():
        for k in range(40):
            keep(weights, make(B // 260 + k % 4 * (B // 800)))

    def init_kv_cache(layers):
        for k in range(layers):
            keep(cache, make(B // 90))
            keep(cache, make(B // 90))

    def engine_setup():
        load_weights()
        init_kv_cache(31)

    def execute_batch(n):
        x = make(n)
        y = make(n // 2)
        drop(y)
        drop(x)

    def handle(i):
        if i < 30:
            execute_batch(B // 4000)
        else:
            execute_batch(B // 6)


class StaticCacheForWindow:
    """Each call first allocates a cache for the whole window, of which it uses some percent.
    https://github.com/huggingface/transformers/pull/40328"""
    cause = "batch-prealloc"
    unnamed = ["oversized-intermediate"]  # all blocks are of one call
    blame = ["make_static_cache", "generate"]
    carriers = ["numpy", "c_mmap", "py_mmap", "torch", "torch", "cuda", "cuda"]
    structures = ALONE
    static_cache = store()

    def make_static_cache(layers):
        for k in range(layers):
            keep(static_cache, make(B // 22))
            keep(static_cache, make(B // 22))

    def generate(tokens):
        make_static_cache(28)
        x = make(tokens * 256)
        drop(x)
        clear(static_cache)

    def embed(tokens):
        x = make(tokens * (B // 200000))
        drop(x)

    def handle(i):
        if i % 60 == 59:
            generate(50)
        else:
            embed(length(i))


class CacheForWholeWindow:
    """A runner takes keys and values of the largest context, for prompts of fifty tokens.
    https://github.com/envoyproxy/ai-gateway/pull/2400"""
    cause = "batch-prealloc"
    blame = ["alloc_kv", "load_runner"]
    carriers = ["c_mmap", "py_mmap", "c_malloc", "numpy"]
    structures = ALONE
    layers = store()
    keys = store()
    values = store()

    def read_layer(k):
        return make(B // 300)

    def alloc_kv(context):
        return make(context * (B // 2900000))

    def load_runner(count, context):
        for k in range(count):
            keep(layers, read_layer(k))
        for k in range(count):
            keep(keys, alloc_kv(context))
            keep(values, alloc_kv(context))

    def runner_setup():
        load_runner(28, 131072)

    def handle(i):
        x = make(B // 1000 + length(i) * 64)
        drop(x)


class GraphsAfterPool:
    """The pool's size rests on a guess of what graphs take; their capture right after start fails.
    https://github.com/vllm-project/vllm/issues/57475"""
    cause = "batch-prealloc"
    blame = ["allocate_pool", "capture_graphs", "capture_size"]
    carriers = DEVICE
    structures = ["loop"]
    factors = [0.5, 1]
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    weights = store()
    pool_blocks = store()
    graphs = store()

    def allocate_pool(layers):
        for k in range(layers):
            keep(pool_blocks, make(B // 44))

    def capture_size(batch):
        x = make(batch * (B // 80000))
        keep(graphs, make(B // 500 + batch * (B // 50000)))
        drop(x)

    def capture_graphs():
        for k in range(35):
            capture_size(280 - k * 8)

    def engine_setup():
        for k in range(32):
            keep(weights, make(B // 170))
        allocate_pool(32)
        capture_graphs()

    def handle(i):
        x = make(B // 2000)
        drop(x)


class SamplerForMaxSequences:
    """The sampler is warmed with a row of scores for each sequence that might ever run.
    https://github.com/vllm-project/vllm/issues/15598"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model", "oversized-intermediate"]
    blame = ["alloc_rows", "warm_sampler"]
    carriers = DEVICE
    structures = ["loop"]
    weights = store()

    def load_weights():
        for k in range(24):
            keep(weights, make(B // 240))

    def alloc_rows(sequences):
        return make(sequences * (B // 1150))

    def warm_sampler(sequences):
        x = alloc_rows(sequences)
        y = alloc_rows(sequences)
        z = alloc_rows(sequences)
        drop(z)
        drop(y)
        drop(x)

    def engine_setup():
        load_weights()
        warm_sampler(1024)

    def handle(i):
        x = alloc_rows(1 + i % 4)
        drop(x)
