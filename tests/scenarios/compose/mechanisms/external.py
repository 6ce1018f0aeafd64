"""The limit lies below what the program always needs: the same program is healthy under twice as
much. Nothing runs beside it, so that its own footprint decides."""


class LimitEqualsSteadyNeed:
    """Warm state, and pages that come and go; an ordinary small burst of them is too much.
    https://github.com/kortix-ai/suna/pull/3497"""
    cause = "external"
    carriers = ["c_malloc", "numpy", "py_large", "py_small"]
    structures = ["loop", "asyncio"]
    factors = [0.5]
    backgrounds = ["none"]
    models = store()
    settings = store()
    recent = store()
    pages = store()

    def warm_setup():
        for k in range(60):
            keep(models, make(B // 500 + k % 7 * (B // 2500)))
            keep(settings, make(B // 8000 * (1 + k % 3)))

    def remember(i):
        keep(recent, make(B // 900))
        if len(recent) > 40:
            pop(recent)

    def serve_page(k):
        keep(pages, make(B // 200 + length(k) * (B // 32000)))

    def handle(i):
        remember(i)
        n = length(i) * length(i + 7) // 1000
        for k in range(i, i + 2 + n * n // 1000 * n * 15 // 1000000):
            serve_page(k)
        clear(pages)


class SidecarNearItsCap:
    """A batch is collected and flushed, for days; the cap sits on the higher ones of the teeth.
    https://github.com/mitodl/ol-infrastructure/pull/5162"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text"]
    structures = ["loop", "asyncio"]
    factors = [0.5]
    backgrounds = ["none"]
    state = store()
    lines = store()

    def state_setup():
        for k in range(50):
            keep(state, make(B // 250))

    def collect(i):
        n = length(i // 20)
        keep(lines, make(B // 240 + n * n // 1000 * n // 1000 * (B // 44000)))

    def flush_batch():
        x = make(B // 400)
        clear(lines)
        drop(x)

    def handle(i):
        collect(i)
        if i % 20 == 19:
            flush_batch()


class BatchesThroughSmallMount:
    """Workers pass batches through shared memory, six in flight; the mount is smaller than six.
    https://github.com/IBM/text-generation-inference/pull/34"""
    cause = "external"
    carriers = SHARED
    structures = ["loop"]
    factors = [0.5]
    limiters = ["shm"]
    flight = store()

    def share_batch(i):
        return make(B // 20 + length(i) * (B // 20000))

    def worker_queue(x):
        keep(flight, x)
        if len(flight) > 6:
            pop(flight)

    def handle(i):
        worker_queue(share_batch(i))
