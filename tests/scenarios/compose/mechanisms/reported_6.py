"""Mechanisms after further public reports: holes, requests side by side, limits that are too low,
and healthy ones. They continue reported_5.py, whose first lines say more."""


class NamesAmongSymbols:
    """The symbols of a root are many texts of a few KiB with interned names between them; the root
    is closed, its names stay, and the rows of a search fit no more where the symbols were.
    https://github.com/cortexkit/aft/issues/205"""
    cause = "fragmentation"
    blame = ["similar_rows", "score_row", "read_symbol", "intern_name", "open_root"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "numpy", "py_bytes"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none", "WarmCache"]
    symbols = store()
    names = store()
    rows = store()

    def read_symbol(k):
        keep(symbols, make(7000 + length(k) * 9))

    def intern_name(k):
        keep(names, make(1200 + length(k)))

    def open_root(count):
        for k in range(count):
            read_symbol(k)
            if k % 4 == 3:
                intern_name(k)

    def close_root():
        clear(symbols)

    def score_row(k):
        keep(rows, make(62000 + length(k) * 40))

    def similar_rows(count):
        for k in range(count):
            score_row(k)
        clear(rows)

    def handle(i):
        x = make(2000 + length(i) * 8)
        drop(x)
        if i == 70:
            open_root(B * 74 // 100 // 12500)
            close_root()
        if i % 12 == 11:
            similar_rows(B * 6 // 10 // 84000)


class ReplacedEmbeddings:
    """An encoder's cache holds a fixed number of embeddings, each as long as its video, and puts a
    new one in the place of any other: what is free lies in pieces, and a long clip finds none.
    https://github.com/pytorch/pytorch/issues/29554"""
    cause = "fragmentation"
    blame = ["encode_clip", "cache_embedding", "encode_video"]
    carriers = ["torch"]
    structures = ALONE
    factors = [1]
    backgrounds = ["none", "WarmCache"]
    embeddings = store()
    drafts = store()

    def cache_embedding(i):
        put(embeddings, length(i) % 9, make(B // 150 + length(i + 5) % 7 * (B // 900)))

    def encode_video(i):
        n = 0
        while n < 12:
            keep(drafts, make(B // 70 + length(i * 12 + n) % 5 * (B // 300)))
            if n == 4:
                cache_embedding(i)
            n = n + 1
        clear(drafts)

    def encode_clip():
        x = make(B * 52 // 100)
        drop(x)

    def handle(i):
        x = make(B // 2500 + length(i) * 32)
        drop(x)
        if i > 40:
            encode_video(i)
        if i % 9 == 8:
            encode_clip()


class TwoKindsOfSteps:
    """Training and evaluation take turns with batches of other sizes; a metric of each part of an
    evaluation is kept until the end, and it is cut from the blocks that training goes back to.
    https://github.com/pytorch/pytorch/issues/31252"""
    cause = "fragmentation"
    blame = ["train_batch", "activation", "evaluate_part", "keep_metric"]
    carriers = ["torch"]
    structures = ["loop", "nested"]
    factors = [1]
    backgrounds = ["none", "WarmCache", "BoundedPool"]
    parameters = store()
    activations = store()
    scores = store()
    metrics = store()

    def parameters_setup():
        for k in range(6):
            keep(parameters, make(B // 64 - 4096))

    def activation(n):
        keep(activations, make(n))

    def train_batch():
        for k in range(4):
            activation(B // 6)
        clear(activations)

    def keep_metric(i):
        keep(metrics, make(B // 170 + length(i) * 256))

    def evaluate_part(i):
        for k in range(4):
            keep(scores, make(B // 7))
            if k < 3:
                keep_metric(i * 4 + k)
        clear(scores)

    def handle(i):
        x = make(B // 3000)
        drop(x)
        train_batch()
        if i > 47:
            if i % 4 == 0:
                evaluate_part(i)
        if len(metrics) > 30:
            clear(metrics)


class CompilesInAllWorkers:
    """Sixteen workers serve pages and compile what is sent to them; a compilation holds its tree,
    its code and its object, and nothing says how many there may be at a time.
    https://github.com/nurl-lang/nurl/pull/84"""
    cause = "concurrency"
    blame = ["parse_tree", "emit_code", "link_object", "compile_source"]
    carriers = ["c_malloc", "c_mmap", "cpp_vector", "numpy"]
    structures = ["threads"]
    crowd = 16
    factors = [1, 2]
    limiters = ["data", "cgroup", "rss"]
    templates = store()

    def templates_setup():
        for k in range(30):
            keep(templates, make(4000 + length(k) * 30))

    def parse_tree(i):
        return make(B // 22 + length(i) * (B // 60000))

    def emit_code(x):
        return make(size(x) * 2)

    def link_object():
        return make(B // 40)

    def compile_source(i, ms):
        x = parse_tree(i)
        y = emit_code(x)
        z = link_object()
        wait(ms)
        drop(z)
        drop(y)
        drop(x)

    def serve_page(i):
        x = make(3000 + length(i) * 20)
        wait(1)
        drop(x)

    def handle(i):
        if i < 130:
            if i % 34 == 16:
                compile_source(i, 1)
            serve_page(i)
        else:
            compile_source(i, 3200)


class StagingOfEachLoader:
    """Adapters are loaded by a pool of threads, each with a staging copy on the device of what it
    reads, for as long as the copy to its place takes; all tenants come back at the same time.
    https://github.com/NVIDIA/TensorRT-LLM/pull/9730"""
    cause = "concurrency"
    blame = ["staging_copy", "place_weight", "load_adapter"]
    carriers = DEVICE
    structures = ["threads", "asyncio"]
    crowd = 32
    base = store()
    adapters = store()

    def base_setup():
        for k in range(10):
            keep(base, make(B // 64 - 4096))

    def staging_copy(i):
        return make(B // 64 * (4 + i % 3) - 4096)

    def place_weight(i):
        put(adapters, i % 6, make(B // 400))

    def load_adapter(i, ms):
        x = staging_copy(i)
        wait(ms)
        place_weight(i)
        drop(x)

    def decode_step(i):
        x = make(B // 3500 + length(i) * 16)
        wait(1)
        drop(x)

    def handle(i):
        if i < 150:
            if i % 50 == 25:
                load_adapter(i, 1)
            decode_step(i)
        else:
            load_adapter(i, 3500)


class TunnelsWithLargeBuffers:
    """The write buffer of each tunnel doubles while there is more to read, and goes with the
    tunnel; one download makes it thirty times as large, and a hundred are open at once.
    https://github.com/erebe/wstunnel/pull/538"""
    cause = "concurrency"
    blame = ["write_buffer", "first_buffer", "relay_tunnel"]
    carriers = ["py_bytes", "py_text", "py_large", "numpy"]
    structures = ["asyncio"]
    crowd = 110

    def first_buffer():
        return make(B // 1400)

    def write_buffer(n):
        return make(n)

    def relay_tunnel(i, ms):
        x = first_buffer()
        wait(ms)
        y = write_buffer(B // 350 + length(i) * 30)
        drop(x)
        wait(ms)
        z = write_buffer(B // 45 + length(i) * (B // 120000))
        drop(y)
        wait(ms * 3)
        drop(z)

    def handle(i):
        if i < 140:
            relay_tunnel(i, 0)
        else:
            relay_tunnel(i, 700)


class MessagesToManyUsers:
    """A service polls its messages and renders them for whoever is logged in; with all users of a
    test there, what it always needed is a little more than its limit.
    https://github.com/lsst-sqre/phalanx/pull/4825"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text"]
    structures = ["loop", "asyncio"]
    limiters = ["as", "data", "cgroup"]
    factors = [1]
    backgrounds = ["none"]
    repository = store()
    messages = store()
    rendered = store()

    def repository_setup():
        for k in range(90):
            keep(repository, make(B // 121 + k % 6 * (B // 5000)))

    def poll_messages(i):
        put(messages, i % 12, make(B // 900 + length(i) * (B // 3000000)))

    def render_for(k):
        keep(rendered, make(B // 140 + length(k) * (B // 400000)))

    def handle(i):
        poll_messages(i)
        first = (i + 700) * 70
        n = 1
        while length(first + n) < 750:
            n = n + 1
        for k in range(n + 5):
            render_for(first + k)
        clear(rendered)


class PooledParticlesOnASlice:
    """A batch pools the particles of some pictures, more of them or fewer, beside the reference;
    on a slice of half a device the larger batches do not fit, on all of it they always did.
    https://github.com/3dem/relion/issues/1262"""
    cause = "external"
    # The second or third step may be too large: then the trace shows the pool above all.
    also = ["batch-prealloc", "oversized-model"]
    carriers = DEVICE
    structures = ["loop", "asyncio"]
    limiters = ["gpu"]
    factors = [1]
    backgrounds = ["none"]
    reference = store()
    particles = store()

    def reference_setup():
        for k in range(51):
            keep(reference, make(B // 64 - 65536))

    def pool_particle():
        keep(particles, make(B // 64 - 65536))

    def expectation_step(count):
        for k in range(count):
            pool_particle()
        clear(particles)

    def handle(i):
        first = (i + 28000) * 60
        n = 1
        while length(first + n) < 640:
            n = n + 1
        expectation_step(n + 2)


class WorkUnitsOfAllSizes:
    """Work units come in all sizes, a few at a time; every fourth round their frames are written,
    and the cap is what they need together, as a rule.
    https://github.com/richstokes/k8s-folding-at-home/issues/9"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "py_bytes", "py_text"]
    structures = ["loop", "nested"]
    limiters = ["as", "data"]
    factors = [1]
    backgrounds = ["none"]
    cores = store()
    atoms = store()
    frames = store()

    def cores_setup():
        for k in range(40):
            keep(cores, make(B // 70 + k % 8 * (B // 4000)))

    def read_atoms(k):
        keep(atoms, make(B // 120 + length(k) * (B // 200000)))

    def write_frame(n):
        keep(frames, make(n))

    def checkpoint():
        for k in range(6):
            write_frame(total(atoms) // 30)
        clear(frames)

    def handle(i):
        first = (i + 18200) * 70
        n = 1
        while length(first + n) < 720:
            n = n + 1
        for k in range(n + 18):
            read_atoms(first + k)
        if i % 4 == 3:
            checkpoint()
        clear(atoms)


class LoadTestsThenQuiet:
    """A load test holds the networks and replies of its requests until it is over; then comes a
    quiet time, and the next test. Resident memory stays where the tests brought it.
    https://github.com/cognizant-ai-lab/neuro-san/issues/1077"""
    cause = "healthy"
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_large", "numpy"]
    structures = ["loop", "nested"]
    factors = [1, 2]
    requests = 720
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    networks = store()
    replies = store()

    def build_network(i):
        keep(networks, make(B // 480 + length(i) * (B // 2400000)))

    def keep_reply(i):
        n = length(i) * length(i + 1) // 1000
        keep(replies, make(3000 + n * (B // 1500000)))

    def end_of_test():
        clear(replies)
        clear(networks)

    def handle(i):
        x = make(B // 800 + length(i) * 50)
        if i % 180 < 110:
            build_network(i)
            keep_reply(i)
        if i % 180 == 110:
            end_of_test()
        drop(x)


class QueueWhileTheHostIsAway:
    """Events wait in memory while nobody takes them, as far as a bound, beyond which new ones are
    not kept; then the host is back and all are sent, at once, until it is away again.
    https://github.com/elastic/beats/issues/19644"""
    cause = "healthy"
    carriers = ["c_malloc", "c_small", "cpp_string", "cpp_map", "py_small", "py_text"]
    structures = ["loop", "asyncio"]
    factors = [1, 2]
    requests = 1100
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    events = store()
    processes = store()

    def collect_event(i):
        x = make(B // 3000 + length(i) * (B // 5000000))
        if len(events) < 500:
            keep(events, x)
        else:
            drop(x)

    def send_all():
        clear(events)

    def watch_process(i):
        put(processes, length(i) % 200, make(B // 2600))

    def handle(i):
        collect_event(2 * i)
        collect_event(2 * i + 1)
        watch_process(i)
        if i % 400 < 90:
            send_all()


class SixResumedSessions:
    """The state of a conversation is kept for its next turn, grown by that turn, and there are six
    places; whoever comes back too late starts anew, in the place of the oldest.
    https://github.com/timtoole02/Camelid/pull/525"""
    cause = "healthy"
    carriers = ["numpy", "c_mmap", "cpp_vector"] + DEVICE
    structures = ["loop", "nested"]
    factors = [1, 2]
    requests = 600
    backgrounds = ["none", "WarmCache", "BoundedPool", "Sawtooth"]
    weights = store()
    sessions = store()

    def weights_setup():
        for layer in range(12):
            keep(weights, make(B // 110 + layer % 3 * (B // 3000)))

    def save_session(place, turns):
        put(sessions, place, make(B // 400 + turns * (B // 260)))

    def resume(i):
        place = length(i) % 6
        turns = 1 + i // 17 * 5 % 13
        if length(i + 2) < 250:
            turns = 0
        save_session(place, turns)

    def handle(i):
        resume(i)
        x = make(B // 700 + length(i) * 60)
        drop(x)
