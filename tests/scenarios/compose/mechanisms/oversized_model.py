"""What is served does not fit: it fails at load, before the first request. Few serve with threads,
for the limit would leave room for stacks that do not exist yet."""


class IndexLargerThanMemory:
    """An index is read at start: its vectors in one block, its links in a second one.
    https://github.com/facebookresearch/faiss/issues/1228"""
    cause = "oversized-model"
    unnamed = ["batch-prealloc", "oversized-intermediate"]
    blame = ["alloc_vectors", "alloc_links", "read_index"]
    carriers = ["cpp_vector", "c_malloc", "numpy", "c_mmap", "py_mmap"]
    structures = ALONE
    parts = store()

    def alloc_vectors(n):
        return make(n)

    def alloc_links(n):
        return make(n)

    def read_index(vectors):
        x = make(B // 500)
        keep(parts, alloc_vectors(vectors))
        keep(parts, alloc_links(vectors // 2))
        drop(x)

    def index_setup():
        read_index(B * 7 // 4)

    def handle(i):
        x = make(B // 300 + length(i) * 32)
        drop(x)


class CheckpointBesideModel:
    """Parameters are initialized at random; then the whole checkpoint is read, and copied.
    https://github.com/huggingface/transformers/pull/16844"""
    cause = "oversized-model"
    blame = ["init_parameter", "init_model", "load_state", "read_tensor"]
    carriers = ["numpy", "py_bytes", "torch", "c_mmap", "py_mmap"]
    structures = ALONE
    factors = [0.5, 1]
    parameters = store()
    state = store()

    def init_parameter(k):
        return make(B // 1200 * (1 + k % 4 // 2))

    def init_model():
        for k in range(600):
            keep(parameters, init_parameter(k))

    def read_tensor(k):
        return make(B // 1200 * (1 + k % 4 // 2))

    def load_state():
        for k in range(600):
            keep(state, read_tensor(k))

    def model_setup():
        init_model()
        load_state()
        clear(state)

    def handle(i):
        x = make(B // 150)
        drop(x)


class LayersExceedDevice:
    """Eighty layers of seven tensors each are allocated one after the other; half of them fit.
    https://github.com/vllm-project/vllm/pull/5714"""
    cause = "oversized-model"
    blame = ["attention", "feed_forward", "init_layers", "load_weights"]
    carriers = ["numpy", "c_mmap", "py_mmap", "torch", "torch", "cuda", "cuda"]
    structures = ALONE + ["asyncio"]
    layers = store()

    def attention(k):
        for j in range(4):
            keep(layers, make(B // 400))

    def feed_forward(k):
        for j in range(3):
            keep(layers, make(B // 120))

    def init_layers(count):
        for k in range(count):
            attention(k)
            feed_forward(k)

    def load_weights():
        keep(layers, make(B // 60))
        init_layers(80)
        keep(layers, make(B // 60))

    def engine_setup():
        load_weights()

    def handle(i):
        x = make(B // 100 + length(i) * 64)
        drop(x)


class InstanceCopies:
    """Four instances are configured, and each loads its own copy of the model at start.
    https://github.com/triton-inference-server/server/issues/6928"""
    cause = "oversized-model"
    also = ["batch-prealloc"]
    blame = ["read_plan", "load_instance", "create_instances"]
    carriers = ["c_mmap"] + DEVICE
    structures = ALONE
    factors = [1, 2]
    instances = store()

    def read_plan(k):
        return make(B // 80 + k % 5 * (B // 200))

    def load_instance(n):
        for k in range(32):
            keep(instances, read_plan(k))

    def create_instances(count):
        for n in range(count):
            load_instance(n)

    def server_setup():
        create_instances(4)

    def handle(i):
        x = make(B // 90)
        drop(x)


class StateDictOnDevice:
    """The model stands on the device already when its checkpoint is read to the same place.
    https://github.com/hpcaitech/Open-Sora/pull/841"""
    cause = "oversized-model"
    blame = ["build_on_device", "load_checkpoint", "map_tensor"]
    carriers = DEVICE
    structures = ALONE
    factors = [0.5, 1]
    blocks = store()
    checkpoint = store()

    def build_on_device(depth):
        for k in range(depth):
            keep(blocks, make(B // 64))
            keep(blocks, make(B // 200))

    def map_tensor(k):
        return make(size(item(blocks, k)))

    def load_checkpoint():
        for k in range(len(blocks)):
            keep(checkpoint, map_tensor(k))
        clear(checkpoint)

    def model_setup():
        build_on_device(33)
        load_checkpoint()

    def handle(i):
        x = make(B // 80)
        y = make(B // 200 + length(i) * 128)
        drop(y)
        drop(x)


class ListsBeforeMapping:
    """All lists of an index are allocated; a second loop replaces each by a view of the file.
    https://github.com/facebookresearch/faiss/pull/5122"""
    cause = "oversized-model"
    blame = ["resize_lists", "open_index"]
    carriers = ["cpp_vector", "cpp_string", "c_malloc", "c_mmap"]
    structures = ["loop"]
    lists = store()

    def resize_lists(count):
        for k in range(count):
            put(lists, k, make(B // 1600 + length(k) * (B // 140000)))

    def map_lists(count):
        for k in range(count):
            put(lists, k, make(4096))

    def open_index(count):
        resize_lists(count)
        map_lists(count)

    def index_setup():
        open_index(600)

    def handle(i):
        x = make(B // 400)
        drop(x)


class ArticlesIndexAtStart:
    """The stored index is parsed whole at start: for each article a vector and some text nodes.
    https://github.com/run-llama/llama_index/issues/3516"""
    cause = "oversized-model"
    unnamed = ["leak"]  # texts by the thousand
    blame = ["parse_vector", "parse_node", "build_nodes", "load_index"]
    carriers = ["numpy", "numpy", "py_large", "py_small"]
    structures = ALONE + ["asyncio"]
    vectors = store()
    nodes = store()

    def parse_vector(k):
        return make(B // 2000)

    def parse_node(k, j):
        return make(B // 40000 * (1 + (k + j) % 5))

    def build_nodes(articles):
        for k in range(articles):
            keep(vectors, parse_vector(k))
            for j in range(3):
                keep(nodes, parse_node(k, j))

    def load_index():
        build_nodes(3700)

    def index_setup():
        load_index()

    def handle(i):
        x = make(B // 500)
        drop(x)


class WeightsTooLarge:
    """Layers are read one after the other at start, and do not fit."""
    cause = "oversized-model"
    unnamed = ["batch-prealloc"]  # the layers are as good as equal
    blame = ["read_layer", "load_model"]
    carriers = BLOCKS + DEVICE
    structures = SERVED
    factors = [0.5, 1]
    layers = store()

    def read_layer(k):
        return make(B // 32 + k % 3 * 4096)

    def load_model():
        for k in range(48):
            keep(layers, read_layer(k))

    def model_setup():
        load_model()

    def handle(i):
        x = make(B // 100)
        drop(x)
