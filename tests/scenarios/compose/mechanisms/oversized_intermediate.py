"""One request needs one thing that dwarfs everything else: it was never going to fit, and all the
others pass. Where threads serve, it is larger than the room that a limit leaves to their arenas."""


class GzipExpandsBeforeCheck:
    """An event's body is inflated into a buffer that doubles; its size is checked afterwards.
    https://github.com/PostHog/posthog/pull/38996"""
    cause = "oversized-intermediate"
    blame = ["inflate", "read_event"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text"]
    structures = ["loop", "threads", "asyncio"]

    def inflate(n):
        room = B // 2500
        x = make(room)
        while room < n:
            room = room * 2
            y = make(room)
            drop(x)
            x = y
        return x

    def read_event(i):
        n = B // 50000 * length(i)
        if i % 83 == 82:
            n = B * 5
        return inflate(n)

    def handle(i):
        x = read_event(i)
        if size(x) < B // 8:
            y = make(B // 200)
            drop(y)
        drop(x)


class SmallFileLargePixels:
    """A file of a few hundred KiB decodes to one enormous bitmap, which is then converted.
    https://github.com/Project-N-E-K-O/N.E.K.O/pull/2835"""
    cause = "oversized-intermediate"
    blame = ["decode_pixels", "to_rgb", "open_upload"]
    carriers = ["c_malloc", "numpy", "py_bytes"]
    structures = ["loop", "threads", "asyncio"]

    def decode_pixels(n):
        return make(n)

    def to_rgb(x):
        return make(size(x))

    def open_upload(pixels):
        x = decode_pixels(pixels)
        y = to_rgb(x)
        drop(x)
        return y

    def handle(i):
        z = make(B // 400)
        pixels = B // 60 * length(i) // 1000 + 4096
        if i % 64 == 63:
            pixels = B * 9 // 4
        x = open_upload(pixels)
        drop(z)
        drop(x)


class AllPairsSimilarity:
    """Phrases are compared with each other in one dense matrix, then normalized into a second.
    https://github.com/jind11/TextFooler/issues/3"""
    cause = "oversized-intermediate"
    blame = ["pairwise_matrix", "normalized", "dedupe_phrases"]
    carriers = ["numpy"] + DEVICE
    structures = ALONE

    def embed(phrases):
        return make(phrases * 768)

    def pairwise_matrix(phrases):
        return make(B // 60 * phrases // 1000 * phrases // 1000 + 4096)

    def normalized(x):
        return make(size(x))

    def dedupe_phrases(phrases):
        x = embed(phrases)
        y = pairwise_matrix(phrases)
        z = normalized(y)
        drop(y)
        drop(x)
        return z

    def handle(i):
        phrases = length(i)
        if i % 70 == 69:
            phrases = phrases + 8500
        x = dedupe_phrases(phrases)
        drop(x)


class FullFrameDecode:
    """Latents are decoded as a whole, with three feature maps live at once, and not in tiles.
    https://github.com/invoke-ai/InvokeAI/pull/9427"""
    cause = "oversized-intermediate"
    blame = ["vae_decode", "render_image"]
    carriers = ["numpy"] + DEVICE
    structures = ["loop", "asyncio"]

    def denoise(n):
        x = make(n)
        y = make(n // 2)
        drop(y)
        drop(x)

    def vae_decode(n):
        x = make(n)
        y = make(n)
        z = make(n)
        drop(y)
        drop(x)
        return z

    def render_image(n):
        latent = make(n // 64)
        for k in range(4):
            denoise(n // 10)
        x = vae_decode(n)
        drop(latent)
        return x

    def handle(i):
        n = B // 40 + B // 100000 * length(i)
        if i % 41 == 40:
            n = B * 6 // 7
        x = render_image(n)
        drop(x)


class FullSequenceLogits:
    """Every position is projected to the vocabulary, though the last one is all that is read.
    https://github.com/openvinotoolkit/openvino/issues/37501"""
    cause = "oversized-intermediate"
    also = ["prompt-growth"]
    blame = ["project_vocab", "forward"]
    carriers = ["numpy"] + DEVICE
    structures = ["loop", "asyncio"]

    def hidden_states(tokens):
        return make(tokens * (B // 800000))

    def project_vocab(tokens):
        return make(tokens * (B // 40000))

    def forward(tokens):
        x = hidden_states(tokens)
        y = project_vocab(tokens)
        drop(x)
        return y

    def handle(i):
        tokens = 20 + length(i)
        if i % 96 == 95:
            tokens = 100000
        x = forward(tokens)
        drop(x)


class WholeUploadInMemory:
    """An upload is read to its end into a buffer that grows by a quarter, then written.
    https://github.com/mayth/go-simple-upload-server/issues/34"""
    cause = "oversized-intermediate"
    blame = ["read_all", "receive_file"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text"]
    structures = ["loop", "threads", "asyncio"]

    def read_all(n):
        capacity = B // 3000
        x = make(capacity)
        while size(x) < n:
            capacity = capacity * 5 // 4
            y = make(capacity)
            drop(x)
            x = y
        return x

    def receive_file(i):
        n = B // 2000 + B // 30000 * length(i)
        if i % 77 == 76:
            n = B * 6
        return read_all(n)

    def handle(i):
        x = receive_file(i)
        drop(x)


class JoinOnDuplicateKeys:
    """Two tables share one value of a key, so that the join has a row for each pair of rows.
    https://github.com/pandas-dev/pandas/issues/25739"""
    cause = "oversized-intermediate"
    blame = ["materialize_pairs", "join_tables"]
    carriers = ["numpy", "numpy", "cpp_vector", "cpp_vector", "py_large"]
    structures = ALONE
    columns = store()

    def materialize_pairs(rows):
        x = make(rows * 8)
        y = make(rows * 8)
        for k in range(25):
            keep(columns, make(rows * 8))
        drop(y)
        drop(x)

    def join_tables(rows):
        materialize_pairs(rows)
        x = make(total(columns) // 50)
        clear(columns)
        return x

    def handle(i):
        rows = B // 1000000 * length(i) // 8
        if i % 52 == 51:
            rows = B // 70
        x = join_tables(rows)
        drop(x)


class AllEmbeddingsOnDevice:
    """A corpus is encoded by batches whose results stay, and are stacked into one at the end.
    https://github.com/huggingface/sentence-transformers/issues/1244"""
    cause = "oversized-intermediate"
    blame = ["encode_batch", "stack_results", "encode_corpus"]
    carriers = ["numpy"] + DEVICE
    structures = ALONE
    embeddings = store()

    def encode_batch(k):
        x = make(B // 150)
        y = make(B // 900)
        drop(x)
        return y

    def stack_results():
        return make(total(embeddings))

    def encode_corpus(batches):
        for k in range(batches):
            keep(embeddings, encode_batch(k))
        x = stack_results()
        clear(embeddings)
        return x

    def handle(i):
        batches = 1 + length(i) // 60
        if i % 45 == 44:
            batches = 1300
        x = encode_corpus(batches)
        drop(x)


class ColumnsExpandOnRead:
    """Each column of a file has a read buffer of its own; one file has a thousand columns.
    https://github.com/apache/arrow/issues/45236"""
    cause = "oversized-intermediate"
    blame = ["decode_columns", "read_parquet"]
    carriers = ["cpp_vector", "cpp_string", "numpy", "c_mmap", "py_mmap"]
    structures = ALONE
    buffers = store()

    def decode_columns(columns):
        for k in range(columns):
            keep(buffers, make(B // 400))

    def read_parquet(columns):
        x = make(B // 5000)
        decode_columns(columns)
        y = make(total(buffers) // 50)
        clear(buffers)
        drop(x)
        return y

    def handle(i):
        columns = 4 + length(i) // 50
        if i % 73 == 72:
            columns = 1000
        x = read_parquet(columns)
        drop(x)


class VectorDoubling:
    """Flat storage doubles its capacity, and asks for the new one while it has the old.
    https://github.com/facebookresearch/faiss/issues/758"""
    cause = "oversized-intermediate"
    also = ["prompt-growth"]
    unnamed = ["state-retention"]
    blame = ["reserve_storage", "add_vectors"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "numpy"]
    structures = ALONE
    storage = store()

    def reserve_storage(n):
        put(storage, 0, make(n))

    def add_vectors(n):
        if n > size(item(storage, 0)):
            reserve_storage(size(item(storage, 0)) * 2)

    def index_setup():
        reserve_storage(B * 27 // 64 // 64)

    def handle(i):
        x = make(B // 500)
        add_vectors((i + 1) * (B // 500))
        drop(x)


class FetchAllRows:
    """A query's whole result is fetched into the client before the first row is read.
    https://github.com/psycopg/psycopg2/issues/345"""
    cause = "oversized-intermediate"
    blame = ["fetch_rows", "execute", "export_table"]
    carriers = ["c_malloc", "c_malloc", "cpp_vector", "cpp_string", "py_small"]
    structures = ALONE
    rows = store()

    def fetch_rows(k):
        keep(rows, make(B // 10000 * (1 + k % 4)))

    def execute(chunks):
        for k in range(chunks):
            fetch_rows(k)

    def export_table(chunks):
        execute(chunks)
        x = make(B // 300)
        clear(rows)
        return x

    def handle(i):
        chunks = 2 + length(i) // 40
        if i % 58 == 57:
            chunks = 12000
        x = export_table(chunks)
        drop(x)
