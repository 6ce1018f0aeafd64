"""Nothing runs out: what is kept has a bound, and what is made is given back."""


class ArenaSettles:
    """An arena is extended after the first requests, then more rarely, then no more.
    https://github.com/triton-inference-server/onnxruntime_backend/issues/102"""
    cause = "healthy"
    carriers = ["c_malloc", "c_mmap", "cpp_vector", "cuda"]
    structures = ["loop", "threads"]
    factors = [1, 2]
    requests = 300
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    arena = store()

    def arena_extend(n):
        keep(arena, make(n))

    def run_model(i):
        if i == 0:
            arena_extend(B // 8)
        if i == 1:
            arena_extend(B // 8)
        if i == 7:
            arena_extend(B // 16)
        if i == 25:
            arena_extend(B // 64)
        x = make(B // 120)
        drop(x)

    def handle(i):
        run_model(i)


class QueueWithBackpressure:
    """The consumer is slow, the queue holds 32 messages, and then the reader pauses.
    https://github.com/python-websockets/websockets/pull/106"""
    cause = "healthy"
    carriers = ["py_bytes", "py_text", "cpp_string", "cpp_vector"]
    structures = ["asyncio", "threads", "loop"]
    requests = 400
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    queue = store()

    def consume():
        pop(queue)

    def queue_put(i):
        keep(queue, make(B // 600 + length(i) * (B // 700000)))

    def receive(i):
        if len(queue) > 31:
            consume()
        queue_put(i)
        if i % 4 == 3:
            consume()

    def handle(i):
        receive(i)


class DeviceCacheReused:
    """Tensors are freed after each request, and their memory stays reserved for the next ones.
    https://github.com/pytorch/pytorch/pull/4879"""
    cause = "healthy"
    carriers = DEVICE
    structures = ["loop", "asyncio"]
    factors = [1, 2]
    requests = 300
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    outputs = store()

    def release():
        clear(outputs)

    def forward(i):
        keep(outputs, make(B // 40 * (1 + i % 4)))
        keep(outputs, make(B // 30))
        keep(outputs, make(B // 90))

    def handle(i):
        forward(i)
        release()


class ShapesSeenAll:
    """Scratch memory is kept by shape; new shapes get rarer, and in the end all were seen.
    https://github.com/openvinotoolkit/openvino/issues/23316"""
    cause = "healthy"
    carriers = ["cpp_vector", "cpp_string", "c_malloc", "numpy"]
    structures = ["loop", "threads"]
    factors = [1, 2]
    requests = 400
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    shapes = store()

    def shape_cache(side):
        put(shapes, side, make(side * side * (B // 100000)))

    def infer(i):
        x = make(B // 150)
        shape_cache(length(i) // 30)
        drop(x)

    def handle(i):
        infer(i)


class HalfDeletedAndRefilled:
    """Half of the keys are deleted and set again, day after day; what was freed is used again.
    https://github.com/redis/redis/issues/2860"""
    cause = "healthy"
    carriers = ["c_malloc", "cpp_string", "cpp_vector", "py_bytes"]
    structures = ["loop", "nested"]
    factors = [1, 2]
    requests = 400
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    values = store()

    def first_values_setup():
        for k in range(1000):
            put(values, k, make(B // 4000 + k % 10 * 1000))

    def delete_half(first):
        for k in range(10):
            put(values, (first + k) * 2, hold())

    def set_values(first):
        for k in range(10):
            put(values, (first + k) * 2, make(B // 4000 + k * 1000))

    def handle(i):
        if i % 100 < 50:
            delete_half(i % 50 * 10)
        else:
            set_values(i % 50 * 10)


class CompiledCacheWithBound:
    """Each run compiles anew into a cache of 120 entries, which drops the oldest when it is full.
    https://github.com/pyro-ppl/brmp/issues/67"""
    cause = "healthy"
    carriers = ["c_mmap", "cpp_vector", "cpp_string", "py_large", "py_bytes"]
    structures = ["loop", "threads"]
    factors = [1, 2]
    requests = 400
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    compiled = store()

    def compile_cache(i):
        keep(compiled, make(B // 700 + length(i) * 200))
        if len(compiled) > 120:
            pop(compiled)

    def run_inference(i):
        compile_cache(i)
        x = make(B // 300)
        drop(x)

    def handle(i):
        run_inference(i)


class HeapFindsItsShape:
    """Images of all sizes are composed and written, the last four results wait for their readers;
    the heap grows for a while, as far as it must. https://github.com/lovell/sharp/issues/1861"""
    cause = "healthy"
    carriers = ["c_malloc", "cpp_vector", "cpp_string"]
    structures = ["loop"]
    factors = [1, 2]
    requests = 400
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    results = store()

    def write_image(i):
        keep(results, make(B // 300 + length(i) * (B // 200000)))
        if len(results) > 4:
            pop(results)

    def compose_image(i):
        x = make(B // 200 + length(i + 7) * (B // 100000))
        y = make(B // 500 + length(i + 3) * (B // 300000))
        write_image(i)
        drop(x)
        z = make(B // 400 + length(i + 5) * (B // 200000))
        drop(y)
        drop(z)

    def handle(i):
        compose_image(i)


class PoolByDesign:
    """Weights, and a pool that takes most of the rest; requests come and go inside it.
    https://github.com/vllm-project/vllm/issues/550"""
    cause = "healthy"
    carriers = DEVICE
    structures = ["loop", "asyncio"]
    factors = [2]
    requests = 300
    backgrounds = ["none"]
    weights = store()
    kv_blocks = store()

    def load_weights_setup():
        for layer in range(20):
            keep(weights, make(B // 40))

    def init_kv_cache_setup():
        for layer in range(32):
            keep(kv_blocks, make(B // 32))

    def handle(i):
        x = make(B // 90)
        y = make(length(i) * 4000)
        wait(1)
        drop(y)
        drop(x)


class PromptCacheInBudget:
    """Each switch of the conversation saves its state; the oldest go when the budget is reached.
    https://github.com/ollama/ollama/issues/18264"""
    cause = "healthy"
    carriers = ["c_malloc", "c_mmap", "numpy", "py_bytes", "cpp_vector"]
    structures = ["loop", "asyncio"]
    factors = [1, 2]
    requests = 300
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    saved = store()

    def save_prompt_state(i):
        keep(saved, make(B // 400 + length(i) * (B // 110000)))
        while total(saved) > B // 4:
            pop(saved)

    def serve_prompt(i):
        x = make(B // 120)
        if i % 2 == 1:
            save_prompt_state(i)
        drop(x)

    def handle(i):
        serve_prompt(i)


class WindowsOfLongInput:
    """However long a recording is, it is worked in windows of one size, one after the other.
    https://github.com/SYSTRAN/faster-whisper/issues/44"""
    cause = "healthy"
    carriers = ["numpy", "cpp_vector"] + DEVICE
    structures = ["loop"]
    requests = 200
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]

    def next_window(k):
        return make(B // 150)

    def transcribe(windows):
        for k in range(windows):
            x = next_window(k)
            y = make(B // 200)
            drop(y)
            drop(x)

    def handle(i):
        transcribe(2 + length(i) // 60)


class SpikeNowAndThen:
    """A spike of the same height every 50 requests; between them little is needed.
    https://github.com/golang/go/issues/16930"""
    cause = "healthy"
    carriers = ["cpp_vector", "cpp_string", "c_malloc", "c_mmap", "py_bytes"]
    structures = ["loop", "threads"]
    factors = [1, 2]
    requests = 300
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    spike = store()

    def handle_spike():
        for k in range(40):
            keep(spike, make(B // 200 + k * 2000))
        wait(1)
        clear(spike)

    def serve_small(i):
        x = make(B // 900 + length(i) * 100)
        drop(x)

    def handle(i):
        if i % 50 == 30:
            handle_spike()
        serve_small(i)


class StringStoresRotate:
    """New strings go to the current of two stores; the older one is dropped when its documents
    are gone. https://github.com/explosion/spaCy/pull/1424"""
    cause = "healthy"
    carriers = ["py_text", "py_bytes", "cpp_string", "cpp_vector", "py_small"]
    structures = ["loop", "threads", "forked"]
    factors = [1, 2]
    requests = 400
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    first_strings = store()
    second_strings = store()

    def intern(i):
        if i // 60 % 2 == 0:
            if i % 60 < 2:
                clear(first_strings)
            keep(first_strings, make(B // 40000 + length(i) * 2))
        else:
            if i % 60 < 2:
                clear(second_strings)
            keep(second_strings, make(B // 40000 + length(i) * 2))

    def tokenize(i):
        for k in range(12):
            intern(i)

    def handle(i):
        tokenize(i)


class TrimmedWindow:
    """Each turn appends two messages and cuts the list to the last twenty.
    https://github.com/langchain-ai/langchain/pull/2290"""
    cause = "healthy"
    carriers = ["py_bytes", "py_text", "numpy", "cpp_string"]
    structures = ["asyncio", "loop", "nested"]
    requests = 500
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    turns = store()

    def trim_messages():
        while len(turns) > 20:
            pop(turns)

    def chat_turn(i):
        keep(turns, make(4000 + length(2 * i) * 16))
        keep(turns, make(4000 + length(2 * i + 1) * 16))
        trim_messages()
        x = make(total(turns))
        drop(x)

    def handle(i):
        chat_turn(i)
