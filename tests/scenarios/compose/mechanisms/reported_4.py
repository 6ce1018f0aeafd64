"""The second half of reported_3.py: a reserve that is too large, models that never fitted, large
work, prompts that grow, what is kept on purpose or by mistake, and a program that is well."""


class ReserveForTheWorstBatch:
    """A context reserves a compute buffer for the largest micro-batch over the whole window, once
    for each copy of the pipeline. https://github.com/ikawrakow/ik_llama.cpp/issues/749"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model", "oversized-intermediate"]
    blame = ["gallocr_reserve", "reserve_graph", "new_context"]
    carriers = ["c_mmap", "c_malloc", "numpy"] + DEVICE
    structures = ["loop", "nested"]
    factors = [0.5, 1]
    tensors = store()
    cache = store()
    compute = store()

    def load_tensors():
        for k in range(22):
            keep(tensors, make(B // 110 + k % 2 * (B // 600)))

    def init_cache():
        for k in range(22):
            keep(cache, make(B // 500))

    def gallocr_reserve(tokens, window):
        keep(compute, make(tokens * (window * (B // 800000000 + 1) // 8)))

    def reserve_graph(copies, ubatch, window):
        for k in range(copies):
            gallocr_reserve(ubatch, window)

    def new_context(ubatch, window):
        init_cache()
        reserve_graph(4, ubatch, window)

    def server_setup():
        load_tensors()
        new_context(4096, 163840)

    def handle(i):
        x = make(B // 900)
        drop(x)


class DictInFullPrecision:
    """Each quantized tensor of a file is unpacked to full precision for the state of the model,
    whatever precision was asked for. https://github.com/huggingface/transformers/pull/45386"""
    cause = "oversized-model"
    blame = ["dequantize", "load_tensor", "load_gguf_file"]
    carriers = ["numpy", "c_mmap", "c_malloc", "py_mmap", "cpp_vector"]
    structures = ALONE
    factors = [0.5, 1]
    state_dict = store()

    def read_quantized(k):
        return make(B // 190 + k % 5 * (B // 2500))

    def dequantize(x):
        return make(size(x) * 4)

    def load_tensor(k):
        x = read_quantized(k)
        keep(state_dict, dequantize(x))
        drop(x)

    def load_gguf_file(tensors):
        for k in range(tensors):
            load_tensor(k)

    def model_setup():
        load_gguf_file(96)

    def handle(i):
        x = make(B // 800)
        drop(x)


class ReloadToRemoveAdapter:
    """To take an adapter off, the model is loaded anew while the one with the adapter still serves.
    https://github.com/oobabooga/textgen/issues/524"""
    cause = "oversized-model"
    unnamed = ["oversized-intermediate"]  # many blocks of one request
    blame = ["load_layer", "load_model", "remove_adapter"]
    carriers = ["numpy", "c_mmap", "cpp_vector"] + DEVICE
    structures = ["loop", "nested"]
    factors = [1]
    layers = store()
    fresh_layers = store()
    adapters = store()

    def load_layer(k):
        return make(B // 52 + k % 4 * (B // 1200))

    def add_adapter():
        for k in range(32):
            keep(adapters, make(B // 2500))

    def load_model_setup():
        for k in range(32):
            keep(layers, load_layer(k))
        add_adapter()

    def load_model():
        for k in range(32):
            keep(fresh_layers, load_layer(k))

    def remove_adapter():
        load_model()
        clear(layers)
        clear(adapters)

    def generate_reply(i):
        x = make(B // 500 + length(i) * 128)
        drop(x)

    def handle(i):
        generate_reply(i)
        if i == 75:
            remove_adapter()


class ExpertsFallBackToBf16:
    """Attention stays quantized, and the fused experts are not found under their name and loaded in
    bf16: three times what was planned. https://github.com/llmmanorg/llmman/issues/244"""
    cause = "oversized-model"
    blame = ["dequantized_experts", "load_layer", "load_model"]
    carriers = ["c_mmap", "numpy"] + DEVICE
    structures = ALONE
    factors = [0.5, 1]
    weights = store()

    def quantized_tensor(n):
        keep(weights, make(n))

    def dequantized_experts():
        keep(weights, make(B // 64 - 4096))
        keep(weights, make(B // 64 - 4096))
        keep(weights, make(B // 128 - 4096))

    def load_layer(k):
        for j in range(4):
            quantized_tensor(B // 700 + j * (B // 4000))
        dequantized_experts()

    def load_model(layers):
        quantized_tensor(B // 40)
        for k in range(layers):
            load_layer(k)

    def engine_setup():
        load_model(30)

    def handle(i):
        x = make(B // 600)
        drop(x)


class ShardsBeyondTheNode:
    """A model that no node can hold is read shard by shard until the node has no more.
    https://github.com/defilantech/LLMKube/issues/1724"""
    cause = "oversized-model"
    blame = ["read_tensor", "load_shard", "load_model"]
    carriers = ["c_malloc", "c_mmap", "cpp_vector", "py_mmap", "numpy"]
    structures = ALONE
    factors = [0.5, 1]
    tensors = store()
    header = store()

    def read_header():
        for k in range(120):
            keep(header, make(1200 + length(k) * 6))

    def read_tensor(k):
        keep(tensors, make(B // 170 + k % 7 * (B // 600)))

    def load_shard(number):
        for k in range(20):
            read_tensor(number * 20 + k)

    def load_model(shards):
        read_header()
        for number in range(shards):
            load_shard(number)

    def server_setup():
        load_model(9)

    def handle(i):
        x = make(B // 900)
        drop(x)


class LinksAfterTheVectors:
    """An index is read back from its file: the vectors in one block, which fits, and then the links
    of each element, which do not. https://github.com/nmslib/hnswlib/issues/180"""
    cause = "oversized-model"
    unnamed = ["batch-prealloc", "leak"]  # links by the thousand
    blame = ["read_level0", "read_links", "load_index"]
    carriers = ["c_malloc", "cpp_vector", "numpy"]
    structures = ["loop", "nested"]
    factors = [1]
    vectors = store()
    link_lists = store()

    def read_level0(elements):
        keep(vectors, make(elements * (B // 110000)))

    def read_links(k):
        keep(link_lists, make(B // 30000 + length(k) % 5 * (B // 60000)))

    def load_index(elements):
        read_level0(elements)
        for k in range(elements // 4):
            read_links(k)

    def index_setup():
        load_index(60000)

    def handle(i):
        x = make(B // 1500)
        drop(x)


class TriangleAttention:
    """The pair table of a protein gets attention over each of its triangles, the cube of its
    length; a complex is four times as long. https://github.com/hpcaitech/FastFold/issues/37"""
    cause = "oversized-intermediate"
    blame = ["triangle_scores", "triangle_attention", "pair_table"]
    carriers = ["numpy", "c_malloc", "cpp_vector"] + DEVICE
    structures = ALONE + ["asyncio"]
    weights = store()

    def weights_setup():
        for k in range(20):
            keep(weights, make(B // 400 + k % 3 * (B // 4000)))

    def pair_table(n):
        return make(n * n * (B // 8000000))

    def triangle_scores(n):
        return make(n * n * n * (B // 29000000))

    def triangle_attention(n):
        x = pair_table(n)
        y = triangle_scores(n)
        drop(y)
        drop(x)

    def handle(i):
        n = 80 + length(i) // 10
        if i % 37 == 36:
            n = 430
        triangle_attention(n)


class UpsampleOfOneImage:
    """The decoder doubles width and height at each of its steps, with input and output side by
    side; one picture is asked for in 8K. https://github.com/xdit-project/xDiT/issues/71"""
    cause = "oversized-intermediate"
    blame = ["upsample", "decode_latents"]
    carriers = ["numpy", "c_mmap", "cpp_vector", "py_bytes"] + DEVICE
    structures = ["loop", "asyncio", "nested"]
    decoder = store()

    def decoder_setup():
        for k in range(12):
            keep(decoder, make(B // 300 + k % 4 * (B // 3000)))

    def upsample(x):
        return make(size(x) * 3)

    def decode_latents(n):
        x = make(n)
        y = upsample(x)
        drop(x)
        z = upsample(y)
        drop(y)
        pixels = upsample(z)
        drop(z)
        drop(pixels)

    def handle(i):
        n = length(i) * (B // 300000)
        if i % 41 == 40:
            n = B // 8
        decode_latents(n)


class SparseToDense:
    """A few rows of a sparse table are made dense for each plot; to add another column, all of them
    are. https://github.com/mortazavilab/swan_vis/issues/23"""
    cause = "oversized-intermediate"
    blame = ["to_dense", "normalize_rows", "add_column"]
    carriers = ["numpy", "numpy", "cpp_vector", "c_malloc"]
    structures = ALONE
    sparse = store()

    def read_table_setup():
        for k in range(30):
            keep(sparse, make(B // 300 + length(k) * (B // 3000000)))

    def to_dense(rows, columns):
        return make(rows * columns * (B // 20000000))

    def normalize_rows(rows, columns):
        x = to_dense(rows, columns)
        y = make(rows * 8 + 64)
        drop(y)
        return x

    def plot_gene(i):
        x = normalize_rows(20 + length(i) // 10, 20000)
        drop(x)

    def add_column():
        x = normalize_rows(2600, 20000)
        drop(x)

    def handle(i):
        plot_gene(i)
        if i == 110:
            add_column()


class PhotoOfManyPatches:
    """A picture is cut into patches, and each of them attends to all; a photo as the phone took it
    has ten times as many. https://github.com/jundot/omlx/pull/3661"""
    cause = "oversized-intermediate"
    blame = ["attention_scores", "embed_patches", "encode_image"]
    carriers = ["numpy", "c_mmap", "cpp_vector"] + DEVICE
    structures = ["loop", "asyncio"]
    tower = store()

    def vision_tower_setup():
        for k in range(24):
            keep(tower, make(B // 700 + k % 2 * (B // 3000)))

    def embed_patches(patches):
        return make(patches * (B // 60000))

    def attention_scores(patches):
        return make(patches * patches * (B // 3600000))

    def encode_image(patches):
        x = embed_patches(patches)
        y = attention_scores(patches)
        z = attention_scores(patches)
        drop(y)
        drop(z)
        drop(x)

    def handle(i):
        patches = 120 + length(i) // 3
        if i % 47 == 46:
            patches = 3300
        encode_image(patches)


class ResultsOfEarlierTurns:
    """A mailbox is searched in each turn, and the whole result is a part of the prompt of all later
    ones: rendered as text, and again as numbers. https://github.com/amd/gaia/issues/2781"""
    cause = "prompt-growth"
    blame = ["render_prompt", "tokenize_prompt", "search_messages"]
    carriers = ["py_bytes", "py_text", "cpp_string", "c_malloc", "numpy"]
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    results = store()

    def search_messages(i):
        keep(results, make(B // 330 + length(i) * (B // 500000)))

    def render_prompt():
        return make(total(results) + 40000)

    def tokenize_prompt(x):
        return make(size(x) * 2)

    def run_turn(i):
        search_messages(i)
        x = render_prompt()
        y = tokenize_prompt(x)
        drop(x)
        drop(y)

    def handle(i):
        run_turn(i)


class HistoryInsideHistory:
    """Each message is stored with the whole conversation before it in its text, so that the prompt
    of a turn has every message many times. https://github.com/bojieli/ai-agent-book/issues/240"""
    cause = "prompt-growth"
    also = ["state-retention"]  # what is stored grows as fast
    blame = ["memory_context", "add_message", "send_conversation"]
    carriers = ["py_bytes", "py_text", "cpp_string", "c_malloc"]
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    turns = store()
    conversation = store()

    def add_turn(i):
        keep(turns, make(B // 18000 + length(i) * 2))

    def memory_context():
        return make(total(turns) + 500)

    def add_message():
        keep(conversation, memory_context())

    def send_conversation():
        x = make(total(conversation))
        drop(x)

    def handle(i):
        add_turn(i)
        add_message()
        send_conversation()


class EachStepReplaysAll:
    """An agent's run replays all its steps to the model; some runs end after twenty, and one has no
    end. https://github.com/huggingface/smolagents/pull/2590"""
    cause = "prompt-growth"
    blame = ["attention_scores", "key_values", "run_step", "record_observation"]
    carriers = ["numpy", "c_mmap", "cuda", "cuda"]
    structures = ["loop", "nested"]
    factors = [0.5, 1]
    steps = store()

    def record_observation(i):
        keep(steps, make(B // 6000 + length(i) * (B // 20000000)))

    def key_values(count):
        return make(count * (B // 180))

    def attention_scores(count):
        return make(count * count * (B // 9000))

    def run_step(i):
        record_observation(i)
        x = key_values(len(steps))
        y = attention_scores(len(steps))
        drop(y)
        drop(x)

    def handle(i):
        if i < 180:
            if i % 18 == 0:
                clear(steps)
        run_step(i)


class SessionsInTheStore:
    """Each new client gets a session in the store in memory; what has expired is not handed out any
    more, and stays. https://github.com/litestar-org/litestar/issues/5085"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["store_session", "session_data", "open_session"]
    carriers = ["cpp_map", "cpp_string", "py_small", "py_bytes", "c_malloc", "c_small"]
    structures = ["loop", "asyncio", "threads", "forked"]
    factors = [0.5, 1]
    sessions = store()

    def session_data(i):
        return make(B // 2200 + length(i) * (B // 3000000))

    def store_session(i):
        put(sessions, i, session_data(i))

    def open_session(i):
        store_session(i)
        x = make(B // 1500)
        drop(x)

    def handle(i):
        open_session(i)


class ConversationsOfAllTasks:
    """Every task opens a conversation, and each message of it stays with its tool's output, for the
    list at the side to show. https://github.com/anomalyco/opencode/issues/22018"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["append_message", "append_output", "run_task"]
    carriers = ["py_bytes", "py_text", "cpp_string", "cpp_vector", "c_malloc"]
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    messages = store()
    outputs = store()
    titles = store()

    def append_message(k):
        keep(messages, make(1500 + length(k) * 12))

    def append_output(k):
        keep(outputs, make(B // 9000 + length(k) * (B // 6000000)))

    def run_task(i):
        put(titles, i, make(700))
        for k in range(3 + length(i) % 5):
            append_message(i * 8 + k)
            append_output(i * 8 + k)

    def handle(i):
        run_task(i)
        x = make(B // 600 + length(i) * 40)
        drop(x)


class EmbeddingOfEveryImage:
    """An encoder keeps the embedding of each picture under its hash, for the case that it comes
    again; a tenth does. https://github.com/ai-dynamo/dynamo/pull/14452"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["encode_image", "cache_embedding"]
    carriers = ["numpy", "cpp_vector"] + DEVICE
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    tower = store()
    by_hash = store()

    def vision_tower_setup():
        for k in range(14):
            keep(tower, make(B // 140 + k % 3 * (B // 1500)))

    def encode_image(i):
        x = make(B // 60)
        drop(x)
        return make(B // 360 + i % 4 * (B // 1440))

    def cache_embedding(i):
        put(by_hash, i, encode_image(i))

    def look_up(i):
        x = make(B // 4000)
        drop(x)

    def handle(i):
        look_up(i)
        if i % 10 < 9:
            cache_embedding(i)


class PendingResultsStay:
    """A result that was waited for before it was there is never taken off the list of pending ones:
    the callback that does so is gone. https://github.com/celery/celery/pull/4131"""
    cause = "leak"
    blame = ["add_pending_result", "message_buffer", "get_result"]
    carriers = ["py_small", "py_bytes", "py_text", "cpp_string", "c_malloc"]
    structures = ["loop", "threads", "asyncio"]
    factors = [0.5, 1]
    pending_results = store()
    ready_results = store()

    def message_buffer(i):
        return make(B // 2600 + length(i) * (B // 5000000))

    def add_pending_result(i):
        keep(pending_results, make(900))
        keep(pending_results, message_buffer(i))

    def ready_result(i):
        keep(ready_results, message_buffer(i))
        if len(ready_results) > 10:
            pop(ready_results)

    def get_result(i):
        if length(i) > 350:
            add_pending_result(i)
        else:
            ready_result(i)

    def handle(i):
        get_result(i)
        x = make(B // 1200)
        drop(x)


class PixelsOfEndedRequests:
    """A request that has ended is still referred to by its batch, and its pixels with it.
    https://github.com/sgl-project/sglang/issues/8902"""
    cause = "leak"
    blame = ["pixel_values", "process_images", "add_to_batch"]
    carriers = DEVICE + ["numpy"]
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    weights = store()
    ended = store()

    def weights_setup():
        for k in range(16):
            keep(weights, make(B // 160 + k % 4 * (B // 1600)))

    def pixel_values(tiles):
        return make(tiles * (B // 2400))

    def add_to_batch(x):
        keep(ended, x)

    def process_images(i):
        add_to_batch(pixel_values(2 + i * 7 % 5))

    def forward(i):
        x = make(B // 40)
        y = make(B // 120)
        drop(y)
        drop(x)

    def handle(i):
        process_images(i)
        forward(i)


class AttemptsOfFinishedRequests:
    """The number of attempts is kept by request, and the key is the request itself with its header
    and body; nobody removes those that succeeded.
    https://github.com/airbytehq/airbyte-python-cdk/pull/92"""
    cause = "leak"
    blame = ["prepare_request", "count_attempt", "send_with_retry"]
    carriers = ["py_bytes", "py_text", "py_large", "cpp_string", "cpp_map", "c_malloc"]
    structures = ["loop", "threads", "asyncio", "forked"]
    factors = [0.5, 1]
    attempts = store()
    page = store()

    def prepare_request(i):
        return make(B // 1900)

    def count_attempt(x):
        keep(attempts, x)
        keep(attempts, make(600))

    def send_with_retry(i):
        count_attempt(prepare_request(i))

    def read_page(i):
        y = make(B // 250 + length(i) * 60)
        drop(y)

    def handle(i):
        send_with_retry(i)
        read_page(i)


class CachesThatFillUp:
    """Memory rises for a day while three caches fill with the genes that are asked for; each has a
    bound, and the last one reaches it late. https://github.com/GeneMANIA/genemania/issues/118"""
    cause = "healthy"
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "numpy"]
    structures = ["loop", "nested"]
    factors = [1, 2]
    requests = 800
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    networks = store()
    genes = store()
    pages = store()

    def cache_network(i):
        put(networks, length(i) % 60, make(B // 280 + i % 3 * (B // 4000)))

    def cache_gene(i):
        put(genes, i % 500, make(B // 2400))

    def cache_page(i):
        keep(pages, make(B // 1600))
        if len(pages) > 200:
            pop(pages)

    def handle(i):
        cache_network(i)
        cache_gene(i)
        cache_page(i)
        x = make(B // 400 + length(i) * 40)
        drop(x)
