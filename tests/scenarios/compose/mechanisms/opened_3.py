"""Judges of an earlier time, as those of opened.py: set aside until somebody had to look at them.
They are ordinary ones since."""


class PoolBesideAnother:
    """One library takes most of the device in one piece when it is first used; another one in the
    same process works with what is left. https://github.com/lucidrains/jax2torch/issues/2"""
    cause = "batch-prealloc"
    blame = ["preallocate", "first_operation"]
    carriers = DEVICE
    structures = ["loop", "asyncio"]
    factors = [1]
    backgrounds = ["none", "WarmCache", "Sawtooth"]
    pool = store()

    def preallocate():
        keep(pool, make(B * 86 // 100))

    def first_operation():
        preallocate()

    def library_setup():
        first_operation()

    def convert_and_run(n):
        x = make(n)
        y = make(n // 4)
        drop(y)
        drop(x)

    def handle(i):
        if i > 69:
            if i % 10 == 9:
                convert_and_run(B // 6)
        convert_and_run(B // 400 + length(i) * 600)


class TwoTabsAtOnce:
    """Each of two tabs has an image made, and both run at the same time, where one alone fills most
    of the device. https://github.com/easydiffusion/easydiffusion/issues/290"""
    cause = "concurrency"
    blame = ["sample_image", "feature_maps", "render_task"]
    carriers = DEVICE
    structures = ["threads", "asyncio"]
    crowd = 2
    factors = [1]

    def feature_maps(n):
        return make(n)

    def sample_image(n, ms):
        x = feature_maps(n)
        y = feature_maps(n // 2)
        z = feature_maps(n // 4)
        wait(ms)
        drop(z)
        drop(y)
        drop(x)

    def render_task(n, ms):
        sample_image(n, ms)

    def handle(i):
        if i < 100:
            render_task(B // 300 + length(i) * 900, 1)
        else:
            render_task(B // 3, 2000)


class BuffersOfSmallerIndexes:
    """Each index makes a buffer a fifth larger when its own is full, next to those of the others;
    at each size half of them have all that they need, and stay.
    https://github.com/chroma-core/chroma/pull/6621"""
    cause = "fragmentation"
    blame = ["resize_index", "add_vectors", "merge_results"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none", "WarmCache", "BoundedPool"]
    buffers = store()

    def read_stored_setup():
        x = make(B // 6)
        drop(x)

    def resize_index(k, n):
        put(buffers, k, make(n))

    def add_vectors(first, step, n):
        for k in range(64):
            if k % step == first:
                resize_index(k, n)

    def merge_results(n):
        x = make(n)
        drop(x)

    def handle(i):
        merge_results(B // 2000)
        n = B // 185
        if i == 12:
            add_vectors(0, 1, n)
        if i == 24:
            add_vectors(0, 2, n * 12 // 10)
        if i == 36:
            add_vectors(0, 4, n * 144 // 100)
        if i == 48:
            add_vectors(0, 8, n * 173 // 100)
        if i == 60:
            add_vectors(0, 16, n * 207 // 100)
        if i > 79:
            if i % 10 == 9:
                merge_results(B * 31 // 100)


class EmptyIndexPerTenant:
    """At start each tenant gets an index with room for as many vectors as it may ever have, and as
    many locks; hardly one holds a hundred. https://github.com/nmslib/hnswlib/issues/328"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model"]  # that the room is empty is told by names alone
    blame = ["init_index", "reserve_level", "reserve_locks", "open_tenants"]
    carriers = ["c_mmap", "c_malloc", "cpp_vector", "numpy", "py_mmap"]
    structures = ALONE
    levels = store()
    locks = store()
    links = store()

    def reserve_level(capacity):
        return make(capacity * (B // 4000000))

    def reserve_locks():
        return make(B // 150)

    def init_index(capacity):
        keep(levels, reserve_level(capacity))
        keep(locks, reserve_locks())
        keep(links, make(capacity * 5))

    def open_tenants(count):
        for tenant in range(count):
            init_index(100000)

    def service_setup():
        open_tenants(70)

    def handle(i):
        x = make(B // 2000)
        drop(x)


class SnapshotsAmongTags:
    """The first tick decodes the whole state as a tree of tags, and makes a snapshot of each file
    in between; the tree goes, and the pages that are served do not fit where it was.
    https://github.com/amule-org/amule/pull/1153"""
    cause = "fragmentation"
    blame = ["decode_state", "make_snapshot", "cache_page", "serve_page"]
    carriers = ["c_malloc", "cpp_string", "cpp_vector"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none", "WarmCache", "BoundedPool"]
    tags = store()
    snapshots = store()
    pages = store()

    def make_snapshot(k):
        keep(snapshots, make(700 + k % 4 * 40))

    def decode_state(files):
        for k in range(files):
            keep(tags, make(1800 + k % 5 * 300))
            make_snapshot(k)
            keep(tags, make(1400))
        clear(tags)

    def cache_page(i):
        keep(pages, make(B // 500 + length(i) * (B // 1500000)))
        if len(pages) > 210:
            pop(pages)

    def serve_page(i):
        x = make(B // 900)
        cache_page(i)
        drop(x)

    def handle(i):
        if i == 70:
            decode_state(21000)
        serve_page(i)


class ChunkBesideTheQueuedOne:
    """A chunk of log lines fills while the one before it waits for its flush; full chunks are of
    the day's size, and the limit is about two of them.
    https://github.com/kube-logging/logging-operator/pull/289"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text"]
    structures = ["loop", "asyncio"]
    limiters = ["as", "data", "cgroup"]
    factors = [1]
    backgrounds = ["none"]
    plugins = store()
    even_chunk = store()
    odd_chunk = store()

    def plugins_setup():
        for k in range(103):
            keep(plugins, make(B // 150 + k % 4 * (B // 3000)))

    def append_even(k):
        keep(even_chunk, make(B // 270 + length(k) * (B // 3000000)))

    def append_odd(k):
        keep(odd_chunk, make(B // 270 + length(k) * (B // 3000000)))

    def receive_lines(i):
        first = (i + 10531) * 60
        n = 1
        while length(first + n) < 670:
            n = n + 1
        for k in range(n):
            if i // 8 % 2 == 0:
                append_even(first + k)
            else:
                append_odd(first + k)

    def handle(i):
        if i % 8 == 0:
            if i // 8 % 2 == 0:
                clear(even_chunk)
            else:
                clear(odd_chunk)
        receive_lines(i)


class VectorsWordsAndSubwords:
    """A full model has a vocabulary of small entries, and four matrices: of subwords, of words, of
    what comes out, and one to adjust. https://github.com/piskvorky/gensim/issues/2350"""
    cause = "oversized-model"
    blame = ["read_vocabulary", "read_matrix", "prepare_weights", "load_full_model"]
    carriers = ["numpy", "cpp_vector", "c_malloc", "py_large"]
    structures = ALONE
    vocabulary = store()
    matrices = store()

    def read_vocabulary(words):
        for word in range(words):
            keep(vocabulary, make(B // 40000 + word % 4 * 600))

    def read_matrix(n):
        return make(n)

    def prepare_weights():
        keep(matrices, read_matrix(B * 4 // 10))
        keep(matrices, read_matrix(B * 4 // 10))

    def load_full_model():
        read_vocabulary(6000)
        keep(matrices, read_matrix(B * 9 // 10))
        keep(matrices, read_matrix(B * 4 // 10))
        prepare_weights()

    def model_setup():
        load_full_model()

    def handle(i):
        x = make(B // 700)
        drop(x)


class ComponentsOnOneCard:
    """Transformer and decoder stay on the card; when the prompt changes, the encoder is loaded
    beside them, past the cache that would have made room.
    https://github.com/invoke-ai/InvokeAI/pull/9572"""
    cause = "oversized-model"
    unnamed = ["oversized-intermediate"]  # many blocks of one request
    blame = ["load_encoder_layer", "load_encoder", "encode_prompt"]
    carriers = ["numpy", "c_mmap"] + DEVICE
    structures = ["loop", "nested"]
    factors = [1]
    transformer = store()
    decoder = store()
    encoder = store()

    def load_transformer():
        for k in range(28):
            keep(transformer, make(B // 56 + k % 3 * (B // 1500)))

    def load_decoder():
        for k in range(9):
            keep(decoder, make(B // 110))

    def pipeline_setup():
        load_transformer()
        load_decoder()

    def load_encoder_layer():
        keep(encoder, make(B // 52))

    def load_encoder():
        for k in range(36):
            load_encoder_layer()

    def encode_prompt():
        load_encoder()
        clear(encoder)

    def handle(i):
        x = make(B // 90 + length(i) * 200)
        drop(x)
        if i == 66:
            encode_prompt()


class FractionOfTheCard:
    """A server may take a fraction of a card that others may need, too; model and pages are about
    as large as that, and the pages of a step differ.
    https://github.com/ai-dynamo/nixl/pull/2028"""
    cause = "external"
    # The second or third step may be too large: then the trace shows the pool above all.
    also = ["batch-prealloc", "oversized-model"]
    carriers = DEVICE
    structures = ["loop", "nested"]
    limiters = ["gpu"]
    factors = [1]
    backgrounds = ["none"]
    weights = store()
    pages = store()
    scratch = store()

    def load_weights_setup():
        for layer in range(50):
            keep(weights, make(B // 64 - 65536))

    def take_page():
        keep(pages, make(B // 64 - 65536))

    def decode_step(count):
        for k in range(count):
            take_page()
            if k % 5 == 4:
                keep(scratch, make(B // 64 - 65536))
        clear(scratch)
        clear(pages)

    def handle(i):
        first = (i + 2100) * 60
        n = 1
        while length(first + n) < 600:
            n = n + 1
        decode_step(n + 2)
