"""Compares what shim/python/python.c saw inside malloc with what Python says of its own stack.

probe() acquires a block of the size that the preloaded test library looks at, and walks the frames
on the same line; everything else is a program that calls probe() from somewhere interesting.
"""

import ctypes
import sys
import traceback

from lines import Code

SIZE = 1234567 - (sys.getsizeof(bytes(1)) - 1)  # the header, and a terminator
MAX = 1 << 17

library = ctypes.PyDLL(None)
library.capture_count.restype = ctypes.c_uint64
library.capture_error.restype = ctypes.c_char_p
library.capture_facts.restype = ctypes.c_char_p
library.capture_bench.restype = ctypes.c_double
library.capture_foreign.restype = ctypes.c_int

passed = failed = compared = 0
current = "?"
problems = []


class Capture:
    """One of these per thread: capture_last() is about the calling thread."""

    def __init__(self):
        self.code = (ctypes.c_uint32 * MAX)()
        self.lasti = (ctypes.c_int32 * MAX)()
        self.anchor = (ctypes.c_uint64 * MAX)()
        self.body = ctypes.create_string_buffer(1 << 20)
        self.codes = {}

    def last(self):
        count = library.capture_last(self.code, self.lasti, self.anchor, MAX)
        if count < 0:
            return None
        frames = []
        for i in range(count):
            code = self.code_of(self.code[i])
            frames.append((code.name, code.file, code.line(self.lasti[i])) if code else None)
        return frames

    def anchors(self):
        count = library.capture_last(self.code, self.lasti, self.anchor, MAX)
        return list(self.anchor[:max(count, 0)])

    def code_of(self, number):
        if number not in self.codes:
            size = library.capture_code(number, self.body, len(self.body))
            self.codes[number] = Code(self.body.raw[:size]) if size else None
        return self.codes[number]


captures = {}


def capture():
    import threading
    key = threading.get_ident()
    if key not in captures:
        captures[key] = Capture()
    return captures[key]


qualified = sys.version_info >= (3, 11)


def walk(frame):
    """Outermost first, as the library reports it."""
    out = []
    while frame is not None:
        code = frame.f_code
        name = code.co_qualname if qualified else code.co_name
        out.append((name, code.co_filename, frame.f_lineno))
        frame = frame.f_back
    out.reverse()
    return out


def compare(got, want, extracted):
    global compared
    compared += 1
    if got is None:
        problems.append("%s: no frames" % current)
        return
    if got != want:
        n = 0
        while n < len(got) and n < len(want) and got[n] == want[n]:
            n += 1
        problems.append("%s: from frame %d on: got %r, expected %r" %
                        (current, n, got[n:n + 3], want[n:n + 3]))
    plain = [(f.name, f.filename, f.lineno) for f in extracted]
    short = [(f[0].rsplit(".", 1)[-1], f[1], f[2]) for f in got if f]
    if short != plain:
        problems.append("%s: traceback says %r, got %r" % (current, plain[-3:], short[-3:]))


def probe():
    # noqa: E501,E702
    block = bytes(SIZE); frame = sys._getframe(); want = walk(frame); extracted = extract(frame)
    del block
    compare(capture().last(), want, extracted)
    return 1


def extract(frame):
    return list(reversed(traceback.StackSummary.extract(traceback.walk_stack(frame),
                                                        lookup_lines=False)))[:]


def case(function):
    """Runs it as one case."""
    global current, passed, failed
    current = function.__name__
    before, n = len(problems), compared
    try:
        function()
    except Exception:
        problems.append("%s: %s" % (current, traceback.format_exc()))
    if compared == n:
        problems.append("%s: compared nothing" % current)
    if len(problems) == before:
        passed += 1
    else:
        failed += 1
    return function


def finish():
    for line in problems[:40]:
        print("FAIL", line)
    errors = library.capture_count(2)
    if errors:
        print("FAIL", errors, "times:", library.capture_error().decode())
    print("%s: %d stacks compared, %d walks, %d code objects" %
          (library.capture_facts().decode(), compared, library.capture_count(1),
           library.capture_count(3)))
    print("%d passed, %d failed" % (passed, failed + (1 if errors else 0)))
    sys.stdout.flush()
    return 1 if failed or errors else 0
