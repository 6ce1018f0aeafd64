"""Shapes of public reports that no other file here follows: holes, limits that are too low, prompts
that grow, and two leaks. reported_2.py has the rest."""


class RefreshBetweenSnapshots:
    """A refresh decodes the whole state into small items, with the rows of a snapshot between them;
    when the items are gone, a listing that fitted before does not any more.
    https://github.com/amule-org/amule/pull/1153"""
    cause = "fragmentation"
    blame = ["write_listing", "list_page", "decode_item", "snapshot_row"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none", "WarmCache", "BoundedPool"]
    items = store()
    rows = store()
    listing = store()

    def decode_item(k):
        keep(items, make(B // 100000 + length(k) * 2))

    def snapshot_row(k):
        keep(rows, make(600 + k % 3 * 40))

    def refresh_state(count):
        for k in range(count):
            decode_item(k)
            if k % 6 == 5:
                snapshot_row(k)
        clear(items)

    def list_page(k):
        keep(listing, make(60000 + length(k) * 50))

    def write_listing(pages):
        for k in range(pages):
            list_page(k)
        clear(listing)

    def handle(i):
        x = make(B // 2000)
        if i == 30:
            refresh_state(B * 3 // 5 // 2900)
        if i % 12 == 11:
            write_listing(B // 2 // 87000)
        drop(x)


class CamerasSwitchResolution:
    """Each camera has one frame, replaced by the next; the new frames are an eighth larger, and the
    place of an old one is too small. https://github.com/chapel-lang/chapel/issues/18286"""
    cause = "fragmentation"
    blame = ["decode_frame", "next_frame", "cameras_setup"]  # the last one's tables pin the holes
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "numpy"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none", "BoundedPool"]
    frames = store()
    tables = store()

    def decode_frame(camera, n):
        put(frames, camera, make(n))

    def cameras_setup():
        for k in range(860):
            decode_frame(k, B // 1500)
            keep(tables, make(2500))

    def next_frame(i):
        if i < 1300:
            decode_frame(i % 860, B // 1500)
        else:
            decode_frame(i % 860, B // 1500 + B // 12000)

    def handle(i):
        x = make(2000 + length(i))
        next_frame(i)
        drop(x)


class ImportArenaStays:
    """One import takes many buffers in the arena of its thread and gives them back, but for a last
    row; what lies free there serves no other thread.
    https://github.com/cq27-dev/rag-rat/issues/906"""
    cause = "fragmentation"
    blame = ["read_chunk", "import_store", "search_all", "hold_hits"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string"]
    structures = ["threads"]
    limiters = ["cgroup", "rss"]
    factors = [1]
    crowd = 6
    backgrounds = ["none", "WarmCache"]
    rows = store()

    def read_chunk(left):
        x = make(60000 + length(left) * 60)
        if left > 1:
            read_chunk(left - 1)
        else:
            keep(rows, make(900))
        drop(x)

    def import_store():
        read_chunk(B * 6 // 10 // 93000)

    def hold_hits(left):
        y = make(60000 + length(left) * 60)
        if left > 1:
            hold_hits(left - 1)
        drop(y)

    def search_all():
        hold_hits(B * 7 // 10 // 93000)

    def handle(i):
        z = make(4000 + length(i) * 4)
        wait(20)
        if i == 500:
            import_store()
        elif i % 600 == 199:
            search_all()
        drop(z)


class ParameterBesideShard:
    """At load each parameter is cut from the cached block of the shard before it, and no rest is
    large enough for another. https://github.com/pytorch/pytorch/pull/44742"""
    cause = "fragmentation"
    blame = ["new_parameter", "read_shard", "load_layer", "load_model"]
    carriers = ["torch"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none", "WarmCache"]
    parameters = store()

    def new_parameter():
        keep(parameters, make(B // 40))

    def read_shard():
        return make(B // 24)

    def load_layer():
        new_parameter()
        x = read_shard()
        drop(x)

    def load_model():
        for k in range(30):
            load_layer()

    def model_setup():
        load_model()

    def handle(i):
        x = make(B // 300)
        drop(x)


class AdaptersPinSegments:
    """Each adapter lies between two copies for its rotation; when the copies are dropped, every
    segment still has an adapter, and a render that fitted before finds no place.
    https://github.com/daydreamlive/DEMON/pull/143"""
    cause = "fragmentation"
    blame = ["render_frame", "enable_adapter", "delta_mirror"]
    carriers = ["torch"]
    structures = ALONE
    factors = [1]
    backgrounds = ["none", "WarmCache"]
    adapters = store()
    mirrors = store()
    maps = store()

    def delta_mirror():
        keep(mirrors, make(B // 128))

    def enable_adapter():
        delta_mirror()
        keep(adapters, make(B // 128))
        delta_mirror()

    def disable_mirrors():
        clear(mirrors)

    def render_frame():
        for k in range(44):
            keep(maps, make(B // 85))
        clear(maps)

    def handle(i):
        x = make(B // 3000)
        if i % 30 == 1:
            render_frame()
        elif i > 30 and i < 54:
            enable_adapter()
        elif i == 57:
            disable_mirrors()
        drop(x)


class SmallPoolPinned:
    """A burst of small tensors has a running figure between every three; the segments for small
    ones stay, and none can serve a large batch. https://github.com/FalkonML/falkon/issues/37"""
    cause = "fragmentation"
    blame = ["run_batch", "small_part", "running_figure"]
    carriers = ["torch"]
    structures = ALONE
    factors = [1]
    backgrounds = ["none", "BoundedPool"]
    parts = store()
    figures = store()

    def small_part():
        keep(parts, make(B // 1164))

    def running_figure():
        keep(figures, make(B // 40000))

    def fit_blocks(count):
        for k in range(count):
            small_part()
            small_part()
            small_part()
            running_figure()
        clear(parts)

    def run_batch():
        x = make(B // 2)
        drop(x)

    def handle(i):
        if i == 34:
            fit_blocks(250)
        if i % 10 == 9:
            run_batch()
        x = make(B // 3000)
        drop(x)


class RingAndPayloads:
    """Workers share a ring of messages and pass tensors beside it; the mount for both has the size
    that containers get by default. https://github.com/oceanprotocol/ocean-node/pull/1442"""
    cause = "external"
    carriers = SHARED
    structures = ["loop"]
    factors = [0.5]
    limiters = ["shm"]
    ring = store()
    payloads = store()

    def ring_setup():
        for k in range(8):
            keep(ring, make(B // 19))

    def publish_tensor(k):
        keep(payloads, make(B // 220 + length(k) * (B // 320000)))

    def handle(i):
        first = (i + 29097) * 60
        n = 1
        while length(first + n) < 670:
            n = n + 1
        for k in range(n):
            publish_tensor(first + k)
        clear(payloads)


class CacheAsLargeAsItsLimit:
    """A cache of chunks keeps to its bound, and the container has about as much for the cache and
    the buffers of its connections together. https://github.com/lsst-it/k8s-cookbook/pull/1308"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes"]
    structures = ["loop", "asyncio"]
    limiters = ["as", "data", "cgroup"]
    factors = [1]
    backgrounds = ["none"]
    chunks = store()
    buffers = store()

    def store_chunk(i):
        keep(chunks, make(B // 267 + length(i) * (B // 9000000)))
        if len(chunks) > 200:
            pop(chunks)

    def chunks_setup():
        for k in range(200):
            store_chunk(k)

    def send_buffer(k):
        keep(buffers, make(B // 90 + length(k) * (B // 190000)))

    def handle(i):
        store_chunk(i)
        first = (i + 23668) * 50
        n = 1
        while length(first + n) < 670:
            n = n + 1
        for k in range(n + 4):
            send_buffer(first + k)
        clear(buffers)


class StateWrittenWhole:
    """A controller's objects come and go; every fourth round all of them are written as one text.
    https://github.com/redhat-appstudio/infra-deployments/pull/7370"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "py_bytes", "py_text"]
    structures = ["loop", "nested"]
    limiters = ["as", "data"]  # huge pages count in a group
    factors = [1]
    backgrounds = ["none"]
    settings = store()
    objects = store()

    def settings_setup():
        for k in range(46):
            keep(settings, make(B // 103 + k % 3 * (B // 2000)))

    def watch_object(k):
        keep(objects, make(B // 260 + length(k) * (B // 600000)))

    def reconcile(i):
        first = (i // 4 + 25838) * 60
        n = 1
        while length(first + n) < 670:
            n = n + 1
        while len(objects) > n + 39:
            pop(objects)
        while len(objects) < n + 39:
            watch_object(first + len(objects))

    def write_state():
        x = make(total(objects))
        drop(x)

    def handle(i):
        if i % 4 == 1:
            reconcile(i)
        x = make(B // 900)
        drop(x)
        if i % 4 == 3:
            write_state()


class ListBesideItsSuccessor:
    """Every fifth request a list is fetched anew, and the old one serves until the new one is
    complete; lists have the length of their day, and the limit is as high as two.
    https://github.com/siutsin/otaru/pull/2900"""
    cause = "external"
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes"]
    structures = ["loop", "nested"]
    limiters = ["as", "data", "cgroup"]
    factors = [1]
    backgrounds = ["none"]
    upstreams = store()
    even_list = store()
    odd_list = store()

    def upstreams_setup():
        for k in range(48):
            keep(upstreams, make(B // 103 + k % 3 * (B // 2000)))

    def parse_even(k):
        keep(even_list, make(B // 200 + length(k) * (B // 350000)))

    def parse_odd(k):
        keep(odd_list, make(B // 200 + length(k) * (B // 350000)))

    def refresh_list(day):
        first = (day + 29512) * 60
        n = 1
        while length(first + n) < 670:
            n = n + 1
        for k in range(n + 31):
            if day % 2 == 0:
                parse_even(first + k)
            else:
                parse_odd(first + k)
        if day % 2 == 0:
            clear(odd_list)
        else:
            clear(even_list)

    def handle(i):
        if i % 5 == 0:
            refresh_list(i // 5)
        x = make(B // 1500 + length(i) * 20)
        drop(x)


class MaskForEachLayer:
    """Every layer has a dense mask of its own, as large as the square of the context, and all live
    at once; the context is longer each turn. https://github.com/Blaizzy/mlx-vlm/issues/1355"""
    cause = "prompt-growth"
    blame = ["causal_mask", "make_masks"]
    carriers = ["numpy", "cpp_vector", "c_malloc", "c_mmap"] + DEVICE
    structures = ALONE
    factors = [0.5, 1]
    turns = store()
    masks = store()

    def causal_mask(tokens):
        keep(masks, make(tokens * tokens // 100 * (B // 300000)))

    def make_masks(tokens):
        for layer in range(12):
            causal_mask(tokens)
        clear(masks)

    def handle(i):
        keep(turns, make(500 + length(i)))
        make_masks(200 + len(turns) * 8 + length(i) // 12)


class ScratchFollowsContext:
    """Each chunk of a long prompt dequantizes the cache of all layers, as far as it goes by then;
    the first documents end after twenty chunks. https://github.com/ddalcu/mlx-serve/pull/69"""
    cause = "prompt-growth"
    blame = ["dequantize_layer", "prefill_chunk", "append_cache"]
    carriers = ["numpy", "cpp_vector", "c_malloc", "py_bytes", "cuda"]
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    cache = store()
    dense = store()

    def append_cache():
        keep(cache, make(B // 1500))

    def dequantize_layer(chunks):
        keep(dense, make(chunks * (B // 1000)))

    def prefill_chunk():
        append_cache()
        for layer in range(8):
            dequantize_layer(len(cache))
        clear(dense)

    def handle(i):
        if i < 200:
            if i % 20 == 0:
                clear(cache)
        prefill_chunk()


class ImagesOfAllTurns:
    """Each turn of a conversation brings an image, and all images so far are decoded for it anew.
    https://github.com/vllm-project/vllm/issues/38257"""
    cause = "prompt-growth"
    blame = ["decode_image", "encode_images", "add_image"]
    carriers = ["numpy", "cpp_vector", "c_mmap", "py_bytes", "cuda"]
    structures = ["loop", "asyncio", "nested"]
    factors = [0.5, 1]
    files = store()
    pixels = store()

    def add_image(i):
        keep(files, make(4000 + length(i) * 10))

    def decode_image():
        keep(pixels, make(B // 110))

    def encode_images():
        for k in range(len(files)):
            decode_image()
        x = make(len(files) * (B // 2000))
        drop(x)
        clear(pixels)

    def handle(i):
        add_image(i)
        encode_images()


class PartialTextPerChunk:
    """Each chunk of a reply makes a copy of the text so far, which lives until the stream ends;
    some replies are longer, and later ones much longer.
    https://github.com/vercel/ai/issues/13839"""
    cause = "prompt-growth"
    also = ["oversized-intermediate"]  # one reply of some
    blame = ["partial_output", "stream_text"]
    carriers = ["py_bytes", "py_text", "cpp_string", "c_malloc"]
    structures = ["loop", "asyncio", "nested"]
    partials = store()

    def partial_output(chunks):
        keep(partials, make(chunks * (B // 300000)))

    def stream_text(chunks):
        for k in range(1, chunks):
            partial_output(k)
        clear(partials)

    def handle(i):
        chunks = 20 + length(i) // 20
        if i % 15 == 14:
            chunks = chunks + i * 2
        stream_text(chunks)


class SpeechWithoutPause:
    """The audio since the last pause is transcribed again with each packet; one speaker never
    pauses. https://github.com/QuentinFuxa/WhisperLiveKit/issues/129"""
    cause = "prompt-growth"
    blame = ["mel_of_buffer", "encode_buffer", "transcribe_again", "add_packet"]
    carriers = ["numpy", "cpp_vector", "py_bytes", "c_malloc"]
    structures = ["loop", "asyncio"]
    factors = [0.5, 1]
    packets = store()

    def add_packet(i):
        keep(packets, make(B // 900))

    def mel_of_buffer():
        return make(total(packets) * 2)

    def encode_buffer(x):
        return make(size(x) * 2)

    def transcribe_again():
        x = mel_of_buffer()
        y = encode_buffer(x)
        drop(y)
        drop(x)

    def handle(i):
        add_packet(i)
        transcribe_again()
        if i < 150:
            if length(i) > 900:
                clear(packets)


class AlignmentMatrix:
    """To align a transcript, a row of costs is kept for each of its frames, as long as the audio up
    to a window; recordings get longer.
    https://github.com/echogarden-project/echogarden/issues/11"""
    cause = "prompt-growth"
    also = ["oversized-intermediate"]  # one recording of nine
    blame = ["cost_row", "align_transcript"]
    carriers = ["numpy", "cpp_vector", "c_malloc", "py_bytes"]
    structures = ["loop", "nested", "forked"]
    costs = store()

    def cost_row(frames):
        if frames > 4000:
            frames = 4000
        keep(costs, make(frames * (B // 20000000)))

    def align_transcript(frames):
        for k in range(frames):
            cost_row(frames)
        clear(costs)

    def handle(i):
        frames = length(i)
        if i % 9 == 8:
            frames = frames + i * 24
        align_transcript(frames)


class ReloadLeavesOldRoutes:
    """Each reload replaces the index and forgets the routes of the old one.
    https://github.com/OpenSIPS/opensips/issues/1856"""
    cause = "leak"
    blame = ["build_routes", "add_route", "reload_config"]
    carriers = ["c_malloc", "cpp_string", "cpp_vector", "py_large"]
    structures = ["loop", "nested", "asyncio"]
    factors = [0.5, 1]
    route_tree = store()
    routes = store()

    def add_route(k):
        keep(routes, make(B // 16000 + k % 5 * (B // 40000)))

    def build_routes():
        for k in range(14):
            add_route(k)

    def build_tree():
        put(route_tree, 0, make(B // 12))

    def reload_config():
        build_tree()
        build_routes()

    def handle(i):
        if i % 3 == 0:
            reload_config()
        x = make(B // 800 + length(i) * 16)
        drop(x)


class AbandonedStreams:
    """A client that hangs up is never told to the engine: the blocks of one sequence in four, as
    many as its length needs, stay. https://github.com/ROCm/ATOM/pull/1562"""
    cause = "leak"
    blame = ["take_block", "prefill_sequence"]
    carriers = ["numpy", "cpp_vector"] + DEVICE
    structures = ["loop", "asyncio"]
    factors = [0.5, 1]
    weights = store()
    running = store()
    abandoned = store()

    def weights_setup():
        for k in range(12):
            keep(weights, make(B // 150 + k % 3 * (B // 900)))

    def take_block(i):
        if i % 4 == 1:
            keep(abandoned, make(B // 1500))
        else:
            keep(running, make(B // 1500))

    def prefill_sequence(i):
        for k in range(2 + length(i) // 200):
            take_block(i)
        x = make(length(i) * (B // 100000))
        drop(x)

    def handle(i):
        prefill_sequence(i)
        clear(running)
