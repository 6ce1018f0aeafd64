"""More shapes of public reports that no other file here follows: limits that are too low, holes,
requests that overlap, and memory taken before it is needed. reported_4.py has the rest."""


class RouterPeakAboveLimit:
    """A router of models tries one deployment after the other; each attempt's reply stays until the
    request is logged, and the limit stands below the peak of three days.
    https://github.com/Tanguille/cluster/pull/3652"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text"]
    structures = ["loop", "asyncio"]
    limiters = ["as", "data", "cgroup"]
    factors = [1]
    backgrounds = ["none"]
    deployments = store()
    replies = store()
    spend_logs = store()

    def deployments_setup():
        for k in range(75):
            keep(deployments, make(B // 100 + k % 4 * (B // 1400)))

    def read_body(i):
        return make(B // 300 + length(i) * 40)

    def try_deployment(k):
        keep(replies, make(B // 95 + length(k) * (B // 500000)))

    def log_spend(i):
        keep(spend_logs, make(B // 1800))
        if len(spend_logs) > 24:
            clear(spend_logs)

    def handle(i):
        x = read_body(i)
        first = (i + 10251) * 50
        n = 1
        while length(first + n) < 670:
            n = n + 1
        for k in range(n):
            try_deployment(first + k)
        log_spend(i)
        clear(replies)
        drop(x)


class EmbedderLoadedPerIngest:
    """Each ingest loads the embedder anew and mines the drawers of its session with it; what a full
    session takes is about the limit. https://github.com/gavinmcfall/home-ops/pull/2321"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "py_bytes", "numpy"]
    structures = ["loop", "nested"]
    limiters = ["as", "data"]  # a group gives room for all sessions now and then
    factors = [1]
    backgrounds = ["none"]
    palace = store()
    embedder = store()
    drawers = store()

    def palace_setup():
        for k in range(54):
            keep(palace, make(B // 72 + k % 5 * (B // 2500)))

    def load_embedder():
        for k in range(4):
            keep(embedder, make(B // 160))

    def mine_drawer(k):
        keep(drawers, make(B // 110 + length(k) * (B // 500000)))

    def handle(i):
        load_embedder()
        first = (i + 21252) * 60
        n = 1
        while length(first + n) < 700:
            n = n + 1
        for k in range(n + 4):
            mine_drawer(first + k)
        clear(drawers)
        clear(embedder)


class SlotsOfTheLoader:
    """Loader processes leave a batch in each of their slots in shared memory, as long as its
    longest sample; all slots are always full, and the mount has the usual size.
    https://github.com/pytorch/pytorch/issues/5040"""
    cause = "external"
    carriers = SHARED
    structures = ["loop"]
    factors = [0.5]
    limiters = ["shm"]
    slots = store()

    def collate_batch(samples):
        return make(B // 25 + samples * (B // 340))

    def handle(i):
        first = (i + 10853) * 60
        n = 1
        while length(first + n) < 670:
            n = n + 1
        put(slots, i % 8, collate_batch(n))


class PagesUntilTheyExpire:
    """Rendered pages stay in the cache until they expire; a busy quarter of an hour has about as
    many as the container may hold. https://github.com/lsst-sqre/phalanx/pull/3688"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text"]
    structures = ["loop", "asyncio"]
    limiters = ["as", "data", "cgroup"]
    factors = [1]
    backgrounds = ["none"]
    keyspace = store()
    pages = store()

    def keyspace_setup():
        for k in range(80):
            keep(keyspace, make(B // 150 + k % 3 * (B // 3000)))

    def pages_of(i):
        first = (i + 11404) * 60
        n = 1
        while length(first + n) < 670:
            n = n + 1
        return n

    def store_page(k):
        keep(pages, make(B // 300 + k % 5 * (B // 4000)))

    def expire_pages(i):
        for k in range(pages_of(i)):
            pop(pages)

    def handle(i):
        if i > 29:
            expire_pages(i - 30)
        for k in range(pages_of(i)):
            store_page(i + k)
        x = make(B // 2000)
        drop(x)


class SliceBelowTheBlueprint:
    """Two models share a slice of a device that is a tenth smaller than what they need once many
    passages come together. https://github.com/NVIDIA-AI-Blueprints/rag/issues/51"""
    cause = "external"
    carriers = ["cuda"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none"]
    embedder = store()
    reranker = store()
    passages = store()

    def load_models_setup():
        for k in range(22):
            keep(embedder, make(B // 64 - 4096))
        for k in range(20):
            keep(reranker, make(B // 64 - 4096))

    def embed_passage():
        keep(passages, make(B // 64 - 4096))

    def handle(i):
        first = (i + 10325) * 80
        n = 1
        while length(first + n) < 400:
            n = n + 1
        m = 1
        while length(first + 40 + m) < 400:
            m = m + 1
        for k in range(n + m + 5):
            embed_passage()
        clear(passages)


class LogLinesAmongFreedTexts:
    """The texts of a huge prompt are many blocks of the heap; when they are gone, a log line here
    and there keeps the heap as large as it was, and a body that fitted before does not any more.
    https://github.com/su-kaka/gcli2api/pull/395"""
    cause = "fragmentation"
    blame = ["read_body", "parse_text", "write_log_line"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes"]
    structures = ["loop", "nested"]
    factors = [1]
    backgrounds = ["none", "WarmCache", "BoundedPool"]
    texts = store()
    log_lines = store()

    def parse_text(k):
        keep(texts, make(20000 + length(k) * 40))

    def write_log_line():
        keep(log_lines, make(24000))

    def parse_prompt(count):
        for k in range(count):
            parse_text(k)
            if k % 40 == 39:
                write_log_line()
        clear(texts)

    def read_body(n):
        x = make(n)
        drop(x)

    def handle(i):
        if i == 45:
            parse_prompt(B * 6 // 10 // 42000)
        read_body(2000 + length(i) * 12)
        if i % 10 == 9:
            read_body(B * 62 // 100)


class RecordingsAmongStreams:
    """Each stream copies its audio into a buffer of twice the size until it ends; one of six is
    kept for a while, and lies among what the others left free.
    https://github.com/BasedHardware/omi/issues/6938"""
    cause = "fragmentation"
    blame = ["flush_archive", "archive_part", "extend_buffer", "keep_recording"]
    carriers = ["c_malloc", "cpp_vector", "py_bytes", "numpy"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none", "WarmCache", "BoundedPool"]
    buffers = store()
    recordings = store()
    parts = store()

    def extend_buffer(stream, n):
        put(buffers, stream, make(n))

    def keep_recording(n):
        keep(recordings, make(n))

    def receive_stream(stream):
        n = 15000
        while n < 60001:
            extend_buffer(stream, n)
            n = n * 2
        if stream % 6 == 5:
            keep_recording(60000)

    def archive_part():
        keep(parts, make(B // 40))

    def flush_archive():
        for k in range(25):
            archive_part()
        clear(parts)

    def handle(i):
        x = make(3000 + length(i))
        drop(x)
        if i == 50:
            for stream in range(B * 6 // 10 // 70000):
                receive_stream(stream)
            clear(buffers)
        if i % 12 == 11:
            flush_archive()


class ArenaOfEachCalculation:
    """A calculation runs now on this thread and now on that one; what it frees stays in the arena
    of its thread, below a few results. https://github.com/PSU3D0/formualizer/pull/66"""
    cause = "fragmentation"
    blame = ["evaluate_sheet", "recalculate_file", "keep_result"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string"]
    structures = ["threads"]
    limiters = ["data", "cgroup", "rss"]
    factors = [1]
    crowd = 10
    backgrounds = ["none", "WarmCache"]
    results = store()

    def keep_result():
        keep(results, make(1200))

    def evaluate_sheet(left):
        x = make(30000 + length(left) * 60)
        if left % 90 == 1:
            keep_result()
        if left > 1:
            evaluate_sheet(left - 1)
        drop(x)

    def recalculate_file():
        evaluate_sheet(B * 2 // 10 // 63000)

    def handle(i):
        wait(15)
        y = make(4000)
        if i % 30 == 29:
            recalculate_file()
        drop(y)


class FeaturesPinSegments:
    """The pictures of a busy minute are decoded side by side, and the features of each are cached
    between them: every segment keeps one, and the encoder's batch finds no place.
    https://github.com/sgl-project/sglang/issues/9365"""
    cause = "fragmentation"
    blame = ["encode_batch", "preprocess_image", "cache_features"]
    carriers = ["torch"]
    structures = ALONE
    factors = [1]
    backgrounds = ["none", "WarmCache"]
    pixels = store()
    features = store()

    def preprocess_image():
        keep(pixels, make(B // 160))

    def cache_features():
        keep(features, make(B // 180))

    def serve_images(count):
        for k in range(count):
            preprocess_image()
            preprocess_image()
            preprocess_image()
            cache_features()
        clear(pixels)

    def encode_batch():
        x = make(B * 45 // 100)
        drop(x)

    def handle(i):
        if i == 20:
            serve_images(26)
        x = make(B // 3000)
        if i % 8 == 7:
            encode_batch()
        drop(x)


class LatentsCutFromTheDenoiser:
    """The block of the denoiser is free and cached; where a picture is enlarged, its latents are
    cut from that block and live on, so that the decoder, as large, needs another one.
    https://github.com/vllm-project/vllm-omni/issues/3236"""
    cause = "fragmentation"
    blame = ["decode_latents", "upsample_latents", "denoise"]
    carriers = ["torch"]
    structures = ALONE
    factors = [1]
    backgrounds = ["none", "WarmCache"]
    weights = store()
    latents = store()

    def weights_setup():
        for k in range(10):
            keep(weights, make(B // 64 - 4096))

    def denoise(n):
        x = make(n)
        drop(x)

    def upsample_latents():
        keep(latents, make(B // 50))

    def decode_latents(n):
        x = make(n)
        drop(x)

    def preview(i):
        x = make(B // 3000 + length(i) * 64)
        drop(x)

    def handle(i):
        preview(i)
        if i % 5 == 4:
            denoise(B * 45 // 100)
            if i > 25:
                upsample_latents()
            decode_latents(B * 45 // 100)
            clear(latents)


class ChunksWaitForTheDisk:
    """Chunks of a cache wait in host memory until they are written; a quarter waits longer, and no
    place between them is large enough for a block of a whole context.
    https://github.com/LMCache/LMCache/issues/1285"""
    cause = "fragmentation"
    blame = ["restore_context", "allocate_block", "store_chunk", "queue_write"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "numpy"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none", "BoundedPool"]
    chunks = store()
    writes = store()
    context = store()

    def store_chunk():
        keep(chunks, make(33000))

    def queue_write():
        keep(writes, make(33000))

    def offload_caches(count):
        for k in range(count):
            store_chunk()
            store_chunk()
            store_chunk()
            queue_write()
        clear(chunks)

    def allocate_block(k):
        keep(context, make(106000 + k % 7 * 3000))

    def restore_context(blocks):
        for k in range(blocks):
            allocate_block(k)
        clear(context)

    def handle(i):
        x = make(B // 4000)
        if i == 40:
            offload_caches(B * 68 // 100 // 132000)
        if i % 9 == 8:
            restore_context(B * 6 // 10 // 115000)
        drop(x)


class BatchesGatheredForVertex:
    """All batches of a document are embedded at once, each with its request and its vectors, and
    several documents are at it. https://github.com/onyx-dot-app/onyx/pull/6980"""
    cause = "concurrency"
    blame = ["build_request", "parse_vectors", "embed_batch"]
    carriers = ["py_bytes", "py_text", "py_large", "numpy"]
    structures = ["asyncio"]
    crowd = 320

    def build_request(i):
        return make(B // 260 + length(i) * (B // 400000))

    def parse_vectors(i):
        return make(B // 180)

    def embed_batch(i, ms):
        x = build_request(i)
        wait(ms)
        y = parse_vectors(i)
        wait(ms)
        drop(y)
        drop(x)

    def handle(i):
        if i < 60:
            embed_batch(i, 0)
        else:
            embed_batch(i, 900)


class StreamsHoldTheirCache:
    """Each stream has its cache on the device until the last token is read, and the router lets
    everybody in. https://github.com/EricLBuehler/mistral.rs/pull/1978"""
    cause = "concurrency"
    blame = ["new_cache", "sample_logits", "stream_tokens"]
    carriers = DEVICE
    structures = ["threads", "asyncio"]
    crowd = 24
    weights = store()

    def weights_setup():
        for k in range(12):
            keep(weights, make(B // 64 - 4096))

    def new_cache():
        return make(B // 64 * 6 - 4096)

    def sample_logits():
        return make(B // 400)

    def stream_tokens(ms):
        x = new_cache()
        y = sample_logits()
        wait(ms)
        drop(y)
        drop(x)

    def complete_word(i):
        x = make(B // 3000)
        wait(1)
        drop(x)

    def handle(i):
        if i < 120:
            if i % 40 == 20:
                stream_tokens(1)
            complete_word(i)
        else:
            stream_tokens(3500)


class AttachmentsDecodedTogether:
    """A large picture is decoded, turned and encoded again; each request does that for itself, and
    a message with a dozen of them makes a dozen requests.
    https://github.com/omnigent-ai/omnigent/pull/7097"""
    cause = "concurrency"
    blame = ["decode_image", "transpose_image", "encode_jpeg", "compress_attachment"]
    carriers = ["numpy", "c_malloc", "cpp_vector", "c_mmap"]
    structures = ["threads"]
    crowd = 14
    factors = [1, 2]
    limiters = ["data", "cgroup", "rss"]

    def decode_image():
        return make(B // 13)

    def transpose_image(x):
        return make(size(x))

    def encode_jpeg():
        return make(B // 70)

    def compress_attachment(ms):
        x = decode_image()
        y = transpose_image(x)
        z = encode_jpeg()
        wait(ms)
        drop(x)
        drop(y)
        drop(z)

    def small_attachment(i):
        x = make(B // 1200 + length(i) * 20)
        wait(1)
        drop(x)

    def handle(i):
        if i < 100:
            if i % 45 == 18:
                compress_attachment(1)
            small_attachment(i)
        else:
            compress_attachment(3000)


class ContextForEachFile:
    """Every file is read by a worker with a context of its own, cache and compute buffer; ten files
    one after the other are no problem, and ten at once are one.
    https://github.com/ggml-org/llama.cpp/issues/8101"""
    cause = "concurrency"
    blame = ["init_cache", "compute_buffer", "process_file"]
    carriers = ["c_mmap", "numpy", "cuda"]
    structures = ["threads"]
    crowd = 16
    factors = [1, 2]
    limiters = ["data", "cgroup", "rss", "gpu"]
    model = store()

    def load_model_setup():
        for k in range(16):
            keep(model, make(B // 100 + k % 3 * (B // 900)))

    def init_cache():
        return make(B // 12)

    def compute_buffer():
        return make(B // 24)

    def process_file(ms):
        x = init_cache()
        y = compute_buffer()
        wait(ms)
        drop(y)
        drop(x)

    def list_file(i):
        x = make(B // 5000 + length(i) * 10)
        wait(1)
        drop(x)

    def handle(i):
        if i < 90:
            if i % 25 == 12:
                process_file(1)
            list_file(i)
        else:
            process_file(3000)


class ThreadForEachClient:
    """A proxy gives each client a thread with the default stack, for as long as the client stays.
    https://github.com/tinyproxy/tinyproxy/issues/76"""
    cause = "concurrency"
    blame = ["create_child", "relay_connection"]
    carriers = ["c_stacks", "py_stacks"]
    structures = ["threads", "asyncio"]
    crowd = 16
    factors = [0.5, 1]

    def create_child(stack):
        return make(stack)

    def relay_connection(stack, ms):
        x = create_child(stack)
        wait(ms)
        drop(x)

    def handle(i):
        if i < 80:
            if i % 20 == 10:
                relay_connection(B // 8, 0)
            relay_connection(B // 1200, 1)
        else:
            relay_connection(B // 8, 4000)


class BuffersForMaxBatch:
    """The buffers of each layer are made for the largest batch and the longest text, whatever is
    asked for. https://github.com/zhihu/cuBERT/issues/52"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model", "oversized-intermediate"]
    blame = ["attention_buffer", "hidden_buffer", "allocate_buffers"]
    carriers = ["numpy", "c_mmap"] + DEVICE
    structures = ["loop", "asyncio"]
    factors = [0.5, 1]
    weights = store()
    buffers = store()

    def load_weights():
        for k in range(24):
            keep(weights, make(B // 130 + k % 3 * (B // 2000)))

    def hidden_buffer(batch, tokens):
        return make(batch * tokens * (B // 4000000))

    def attention_buffer(batch, tokens):
        return make(batch * tokens * tokens // 512 * (B // 1000000))

    def allocate_buffers(layers, max_batch, max_tokens):
        for k in range(layers):
            keep(buffers, hidden_buffer(max_batch, max_tokens))
            keep(buffers, attention_buffer(max_batch, max_tokens))

    def graph_setup():
        load_weights()
        allocate_buffers(12, 128, 512)

    def handle(i):
        x = make(B // 600)
        drop(x)


class StateForEachSeat:
    """Weights and cache fit; then each seat gets its recurrent state and its tables, and there are
    more seats than users ever were. https://github.com/syv-ai/qwen38-27b-rtx3090/pull/29"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model"]
    blame = ["recurrent_state", "block_table", "add_seat", "create_seats"]
    carriers = ["c_mmap", "numpy"] + DEVICE
    structures = ["loop", "nested"]
    factors = [0.5, 1]
    weights = store()
    cache = store()
    seats = store()

    def load_weights():
        for k in range(18):
            keep(weights, make(B // 80))

    def cache_blocks():
        for k in range(8):
            keep(cache, make(B // 64))

    def recurrent_state():
        return make(B // 75)

    def block_table():
        return make(B // 2500)

    def add_seat():
        keep(seats, recurrent_state())
        keep(seats, block_table())

    def create_seats(max_seqs):
        for k in range(max_seqs):
            add_seat()

    def engine_setup():
        load_weights()
        cache_blocks()
        create_seats(64)

    def handle(i):
        x = make(B // 700 + length(i) * 32)
        drop(x)


class FourBuffersPerCallable:
    """Each graphed callable has static buffers of its own for input, output and both gradients; a
    network has a callable for each layer. https://github.com/pytorch/pytorch/issues/83490"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model"]
    blame = ["static_input", "static_output", "make_graphed_callable"]
    carriers = ["numpy", "c_mmap"] + DEVICE
    structures = ALONE
    factors = [0.5, 1]
    parameters = store()
    static_buffers = store()

    def load_parameters(layers):
        for k in range(layers):
            keep(parameters, make(B // 420 + k % 4 * (B // 3000)))

    def static_input(batch):
        keep(static_buffers, make(batch * (B // 9600)))

    def static_output(batch):
        keep(static_buffers, make(batch * (B // 9600)))

    def make_graphed_callable(batch):
        static_input(batch)
        static_output(batch)
        static_output(batch)
        static_input(batch)

    def network_setup():
        load_parameters(60)
        for k in range(60):
            make_graphed_callable(64)

    def handle(i):
        x = make(B // 800)
        drop(x)


class IndexForMaxElements:
    """An index is made for the largest number of elements there may be, before the first one is
    added. https://github.com/nmslib/hnswlib/issues/354"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model", "oversized-intermediate"]
    blame = ["level0_memory", "link_lists", "visited_lists", "init_index"]
    carriers = ["numpy", "c_mmap", "cpp_vector", "c_malloc"]
    structures = ["loop", "nested"]
    factors = [0.5, 1]
    corpus = store()
    tables = store()

    def read_corpus():
        for k in range(150):
            keep(corpus, make(B // 1500 + length(k) * (B // 4000000)))

    def link_lists(max_elements):
        return make(max_elements * (B // 20000000))

    def visited_lists(max_elements, threads):
        for k in range(threads):
            keep(tables, make(max_elements * (B // 80000000)))

    def level0_memory(max_elements):
        return make(max_elements * (B // 3600000))

    def init_index(max_elements):
        keep(tables, link_lists(max_elements))
        visited_lists(max_elements, 4)
        keep(tables, level0_memory(max_elements))

    def index_setup():
        read_corpus()
        init_index(2595491)

    def handle(i):
        x = make(B // 900)
        drop(x)
