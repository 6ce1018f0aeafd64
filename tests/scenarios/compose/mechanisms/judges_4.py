"""Set aside: these are run and counted like all others, and nobody who mends rules opens them.

The fourth part of judges.py, whose first lines say why."""



class ImportsPaidTwice:
    """Every few minutes a second shell is opened in the same container and imports all modules
    again; how many depends on what it is asked for.
    https://github.com/mitodl/ol-infrastructure/pull/5891"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "py_bytes", "py_large"]
    structures = ["loop", "nested"]
    limiters = ["as", "data", "cgroup"]
    factors = [1]
    backgrounds = ["none"]
    modules = store()
    shell = store()

    def import_module(k):
        return make(B // 130 + k % 5 * (B // 3600))

    def application_setup():
        for k in range(92):
            keep(modules, import_module(k))

    def open_shell(n):
        for k in range(n):
            keep(shell, import_module(k))

    def serve_page(i):
        x = make(B // 900 + length(i) * 60)
        drop(x)

    def handle(i):
        serve_page(i)
        if i % 3 == 2:
            first = (i // 3 + 12382) * 60
            n = 1
            while length(first + n) < 700:
                n = n + 1
            open_shell(n + 18)
            clear(shell)


class LargerTensorsEachVersion:
    """Each version of a model has slightly larger tensors than the last, and entries of the op
    library, which stay, lie between them: the places of the old version are too small for the new
    one. https://github.com/tensorflow/serving/issues/2142"""
    cause = "fragmentation"
    blame = ["restore_tensor", "register_kernel", "load_version"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "numpy"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none", "WarmCache"]
    even_version = store()
    odd_version = store()
    kernels = store()

    def restore_tensor(n):
        return make(n)

    def register_kernel():
        keep(kernels, make(2600))

    def load_version(version):
        n = 62000 + version * 9000
        for k in range(B * 36 // 100 // n):
            if version % 2 == 0:
                keep(even_version, restore_tensor(n))
            else:
                keep(odd_version, restore_tensor(n))
            register_kernel()

    def first_version_setup():
        load_version(0)

    def predict(i):
        x = make(1500 + length(i))
        drop(x)

    def handle(i):
        predict(i)
        if i % 60 == 59:
            version = i // 60 + 1
            load_version(version)
            if version % 2 == 0:
                clear(odd_version)
            else:
                clear(even_version)


class SecondRunOfTheWorkflow:
    """A workflow runs with the same prompt again and again; with another one, its encoding is cut
    from the cached block of the sampler, which then needs a block more.
    https://github.com/Comfy-Org/ComfyUI/issues/11597"""
    cause = "fragmentation"
    blame = ["sample_latents", "encode_prompt", "run_workflow"]
    carriers = ["torch"]
    structures = ALONE
    factors = [1]
    backgrounds = ["none", "BoundedPool"]
    weights = store()
    conditioning = store()

    def load_weights_setup():
        for k in range(8):
            keep(weights, make(B // 64 - 4096))

    def encode_prompt():
        put(conditioning, 0, make(B // 45))

    def sample_latents():
        x = make(B * 46 // 100)
        drop(x)

    def run_workflow(i):
        if i == 0:
            encode_prompt()
        if i > 16:
            encode_prompt()
        sample_latents()

    def preview(i):
        x = make(B // 2500 + length(i) * 64)
        drop(x)

    def handle(i):
        preview(i)
        if i % 8 == 0:
            run_workflow(i)


class PartsOfAllTenants:
    """Each part of an upload is read whole before it is passed on, and every tenant sends some at
    the same time. https://github.com/stdapi-ai/stdapi.ai/issues/211"""
    cause = "concurrency"
    blame = ["read_part", "sign_request", "add_upload_part"]
    carriers = ["py_bytes", "py_text", "py_large", "numpy"]
    structures = ["asyncio"]
    crowd = 60

    def read_part(i):
        return make(B // 24 + length(i) * (B // 60000))

    def sign_request(x):
        return make(size(x) // 50)

    def add_upload_part(i, ms):
        x = read_part(i)
        y = sign_request(x)
        wait(ms)
        drop(y)
        drop(x)

    def list_parts(i):
        x = make(B // 4000 + length(i) * 8)
        wait(1)
        drop(x)

    def handle(i):
        if i < 120:
            if i % 30 == 10:
                add_upload_part(i, 0)
            list_parts(i)
        else:
            add_upload_part(i, 2500)


class BranchesOfTheUnion:
    """The branches of a union are joined in parallel, each with a table of its keys and its whole
    result; one after the other they were no problem.
    https://github.com/pola-rs/polars/issues/24969"""
    cause = "concurrency"
    blame = ["hash_keys", "gather_rows", "join_branch"]
    carriers = ["numpy", "c_malloc", "c_mmap", "cpp_vector"]
    structures = ["threads"]
    crowd = 16
    factors = [1, 2]
    limiters = ["data", "cgroup", "rss"]
    frames = store()

    def scan_frames_setup():
        for k in range(10):
            keep(frames, make(B // 160 + k % 3 * (B // 900)))

    def hash_keys():
        return make(B // 22)

    def gather_rows():
        return make(B // 9)

    def join_branch(ms):
        x = hash_keys()
        y = gather_rows()
        wait(ms)
        drop(x)
        drop(y)

    def filter_frame(i):
        x = make(B // 1500 + length(i) * 12)
        wait(1)
        drop(x)

    def handle(i):
        if i < 110:
            if i % 36 == 14:
                join_branch(1)
            filter_frame(i)
        else:
            join_branch(3500)


class ContextForMaxInput:
    """The memory of an execution context is computed from the largest batch and the longest input
    that the engine was built for. https://github.com/NVIDIA/TensorRT-LLM/issues/210"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model", "oversized-intermediate"]
    blame = ["context_memory", "kv_buffers", "create_context"]
    carriers = ["c_mmap", "numpy"] + DEVICE
    structures = ["loop", "asyncio"]
    factors = [0.5, 1]
    engine = store()
    buffers = store()

    def deserialize_engine():
        for k in range(20):
            keep(engine, make(B // 95 + k % 4 * (B // 2000)))

    def kv_buffers(max_batch):
        for k in range(20):
            keep(buffers, make(max_batch * (B // 60000)))

    def context_memory(max_batch, max_input):
        return make(max_batch * max_input * (B // 700000))

    def create_context(max_batch, max_input):
        kv_buffers(max_batch)
        keep(buffers, context_memory(max_batch, max_input))

    def session_setup():
        deserialize_engine()
        create_context(128, 5000)

    def handle(i):
        x = make(B // 700)
        drop(x)


class BufferPerPossibleThread:
    """A library takes a buffer for each thread that there may be on the largest machine, when it is
    loaded; two of them run. https://github.com/OpenMathLib/OpenBLAS/issues/258"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model", "oversized-intermediate"]
    blame = ["alloc_thread_buffer", "thread_init"]
    carriers = ["c_mmap", "c_malloc", "numpy", "cpp_vector"]
    structures = ALONE
    factors = [0.5, 1]
    symbols = store()
    thread_buffers = store()

    def read_symbols():
        for k in range(200):
            keep(symbols, make(2000 + length(k) * 20))

    def alloc_thread_buffer():
        keep(thread_buffers, make(B // 96))

    def thread_init(max_threads):
        for k in range(max_threads):
            alloc_thread_buffer()

    def library_setup():
        read_symbols()
        thread_init(128)

    def handle(i):
        x = make(B // 600)
        drop(x)


class TargetLoadedAsDraft:
    """The small model that was to draft is given the path of the large one, which is loaded a
    second time. https://github.com/ggml-org/llama.cpp/pull/26968"""
    cause = "oversized-model"
    blame = ["load_tensor", "load_model", "load_draft"]
    carriers = ["c_mmap", "c_malloc", "numpy", "cpp_vector"] + DEVICE
    structures = ALONE
    factors = [1]
    target = store()
    draft = store()

    def load_tensor(k):
        return make(B // 75 + k % 6 * (B // 1100))

    def load_model():
        for k in range(42):
            keep(target, load_tensor(k))

    def load_draft():
        for k in range(42):
            keep(draft, load_tensor(k))

    def server_setup():
        load_model()
        load_draft()

    def handle(i):
        x = make(B // 600)
        drop(x)


class AllTablesInOneChunk:
    """Tables are read and queried one by one; to write them as a single chunk, one block for all of
    them is made beside them. https://github.com/apache/arrow/issues/12008"""
    cause = "oversized-intermediate"
    unnamed = ["oversized-model"]  # a second thing as large as the first
    blame = ["combine_chunks", "write_single_chunk"]
    carriers = ["numpy", "c_malloc", "cpp_vector", "c_mmap"]
    structures = ["loop", "nested"]
    factors = [1]
    tables = store()

    def read_table(k):
        keep(tables, make(B // 80 + k % 7 * (B // 2000)))

    def dataset_setup():
        for k in range(44):
            read_table(k)

    def query_table(i):
        x = make(B // 700 + length(i) * 80)
        drop(x)

    def combine_chunks():
        return make(total(tables))

    def write_single_chunk():
        x = combine_chunks()
        y = make(B // 400)
        drop(y)
        drop(x)

    def handle(i):
        query_table(i)
        if i == 95:
            write_single_chunk()


class AllFramesBeforeTheFirst:
    """All frames of a video are read before the first is used; most videos are a minute long, and
    one is an hour. https://github.com/fanegg/Human3R/issues/26"""
    cause = "oversized-intermediate"
    blame = ["read_frame", "load_video", "stack_frames"]
    carriers = ["numpy", "cpp_vector", "c_malloc", "py_bytes"]
    structures = ["loop", "asyncio", "nested"]
    frames = store()

    def read_frame():
        keep(frames, make(B // 2600))

    def stack_frames():
        return make(total(frames) // 4)

    def load_video(count):
        for k in range(count):
            read_frame()
        x = stack_frames()
        drop(x)
        clear(frames)

    def handle(i):
        count = 20 + length(i) // 6
        if i % 43 == 42:
            count = 8000
        load_video(count)


class SnapshotForEachNode:
    """Each node of a graph is given a deep copy of all messages so far, and the copies live until
    the graph has run; every turn adds some messages.
    https://github.com/strands-agents/harness-sdk/issues/2275"""
    cause = "prompt-growth"
    also = ["state-retention"]  # copies of a state that grows
    blame = ["copy_message", "copy_messages", "run_node", "add_message"]
    carriers = ["py_bytes", "py_text", "cpp_string", "c_malloc"]
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    messages = store()
    snapshots = store()

    def add_message(k):
        keep(messages, make(B // 1500 + length(k) * (B // 3000000)))

    def copy_message(k):
        keep(snapshots, make(size(item(messages, k))))

    def copy_messages():
        for k in range(len(messages)):
            copy_message(k)

    def run_node():
        copy_messages()
        x = make(B // 2000)
        drop(x)

    def handle(i):
        for k in range(4):
            add_message(i * 4 + k)
        for node in range(6):
            run_node()
        clear(snapshots)


class BaselineOfEverySession:
    """A monitor remembers for each session what its last prompt began with and the schemas of its
    tools; a session that ends is not taken out.
    https://github.com/use-agent-os/agent-os/issues/1111"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["copy_schemas", "record_baseline", "check_response"]
    carriers = ["py_small", "py_large", "py_text", "cpp_map", "cpp_string", "c_malloc"]
    structures = ["loop", "asyncio", "threads", "nested"]
    factors = [0.5, 1]
    baselines = store()
    schemas = store()

    def copy_schemas(i):
        put(schemas, i, make(B // 4000 + i % 3 * (B // 12000)))

    def record_baseline(i):
        put(baselines, i, make(B // 9000 + length(i) * (B // 12000000)))
        copy_schemas(i)

    def check_response(i):
        x = make(B // 700)
        record_baseline(i)
        drop(x)

    def handle(i):
        check_response(i)


class SessionOfEachReload:
    """A model is loaded anew every few requests; to delete the session of the old one does nothing,
    and its tensors stay. https://github.com/tensorflow/tensorflow/issues/62667"""
    cause = "leak"
    blame = ["new_session", "restore_variable", "reload_model"]
    carriers = ["c_malloc", "c_mmap", "cpp_vector", "numpy", "cuda"]
    structures = ["loop", "nested", "threads"]
    factors = [0.5, 1]
    graph = store()
    variables = store()

    def import_graph():
        put(graph, 0, make(B // 40))

    def restore_variable(k):
        keep(variables, make(B // 3000 + k % 3 * (B // 9000)))

    def new_session():
        for k in range(6):
            restore_variable(k)

    def reload_model():
        import_graph()
        new_session()

    def predict(i):
        x = make(B // 1000 + length(i) * 24)
        drop(x)

    def handle(i):
        if i % 2 == 1:
            reload_model()
        predict(i)


class HistoryReachesItsCap:
    """What looks like a leak for half a day is a history that reaches its thirty days, a table of
    neighbours that settles, and a pool of sessions that fills.
    https://github.com/amule-project/amule/issues/712"""
    cause = "healthy"
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text"]
    structures = ["loop", "threads", "asyncio"]
    factors = [1, 2]
    requests = 900
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    history = store()
    neighbours = store()
    sessions = store()

    def record_rate(i):
        keep(history, make(B // 2600))
        if len(history) > 600:
            pop(history)

    def meet_neighbour(i):
        put(neighbours, length(i) % 160, make(B // 1900 + i % 5 * (B // 20000)))

    def resume_session(i):
        if len(sessions) < 40:
            keep(sessions, make(B // 400))

    def handle(i):
        record_rate(i)
        meet_neighbour(i)
        if i % 5 == 0:
            resume_session(i)
        x = make(B // 700 + length(i) * 50)
        drop(x)
