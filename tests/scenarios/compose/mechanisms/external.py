"""The limit lies below what the program always needs: the same program is healthy under twice as
much. Nothing runs beside it, so that its own footprint decides.

A limit that is too low can be told from one oversized request only where the need came close to the
limit many times, and passes it by little. So the work varies without a visible bound: it has one
part more with the same chance each time, and its highest grows slowly. `+ 2044` and the like say
where the numbers of length() start: there no need is much higher than all before it."""


class LimitEqualsSteadyNeed:
    """Warm state, and pages that come and go; an ordinary small burst of them is too much.
    https://github.com/kortix-ai/suna/pull/3497"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "py_bytes", "py_text"]
    structures = ["loop", "asyncio"]
    limiters = ["as", "data", "cgroup"]  # a kill from outside is no limit
    factors = [1]
    backgrounds = ["none"]
    models = store()
    settings = store()
    recent = store()
    pages = store()

    def warm_setup():
        for k in range(60):
            keep(models, make(B // 130 + k % 7 * (B // 1050)))
            keep(settings, make(B // 2400 * (1 + k % 3)))

    def remember(i):
        keep(recent, make(B // 400))
        if len(recent) > 40:
            pop(recent)

    def serve_page(k):
        keep(pages, make(B // 75 + length(k) * (B // 110000)))

    def handle(i):
        remember(i)
        first = (i + 2044) * 40
        n = 1
        while length(first + n) < 670:
            n = n + 1
        for k in range(n):
            serve_page(first + k)
        clear(pages)


class SidecarNearItsCap:
    """A batch is collected and flushed, for days; the cap sits on the higher ones of the teeth.
    https://github.com/mitodl/ol-infrastructure/pull/5162"""
    cause = "external"
    unnamed = ["batch-prealloc"]  # the state is fifty equal blocks, taken at start and kept
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text"]
    structures = ["loop", "asyncio"]
    limiters = ["as", "data", "cgroup"]  # a kill from outside is no limit
    factors = [1]
    backgrounds = ["none"]
    state = store()
    lines = store()

    def state_setup():
        for k in range(50):
            keep(state, make(B // 64))

    def collect(i):
        batch = i // 20 + 462
        n = 1
        while length(batch * 40 + n) < 690:
            n = n + 1
        keep(lines, make(n * (B // 1080) + length(i) * (B // 2000000)))

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
        return make(B // 20 + length(i + 2417) * (B // 36000))

    def worker_queue(x):
        keep(flight, x)
        if len(flight) > 6:
            pop(flight)

    def handle(i):
        worker_queue(share_batch(i))
