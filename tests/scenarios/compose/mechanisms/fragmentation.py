"""Most of what was taken is free, in holes that are too small for what is asked, or held in places
that cannot serve who asks."""


class BurstsOfSizeClasses:
    """Short bursts of one size class after another; every eighth object lives on, so that the holes
    of one class are too small for the next. https://github.com/golang/go/issues/13552"""
    cause = "fragmentation"
    blame = ["churn"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string", "py_bytes", "py_text", "numpy"]
    structures = ["loop"]
    factors = [1]
    backgrounds = ["none", "WarmCache", "BoundedPool"]
    spans = store()
    live = store()

    def alloc_span(k, n):
        if k % 8 == 7:
            keep(live, make(n))
        else:
            keep(spans, make(n))

    def churn(n):
        for k in range(B * 4 // 10 // n):
            alloc_span(k, n)
        clear(spans)

    def handle(i):
        x = make(B // 900)
        drop(x)
        if i == 20:
            churn(1500)
        if i == 40:
            churn(12000)
        if i > 59:
            if i % 20 == 0:
                churn(100000)


class RowsBetweenBursts:
    """Many threads have bursts now and then, with rows between that live on: each thread's arena
    keeps its highest. https://github.com/Dicklesworthstone/mcp_agent_mail_rust/issues/161"""
    cause = "fragmentation"
    blame = ["serve_mailbox", "read_part", "write_row"]
    carriers = ["c_malloc", "cpp_vector", "cpp_string"]
    structures = ["threads"]
    limiters = ["data", "cgroup", "rss"]
    factors = [0.5]
    crowd = 16
    backgrounds = ["none", "WarmCache"]
    rows = store()

    def write_row(i):
        keep(rows, make(100 + length(i) * 8 // 10))

    def read_part(left, i):
        x = make(30000 + length(left + i) * 60)
        write_row(left)
        if left > 1:
            read_part(left - 1, i)
        drop(x)

    def serve_mailbox(i):
        read_part(B // 12 // 63000, i)

    def handle(i):
        wait(20)
        if i % 24 == 23:
            serve_mailbox(i)


class SegmentSplitBySurvivors:
    """A large block is freed and cached; small ones are cut from it, and some stay, so that the
    large one does not fit again. https://github.com/pytorch/pytorch/issues/35901"""
    cause = "fragmentation"
    also = ["leak"]  # the survivors stay for good
    blame = ["forward_pass", "keep_activations"]
    carriers = ["torch"]
    structures = ["loop", "nested"]
    factors = [1, 2]
    backgrounds = ["none", "WarmCache", "BoundedPool"]
    kept = store()
    passing = store()

    def keep_activations(i):
        for k in range(30):
            if k % 10 == 4:
                keep(kept, make(B // 70 + k * (B // 7000)))
            else:
                keep(passing, make(B // 70 + k * (B // 7000)))
        clear(passing)

    def forward_pass(i):
        x = make(B * 55 // 100)
        drop(x)

    def handle(i):
        forward_pass(i)
        if i % 40 == 39:
            keep_activations(i)


class EveryChunkLarger:
    """Each chunk of a long prompt needs a temporary that is larger than all before; its result is
    cut from a cached one, so none can be given back.
    https://github.com/vllm-project/vllm/pull/58068"""
    cause = "fragmentation"
    also = ["prompt-growth"]
    blame = ["score_chunk"]
    carriers = ["torch"]
    structures = ALONE
    backgrounds = ["none", "WarmCache", "BoundedPool"]
    scores = store()

    def alloc_logits(chunk):
        return make((chunk + 8) * (B // 1500))

    def score_chunk(chunk):
        x = alloc_logits(chunk)
        keep(scores, make(B // 600))
        drop(x)

    def handle(i):
        score_chunk(i)
