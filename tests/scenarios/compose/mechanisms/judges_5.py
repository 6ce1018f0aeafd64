"""Set aside: these are run and counted like all others, and nobody who mends rules opens them.

The fifth part of judges.py, whose first lines say why."""


class HandlersOfEachEmission:
    """Each emission subscribes two handlers to a bus, which wait for its answer; neither is taken
    off when the answer came, and each holds the scope of its call.
    https://github.com/socket-link/ampere/issues/762"""
    cause = "leak"
    blame = ["subscribe", "wait_for_reply", "emission"]
    carriers = ["c_malloc", "c_small", "cpp_map", "cpp_vector", "py_small", "py_large", "py_text"]
    structures = ["loop", "asyncio", "threads", "forked", "nested"]
    factors = [0.5, 1]
    handlers = store()
    events = store()

    def subscribe(n):
        keep(handlers, make(n))

    def wait_for_reply(i):
        subscribe(B // 5500 + length(i) * (B // 8000000))
        subscribe(B // 5500 + i % 7 * (B // 30000))

    def publish(i):
        x = make(1500 + length(i) * length(i + 2) // 20)
        drop(x)

    def emission(i):
        wait_for_reply(i)
        publish(i)
        if length(i + 4) > 800:
            wait_for_reply(i + 1)

    def handle(i):
        emission(i)


class PastOfLongTexts:
    """A model made for generation embeds texts, and returns the keys and values of each layer
    with the vectors; of texts that are cut in windows, those of the last window are kept for a
    next step that never comes. https://github.com/michaelfeil/infinity/issues/517"""
    cause = "leak"
    blame = ["layer_past", "encode_window", "embed_text"]
    carriers = ["numpy", "c_mmap"] + DEVICE
    structures = ["loop", "nested", "asyncio"]
    factors = [0.5, 1]
    weights = store()
    past = store()

    def weights_setup():
        for layer in range(10):
            keep(weights, make(B // 150 + layer % 4 * (B // 1800)))

    def layer_past(tokens):
        keep(past, make(tokens * (B // 1000000)))

    def encode_window(tokens, last):
        x = make(tokens * (B // 40000))
        if last > 0:
            for layer in range(4):
                layer_past(tokens)
        drop(x)

    def embed_text(i):
        windows = length(i) * length(i + 1) // 300000
        for k in range(windows):
            encode_window(512, 0)
        if windows > 0:
            encode_window(100 + length(i + 2) % 412, 1)
        else:
            encode_window(length(i) // 2, 0)

    def handle(i):
        embed_text(i)


class AutomatonOfEachRule:
    """Rules that users wrote are compiled when their project sends something, and each gets states
    while it is matched, up to a size; there are always more projects.
    https://github.com/getsentry/relay/pull/505"""
    cause = "state-retention"
    also = ["leak"]
    blame = ["compile_rule", "add_states", "match_rule"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_large"]
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    rules = store()
    automata = store()

    def compile_rule(project):
        put(rules, project, make(B // 6000 + project % 9 * (B // 20000)))

    def add_states(project, matches):
        put(automata, project, make(B // 3500 + matches * (B // 4000)))

    def match_rule(project, matches):
        if project == len(rules):
            compile_rule(project)
        add_states(project, matches)

    def handle(i):
        x = make(3000 + length(i) * 60)
        newest = i // 5
        match_rule(newest, i % 5)
        if newest > 20:
            match_rule(newest - 1 - length(i) % 20, 5)
        drop(x)


class ScoresOfTheWholeChat:
    """Each turn of a chat is run on all turns before it, and gives a row of scores for every
    position, of which the last one is sampled from. The first chats end after some turns.
    https://github.com/google-deepmind/gemma/pull/698"""
    cause = "prompt-growth"
    blame = ["all_scores", "hidden_states", "chat_turn"]
    carriers = ["numpy", "c_mmap", "cpp_vector"] + DEVICE
    structures = ["loop", "nested"]
    factors = [0.5, 1]
    weights = store()
    turns = store()

    def weights_setup():
        for layer in range(12):
            keep(weights, make(B // 200 + layer % 5 * (B // 5000)))

    def add_turn(i):
        keep(turns, make(4096 + length(i) * length(i + 1) // 100))

    def hidden_states(tokens):
        return make(tokens * (B // 500000))

    def all_scores(tokens):
        return make(tokens * (B // 130000))

    def chat_turn(i):
        add_turn(i)
        tokens = total(turns) // 20
        x = hidden_states(tokens)
        y = all_scores(tokens)
        drop(x)
        drop(y)

    def handle(i):
        if i < 170:
            if length(i + 6) < 180:
                clear(turns)
            if len(turns) > 24:
                clear(turns)
        else:
            for k in range(4):
                add_turn(i + k)
        chat_turn(i)


class SlotForEveryNumber:
    """A snapshot has a slot for each number up to the highest, and its table doubles on the way;
    a shard whose documents were replaced for years has few documents and high numbers.
    https://github.com/weaviate/weaviate/pull/11790"""
    cause = "oversized-intermediate"
    blame = ["node_slots", "ensure_capacity", "write_snapshot"]
    carriers = ["numpy", "c_malloc", "c_mmap", "cpp_vector", "py_bytes"]
    structures = ["loop", "nested"]
    shard = store()

    def read_shard_setup():
        for k in range(120):
            keep(shard, make(B // 1500 + length(k) * (B // 8000000)))

    def node_slots(n):
        return make(n)

    def ensure_capacity(highest):
        room = 8192
        x = node_slots(room)
        while room < highest:
            room = room * 2
            y = node_slots(room)
            drop(x)
            x = y
        drop(x)

    def write_snapshot(highest):
        ensure_capacity(highest)
        z = make(B // 900)
        drop(z)

    def handle(i):
        x = make(2000 + length(i) * 30)
        drop(x)
        if i % 3 == 2:
            write_snapshot(B // 500 + length(i) * (B // 60000))
        if i == 170:
            write_snapshot(B * 3)


class ColumnOfEachCategory:
    """Columns become a column for each of their values before a model sees them, which is a few
    more; one table has a column in which hardly two rows are alike.
    https://github.com/automl/Auto-PyTorch/pull/432"""
    cause = "oversized-intermediate"
    blame = ["one_hot", "encode_table", "scale_columns"]
    carriers = ["numpy", "c_mmap", "cpp_vector"] + DEVICE
    structures = ["loop", "asyncio", "nested"]
    pipeline = store()

    def pipeline_setup():
        for k in range(18):
            keep(pipeline, make(B // 500 + k % 6 * (B // 3000)))

    def one_hot(rows, values):
        return make(rows * values * (B // 20000000) + 1024)

    def scale_columns(x):
        return make(size(x))

    def encode_table(rows, values):
        x = one_hot(rows, values)
        y = scale_columns(x)
        drop(x)
        drop(y)

    def handle(i):
        rows = length(i) * 4
        values = 20 + length(i + 1) // 8
        if i % 43 == 42:
            rows = 9000
            values = 8700
        encode_table(rows, values)


class CopyOfTheLoadedModel:
    """A model is read whole and then copied for the device on which it was read; only when all is
    there, the first one goes. https://github.com/OpenNMT/CTranslate2/issues/1787"""
    cause = "oversized-model"
    unnamed = ["oversized-intermediate"]
    blame = ["read_variable", "clone_variable", "clone_model", "load_model"]
    carriers = ["c_malloc", "c_mmap", "cpp_vector", "numpy", "py_mmap"]
    structures = ALONE
    factors = [0.5, 1]
    variables = store()
    replica = store()

    def read_variable(k):
        keep(variables, make(B // 115 + k % 10 * (B // 2800)))

    def clone_variable(k):
        keep(replica, make(size(item(variables, k))))

    def load_model():
        for k in range(84):
            read_variable(k)

    def clone_model():
        for k in range(len(variables)):
            clone_variable(k)

    def replica_setup():
        load_model()
        clone_model()
        clear(variables)

    def handle(i):
        x = make(B // 700 + length(i) * 30)
        drop(x)


class SamplerForTheLargestBatch:
    """A scheduler makes its sampler when it starts, with packed scores, candidates and their ranks
    for the largest batch over the whole vocabulary; batches of four are served.
    https://github.com/microsoft/onnxruntime-genai/pull/2343"""
    cause = "batch-prealloc"
    unnamed = ["oversized-model", "oversized-intermediate"]
    blame = ["sampler_buffer", "ensure_capacity", "new_scheduler"]
    carriers = ["c_mmap", "numpy"] + DEVICE
    structures = ["loop", "nested"]
    factors = [0.5, 1]
    weights = store()
    workspace = store()

    def load_weights():
        for k in range(26):
            keep(weights, make(B // 85 + k % 3 * (B // 1700)))

    def sampler_buffer(max_batch, vocabulary, bytes):
        keep(workspace, make(max_batch * (vocabulary // 1000) * bytes * (B // 7000000)))

    def ensure_capacity(max_batch, vocabulary):
        sampler_buffer(max_batch, vocabulary, 4)
        sampler_buffer(max_batch, vocabulary, 4)
        sampler_buffer(max_batch, vocabulary, 8)
        sampler_buffer(max_batch, vocabulary, 12)
        sampler_buffer(max_batch, vocabulary, 4)

    def new_scheduler(max_batch):
        ensure_capacity(max_batch, 201000)

    def engine_setup():
        load_weights()
        new_scheduler(1024)

    def handle(i):
        x = make(B // 600)
        drop(x)


class NodesOfOpenLedgers:
    """Nodes of a ledger's tree are read into a cache, and a sweep takes them, but for each fourth,
    which a ledger that is open still has. Each ledger has larger nodes than the one before.
    https://github.com/XRPLF/rippled/pull/6022"""
    cause = "fragmentation"
    blame = ["read_node", "pin_node", "load_ledger"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "numpy", "py_bytes"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none", "WarmCache"]
    nodes = store()
    pinned = store()

    def read_node(n):
        keep(nodes, make(n))

    def pin_node(n):
        keep(pinned, make(n))

    def load_ledger(n):
        for k in range(B * 44 // 100 // n):
            if k % 4 == 3:
                pin_node(n + length(k))
            else:
                read_node(n + length(k))

    def sweep():
        clear(nodes)

    def node_size(ledger):
        n = 9000
        for k in range(ledger):
            if n < 60000:
                n = n * 16 // 5
        return n

    def handle(i):
        x = make(1500 + length(i) * 6)
        drop(x)
        if i % 50 == 49:
            load_ledger(node_size(i // 50))
            sweep()


class BodiesBeforeThePermit:
    """Four requests may run at a time; those that wait for a permit have been read already, and
    wait with their bodies. https://github.com/twitter/finagle/issues/241"""
    cause = "concurrency"
    blame = ["read_body", "parse_headers", "accept_request"]
    carriers = ["py_bytes", "py_text", "py_large", "numpy"]
    structures = ["asyncio"]
    crowd = 90

    def parse_headers():
        return make(6000)

    def read_body(i):
        n = length(i) * length(i + 1) // 1000
        return make(B // 60 + n * (B // 16000))

    def accept_request(i, ms):
        x = parse_headers()
        y = read_body(i)
        wait(ms)
        drop(y)
        drop(x)

    def health_check(i):
        x = make(2000 + length(i) * 10)
        wait(1)
        drop(x)

    def handle(i):
        if i < 130:
            if i % 8 == 5:
                accept_request(i, 0)
            health_check(i)
        else:
            accept_request(i, 2600)


class AdmittedReadsGrow:
    """A read is let in when there is a place for it, and takes a page for each partition that it
    meets; most meet a few, and those of one table meet hundreds, all at the same time.
    https://github.com/scylladb/scylladb/pull/11955"""
    cause = "concurrency"
    blame = ["read_page", "second_page", "third_page", "admit_read"]
    carriers = ["c_malloc", "c_mmap", "cpp_vector", "numpy"]
    structures = ["threads"]
    crowd = 20
    factors = [1, 2]
    limiters = ["data", "cgroup", "rss"]
    tables = store()

    def tables_setup():
        for k in range(24):
            keep(tables, make(B // 600 + k % 5 * (B // 4000)))

    def read_page(i):
        return make(B // 90 + length(i) * (B // 120000))

    def second_page(i):
        return make(B // 40 + length(i) * (B // 90000))

    def third_page(i):
        return make(B // 14)

    def admit_read(i, ms):
        x = read_page(i)
        wait(ms)
        y = second_page(i)
        wait(ms)
        z = third_page(i)
        wait(ms * 4)
        drop(z)
        drop(y)
        drop(x)

    def point_read(i):
        x = make(4000 + length(i) * 25)
        wait(1)
        drop(x)

    def handle(i):
        if i < 150:
            if i % 40 == 15:
                admit_read(i, 1)
            point_read(i)
        else:
            admit_read(i, 600)


class StoreBehindTheFlush:
    """Entries go to a table in memory; a full one waits for its flush while the next one fills, so
    that there are two for a time, and writers stand still until the first is on disk.
    https://github.com/thomasjungblut/go-sstables/issues/37"""
    cause = "healthy"
    carriers = ["c_malloc", "c_small", "cpp_map", "cpp_string", "py_small", "py_bytes"]
    structures = ["loop", "nested"]
    factors = [1, 2]
    requests = 900
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    even_table = store()
    odd_table = store()
    filters = store()

    def add_even(i):
        keep(even_table, make(B // 1800 + length(i) * (B // 8000000)))

    def add_odd(i):
        keep(odd_table, make(B // 1800 + length(i) * (B // 8000000)))

    def flush_done(table):
        if table % 2 == 0:
            clear(odd_table)
        else:
            clear(even_table)
        put(filters, table % 8, make(B // 700))

    def handle(i):
        table = i // 250
        if table % 2 == 0:
            add_even(i)
        else:
            add_odd(i)
        if i % 250 == 90:
            flush_done(table)
        x = make(2500 + length(i) * 80)
        drop(x)


class LargestBatchSoFar:
    """Batches are as long as their longest text; each that is longer than all before has the
    process take more of the device, which it keeps, until the longest of all was seen.
    https://github.com/KaijuML/data-to-text-hierarchical/issues/7"""
    cause = "healthy"
    carriers = ["numpy", "c_malloc"] + DEVICE
    structures = ["loop", "nested"]
    factors = [1, 2]
    requests = 260
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    parameters = store()
    activations = store()

    def parameters_setup():
        for layer in range(14):
            keep(parameters, make(B // 160 + layer % 4 * (B // 4000)))

    def layer_activation(tokens):
        keep(activations, make(tokens * (B // 22000)))

    def train_batch(tokens):
        for layer in range(6):
            layer_activation(tokens)
        x = make(tokens * (B // 120000))
        drop(x)
        clear(activations)

    def handle(i):
        tokens = 60 + length(i) * length(i + 1) // 1000 * length(i + 2) // 1000
        train_batch(tokens)
