"""The second half of opened.py, whose first lines say more."""


class ImageJobsInParallel:
    """Each image job has a working set of several large maps; one fits and three do not.
    https://github.com/vipshop/cache-dit/pull/535"""
    cause = "concurrency"
    blame = ["run_pipeline", "feature_map", "generate_image"]
    carriers = DEVICE
    structures = ["asyncio", "threads"]
    crowd = 12
    weights = store()

    def weights_setup():
        for k in range(16):
            keep(weights, make(B // 200))

    def feature_map(n):
        return make(n)

    def run_pipeline(n, ms):
        latent = feature_map(n // 10)
        x = feature_map(n)
        y = feature_map(n)
        wait(ms)
        z = feature_map(n // 2)
        drop(z)
        drop(y)
        drop(x)
        drop(latent)

    def generate_image(i):
        if i < 60:
            run_pipeline(B // 1200, 1)
        else:
            run_pipeline(B // 11, 3000)

    def handle(i):
        generate_image(i)


class RunningMeanChain:
    """A running mean keeps a link to its old value and to the input: a chain of all steps.
    https://github.com/pytorch/pytorch/issues/20275"""
    cause = "leak"
    blame = ["update_running_mean", "forward_batch"]
    carriers = ["torch", "cpp_vector", "numpy", "py_small"]
    structures = ALONE
    links = store()

    def update_running_mean(x):
        keep(links, x)
        keep(links, make(200))

    def forward_batch(i):
        x = make(B // 900)
        y = make(B // 80)
        update_running_mean(x)
        drop(y)

    def handle(i):
        forward_batch(i)


class LockConvoy:
    """One handler never gives back its lock; each later request is one more thread that waits.
    https://github.com/centrifugal/centrifugo/issues/207"""
    cause = "leak"
    also = ["concurrency"]
    blame = ["lock_conn", "client_writer"]
    carriers = STACKS
    structures = ["loop"]
    waiting = store()

    def lock_conn(stack):
        return make(stack)

    def client_writer(i):
        x = lock_conn(B // 150)
        if i < 12:
            drop(x)
        else:
            keep(waiting, x)

    def handle(i):
        client_writer(i)
        wait(1)


class JsonTreeOfOneReply:
    """One reply of a tool is parsed whole, into a tree ten times as large as its text.
    https://github.com/ICRAR/ijson/issues/57"""
    cause = "oversized-intermediate"
    blame = ["load_tree", "parse_value", "parse_reply"]
    carriers = ["cpp_string", "cpp_vector", "py_small"]
    structures = ["loop", "asyncio"]
    factors = [0.5, 1]
    tree = store()

    def read_text(n):
        return make(n)

    def parse_value(k):
        return make(B // 60000 + k % 7 * 28)

    def load_tree(values):
        for k in range(values):
            keep(tree, parse_value(k))

    def parse_reply(n):
        x = read_text(n)
        load_tree(n * 10 // (B // 60000))
        clear(tree)
        drop(x)

    def handle(i):
        n = length(i) * (B // 2000000)
        if i % 37 == 36:
            n = B // 5
        parse_reply(n)


class PoolReadsAhead:
    """A feeder puts all inputs of a job in the queue while its few workers take them.
    https://github.com/python/cpython/issues/101586"""
    cause = "concurrency"
    also = ["oversized-intermediate"]
    blame = ["produce_image", "task_queue_put"]
    carriers = ["py_bytes", "numpy", "cpp_vector", "cpp_string"]
    structures = ["threads", "forked"]
    tasks = store()

    def produce_image(k):
        return make(B // 400 + length(k) * (B // 90000))

    def task_queue_put(x):
        keep(tasks, x)

    def work_off():
        x = make(B // 150)
        pop(tasks)
        drop(x)

    def map_job(inputs):
        for k in range(inputs):
            task_queue_put(produce_image(k))
            if k % 25 == 24:
                work_off()
        while len(tasks) > 4:
            work_off()

    def handle(i):
        inputs = 2
        if i % 48 == 46:
            inputs = 100000
        map_job(inputs)


class ReceiveBufferPlusEquals:
    """A buffer is replaced by itself and a chunk, until the record ends.
    https://github.com/traceopt-ai/traceml/pull/42"""
    cause = "prompt-growth"
    also = ["oversized-intermediate"]  # one record of fifty
    blame = ["extend_buffer", "recv_chunk"]
    carriers = ["py_bytes", "py_text", "c_malloc", "cpp_vector", "cpp_string"]
    structures = ALONE

    def extend_buffer(x, n):
        return make(size(x) + n)

    def recv_chunk(count):
        x = make(B // 40)
        for k in range(1, count):
            y = extend_buffer(x, B // 40)
            drop(x)
            x = y
        return x

    def handle(i):
        count = 1 + length(i) // 250
        if i % 50 == 49:
            count = 1000
        x = recv_chunk(count)
        drop(x)


class DistanceTablesForAll:
    """A table of distances for every query of the batch, in one block.
    https://github.com/facebookresearch/faiss/issues/180"""
    cause = "oversized-intermediate"
    also = ["prompt-growth"]  # it is in proportion to what came in
    blame = ["distance_tables", "search_batch"]
    carriers = ["c_malloc", "cpp_vector", "numpy"]
    structures = ALONE
    codes = store()

    def index_setup():
        for k in range(8):
            keep(codes, make(B // 80))

    def distance_tables(queries):
        return make(queries * (B // 100000))

    def search_batch(queries):
        x = make(queries * (B // 8000000))
        y = distance_tables(queries)
        drop(x)
        drop(y)

    def handle(i):
        queries = 10 + length(i)
        if i % 88 == 87:
            queries = 600000
        search_batch(queries)


class WiderCopyOfLogits:
    """When the sampler is warmed up, the scores of all requests get a copy twice as wide.
    https://github.com/vllm-project/vllm/pull/48641"""
    cause = "oversized-intermediate"
    also = ["batch-prealloc"]
    unnamed = ["oversized-model"]
    blame = ["upcast", "sample_tokens"]
    carriers = ["numpy"] + DEVICE
    structures = ["loop"]
    factors = [1]
    weights = store()

    def weights_setup():
        for k in range(20):
            keep(weights, make(B // 100))

    def logits_of(requests):
        return make(requests * (B // 600))

    def upcast(x):
        return make(size(x) * 2)

    def sample_tokens(requests):
        x = logits_of(requests)
        y = upcast(x)
        drop(x)
        drop(y)

    def warm_up_setup():
        sample_tokens(256)

    def handle(i):
        sample_tokens(1 + i % 8)


class CaptureSmallToLarge:
    """Fifty batch sizes are captured in rising order; no free block is ever as large as the next.
    https://github.com/lightseekorg/tokenspeed/pull/1065"""
    cause = "fragmentation"
    blame = ["graph_alloc", "capture_batch", "capture_all"]
    carriers = ["torch"]
    structures = ["loop"]
    graph_blocks = store()

    def graph_alloc(n):
        return make(n)

    def capture_batch(batch):
        x = graph_alloc(batch * (B // 384) + B // 1600)
        keep(graph_blocks, make(B // 600))
        drop(x)

    def capture_all():
        for k in range(1, 51):
            capture_batch(k)

    def graphs_setup():
        capture_all()

    def handle(i):
        x = make(B // 900)
        drop(x)


class StacksOverSmallLimit:
    """The pool has forty-two threads by design, and the address space has room for a dozen.
    https://github.com/google/syzkaller/issues/488"""
    cause = "external"
    also = ["concurrency"]
    unnamed = ["batch-prealloc"]
    carriers = STACKS
    structures = ["loop"]
    factors = [0.5, 1]
    workers = store()

    def run_syscall(k):
        keep(workers, make(B // 16))

    def start_pool(threads):
        for k in range(threads):
            run_syscall(k)

    def executor_setup():
        start_pool(42)

    def handle(i):
        wait(1)


class CollectorSawtooth:
    """Each request leaves garbage behind, which a collection takes every eighty requests.
    https://github.com/skycoin/skycoin/issues/2945"""
    cause = "healthy"
    carriers = ["cpp_vector", "cpp_string", "py_large", "py_large", "py_small"]
    structures = ["loop", "threads"]
    factors = [1, 2]
    requests = 400
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    resident = store()
    garbage = store()

    def history_setup():
        for k in range(20):
            keep(resident, make(B // 400))

    def build_json(i):
        x = make(B // 800)
        keep(garbage, make(B // 700 + i % 3 * (B // 4000)))
        keep(garbage, make(B // 2000))
        drop(x)

    def list_history(i):
        build_json(i)
        if i % 80 == 79:
            clear(garbage)

    def handle(i):
        list_history(i)


class CompileCacheByShape:
    """Every new pair of shapes adds code and what belongs to it; the inputs get smaller.
    https://github.com/jax-ml/jax/issues/2072"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["compile_for_shape", "run_kernel"]
    carriers = ["c_mmap", "c_malloc", "cpp_vector", "cpp_string", "py_large"]
    structures = ["loop", "asyncio"]
    code = store()
    metadata = store()

    def compile_for_shape(i):
        keep(code, make(B // 4000 + length(i) * (B // 1000000)))
        keep(metadata, make(B // 8000))

    def run_kernel(i):
        compile_for_shape(i)
        x = make(B // (20 + i // 4))
        drop(x)

    def handle(i):
        run_kernel(i)


class WideDtypeDefault:
    """As many parameters with four bytes each as would fit with two.
    https://github.com/vllm-project/vllm/issues/6829"""
    cause = "oversized-model"
    blame = ["alloc_param", "from_pretrained"]
    carriers = ["numpy"] + DEVICE
    structures = ALONE
    factors = [0.5, 1]
    parameters = store()

    def alloc_param(elements, width):
        return make(elements * width)

    def from_pretrained(width):
        for k in range(180):
            keep(parameters, alloc_param(B // 2000 + k % 9 * (B // 2500), width))

    def model_setup():
        from_pretrained(4)

    def handle(i):
        x = make(B // 300)
        drop(x)


class PipelineHoldsEverything:
    """A run converts, splits and embeds all files before it writes the first.
    https://github.com/deepset-ai/haystack/issues/2790"""
    cause = "oversized-intermediate"
    blame = ["split_text", "embed_text", "pass_documents", "embed_documents"]
    carriers = ["numpy", "py_large", "py_small"]
    structures = ALONE
    documents = store()
    vectors = store()

    def split_text(k):
        return make(B // 30000 * (1 + k % 4))

    def embed_text(k):
        return make(B // 20000)

    def pass_documents(count):
        for k in range(count):
            keep(documents, split_text(k))

    def embed_documents(count):
        pass_documents(count)
        for k in range(count):
            keep(vectors, embed_text(k))

    def handle(i):
        count = 20 + length(i) // 20
        if i % 42 == 41:
            count = 22000
        embed_documents(count)
        clear(vectors)
        clear(documents)


class AgentMessagesAppendOnly:
    """An agent has one list of messages; each call joins all of it into one text.
    https://github.com/barun-saha/kodeagent/issues/97"""
    cause = "prompt-growth"
    blame = ["append_message", "join_prompt", "run_task"]
    carriers = ["py_bytes", "py_text"]
    structures = ALONE
    messages = store()

    def append_message(k):
        keep(messages, make(B // 1500 + length(k) * (B // 300000)))

    def join_prompt():
        return make(total(messages))

    def run_task(i):
        for k in range(4 + i % 7):
            append_message(i * 10 + k)
        x = join_prompt()
        drop(x)

    def handle(i):
        run_task(i)


class StringStoreNewWords:
    """Every document brings words never seen, many at first, and each is kept with its record.
    https://github.com/explosion/spaCy/issues/5083"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["intern_string", "add_lexeme", "tokenize_text"]
    carriers = ["c_malloc", "c_malloc", "cpp_string", "cpp_string", "py_small"]
    structures = ["loop", "threads", "forked"]
    strings = store()
    lexemes = store()

    def intern_string(k):
        keep(strings, make(B // 180000 + k % 61 * 8))

    def add_lexeme():
        keep(lexemes, make(B // 80000))

    def tokenize_text(i):
        for k in range(25 + 600 // (i + 6)):
            intern_string(i + k)
            add_lexeme()

    def handle(i):
        x = make(length(i) * (B // 300000))
        tokenize_text(i)
        drop(x)


class ValuesOfOtherSizes:
    """Keys expire in any order, and the values that replace them are larger than their holes.
    https://github.com/redis/redis/issues/354"""
    cause = "fragmentation"
    blame = ["set_value", "fill", "delete_old_keys"]  # set_value only passes the size on
    carriers = ["c_malloc", "cpp_string", "py_bytes"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none", "BoundedPool", "Sawtooth"]
    values = store()

    def set_value(k, n):
        put(values, k, make(n))

    def delete_old_keys(first):
        for k in range(first, first + 400):
            if length(k) < 730:
                put(values, k, hold())

    def fill(first):
        for k in range(first, first + 400):
            set_value(k, B // 220000 + length(k) * (B // 650000000 + 1) // 4)

    def handle(i):
        if i < 350:
            fill(i * 400)
        elif i < 1400:
            if i < 700:
                delete_old_keys((i - 350) * 400)
            for k in range(6):
                set_value(140000 + (i - 350) * 6 + k, 8000 + length(k) * 2)


class DeferredCallbacks:
    """Closed sessions live on in a heap of timers, which are due in some days.
    https://github.com/aio-libs/aiohttp/issues/1040"""
    cause = "leak"
    blame = ["open_session", "call_later", "handle_cookies"]
    carriers = ["py_bytes", "py_text", "py_large", "py_small"]
    structures = ["asyncio", "nested"]
    timers = store()

    def open_session(i):
        return make(B // 1600 + length(i) * (B // 1800000))

    def call_later(x):
        keep(timers, x)

    def handle_cookies(i):
        for k in range(1 + i % 5):
            call_later(make(400))

    def handle(i):
        x = open_session(i)
        y = make(B // 400)
        call_later(x)
        handle_cookies(i)
        drop(y)


class ActivationsBeyondLimit:
    """An adapter's activations follow the prompt, and no profile has seen so long a one.
    https://github.com/vllm-project/vllm/issues/15039"""
    cause = "prompt-growth"
    unnamed = ["oversized-intermediate"]
    blame = ["alloc_activation", "apply_adapter"]
    carriers = DEVICE
    structures = ["loop", "asyncio", "threads"]
    weights = store()

    def weights_setup():
        for k in range(20):
            keep(weights, make(B // 150))

    def alloc_activation(tokens):
        return make(tokens * (B // 60000))

    def apply_adapter(tokens):
        x = alloc_activation(tokens)
        y = alloc_activation(tokens)
        drop(x)
        drop(y)

    def handle(i):
        tokens = length(i)
        if i % 20 > 17:
            tokens = tokens * (3 + i // 10)
        apply_adapter(tokens)


class PrefillScratchPerToken:
    """Six buffers of a prefill are proportional to its prompt, and freed with it.
    https://github.com/pegainfer-project/pegainfer/issues/358"""
    cause = "prompt-growth"
    unnamed = ["oversized-intermediate"]
    blame = ["alloc_scratch", "prefill"]
    carriers = ["cuda", "torch", "c_malloc", "numpy"]
    structures = ["loop", "asyncio"]
    kv_blocks = store()
    scratch = store()

    def kv_setup():
        for k in range(16):
            keep(kv_blocks, make(B // 160))

    def alloc_scratch(tokens):
        for k in range(6):
            keep(scratch, make(tokens * (B // 250000)))

    def prefill(tokens):
        alloc_scratch(tokens)
        clear(scratch)

    def handle(i):
        tokens = length(i)
        if i % 25 > 22:
            tokens = tokens * (4 + i // 8)
        prefill(tokens)


class StartNeedsMore:
    """The first listing needs nearly twice what the program keeps of it, and more than it may have.
    https://github.com/cloudflare/origin-ca-issuer/issues/23"""
    cause = "external"
    also = ["oversized-model"]
    unnamed = ["oversized-intermediate", "leak"]  # objects by the thousand
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_large", "py_small"]
    structures = ["loop"]
    factors = [0.5]
    backgrounds = ["none"]
    listing = store()
    objects = store()

    def list_page(k):
        keep(listing, make(B // 500))

    def fill_informer_cache():
        for k in range(200):
            list_page(k)
            keep(objects, make(B // 650 + k % 5 * (B // 8000)))
        clear(listing)

    def controller_setup():
        fill_informer_cache()

    def handle(i):
        x = make(B // 300)
        drop(x)


class LargeArrayComesAndGoes:
    """A large matrix is made and freed each round, for ever the same.
    https://github.com/numpy/numpy/issues/18318"""
    cause = "healthy"
    carriers = ["numpy", "c_malloc", "c_mmap"]
    structures = ["loop"]
    factors = [1, 2]
    requests = 150
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    results = store()

    def make_matrix():
        return make(B * 3 // 10)

    def slice_row(i):
        keep(results, make(8192))
        if len(results) > 50:
            pop(results)

    def handle(i):
        x = make_matrix()
        slice_row(i)
        drop(x)


class SeriesTableWithCap:
    """Series by label, at most six hundred; the one used least recently is deleted.
    https://github.com/wippyai/runtime/pull/426"""
    cause = "healthy"
    carriers = ["cpp_string", "cpp_string", "cpp_vector", "cpp_vector", "py_small"]
    structures = ["threads", "asyncio", "loop"]
    factors = [1, 2]
    requests = 400
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    series = store()

    def track_series(k):
        keep(series, make(B // 4000 + k % 4 * (B // 16000)))
        while len(series) > 600:
            pop(series)

    def observe(i):
        for k in range(8):
            track_series(length(i * 8 + k))

    def handle(i):
        x = make(B // 900)
        observe(i)
        drop(x)


class ChatHistoryOfManyThreads:
    """Two messages for each turn of each conversation; conversations end and their keys stay.
    https://github.com/langchain-ai/langchain/pull/23504"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["append_history", "answer_turn"]
    carriers = ["py_bytes", "py_text", "py_large", "py_small"]
    structures = ["asyncio", "nested", "threads"]
    histories = store()

    def append_history(k):
        keep(histories, make(B // 6000 + length(k) * (B // 700000)))

    def answer_turn(i):
        append_history(i)
        x = make(B // 250 + length(i) * 64)
        append_history(i + 5000)
        drop(x)

    def handle(i):
        answer_turn(i)
