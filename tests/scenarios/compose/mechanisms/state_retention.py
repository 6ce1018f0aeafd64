"""Kept on purpose and without bound: snapshots, caches and tables by key.

Where the entries of a table are of one size and come one for each request, no trace can tell it
from a leak."""


class CheckpointEachStep:
    """After each step the whole state so far is serialised and stored under the step.
    https://github.com/NVIDIA/NeMo-Fabric/pull/277"""
    cause = "state-retention"
    blame = ["put_checkpoint"]
    carriers = ["py_bytes", "py_text", "numpy", "cpp_string", "cpp_vector"]
    structures = ["asyncio", "nested", "loop"]
    messages = store()
    saved = store()

    def put_checkpoint(step):
        put(saved, step, make(total(messages)))

    def run_node(step):
        keep(messages, make(B // 24000 + length(step)))
        put_checkpoint(step)

    def handle(i):
        x = make(B // 300)
        run_node(i)
        drop(x)


class SessionPerUrl:
    """Connections are cached by the full address, in which the number of the block stands.
    https://github.com/blockchain-etl/tezos-etl/pull/1"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["session_for"]
    carriers = ["c_malloc", "cpp_string", "cpp_vector", "py_bytes", "py_text"]
    structures = ["loop", "threads", "forked"]
    by_url = store()

    def session_for(url):
        put(by_url, url, make(B // 1800 + length(url) * 180))

    def call_node(height):
        session_for(height)
        x = make(20000 + length(height) * 30)
        drop(x)

    def handle(i):
        call_node(i)


class VectorIndex:
    """Each chunk of a document adds a vector and its text to an index in memory.
    https://github.com/run-llama/llama_index/issues/15013"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["embed_chunk", "index_insert"]
    carriers = ["numpy", "cpp_vector", "cpp_string", "py_bytes", "c_malloc"]
    structures = ["loop", "threads", "nested"]
    vectors = store()
    texts = store()

    def index_insert(x, y):
        keep(vectors, x)
        keep(texts, y)

    def embed_chunk(chunk):
        x = make(4096)
        y = make(2000 + length(chunk) * 3)
        index_insert(x, y)

    def handle(i):
        z = make(B // 250)
        for k in range(24):
            embed_chunk(i * 24 + k)
        drop(z)


class LookupPerAddress:
    """The result for each address that was ever looked up is kept; known ones add nothing.
    https://github.com/getlantern/go-geoserve/issues/4"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["cache_result"]
    carriers = ["py_bytes", "py_text", "cpp_string", "cpp_vector", "c_malloc"]
    structures = ["threads", "asyncio", "loop"]
    factors = [0.5, 1]
    results = store()

    def cache_result(address):
        put(results, address, make(600 + length(address) * 6 // 10))

    def geo_lookup(address, known):
        x = make(1500)
        if known == 0:
            cache_result(address)
        drop(x)

    def handle(i):
        for k in range(150):
            geo_lookup(i * 150 + k, i % 4 // 3)


class SeriesPerPath:
    """A registry of metrics keeps a counter and a histogram for each path as it was sent, with the
    number of the object in it. https://github.com/mozilla-ai/otari/issues/264"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["labels"]
    carriers = ["py_bytes", "py_text", "py_large", "cpp_string", "c_malloc"]
    structures = ["asyncio", "threads", "forked"]
    factors = [0.5, 1]
    series = store()

    def labels(path):
        for bucket in range(16):
            put(series, path * 16 + bucket, make(1000 + bucket % 4 * 300))

    def observe_request(path, seen):
        if seen == 0:
            labels(path)

    def handle(i):
        x = make(B // 500)
        for k in range(8):
            observe_request(i * 8 + k, k // 7)
        drop(x)


class PrimitivePerShape:
    """Scratch memory for each size of input that was ever seen stays under its shape; sizes that
    were seen add nothing. https://github.com/apache/mxnet/pull/12746"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["get_primitive"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "numpy"]
    structures = ["loop", "threads", "forked"]
    scratch = store()

    def get_primitive(side):
        put(scratch, side, make(side * side // 100 * (B // 800000)))

    def infer_image(i):
        x = make(B // 200)
        if i % 4 < 3:
            get_primitive(128 + i * 37 % 897)
        drop(x)

    def handle(i):
        infer_image(i)


class SessionsNeverPruned:
    """Each visitor without a cookie gets a record; expired ones go only when they are asked for.
    https://github.com/intrafind/ihub-apps/pull/1006"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["session_store_set"]
    carriers = ["py_bytes", "py_text", "py_large", "cpp_string", "cpp_vector"]
    structures = ["asyncio", "threads", "loop"]
    factors = [0.5, 1]
    sessions = store()

    def session_store_set(visitor):
        put(sessions, visitor, make(20000 + length(visitor) * 330))

    def create_session(visitor):
        session_store_set(visitor)

    def handle(i):
        x = make(30000)
        if i % 4:
            create_session(i)
        drop(x)


class ResponsesPastExpiry:
    """Responses are stored by query and dropped only when the same query comes after their expiry.
    https://github.com/leonagoel/hybrid-recommender/issues/1374"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["response_cache_put"]
    carriers = ["py_bytes", "py_text", "numpy", "c_malloc", "cpp_vector"]
    structures = ["asyncio", "loop", "threads"]
    responses = store()

    def response_cache_put(query):
        put(responses, query, make(50000 + length(query) * 350))

    def fetch_recommendations(query):
        x = make(B // 700)
        response_cache_put(query)
        drop(x)

    def handle(i):
        if i % 5 == 4:
            fetch_recommendations(0)
        else:
            fetch_recommendations(i)


class ModuleDicts:
    """Three tables of parsed pages grow beside a cache that has a budget and keeps to it.
    https://github.com/MarcoYou/open-proxy-mcp/pull/53"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["cache_dict_set"]
    carriers = ["py_bytes", "py_text", "py_large", "cpp_string"]
    structures = ["asyncio", "threads", "loop"]
    factors = [0.5, 1]
    laws = store()
    filings = store()
    companies = store()
    budgeted = store()

    def cache_dict_set(key):
        if key % 3 == 0:
            put(laws, key // 3, make(20000 + length(key) * 280))
        elif key % 3 == 1:
            put(filings, key // 3, make(20000 + length(key) * 280))
        else:
            put(companies, key // 3, make(20000 + length(key) * 140))

    def load_law_index(key):
        keep(budgeted, make(B // 700))
        if len(budgeted) > 20:
            pop(budgeted)
        cache_dict_set(key)

    def handle(i):
        load_law_index(i)


class PiecesPerInput:
    """The cache of a tokenizer has each whole input for a key, with a list of its pieces.
    https://github.com/huggingface/transformers.js/pull/962"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["bpe_cache_put"]
    carriers = ["py_text", "py_bytes", "cpp_string", "cpp_vector", "py_small"]
    structures = ["asyncio", "loop", "threads"]
    factors = [0.5, 1]
    pieces = store()

    def bpe_cache_put(text, bytes_of_text):
        put(pieces, text * 2, make(bytes_of_text))
        put(pieces, text * 2 + 1, make(bytes_of_text * 2))

    def encode(text):
        bpe_cache_put(text, 8000 + length(text) * 100)

    def handle(i):
        encode(i)
        reply = make(6000 + length(i) * 60)
        drop(reply)


class UpdateWithoutEviction:
    """A cache evicts when an item is assigned; results come by update(), which does not.
    https://github.com/celery/celery/pull/1268"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["cache_update"]
    carriers = ["py_bytes", "py_text", "cpp_string", "cpp_vector"]
    structures = ["loop", "threads", "forked"]
    results = store()

    def cache_update(task):
        keep(results, make(80000 + length(task) * 240))

    def cache_assign(task):
        keep(results, make(80000 + length(task) * 240))
        if len(results) > 1000:
            pop(results)

    def store_result(task):
        if task % 20 == 19:
            cache_assign(task)
        else:
            cache_update(task)

    def handle(i):
        x = make(B // 400)
        store_result(i)
        drop(x)


class StepsWithFileCopies:
    """Each step of an agent appends a message with the file before, the file after and the
    difference, to be shown later. https://github.com/QwenLM/qwen-code/pull/4188"""
    cause = "state-retention"
    also = ["prompt-growth"]
    unnamed = ["leak"]
    blame = ["run_tool", "push_message"]
    carriers = ["py_bytes", "py_text", "py_large", "cpp_string"]
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    messages = store()

    def push_message(x, y, z):
        keep(messages, x)
        keep(messages, y)
        keep(messages, z)

    def run_tool(i):
        x = make(50000 + length(i) * 400)
        y = make(52000 + length(i) * 410)
        z = make(4000 + length(i) * 90)
        push_message(x, y, z)

    def handle(i):
        run_tool(i)
        reply = make(20000 + length(i) * 160)
        drop(reply)
