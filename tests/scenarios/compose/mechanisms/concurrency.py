"""Moderate requests overlap: each alone fits, and frees what it took. The first requests are light,
so that a service runs before the many come, and some take the way of the heavy ones and end, so
that it can be told from a leak. Where threads overlap there is no limit of the address space: it
leaves each thread what an arena takes, and arenas give way to blocks."""


class TaskStormAfterFailover:
    """A healed partition lets all the calls that waited for it start together.
    https://github.com/lablup/backend.ai/issues/10735"""
    cause = "concurrency"
    blame = ["terminate_session", "sweep"]
    carriers = ["py_bytes", "py_text", "py_small"]
    structures = ["asyncio"]
    crowd = 1500

    def terminate_session(i):
        return make(B // 1000 + length(i) * (B // 150000))

    def sweep(i, ms):
        x = terminate_session(i)
        wait(ms)
        drop(x)

    def handle(i):
        if i < 80:
            sweep(i, 0)
        else:
            sweep(i, 4000)


class RendersWithoutCap:
    """A burst of the same image: nothing bounds the renders, and each has layers and fonts.
    https://github.com/nuxt-modules/og-image/pull/539"""
    cause = "concurrency"
    blame = ["rasterize", "load_fonts", "render_card"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "numpy"]
    structures = ["threads", "asyncio"]
    crowd = 12
    factors = [1, 2]
    limiters = ["data", "cgroup", "rss"]

    def load_fonts():
        return make(B // 24)

    def rasterize(layer):
        return make(B // 19)

    def render_card(i, ms):
        fonts = load_fonts()
        x = rasterize(0)
        y = rasterize(1)
        z = rasterize(2)
        overlay = rasterize(3)
        wait(ms)
        drop(overlay)
        drop(z)
        drop(y)
        drop(x)
        drop(fonts)

    def cached_card(i):
        x = make(B // 800 + length(i) * 16)
        wait(1)
        drop(x)

    def handle(i):
        if i < 120:
            if i % 50 == 15:
                render_card(i, 1)
            cached_card(i)
        else:
            render_card(i, 3000)


class OpenTlsSessions:
    """Two thousand downloads, each with buffers of its own session for as long as it is open.
    https://github.com/aio-libs/aiohttp/issues/1029"""
    cause = "concurrency"
    blame = ["hold_session", "handshake", "download_page"]
    carriers = ["py_bytes", "py_bytes", "py_text", "py_small"]
    structures = ["asyncio"]
    crowd = 2000

    def handshake():
        return make(B // 700)

    def hold_session(ms):
        x = handshake()
        y = make(B // 3000)
        z = make(B // 3000)
        wait(ms)
        drop(z)
        drop(y)
        drop(x)

    def download_page(i):
        if i < 150:
            hold_session(0)
        else:
            hold_session(5000 + length(i))

    def handle(i):
        download_page(i)


class GatherWithoutSemaphore:
    """All queries are gathered at once; each holds its reply until it is reduced.
    https://github.com/robusta-dev/krr/issues/58"""
    cause = "concurrency"
    blame = ["query_metrics", "gather_objects"]
    carriers = ["py_bytes", "py_large", "numpy", "py_text"]
    structures = ["asyncio"]
    crowd = 400

    def query_metrics(i):
        x = make(B // 120 + length(i) * (B // 50000))
        return x

    def gather_objects(i, ms):
        x = query_metrics(i)
        wait(ms)
        y = make(size(x) // 100)
        drop(x)
        drop(y)

    def handle(i):
        if i < 40:
            gather_objects(i, 0)
        else:
            gather_objects(i, 1500)


class ReadersPerConnection:
    """Each open connection has two threads with their stacks; both end with the connection.
    https://github.com/robotology/community/issues/26"""
    cause = "concurrency"
    blame = ["start_reader", "accept_connection"]
    carriers = STACKS
    structures = ["threads"]
    crowd = 12
    factors = [0.5, 1]

    def start_reader(stack):
        return make(stack)

    def accept_connection(stack, ms):
        x = start_reader(stack)
        y = start_reader(stack)
        wait(ms)
        drop(y)
        drop(x)

    def handle(i):
        if i < 60:
            accept_connection(B // 1000, 1)
        else:
            accept_connection(B // 10, 3000)


class ConnectionsLeftOpen:
    """Connections with a reader and a writer thread each, all open at the same time.
    https://github.com/robotology/community/issues/26"""
    cause = "concurrency"
    blame = ["start_thread", "accept_connection"]
    carriers = ["py_stacks"]
    structures = ["asyncio"]
    crowd = 400

    def start_thread():
        return make(B // 60)

    def accept_connection(ms):
        x = start_thread()
        y = start_thread()
        wait(ms)
        drop(y)
        drop(x)

    def handle(i):
        if i < 30:
            accept_connection(0)
        else:
            accept_connection(4000)


class ParallelSlices:
    """The parts of a file are sent in parallel, and each part is read whole.
    https://github.com/injaeryou/resumable-upload/issues/3"""
    cause = "concurrency"
    blame = ["read_slice", "upload_slice"]
    carriers = ["py_bytes", "py_text", "c_malloc"]
    structures = ["threads", "asyncio"]
    crowd = 10
    factors = [1, 2]
    limiters = ["data", "cgroup", "rss"]

    def read_slice(n):
        return make(n)

    def upload_slice(n, ms):
        x = read_slice(n)
        wait(ms)
        drop(x)

    def handle(i):
        if i < 70:
            if i % 40 == 15:
                upload_slice(B * 2 // 7, 1)
            upload_slice(B // 600, 1)
        else:
            upload_slice(B * 2 // 7, 3000)


class ReaderOutrunsConsumer:
    """Messages come twenty times as fast as they are consumed, and the queue has no bound.
    https://github.com/python-websockets/websockets/issues/105"""
    cause = "concurrency"
    also = ["leak"]
    blame = ["receive_message", "push_queue"]
    carriers = ["py_bytes", "py_text", "cpp_vector", "cpp_string", "py_small"]
    structures = ["asyncio", "threads"]
    queue = store()

    def receive_message(i):
        return make(B // 1000)

    def push_queue(x):
        keep(queue, x)

    def consume():
        y = make(B // 200)
        pop(queue)
        drop(y)

    def handle(i):
        push_queue(receive_message(i))
        if i % 20 == 19:
            consume()


class EachWorkerCopiesData:
    """Every worker copies the whole table for its task and frees the copy at the task's end.
    https://github.com/atif-hassan/PyImpetus/issues/5"""
    cause = "concurrency"
    also = ["oversized-intermediate"]
    blame = ["copy_frame", "fit_feature"]
    carriers = ["numpy", "py_large"]
    structures = ["threads"]
    crowd = 14
    factors = [1, 2]
    limiters = ["data", "cgroup", "rss"]
    frame = store()

    def load_setup():
        for k in range(8):
            keep(frame, make(B // 46))

    def copy_frame():
        return make(total(frame))

    def fit_feature(i, ms):
        x = copy_frame()
        wait(ms)
        drop(x)

    def peek_feature(i):
        x = make(B // 700 + length(i) * 8)
        wait(1)
        drop(x)

    def handle(i):
        if i < 100:
            if i % 50 == 15:
                fit_feature(i, 1)
            peek_feature(i)
        else:
            fit_feature(i, 3000)
