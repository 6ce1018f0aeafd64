"""Set aside: these are run and counted like all others, and nobody who mends rules opens them.

The programs here and in judges_2.py to judges_4.py say whether a rule holds for what it was not
made for. Whoever changes a rule looks at the share that is right, and at no program, label or trace
of these. Once they were looked at, they go where opened.py is, and new ones are drawn."""


class SpansOfDoneTasks:
    """The span of a finished task is set to nothing, and the task stays as its key, with its agent
    and its tools. https://github.com/crewAIInc/crewAI/issues/4222"""
    cause = "leak"
    also = ["state-retention"]  # a table by task
    blame = ["run_task", "build_agent", "start_span"]
    carriers = ["py_bytes", "py_text", "py_large", "cpp_string", "c_malloc"]
    structures = ["loop", "threads", "asyncio", "nested"]
    factors = [0.5, 1]
    execution_spans = store()

    def start_span(x):
        keep(execution_spans, x)

    def build_agent(task):
        for tool in range(5):
            x = make(9000 + tool * 2500)
            start_span(x)
        y = make(60000 + length(task) * 40)
        start_span(y)

    def run_task(task):
        build_agent(task)
        z = make(B // 700)
        drop(z)

    def handle(i):
        for k in range(3):
            run_task(i * 3 + k)


class BlocksOfAbortedLoads:
    """One client in five leaves while its blocks are fetched from another node; they wait for the
    end of the transfer, which nobody reports. All others give theirs back.
    https://github.com/vllm-project/vllm/issues/46283"""
    cause = "leak"
    blame = ["allocate_block", "load_remote"]
    carriers = DEVICE
    structures = ["loop", "threads", "asyncio"]
    running = store()
    awaiting_remote = store()

    def allocate_block():
        return make(B // 700)

    def load_remote(i):
        for k in range(4 + length(i) // 200):
            x = allocate_block()
            if i % 5 == 2:
                keep(awaiting_remote, x)
            else:
                keep(running, x)

    def finish_request():
        clear(running)

    def handle(i):
        load_remote(i)
        y = make(B // 100)
        drop(y)
        finish_request()


class EndOfStreamMarkers:
    """Each part of a streamed reply goes when it was read; the object that marks the end of the
    stream never does. https://github.com/ray-project/ray/issues/38089"""
    cause = "leak"
    blame = ["put_object", "end_stream", "stream_reply"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes"]
    structures = ["loop", "threads", "asyncio", "forked"]
    parts = store()
    memory_store = store()

    def put_object(n):
        return make(n)

    def end_stream():
        keep(memory_store, put_object(B // 6000))

    def stream_reply(i):
        for k in range(3 + length(i) // 150):
            keep(parts, put_object(2500 + k * 300))
        clear(parts)
        end_stream()

    def handle(i):
        x = make(B // 500)
        for k in range(12):
            stream_reply(i * 12 + k)
        drop(x)


class StreamsOfEndedJobs:
    """A job ends, and nobody closes its audio stream: the ring of frames and the resampler stay.
    https://github.com/livekit/agents/issues/2166"""
    cause = "leak"
    blame = ["open_audio_stream", "subscribe_track"]
    carriers = ["c_malloc", "cpp_vector", "numpy", "py_bytes", "py_large"]
    structures = ["loop", "threads", "asyncio"]
    rings = store()
    resamplers = store()

    def open_audio_stream():
        for frame in range(12):
            keep(rings, make(B // 9000))
        keep(resamplers, make(B // 2500))

    def subscribe_track():
        open_audio_stream()

    def run_job(i):
        subscribe_track()
        for frame in range(8 + length(i) // 100):
            x = make(19200)
            drop(x)

    def handle(i):
        run_job(i)


class AdapterStaysAttached:
    """Another adapter is put in use every fifth request; the model's modules hold on to the one
    before, which nobody can name any more. https://github.com/turboderp-org/exllamav2/issues/100"""
    cause = "leak"
    also = ["state-retention"]  # no trace tells it from adapters that are kept to be used again
    blame = ["attach_adapter", "load_tensor"]
    carriers = DEVICE
    structures = ["loop", "nested"]
    modules = store()

    def load_tensor(n):
        return make(n)

    def attach_adapter():
        for module in range(28):
            keep(modules, load_tensor(B // 3500))
            keep(modules, load_tensor(B // 2300))

    def generate(i):
        x = make(B // 60 + length(i) * (B // 200000))
        y = make(B // 150)
        drop(y)
        drop(x)

    def handle(i):
        if i % 5 == 0:
            attach_adapter()
        generate(i)


class TimersOfOldCookies:
    """Each reply sets its cookies anew, and each cookie a timer for its expiry, far off; the timer
    of the value before is not cancelled. https://github.com/aio-libs/aiohttp/issues/1061"""
    cause = "leak"
    blame = ["schedule_expiry", "update_cookies", "call_at"]
    carriers = ["py_bytes", "py_text", "c_malloc", "cpp_vector", "cpp_string"]
    structures = ["asyncio", "nested", "loop"]
    factors = [0.5, 1]
    scheduled = store()

    def call_at(n):
        keep(scheduled, make(n))

    def schedule_expiry(cookie):
        call_at(900 + cookie % 5 * 160)

    def update_cookies():
        for cookie in range(6):
            schedule_expiry(cookie)

    def fetch(i):
        x = make(6000 + length(i) * 30)
        update_cookies()
        drop(x)

    def handle(i):
        for k in range(25):
            fetch(i * 25 + k)


class ThreadsOnlyEverRead:
    """Whoever asks for a thread that was never written gets nothing, and leaves an empty entry for
    it with those of its namespaces. https://github.com/langchain-ai/langgraph/issues/8754"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["get_tuple", "default_entry"]
    carriers = ["py_bytes", "py_text", "cpp_string", "cpp_vector", "c_malloc"]
    structures = ["asyncio", "loop", "threads"]
    storage = store()

    def default_entry(thread):
        for part in range(3):
            put(storage, thread * 3 + part, make(1800 + part * 900))

    def get_tuple(thread, known):
        x = make(4000)
        if known == 0:
            default_entry(thread)
        drop(x)

    def handle(i):
        y = make(B // 700)
        for k in range(40):
            get_tuple(i * 40 + k, k % 5 // 4)
        drop(y)


class SessionsWithoutDelete:
    """Tools and resources of a session go when its client says so, which one in thirty does.
    https://github.com/mark3labs/mcp-go/issues/723"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["initialize_session", "set_session_tools"]
    carriers = ["py_bytes", "py_text", "cpp_string", "cpp_vector", "c_malloc"]
    structures = ["asyncio", "threads", "loop", "forked"]
    factors = [0.5, 1]
    session_tools = store()
    session_resources = store()
    session_levels = store()

    def set_session_tools(session):
        put(session_tools, session, make(60000 + length(session) * 120))

    def initialize_session(session):
        set_session_tools(session)
        put(session_resources, session, make(20000 + length(session) * 60))
        put(session_levels, session, make(700))

    def delete_session(session):
        put(session_tools, session, hold())
        put(session_resources, session, hold())
        put(session_levels, session, hold())

    def handle(i):
        x = make(B // 600)
        for k in range(3):
            initialize_session(i * 3 + k)
        if i % 10 == 9:
            delete_session(i * 3)
        drop(x)


class VoicesStayLoaded:
    """Each voice that is asked for brings its own model, which a table without a bound keeps by
    name; a known voice loads nothing. https://github.com/Blaizzy/mlx-audio/pull/913"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["load_model", "read_weight", "synthesize"]
    carriers = ["numpy", "c_mmap"] + DEVICE
    structures = ["loop", "asyncio"]
    models = store()

    def read_weight(k):
        return make(B // 210 + k % 5 * (B // 9000))

    def load_model(voice):
        for k in range(10):
            put(models, voice * 10 + k, read_weight(k))

    def synthesize(i):
        if i % 18 == 0:
            load_model(i // 18)
        x = make(B // 60 + length(i) * (B // 100000))
        y = make(B // 90)
        drop(y)
        drop(x)

    def handle(i):
        synthesize(i)


class ItemsHoldTheirAgents:
    """A run's items are kept for the next turn, and each holds the agent that made it, with its
    instructions and its tools. https://github.com/openai/openai-agents-python/issues/2217"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["run_turn", "create_agent", "append_item"]
    carriers = ["py_bytes", "py_text", "py_large", "cpp_string"]
    structures = ["asyncio", "nested", "loop"]
    factors = [0.5, 1]
    items = store()

    def append_item(x):
        keep(items, x)

    def create_agent(i):
        x = make(70000 + length(i) * 50)
        append_item(x)
        for tool in range(8):
            y = make(11000 + tool * 900)
            append_item(y)

    def run_turn(i):
        create_agent(i)
        z = make(4000 + length(i) * 24)
        append_item(z)

    def handle(i):
        x = make(B // 400)
        run_turn(i)
        drop(x)


class PartitionsOfGoneClients:
    """Results lie on the worker by key until their client lets go of them; one client in three is
    cut off, and its partitions lie on. https://github.com/dask/distributed/issues/1434"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["compute_partition", "put_result"]
    carriers = ["numpy", "cpp_vector", "py_large", "c_mmap"]
    structures = ["loop", "threads", "nested"]
    results = store()

    def put_result(key, n):
        put(results, key, make(n))

    def compute_partition(key):
        x = make(B // 1200)
        put_result(key, B // 800 + length(key) * (B // 900000))
        drop(x)

    def release_futures(client):
        for k in range(5):
            put(results, client * 5 + k, hold())

    def handle(i):
        for k in range(5):
            compute_partition(i * 5 + k)
        if i % 3:
            release_futures(i)


class DocumentsHoldTensors:
    """Each parsed document is handed on and kept, and with it the transformer's output, which lies
    on the device. https://github.com/explosion/spaCy/issues/9086"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["predict", "set_annotations", "parse"]
    carriers = ["numpy"] + DEVICE
    structures = ["loop", "threads", "asyncio"]
    documents = store()

    def predict(words):
        x = make(B // 150 + words * (B // 150000))
        y = make(B // 900 + words * (B // 400000))
        drop(x)
        return y

    def set_annotations(x):
        keep(documents, x)

    def parse(i):
        set_annotations(predict(length(i)))

    def handle(i):
        parse(i)


class WholeTextEachToken:
    """Without a cache each step runs over all tokens so far: hidden states and the scores of every
    position. Short answers go well, and then one is long.
    https://github.com/huggingface/transformers/issues/15426"""
    cause = "prompt-growth"
    blame = ["forward", "attention", "project_scores"]
    carriers = ["numpy"] + DEVICE
    structures = ALONE
    factors = [0.5, 1]

    def attention(tokens):
        x = make(tokens * (B // 2200))
        y = make(tokens * (B // 2800))
        drop(x)
        return y

    def project_scores(tokens):
        return make(tokens * (B // 800))

    def forward(tokens):
        for layer in range(2):
            x = attention(tokens)
            drop(x)
        y = attention(tokens)
        z = project_scores(tokens)
        drop(y)
        drop(z)

    def handle(i):
        if i < 70:
            forward(40 + i % 10 * 4)
        else:
            forward(40 + (i - 70) * 10)


class ScratchpadOfAllSteps:
    """The prompt of an agent's next step is joined from all steps so far; runs of five steps go
    well, and then one goes round and round. https://github.com/langchain-ai/langchain/pull/5776"""
    cause = "prompt-growth"
    blame = ["construct_scratchpad", "plan_next", "format_prompt"]
    carriers = ["py_text", "py_bytes", "cpp_string", "cpp_vector"]
    structures = ALONE
    factors = [0.5, 1]
    steps = store()

    def construct_scratchpad():
        return make(total(steps) * 3)

    def format_prompt(x):
        return make(size(x) + B // 2000)

    def plan_next():
        x = construct_scratchpad()
        y = format_prompt(x)
        drop(x)
        drop(y)

    def call_tool(i):
        keep(steps, make(B // 420 + length(i) * (B // 900000)))

    def handle(i):
        call_tool(i)
        plan_next()
        if i < 75:
            if i % 5 == 4:
                clear(steps)


class EveryAgentHearsAll:
    """Each of four agents gets each message, and whoever speaks next renders all that it has heard;
    the messages get longer when they come to the matter.
    https://github.com/microsoft/autogen/issues/4648"""
    cause = "prompt-growth"
    blame = ["render_history", "speak"]
    carriers = ["py_text", "py_bytes", "py_large", "cpp_string", "numpy"]
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    planner = store()
    coder = store()
    critic = store()
    user = store()

    def broadcast(n):
        keep(planner, make(n))
        keep(coder, make(n))
        keep(critic, make(n))
        keep(user, make(n))

    def render_history(n):
        return make(n * 8)

    def speak(i):
        x = render_history(total(planner))
        y = make(size(x) // 2)
        drop(x)
        drop(y)

    def handle(i):
        n = B // 9000 + length(i) * 8
        if i > 60:
            n = B // 900 + length(i) * (B // 2000000)
        broadcast(n)
        speak(i)


class OneDocumentOfThousands:
    """Texts of a page are cut into spans, which run as one batch; one is a thousand pages long.
    https://github.com/explosion/spaCy/issues/7268"""
    cause = "prompt-growth"
    also = ["oversized-intermediate"]
    blame = ["run_transformer", "stack_spans", "attention"]
    carriers = ["numpy"] + DEVICE
    structures = ["loop", "asyncio"]

    def stack_spans(words):
        return make(words * (B // 100000))

    def attention(words):
        return make(words * (B // 36000))

    def run_transformer(words):
        x = stack_spans(words)
        for layer in range(4):
            y = attention(words)
            drop(y)
        drop(x)

    def handle(i):
        words = length(i)
        if i % 90 == 89:
            words = 100000
        run_transformer(words)


class HistoryTwicePerHandover:
    """The whole history is handed to each next agent, which adds it to the one it has: with every
    change of the speaker the prompt is twice as long.
    https://github.com/microsoft/semantic-kernel/issues/12675"""
    cause = "prompt-growth"
    also = ["state-retention"]  # the messages are kept as well, as many as are rendered
    blame = ["invoke_agent", "render", "hand_over", "receive"]
    carriers = ["py_text", "py_bytes", "cpp_string", "cpp_vector"]
    structures = ["loop", "nested"]
    factors = [0.5, 1]
    messages = store()

    def receive(n):
        keep(messages, make(n))

    def render():
        return make(total(messages) * 3)

    def invoke_agent():
        x = render()
        drop(x)

    def hand_over():
        count = len(messages)
        for k in range(count):
            receive(size(item(messages, k)))

    def handle(i):
        receive(B // 9000 + length(i) * 10)
        invoke_agent()
        if i % 12 == 11:
            hand_over()


class ScoresOfEveryInputRow:
    """Every batch has as many tokens; this one wants the scores of all its rows, and not of the
    last ones, twice in full. https://github.com/sgl-project/sglang/pull/31498"""
    cause = "oversized-intermediate"
    blame = ["get_logits", "log_softmax", "process_logits"]
    carriers = DEVICE
    structures = ["loop", "asyncio"]

    def hidden_states():
        return make(B // 45)

    def get_logits(rows):
        return make(rows * (B // 6000))

    def log_softmax(x):
        return make(size(x))

    def process_logits(rows):
        x = get_logits(rows)
        y = log_softmax(x)
        drop(x)
        drop(y)

    def handle(i):
        x = hidden_states()
        rows = length(i) // 10
        if i % 80 == 79:
            rows = 7800
        process_logits(rows)
        drop(x)


class BatchDecodedAtOnce:
    """The images of a batch are denoised in their small form, and then decoded all at once; most
    ask for one to three, and one for forty. https://github.com/huggingface/diffusers/pull/1150"""
    cause = "oversized-intermediate"
    blame = ["decode_latents", "up_block", "generate"]
    carriers = DEVICE
    structures = ["loop", "nested"]

    def denoise(images):
        for step in range(6):
            x = make(images * (B // 1500))
            drop(x)

    def up_block(images):
        return make(images * (B // 48))

    def decode_latents(images):
        x = up_block(images)
        y = up_block(images)
        z = up_block(images)
        drop(x)
        drop(y)
        drop(z)

    def generate(images):
        latents = make(images * (B // 3000))
        denoise(images)
        decode_latents(images)
        drop(latents)

    def handle(i):
        images = 1 + length(i) // 334
        if i % 64 == 63:
            images = 40
        generate(images)


class PivotOfManyRows:
    """A pivot makes groups, a list for each, and one column for each key, before it has a result;
    a frame of millions of rows comes. https://github.com/pola-rs/polars/issues/2968"""
    cause = "oversized-intermediate"
    blame = ["group_rows", "spread_columns", "pivot"]
    carriers = ["cpp_vector", "numpy", "c_malloc", "c_mmap"]
    structures = ALONE
    columns = store()

    def group_rows(rows):
        return make(rows * 48)

    def spread_columns(rows):
        for key in range(20):
            keep(columns, make(rows * 8))

    def pivot(rows):
        x = group_rows(rows)
        spread_columns(rows)
        y = make(total(columns) // 40)
        clear(columns)
        drop(x)
        return y

    def handle(i):
        rows = length(i) * (B // 4000000)
        if i % 72 == 71:
            rows = B // 60
        x = pivot(rows)
        drop(x)


class LogsReadToBeDeleted:
    """A nightly clean-up reads all old log lines with their prompts to find out what to delete;
    hourly ones before found a few. https://github.com/BerriAI/litellm/issues/21908"""
    cause = "oversized-intermediate"
    blame = ["fetch_old_logs", "read_row", "clean_up"]
    carriers = ["py_text", "py_bytes", "cpp_string", "c_malloc"]
    structures = ["loop", "asyncio"]
    rows = store()

    def read_row(k):
        return make(B // 2400 + length(k) * (B // 1500000))

    def fetch_old_logs(count):
        for k in range(count):
            keep(rows, read_row(k))

    def clean_up(count):
        fetch_old_logs(count)
        x = make(count * 40 + 64)
        clear(rows)
        drop(x)

    def log_request(i):
        x = read_row(i)
        drop(x)

    def handle(i):
        log_request(i)
        if i % 25 == 24:
            if i % 100 == 99:
                clean_up(4000)
            else:
                clean_up(20 + length(i) // 40)


class DistancesOfAllQueries:
    """A search has a distance for each query and each vector of the lists it probes; some thousand
    queries come in one call. https://github.com/facebookresearch/faiss/issues/2484"""
    cause = "oversized-intermediate"
    blame = ["scan_lists", "alloc_temporary", "search"]
    carriers = ["numpy"] + DEVICE
    structures = ["loop", "asyncio"]
    lists = store()

    def lists_setup():
        for k in range(24):
            keep(lists, make(B // 150))

    def alloc_temporary(queries):
        return make(queries * (B // 12000))

    def scan_lists(queries):
        x = alloc_temporary(queries)
        y = make(queries * 800)
        drop(x)
        return y

    def search(queries):
        x = scan_lists(queries)
        drop(x)

    def handle(i):
        queries = 1 + length(i) // 10
        if i % 76 == 75:
            queries = 40000
        search(queries)


class WholeInputOneForward:
    """All texts of a call are embedded in one pass, however many they are; a call brings a thousand
    of them, and not ten. https://github.com/jundot/omlx/pull/1484"""
    cause = "oversized-intermediate"
    blame = ["embed", "encode_layer"]
    carriers = ["numpy", "cpp_vector", "c_malloc"]
    structures = ["loop", "asyncio"]

    def encode_layer(texts):
        x = make(texts * (B // 600))
        y = make(texts * (B // 400))
        drop(x)
        return y

    def embed(texts):
        x = make(texts * (B // 1200))
        for layer in range(5):
            y = encode_layer(texts)
            drop(y)
        drop(x)

    def handle(i):
        texts = 1 + length(i) // 80
        if i % 85 == 84:
            texts = 1000
        embed(texts)
