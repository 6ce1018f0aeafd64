"""Set aside: these are run and counted like all others, and nobody who mends rules opens them.

The third part of judges.py, whose first lines say why."""


class StormsOfEvents:
    """Events wait to be exported beside the objects that they speak of; now and then a storm fills
    the queue, and this one a bit above the cap.
    https://github.com/shepherdjerred/monorepo/pull/675"""
    cause = "external"
    carriers = ["c_malloc", "cpp_string", "cpp_vector", "py_bytes", "py_text"]
    structures = ["loop", "asyncio"]
    limiters = ["data", "cgroup"]
    factors = [0.5]
    backgrounds = ["none"]
    objects = store()
    queue = store()

    def watch_setup():
        for k in range(300):
            keep(objects, make(B // 1090 + k % 5 * (B // 6000)))

    def receive_events(i):
        n = length(i // 3 + 957) * length(i // 3 + 958)
        for k in range(n * 1380 // 1000000):
            keep(queue, make(B // 8000))

    def export_events():
        clear(queue)

    def handle(i):
        receive_events(i)
        export_events()


class StatementsOfOneEngine:
    """A proxy holds its price map and its routes, and the results of three statements at a time;
    day after day it needs nearly its limit. https://github.com/BerriAI/litellm-docs/pull/769"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text"]
    structures = ["loop", "asyncio"]
    limiters = ["data", "cgroup"]
    factors = [0.5]
    backgrounds = ["none"]
    routes = store()
    results = store()

    def price_map_setup():
        for k in range(80):
            keep(routes, make(B // 690 + k % 3 * (B // 2400)))

    def rows_of(i):
        return 2 + length(i + 930) * 106 // 1000

    def execute(i):
        for k in range(rows_of(i)):
            keep(results, make(B // 800))

    def forget(i):
        for k in range(rows_of(i)):
            pop(results)

    def handle(i):
        x = make(B // 90)
        if i > 2:
            forget(i - 3)
        execute(i)
        drop(x)


class TwoModelsAndTheirBatches:
    """An embedder and a reranker stay loaded, and each batch takes its share by texts and length;
    under traffic that is a bit more than the cap.
    https://github.com/theexperiencecompany/gaia/pull/763"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "cpp_string"]
    structures = ["loop"]
    limiters = ["as", "data"]
    factors = [0.5]
    backgrounds = ["none"]
    embedder = store()
    reranker = store()

    def models_setup():
        for layer in range(24):
            keep(embedder, make(B // 240))
        for layer in range(12):
            keep(reranker, make(B // 150))

    def run_batch(texts, tokens):
        x = make(B // 30 + texts * tokens // 100 * (B // 40000))
        y = make(B // 40 + texts * tokens // 100 * (B // 160000))
        drop(x)
        drop(y)

    def handle(i):
        run_batch(length(i + 4630), length(i + 4631))


class ShareOfTheDevice:
    """A pod is given a share of a device that is a little less than its model and its batches take,
    of which there are more pages or fewer. https://github.com/Project-HAMi/HAMi-core/pull/153"""
    cause = "external"
    carriers = DEVICE
    structures = ["loop", "asyncio"]
    limiters = ["gpu"]
    factors = [0.5]
    backgrounds = ["none"]
    weights = store()
    pages = store()

    def load_model_setup():
        for layer in range(15):
            keep(weights, make(B // 64 - 65536))

    def run_page():
        keep(pages, make(B // 64 - 65536))

    def run_batch(count):
        for k in range(count):
            run_page()
        clear(pages)

    def handle(i):
        n = length(i + 4630) * length(i + 4631) // 1000
        run_batch(9 + n * 6 // 1000)


class PageOfAllObjects:
    """A scrape renders one page of all objects and what its filters ask for; the cap, which it came
    near each time, was doubled. https://github.com/google/osv.dev/pull/5056"""
    cause = "external"
    carriers = ["c_malloc", "cpp_string", "cpp_vector", "py_text", "py_bytes"]
    structures = ["loop", "asyncio"]
    limiters = ["data"]
    factors = [0.5]
    backgrounds = ["none"]
    objects = store()

    def object_store_setup():
        for k in range(400):
            put(objects, k, make(B // 1700))

    def update_objects(i):
        for k in range(10):
            put(objects, (i * 10 + k) % 400, make(B // 1700))

    def render_page(i):
        n = length(i + 3990) * length(i + 3990) // 1000 * length(i + 3994) // 1000
        return make(total(objects) // 20 + n * (B // 3400))

    def handle(i):
        update_objects(i)
        x = render_page(i)
        drop(x)


class CombOfActivations:
    """Tables and activations are made in turn, and the activations go: between what stays there are
    gaps, in which the tables do not fit that come back.
    https://github.com/meta-pytorch/torchrec/pull/4584"""
    cause = "fragmentation"
    blame = ["restore_table", "forward_batch", "stash_row", "activation"]
    carriers = ["torch"]
    structures = ["loop", "nested"]
    factors = [1]
    backgrounds = ["none", "WarmCache", "BoundedPool"]
    rows = store()
    activations = store()

    def stash_row():
        keep(rows, make(B // 340))

    def activation():
        keep(activations, make(B // 340))

    def forward_batch():
        stash_row()
        activation()

    def restore_table(n):
        x = make(n)
        drop(x)

    def handle(i):
        if i < 105:
            forward_batch()
        if i == 110:
            clear(activations)
        restore_table(B // 1000)
        if i > 130:
            if i % 10 == 9:
                restore_table(B * 36 // 100)


class ChunksBesideTargets:
    """Short chunks lie beside the targets that they leave, in pieces of one size; the chunks go,
    the targets stay for the step, and a longer batch does not fit in what is between them.
    https://github.com/sgl-project/SpecForge/pull/739"""
    cause = "fragmentation"
    blame = ["project_batch", "run_chunk", "make_target", "train_step"]
    carriers = ["torch"]
    structures = ["loop", "nested"]
    factors = [1]
    backgrounds = ["none", "WarmCache", "BoundedPool"]
    chunks = store()
    targets = store()

    def run_chunk():
        keep(chunks, make(B // 86))

    def make_target():
        keep(targets, make(B // 130))

    def project_batch(n):
        x = make(n)
        drop(x)

    def train_step(n):
        clear(chunks)
        project_batch(n)
        clear(targets)

    def handle(i):
        run_chunk()
        make_target()
        if i % 24 == 23:
            if i > 110:
                train_step(B * 42 // 100)
            else:
                train_step(B // 60 + length(i) * (B // 60000))


class ArenasOfWorkerThreads:
    """Each run of a snippet churns megabytes of inputs and results on one of the pool's threads,
    and leaves a small record above them: each thread's arena keeps what one run took.
    https://github.com/SynaLinks/synalinks/pull/102"""
    cause = "fragmentation"
    blame = ["run_snippet", "load_inputs", "save_namespace", "record_run"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes"]
    structures = ["threads"]
    limiters = ["data", "cgroup", "rss"]
    factors = [0.5]
    crowd = 16
    backgrounds = ["none", "WarmCache"]
    records = store()

    def load_inputs(i):
        return make(B // 40 + length(i) * (B // 80000))

    def save_namespace(i):
        return make(B // 50 + length(i + 1) * (B // 100000))

    def record_run():
        keep(records, make(700))

    def run_snippet(i):
        x = load_inputs(i)
        y = save_namespace(i)
        record_run()
        drop(x)
        drop(y)

    def handle(i):
        wait(20)
        if i % 20 == 19:
            run_snippet(i)
