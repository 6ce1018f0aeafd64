"""The second half of reported.py, whose first lines say more: memory taken before it is needed,
things that never fitted, requests that overlap, and programs that are well."""


class AllSlotsForTwoUsers:
    """Prompts that come alone are run alone; those that come together are run as a batch of all
    slots, though two of them are used. https://github.com/tenstorrent/tt-metal/pull/40108"""
    cause = "batch-prealloc"
    unnamed = ["oversized-intermediate"]  # one block of one request
    blame = ["alloc_padded_batch", "prefill_batch"]
    carriers = ["numpy", "c_mmap", "cpp_vector"] + DEVICE
    structures = ALONE
    factors = [1]
    kv_cache = store()

    def kv_cache_setup():
        for k in range(32):
            keep(kv_cache, make(B // 55))

    def prefill_one(tokens):
        x = make(tokens * (B // 100000))
        drop(x)

    def alloc_padded_batch(slots, tokens):
        return make(slots * tokens * (B // 100000))

    def prefill_batch(tokens):
        x = alloc_padded_batch(32, tokens)
        y = make(B // 4000)
        drop(y)
        drop(x)

    def handle(i):
        if i < 70:
            prefill_one(length(i))
        else:
            prefill_batch(2048)


class PinnedSwapSpace:
    """Host blocks for sequences that may have to be swapped out are taken at start, more than the
    host has; no sequence ever was. https://github.com/ai-dynamo/dynamo/issues/356"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model", "oversized-intermediate"]
    blame = ["allocate_cpu_cache", "pinned_zeros"]
    carriers = ["c_mmap", "py_mmap", "numpy", "c_malloc"]
    structures = ALONE + ["asyncio"]
    factors = [0.5, 1]
    tokenizer = store()
    cpu_cache = store()

    def load_tokenizer():
        for k in range(90):
            keep(tokenizer, make(B // 1500 + length(k) * (B // 2000000)))

    def pinned_zeros(blocks):
        return make(blocks * (B // 200000))

    def allocate_cpu_cache(layers, blocks):
        for k in range(layers):
            keep(cpu_cache, pinned_zeros(blocks))

    def engine_setup():
        load_tokenizer()
        allocate_cpu_cache(64, 8192)

    def handle(i):
        x = make(B // 900)
        drop(x)


class ContextForEachProfile:
    """An engine has one set of weights, and a context for each of its profiles: with a scratch
    memory for the largest shape of all, whichever is used.
    https://github.com/triton-inference-server/tensorrt_backend/pull/108"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model", "oversized-intermediate"]
    blame = ["scratch_for_max_shape", "create_context", "create_contexts"]
    carriers = ["c_mmap"] + DEVICE
    structures = ["loop"]
    factors = [0.5, 1]
    weights = store()
    contexts = store()

    def deserialize_engine():
        for k in range(28):
            keep(weights, make(B // 260 + k % 5 * (B // 1200)))

    def scratch_for_max_shape():
        return make(B // 7)

    def create_context(profile):
        for k in range(6):
            keep(contexts, make(B // 3000 + k * 4096))
        keep(contexts, scratch_for_max_shape())

    def create_contexts(profiles):
        for k in range(profiles):
            create_context(k)

    def server_setup():
        deserialize_engine()
        create_contexts(9)

    def handle(i):
        x = make(B // 600)
        drop(x)


class AdapterSlotsForMaxRank:
    """For each module of each layer, slots for the most adapters of the highest rank are stacked at
    start; the adapters have a sixteenth of it.
    https://github.com/vllm-project/vllm/pull/22782"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model"]
    blame = ["stack_slots", "add_module", "create_adapter_weights"]
    carriers = ["numpy", "c_mmap"] + DEVICE
    structures = ["loop", "asyncio"]
    factors = [0.5, 1]
    weights = store()
    stacked = store()

    def load_weights():
        for k in range(30):
            keep(weights, make(B // 200 + k % 2 * (B // 900)))

    def stack_slots(adapters, rank, width):
        return make(adapters * rank * width * (B // 20000000))

    def add_module(width):
        keep(stacked, stack_slots(32, 256, 8))
        keep(stacked, stack_slots(32, 256, width))

    def create_adapter_weights(layers):
        for k in range(layers):
            add_module(8)
            add_module(24)

    def engine_setup():
        load_weights()
        create_adapter_weights(64)

    def handle(i):
        x = make(B // 500 + length(i) * 64)
        drop(x)


class FetchBufferPerPartition:
    """Each assigned partition gets a buffer for the most records of a fetch; a consumer that is
    left alone is assigned all of them. https://github.com/typelevel/fs2-kafka/pull/1493"""
    cause = "batch-prealloc"
    unnamed = ["oversized-intermediate"]  # many blocks of one call
    blame = ["prefetch_buffer", "assign_partitions"]
    carriers = ["c_malloc", "c_mmap", "cpp_vector", "py_bytes"]
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    buffers = store()

    def prefetch_buffer():
        keep(buffers, make(B // 140))

    def assign_partitions(count):
        clear(buffers)
        for k in range(count):
            prefetch_buffer()

    def poll_records(i):
        x = make(B // 3000 + length(i) * 100)
        drop(x)

    def handle(i):
        if i % 25 == 0:
            if i < 100:
                assign_partitions(4 + i // 25 * 2)
            else:
                assign_partitions(320)
        poll_records(i)


class PivotOfTimestamps:
    """A pivot makes a mask and a table of rows times distinct values; once the column is one of
    timestamps. https://github.com/dathere/qsv/issues/4589"""
    cause = "oversized-intermediate"
    blame = ["alloc_mask", "alloc_table", "pivot_frame"]
    carriers = ["numpy", "numpy", "cpp_vector", "c_malloc"]
    structures = ALONE
    frame = store()

    def frame_setup():
        for k in range(9):
            keep(frame, make(B // 90 + k % 3 * (B // 700)))

    def alloc_mask(cells):
        return make(cells * (B // 160000000 + 1))

    def alloc_table(cells):
        return make(cells * (B // 20000000))

    def pivot_frame(rows, values):
        y = make(rows * 64)
        x = alloc_mask(rows * values)
        z = alloc_table(rows * values)
        drop(x)
        drop(y)
        return z

    def handle(i):
        values = 4 + length(i) // 50
        if i % 61 == 60:
            values = 173103
        x = pivot_frame(300 + length(i), values)
        drop(x)


class NormalizedCopyOfVectors:
    """Words are looked up in a table of vectors; the first search for similar ones makes a copy of
    the whole table, normalized. https://github.com/piskvorky/gensim/issues/2447"""
    cause = "oversized-intermediate"
    unnamed = ["oversized-model"]  # a second thing as large as the first
    blame = ["init_sims", "similar_by_vector"]
    carriers = ["numpy", "cpp_vector", "c_malloc", "c_mmap"]
    structures = ["loop", "asyncio", "nested"]
    factors = [1]
    vectors = store()
    words = store()

    def load_word_vectors():
        keep(vectors, make(B * 11 // 20))
        for k in range(300):
            keep(words, make(B // 20000 + length(k) * 8))

    def vectors_setup():
        load_word_vectors()

    def lookup_word(i):
        x = make(B // 6000 + length(i) * 16)
        drop(x)

    def init_sims():
        return make(total(vectors))

    def similar_by_vector():
        x = init_sims()
        y = make(B // 300)
        drop(y)
        drop(x)

    def handle(i):
        lookup_word(i)
        if i % 90 == 89:
            similar_by_vector()


class BodyInThreeForms:
    """A relayed body stands in memory as text, as decoded bytes and as parts at the same time; one
    of fifty is a document with scans. https://github.com/thinktecture/relayserver/pull/103"""
    cause = "oversized-intermediate"
    blame = ["read_as_text", "decode_base64", "split_parts", "relay_body"]
    carriers = ["py_bytes", "py_text", "cpp_string", "c_malloc"]
    structures = ["loop", "asyncio", "nested"]
    parts = store()

    def read_as_text(n):
        return make(n * 8 // 3)

    def decode_base64(n):
        return make(n)

    def split_parts(n):
        for k in range(16):
            keep(parts, make(n // 16))

    def relay_body(n):
        x = read_as_text(n)
        y = decode_base64(n)
        split_parts(n)
        drop(x)
        drop(y)
        clear(parts)

    def handle(i):
        n = B // 400000 * length(i)
        if i % 53 == 52:
            n = B * 3 // 5
        relay_body(n)


class WordsThenOneMatrix:
    """The words of a model are read one by one; then one array for the vectors of all of them does
    not fit. https://github.com/piskvorky/gensim/issues/2187"""
    cause = "oversized-model"
    unnamed = ["batch-prealloc", "oversized-intermediate"]
    blame = ["zeros_for_vectors", "load_word2vec_format"]
    carriers = ["numpy", "cpp_vector", "c_malloc", "c_mmap"]
    structures = ALONE
    words = store()
    vectors = store()

    def read_word(k):
        keep(words, make(B // 9000 + k % 11 * 300))

    def zeros_for_vectors(count):
        return make(count * (B // 700))

    def load_word2vec_format(count):
        for k in range(count):
            read_word(k)
        keep(vectors, zeros_for_vectors(count))

    def model_setup():
        load_word2vec_format(1800)

    def handle(i):
        x = make(B // 800)
        drop(x)


class ExpertsSplitAfterLoad:
    """Fused experts of all layers are loaded, and then split into a block for each expert; what was
    fused goes when all are split. https://github.com/intel/auto-round/pull/2382"""
    cause = "oversized-model"
    blame = ["load_fused", "split_experts", "linear_of_expert", "load_model"]
    carriers = ["numpy", "c_mmap", "py_mmap", "torch", "cuda"]
    structures = ALONE
    factors = [0.5, 1]
    fused = store()
    experts = store()

    def load_fused(layers):
        for k in range(layers):
            keep(fused, make(B // 50))
            keep(fused, make(B // 100))

    def linear_of_expert(n):
        keep(experts, make(n))

    def split_experts():
        for k in range(len(fused)):
            for j in range(16):
                linear_of_expert(size(item(fused, k)) // 16)

    def load_model():
        load_fused(24)
        split_experts()
        clear(fused)

    def model_setup():
        load_model()

    def handle(i):
        x = make(B // 400)
        drop(x)


class TablesOfAllFeatures:
    """A table for each of twenty-six features, from three rows to ten million: four of them are
    most of the model, and they do not all fit.
    https://github.com/facebookresearch/dlrm/issues/212"""
    cause = "oversized-model"
    blame = ["embedding_table", "create_tables"]
    carriers = ["numpy", "c_mmap", "cpp_vector"] + DEVICE
    structures = ALONE + ["asyncio"]
    factors = [0.5, 1]
    layers = store()
    tables = store()

    def create_layers():
        for k in range(6):
            keep(layers, make(B // 900 * (1 + k % 3)))

    def embedding_table(rows):
        keep(tables, make(rows * (B // 16000000) + 4096))

    def create_tables():
        for k in range(8):
            embedding_table(300 + k * k * 900)
        embedding_table(2202607)
        for k in range(6):
            embedding_table(12517 + k * 5000)
        embedding_table(8351592)
        for k in range(5):
            embedding_table(93145 - k * 12000)
        embedding_table(10131227)
        embedding_table(7046546)

    def model_setup():
        create_layers()
        create_tables()

    def handle(i):
        x = make(B // 700)
        drop(x)


class CopyPerSubscriber:
    """A message is copied into the buffer of each subscriber; when many are slow, each holds the
    messages of the last rounds. https://github.com/redis/redis/issues/1880"""
    cause = "concurrency"
    blame = ["copy_message", "serve_subscriber"]
    carriers = ["py_bytes", "py_text", "py_small"]
    structures = ["asyncio"]
    crowd = 900

    def copy_message(k):
        return make(B // 1200 + length(k) * (B // 3000000))

    def serve_subscriber(i, ms):
        x = copy_message(i)
        wait(ms)
        y = copy_message(i + 1)
        wait(ms)
        z = copy_message(i + 2)
        wait(ms)
        drop(z)
        drop(y)
        drop(x)

    def handle(i):
        if i < 120:
            serve_subscriber(i, 0)
        else:
            serve_subscriber(i, 900)


class FramesOfParallelJobs:
    """Each transcode has the frames of its encoder's look-ahead; one job fits, and nothing keeps a
    dozen from starting. https://github.com/HaveAGitGat/Tdarr/issues/936"""
    cause = "concurrency"
    blame = ["hold_frames", "transcode", "encoder_state"]
    carriers = ["c_malloc", "c_mmap", "cpp_vector", "numpy"]
    structures = ["threads"]
    crowd = 12
    factors = [1, 2]
    limiters = ["data", "cgroup", "rss"]

    def hold_frames(left, ms):
        x = make(B // 180)
        if left > 1:
            hold_frames(left - 1, ms)
        else:
            wait(ms)
        drop(x)

    def encoder_state():
        return make(B // 30)

    def transcode(ms):
        y = encoder_state()
        hold_frames(40, ms)
        drop(y)

    def thumbnail(i):
        x = make(B // 900 + length(i) * 16)
        wait(1)
        drop(x)

    def handle(i):
        if i < 110:
            if i % 40 == 15:
                transcode(1)
            thumbnail(i)
        else:
            transcode(3000)


class InferletsWithoutLimit:
    """Whoever asks is run at once: each adds a page to its cache at every step, and gives all of
    them back at its end. https://github.com/pie-project/pie/issues/56"""
    cause = "concurrency"
    blame = ["grow_pages", "run_inferlet"]
    carriers = DEVICE
    structures = ["threads", "asyncio"]
    crowd = 14
    weights = store()

    def weights_setup():
        for k in range(14):
            keep(weights, make(B // 220 + k % 4 * (B // 2000)))

    def grow_pages(left, ms):
        x = make(B // 160)
        wait(ms)
        if left > 1:
            grow_pages(left - 1, ms)
        drop(x)

    def run_inferlet(pages, ms):
        y = make(B // 300)
        grow_pages(pages, ms)
        drop(y)

    def handle(i):
        if i < 80:
            if i % 30 == 15:
                run_inferlet(30, 0)
            run_inferlet(1, 1)
        else:
            run_inferlet(30, 80)


class UpsertsKeepDeleted:
    """A document that changes is a new point of the index; the old one is marked as deleted, and
    stays a part of the graph. https://github.com/chroma-core/chroma/issues/2594"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["add_point", "link_levels", "upsert_document"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "numpy", "py_bytes"]
    structures = ["loop", "threads", "asyncio", "nested"]
    factors = [0.5, 1]
    points = store()
    links = store()
    labels = store()

    def add_point():
        keep(points, make(B // 26000))

    def link_levels(k):
        keep(links, make(600 + length(k) // 300 * 400))

    def upsert_document(i, k):
        add_point()
        link_levels(i * 12 + k)
        put(labels, (i * 12 + k) % 900, make(700))

    def index_setup():
        for k in range(900):
            add_point()
            link_levels(k)

    def handle(i):
        for k in range(12):
            upsert_document(i, k)
        x = make(B // 500 + length(i) * 24)
        drop(x)


class MemtablesAndBlockCache:
    """Memory grows for hours: tables fill, wait for their flush and go, four at most, beside a
    cache of blocks that has a bound. https://github.com/facebook/rocksdb/issues/706"""
    cause = "healthy"
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes"]
    structures = ["loop", "threads"]
    factors = [1, 2]
    requests = 600
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    memtable = store()
    blocks = store()

    def write_entry(i):
        keep(memtable, make(B // 2500 + length(i) * (B // 6000000)))
        if len(memtable) > 400:
            for k in range(100):
                pop(memtable)

    def read_block(i):
        if length(i) > 400:
            keep(blocks, make(B // 1400))
        if len(blocks) > 250:
            pop(blocks)

    def handle(i):
        write_entry(2 * i)
        write_entry(2 * i + 1)
        read_block(i)
        x = make(B // 1500)
        drop(x)


class NewVersionBeforeOld:
    """A new version of a model is loaded and warm before the old one goes, so that memory doubles
    with each update, for a moment. https://github.com/tensorflow/serving/issues/1346"""
    cause = "healthy"
    carriers = ["numpy", "c_mmap", "cpp_vector"] + DEVICE
    structures = ["loop", "nested"]
    factors = [1, 2]
    requests = 320
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    even_version = store()
    odd_version = store()

    def load_even(layers):
        for k in range(layers):
            keep(even_version, make(B // 110 + k % 4 * (B // 2000)))

    def load_odd(layers):
        for k in range(layers):
            keep(odd_version, make(B // 110 + k % 4 * (B // 2000)))

    def update_model(version):
        if version % 2 == 0:
            load_even(30)
            clear(odd_version)
        else:
            load_odd(30)
            clear(even_version)

    def handle(i):
        if i % 40 == 0:
            update_model(i // 40)
        x = make(B // 300 + length(i) * 64)
        drop(x)
