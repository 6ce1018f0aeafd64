"""Python frames as the shim reads them, against Python's own word, in every shape of call."""

import asyncio
import concurrent.futures
import contextlib
import ctypes
import functools
import gc
import os
import sys
import threading
import weakref

import harness
from harness import case, probe


def f1():
    probe()
    f2(1,
       probe(),
       2)
    return probe()


def f2(*args):
    for _ in range(3):
        probe()
    while True:
        if probe():
            break


@case
def nesting_and_multi_line_calls():
    for _ in range(3):
        f1()
    probe(
    )
    x = [
        probe(),
        f2(
            probe()
        ),
    ]
    return x


@case
def try_with_raise():
    @contextlib.contextmanager
    def manager():
        probe()
        try:
            yield probe()
        finally:
            probe()

    for i in range(3):
        try:
            probe()
            with manager(), \
                    manager():
                probe()
                if i:
                    raise ValueError(
                        probe())
        except ValueError:
            probe()
        else:
            probe()
        finally:
            probe()


@case
def generators():
    def inner(n):
        for i in range(n):
            probe()
            got = yield i
            if got:
                probe()
        return probe()

    def outer():
        probe()
        result = yield from inner(3)
        probe()
        yield result

    g = outer()
    next(g)
    probe()

    def elsewhere():
        next(g)
        probe()
    elsewhere()
    g.send(1)
    for _ in g:
        probe()
    sum(x for x in inner(4))
    list(map(next, [inner(2), inner(2)]))
    h = inner(2)
    next(h)
    with contextlib.suppress(RuntimeError):
        h.throw(RuntimeError)

    def cleaning():
        try:
            yield 1
        finally:
            probe()
    c = cleaning()
    next(c)
    c.close()
    c = cleaning()
    next(c)
    del c


@case
def asynchronous():
    class Context:
        async def __aenter__(self):
            await asyncio.sleep(0)
            probe()

        async def __aexit__(self, *args):
            probe()

    async def numbers(n):
        for i in range(n):
            probe()
            await asyncio.sleep(0)
            yield i

    async def leaf(n):
        probe()
        await asyncio.sleep(0)
        return probe() + n

    async def task(n):
        async with Context():
            async for i in numbers(3):
                probe()
                await leaf(i)
        return sum([x async for x in numbers(2)])

    async def main():
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(task(i) for i in range(4)))
        loop.call_soon(probe)
        await loop.run_in_executor(None, f1)
        t = asyncio.ensure_future(leaf(1))
        await t

    asyncio.run(main())


@case
def threads():
    def work(n):
        for _ in range(5):
            probe()
            f1()

    ts = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(6)))


@case
def lambdas_and_comprehensions():
    (lambda: probe())()
    [probe() for _ in range(3)]
    {probe(): i for i in range(3)}
    {probe() for _ in range(3)}
    list(probe() for _ in range(3))
    [[probe() for _ in range(2)]
     for _ in range(2)
     if probe()]
    (lambda f: (
        f(),
        probe()))(lambda: probe())


class Meta(type):
    def __new__(mcs, name, bases, space):
        probe()
        return super().__new__(mcs, name, bases, space)

    def __call__(cls, *args):
        probe()
        return super().__call__(*args)

    def __prepare__(name, bases):
        probe()
        return {}


@case
def classes():
    class Thing(metaclass=Meta):
        probe()

        def __init__(self):
            probe()
            self.x = 1

        def method(self):
            return probe()

        @property
        def prop(self):
            return probe()

        @classmethod
        def of(cls):
            return probe()

        @staticmethod
        def stat():
            return probe()

        def __getattr__(self, name):
            return probe()

        def __add__(self, other):
            return probe()

        def __eq__(self, other):
            probe()
            return True

        def __hash__(self):
            return probe()

        def __iter__(self):
            probe()
            return iter([1])

        def __enter__(self):
            probe()

        def __exit__(self, *args):
            probe()

        def __call__(self, f=None):
            probe()
            return f

    t = Thing()
    t.method()
    t.prop
    Thing.of()
    Thing.stat()
    t.missing
    t + t
    t == t
    {t: 1}[t]
    list(t)
    with t:
        probe()

    @t
    def decorated():
        return probe()
    decorated()
    functools.partial(t.method)()
    functools.lru_cache(None)(t.method)()

    class Sub(Thing):
        def __init_subclass__(cls):
            probe()

        def method(self):
            return super().method()

    class SubSub(Sub):
        pass
    SubSub().method()


class Dying:
    def __del__(self):
        probe()


@case
def destructors_and_weak_references():
    d = Dying()
    del d
    d = Dying()
    d = None
    a = Dying()
    a.me = a
    del a
    gc.collect()

    class Plain:
        pass
    p = Plain()
    r = weakref.ref(p, lambda _: probe())
    weakref.finalize(p, probe)
    del p

    def returning():
        local = Dying()
        return [local] and None
    returning()

    def raising():
        local = Dying()
        raise KeyError
    with contextlib.suppress(KeyError):
        raising()
    return r, d


def bottom(x):
    return probe() * x


@case
def calls_through_c():
    sorted([3, 1, 2], key=bottom)
    sorted([3, 1, 2], key=lambda x: probe())
    list(map(bottom, [1, 2]))
    list(filter(bottom, [1, 2]))
    max([1, 2], key=bottom)
    functools.reduce(lambda a, b: probe(), [1, 2, 3])
    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int),
                                ctypes.POINTER(ctypes.c_int))

    def order(a, b):
        probe()
        return a[0] - b[0]
    numbers = (ctypes.c_int * 4)(4, 2, 3, 1)
    ctypes.CDLL(None).qsort(numbers, 4, 4, callback(order))
    import re
    re.sub("a", lambda m: str(probe()), "banana")
    import json
    json.loads('{"a": {"b": 1}}', object_hook=lambda d: probe())


@case
def exec_and_eval():
    exec("probe()\n\nprobe()\n", {"probe": probe})
    eval("probe() + \\\nprobe()", {"probe": probe})
    exec(compile("def g():\n  probe()\ng()", "<made up>", "exec"), {"probe": probe})
    exec(compile("def g\u00e9\u4e2d():\n  probe()\ng\u00e9\u4e2d()", "caf\u00e9\u4e2d\U0001f600.py",
                 "exec"), {"probe": probe})
    exec(compile("probe()", os.fsdecode(b"bad\xff.py"), "exec"), {"probe": probe})
    exec(compile("\n" * 500 + "probe()\n" + "\n" * 1200 + "x = [\n" + "\n" * 300 + "probe()]",
                 "<far>", "exec"), {"probe": probe})
    exec(compile("def f():\n" + "  x = 1\n" * 3000 + "  probe()\nf()", "<long>", "exec"),
         {"probe": probe})
    exec(compile("probe()", "x" * 3000 + ".py", "exec"), {"probe": probe})


@case
def deep_recursion():
    def down(n):
        if n == 0:
            return probe()
        return down(n - 1)

    def through_c(n):
        if n == 0:
            return probe()
        return max([n], key=lambda x: through_c(n - 1))
    old = sys.getrecursionlimit()
    sys.setrecursionlimit(5000)
    try:
        for n in (10, 900, 850, 900, 3):
            down(n)
        through_c(40)
        through_c(60)
    finally:
        sys.setrecursionlimit(old)


@case
def alternating_depths():
    def a(n):
        return b(n - 1) if n else probe()

    def b(n):
        return a(n - 1) if n else probe()
    for n in list(range(30)) + list(range(30, 0, -1)) + [5, 25, 7, 28, 0, 29]:
        a(n)
        b(n)


@case
def tracing_and_profiling():
    busy = []

    def trace(frame, event, arg):
        if not busy:
            busy.append(1)
            if event in ("line", "call"):
                probe()
            busy.pop()
        return trace

    def target():
        x = 1
        return x
    sys.settrace(trace)
    try:
        target()
    finally:
        sys.settrace(None)
    sys.setprofile(trace)
    try:
        target()
        len([])
    finally:
        sys.setprofile(None)


@case
def without_the_gil():
    """The block is acquired by C while another thread holds the GIL."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    stop = []

    def busy():
        while not stop:
            sum(range(100))
    t = threading.Thread(target=busy)
    t.start()
    try:
        for _ in range(100):
            # noqa: E501,E702
            p = libc.malloc(1234567); want = harness.walk(sys._getframe()); short = harness.extract(
                sys._getframe())
            libc.free(p)
            harness.compare(harness.capture().last(), want, short)
    finally:
        stop.append(1)
        t.join()


@case
def a_foreign_thread_in_a_callback():
    """A thread that C made enters Python: its frames, and no other thread's."""
    proto = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    libc = ctypes.CDLL(None)
    done = []

    def entry(arg):
        probe()
        done.append(f1())
        return None
    start = proto(entry)
    thread = ctypes.c_ulong()
    assert libc.pthread_create(ctypes.byref(thread), None, start, None) == 0
    libc.pthread_join(thread, None)
    assert done == [1], done


@case
def a_thread_without_python():
    libc = ctypes.CDLL(None)
    thread, result = ctypes.c_ulong(), ctypes.c_void_p()
    address = ctypes.cast(harness.library.capture_foreign, ctypes.c_void_p)
    assert libc.pthread_create(ctypes.byref(thread), None, address, None) == 0
    libc.pthread_join(thread, ctypes.byref(result))
    assert (result.value or 0) & 1 == 1, "frames on a thread that has none"
    probe()


@case
def used_again():
    """Code objects come and go at the same addresses; none may pass for the one before."""
    addresses = set()
    again = 0
    for i in range(600):
        name = "made_%d" % (i % 7 * 1000 + i)
        text = "\n" * (i % 5) + "def %s():\n  return probe()\n%s()" % (name, name)
        code = compile(text, "<file %d>" % (i % 3), "exec")
        again += id(code) in addresses
        addresses.add(id(code))
        exec(code, {"probe": probe})
        del code
    assert again > 50, "no address was used again"


@case
def used_again_at_the_same_place():
    """Same frame, same code address, same instruction, another code object: the cached stack."""
    source = "def f():\n  return p()\nf()"
    for i in range(400):
        exec(compile(source, "<number %06d>" % i, "exec"), {"p": probe})


@case
def forked():
    pid = os.fork()
    if pid == 0:
        harness.captures.clear()
        bad = len(harness.problems)
        try:
            f1()
            classes.__wrapped__() if hasattr(classes,
                                             "__wrapped__") else nesting_and_multi_line_calls()
            t = threading.Thread(target=f1)
            t.start()
            t.join()
            probe()
        finally:
            for line in harness.problems[bad:]:
                print("in the child:", line, flush=True)
            os._exit(1 if len(harness.problems) > bad or harness.library.capture_count(2) else 0)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status
    probe()


@case
def anchors():
    """Where there are anchors, each lies on this thread's C stack and inner ones lie deeper."""
    def check():
        block = bytes(harness.SIZE)
        del block
        return harness.capture().anchors()

    def through(n):
        return check() if n == 0 else max([n], key=lambda x: 0) and list(
            map(lambda x: through(n - 1), [n]))[0]
    found = through(5)
    probe()
    if sys.version_info < (3, 10):
        assert not any(found)
        return
    assert all(found), found
    assert found == sorted(found, reverse=True), found
    assert len(set(found)) >= 6


if sys.version_info >= (3, 8):
    @case
    def subinterpreters():
        probe()
        try:
            import _xxsubinterpreters as interpreters
            run = interpreters.run_string
            make = interpreters.create
        except ImportError:
            try:
                import _interpreters as interpreters
                run = interpreters.run_string
                make = interpreters.create
            except ImportError:
                return
        if sys.version_info >= (3, 12) and ctypes.__file__:
            pass
        one = make()
        program = """if True:
            import sys
            def walk(frame):
                out = []
                while frame is not None:
                    out.append((frame.f_code.co_name, frame.f_lineno)); frame = frame.f_back
                return out[::-1]
            def inside():
                block = bytes(%d); want = walk(sys._getframe())
                del block
                return want
            def outer():
                return inside()
            want = outer()
            import os
            with open(%r, "w") as f:
                f.write(repr(want))
        """
        path = "/tmp/whyoom-sub-%d" % os.getpid()
        try:
            run(one, program % (harness.SIZE, path))
            with open(path) as f:
                want = eval(f.read())
        finally:
            if os.path.exists(path):
                os.unlink(path)
        got = [(name.rsplit(".", 1)[-1], line) for name, file, line in harness.capture().last()]
        # The frames of the interpreter outside may stand before them, or not.
        if got[-len(want):] != want:
            harness.problems.append("subinterpreters: got %r, expected %r" % (got[-4:], want))
        getattr(interpreters, "destroy")(one)


if __name__ == "__main__":
    sys.exit(harness.finish())
