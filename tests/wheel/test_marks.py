"""Marks from Python: as records of a trace, and as nothing where nothing records."""

import json

import pytest

PROGRAM = """
import asyncio, sys, threading
import whyoom

@whyoom.request("decorated")
def plain(a, *, b):
    "doc"
    return a + b

@whyoom.request("coroutine", tokens=3)
async def coroutine(n):
    await asyncio.sleep(0)
    return n

def numbers(n):
    got = yield 1
    try:
        yield got
    except KeyError:
        yield 'caught'
    return n
marked_numbers = whyoom.request("generator")(numbers)

@whyoom.request("stream")
async def stream(n):
    try:
        for i in range(n):
            await asyncio.sleep(0)
            yield i
    finally:
        print("closed")

class Both:
    @whyoom.request("method")
    def method(self):
        return self

with whyoom.mark("loading"):
    whyoom.point("loaded")
with whyoom.request("chat", tokens=12, id=42) as r:
    print(r.id if whyoom.recording() else 42)
    r.tokens(13)
    def part():
        with r.part():
            pass
    t = threading.Thread(target=part); t.start(); t.join()
    with r:  # again: it is the same request
        pass
print(r.id)

print(plain(1, b=2), plain.__name__, plain.__doc__)
print(Both().method().__class__.__name__)
try:
    plain(1)
except TypeError as e:
    print(e)

def drive(f):
    g = f(7)
    out = [next(g), g.send('sent'), g.throw(KeyError('k'))]
    try:
        next(g)
    except StopIteration as e:
        out.append(e.value)
    g = f(8); next(g); g.close()
    return out
print(drive(marked_numbers) == drive(numbers), drive(numbers))

async def main():
    print(await asyncio.gather(*(coroutine(n) for n in range(3))))
    print([i async for i in stream(3)])
    s = stream(3)
    print(await s.asend(None))
    await s.aclose()
asyncio.run(main())
"""
OUT = """42
0
3 plain doc
Both
plain() missing 1 required keyword-only argument: 'b'
True [1, 'sent', 'caught', 7]
[0, 1, 2]
closed
[0, 1, 2]
0
closed
"""


def marks(installed, trace):
    r = installed.run(installed.whyoom, "export", "--format", "jsonl", trace)
    assert r.returncode == 0, r.stderr
    events = [json.loads(line) for line in r.stdout.splitlines() if '"kind": "mark"' in line]
    return [(e["what"], e["phase"], e["name"], e["id"], e["thread"]) for e in events]


def test_not_recorded(installed):
    r = installed.script(PROGRAM)
    assert (r.stdout, r.stderr) == (OUT, "")


def test_recorded(installed, work):
    r = installed.script(PROGRAM, trace=work + "/t")
    assert (r.stdout, r.stderr) == (OUT, "")
    found = marks(installed, work + "/t")
    first = found[0][4]
    assert [m[2] for m in found[:2]] == ["loading", "loaded"], found[:3]
    assert found[0][:2] == ("phase", "begin") and found[2][1] == "end", found[:3]
    of = [m for m in found if m[3] == 42]
    assert [(m[1], m[4] == first) for m in of if m[1] != "length"] == [
        ("begin", True), ("enter", False), ("leave", False), ("end", True)], of
    assert len([m for m in of if m[1] == "length"]) == 2, of
    # each call is a request of its own, and each ends
    for name, calls in (("decorated", 2), ("coroutine", 3), ("generator", 2), ("stream", 2),
                        ("method", 1)):
        begun = [m[3] for m in found if m[1] == "begin" and m[2] == name]
        assert len(set(begun)) == len(begun) == calls, (name, begun)
        assert all(sum(m[1] == "end" and m[3] == n for m in found) == 1 for n in begun), name
    # a generator rests while its caller has the value
    number = next(m[3] for m in found if m[2] == "generator")
    assert [m[1] for m in found if m[3] == number] == [
        "begin", "leave", "enter", "leave", "enter", "leave", "enter", "end"]


def test_tasks_of_one_thread(installed, work):
    """Whose memory is whose is told by the task, however many share the thread."""
    r = installed.script("""
import asyncio, whyoom
async def chat(size):
    with whyoom.request(f"chat-{size}"):
        held = []
        for _ in range(20):
            held.append(bytearray(size << 20))
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        return len(held)
async def main():
    print(await asyncio.gather(chat(1), chat(3)))
asyncio.run(main())
""", trace=work + "/t")
    assert r.stdout == "[20, 20]\n", r.stderr
    r = installed.script("""
import sys, whyoom
r = whyoom.report(sys.argv[1]).requests
print(r.source, sorted((q.name, q.peak_bytes >> 20) for q in r.ended + r.in_flight if q.name))
""", work + "/t")
    assert r.stdout == "marks [('chat-1', 20), ('chat-3', 60)]\n", r.stdout + r.stderr


WRONG = """
import whyoom
def attempt(make):
    try:
        make()
    except Exception as e:
        return type(e).__name__, str(e)
    return None
for make in (lambda: whyoom.request(), lambda: whyoom.request(b"x"), lambda: whyoom.request("x", 1),
             lambda: whyoom.request("x", tokens="3"), lambda: whyoom.request("x", tokens=-1),
             lambda: whyoom.request("x", id=0), lambda: whyoom.request("x", id=1 << 48),
             lambda: whyoom.request("x", size=1), lambda: whyoom.request("x", name="y"),
             lambda: whyoom.mark(3), lambda: whyoom.point(None), lambda: whyoom.request("x")(3),
             lambda: whyoom.request("x")(int), lambda: whyoom.Mark(), lambda: whyoom.nothing,
             lambda: whyoom.request("x").tokens(-1)):
    print(attempt(make))
# these are no reason to fail
for name in ("", "x" * 10000, "\\ud800", "a\\0b", "ü€"):
    with whyoom.request(name, tokens=None, id=None), whyoom.mark(name):
        whyoom.point(name)
print("end")
"""


def test_wrong_arguments_are_the_same_errors(installed, work):
    without = installed.script(WRONG)
    assert without.stdout.endswith("end\n"), without.stderr
    assert "None\n" not in without.stdout, without.stdout
    r = installed.script(WRONG, trace=work + "/t")
    assert (r.stdout, r.stderr) == (without.stdout, "")


def test_threads_and_forks(installed, work):
    r = installed.script("""
import gc, os, sys, threading, whyoom
shared = whyoom.request("shared")
def work():
    for i in range(3000):
        with whyoom.request("own", tokens=i) as r, shared, r.part():
            pass
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
child = os.fork()
if not child:
    with whyoom.request("in the child"):
        os._exit(0)
for t in threads: t.join()
print(os.waitpid(child, 0)[1], shared.id)
before = sys.getrefcount(shared), sys.getrefcount("own")
for _ in range(1000):
    with shared, shared.part(): pass
print(before == (sys.getrefcount(shared), sys.getrefcount("own")))
""", trace=work + "/t")
    assert (r.stdout, r.stderr) == ("0 0\nTrue\n", "")
    r = installed.run(installed.whyoom, "check", work + "/t")
    assert r.returncode == 0, r.stdout


def test_no_memory_is_kept(installed):
    """Where nothing records: not a block more after a million marks."""
    r = installed.script("""
import sys, whyoom
def work(n):
    for _ in range(n):
        with whyoom.request("x", tokens=5): pass
work(1000)
before = sys.getallocatedblocks()
work(200000)
print(sys.getallocatedblocks() - before < 20)
""")
    assert r.stdout == "True\n", r.stderr


LATE = ["whyoom._report", "whyoom._watch", "whyoom._decorate", "json", "inspect", "subprocess"]


@pytest.mark.parametrize("module", LATE)
def test_marks_import_little(installed, module):
    r = installed.script("import sys, whyoom\nwith whyoom.request('x'): pass\n"
                         "print(sys.argv[1] in sys.modules)", module)
    assert r.stdout == "False\n", r.stdout
