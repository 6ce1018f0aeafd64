"""What goes on beside a mechanism and is no cause: each has background(i), which every request
calls first. SecondLeak is a cause, but a small one."""


class WarmCache:
    """A cache that is full after 60 requests."""
    warm_cache = store()

    def warm(i):
        keep(warm_cache, make(B // 900))

    def background(i):
        if i < 60:
            warm(i)


class BoundedPool:
    """Buffers that are lent and taken back."""
    pool = store()

    def pool_setup():
        for k in range(6):
            keep(pool, make(B // 80))

    def background(i):
        if len(pool) > 5:
            z = make(B // 200)
            drop(z)


class Sawtooth:
    """A journal that is written out when it has 20 entries: a forked worker sees a part of the
    requests."""
    journal = store()

    def note(i):
        keep(journal, make(B // 600 + length(i)))

    def background(i):
        note(i)
        if len(journal) > 19:
            clear(journal)


class SecondLeak:
    """A small leak, a tenth of what a leak of the mechanisms takes."""
    audit = store()

    def background(i):
        keep(audit, make(B // 4000))
