"""render_python.py - a mechanism as a program in Python.

A block is what the carrier's row of MAKE says; the request structure is a main() of MAINS. Where
the structure is asynchronous, each function that waits, or calls one that does, is a coroutine; of
nested ones, all are."""
import ast

from language import block_names, returns_block

# carrier: what it imports, what makes a block of n bytes, what says a block x's size
MAKE = {
    "py_small": ("", "[(float(j), j + 0.5) for j in range(({n}) // 112 + 1)]", "len({x}) * 112"),
    "py_large": ("", "[bytearray(700) for j in range(({n}) // 765 + 1)]", "len({x}) * 765"),
    "py_bytes": ("", "BYTE * ({n})", "len({x})"),
    "py_text": ("", "LETTER * ({n})", "len({x})"),
    "numpy": ("numpy", "numpy.ones(({n}) // 8 + 1)", "{x}.nbytes"),
    "torch": ("torch", "torch.ones(({n}) // 4 + 1, device='cuda')", "{x}.numel() * 4"),
    "py_mmap": ("mmap", "Mapping({n})", "{x}.size"),
    "py_shm": ("multiprocessing.shared_memory", "Segment({n})", "{x}.size"),
    "py_stacks": ("", "Waiter({n})", "{x}.size"),
}

# A name: the compiler would make one object, once, of two constants.
HELPERS = {
    "py_bytes": "\nBYTE = b'x'\n",
    "py_text": "\nLETTER = 'x'\n",
    "py_mmap": '''
class Mapping:
    def __init__(self, size):
        self.size = size
        self.data = mmap.mmap(-1, size)
        for at in range(0, size, 4096):
            self.data[at] = 1

    def close(self):
        self.data.close()
''',
    "py_shm": '''
class Segment:
    def __init__(self, size):
        self.size = size
        self.data = multiprocessing.shared_memory.SharedMemory(create=True, size=size)
        for at in range(0, size, 4096):
            self.data.buf[at] = 1

    def close(self):
        self.data.close()
        self.data.unlink()
''',
    "py_stacks": '''
class Waiter:
    def __init__(self, size):
        self.size = max(size, 65536) & -4096
        threading.stack_size(self.size)
        self.end = threading.Event()
        self.thread = threading.Thread(target=self.end.wait, daemon=True)
        self.thread.start()

    def close(self):
        self.end.set()
        self.thread.join()
''',
}

# Before the old block goes, the new one is there, as in every carrier.
PUT_CLOSED = '''
def put_in_place(table, place, block):
    old = table.get(place)
    table[place] = block
    if old:
        old.close()
'''

LENGTH = '''
def length(number):
    h = number * 0x9e3779b97f4a7c15 & (1 << 64) - 1
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9 & (1 << 64) - 1
    return 100 + (h >> 33) % 901
'''

MAINS = {
    "loop": '''
def main():
    start()
    number = 0
    while number < REQUESTS:
        serve(number)
        number += 1


main()
''',
    "threads": '''
def worker(numbers):
    try:
        for number in numbers:
            serve(number)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


class Numbers:
    def __init__(self):
        self.next, self.lock = 0, threading.Lock()

    def __iter__(self):
        return self

    def __next__(self):
        with self.lock:
            self.next += 1
            if self.next > REQUESTS:
                raise StopIteration
            return self.next - 1


def main():
    start()
    numbers = Numbers()
    threads = [threading.Thread(target=worker, args=(numbers,)) for _ in range(CROWD)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
''',
    "forked": '''
def main():
    children = []
    for first in range(2):
        child = os.fork()
        if child:
            children.append(child)
            continue
        start()
        for number in range(first, REQUESTS, 2):
            serve(number)
        os._exit(0)
    for _ in range(2):
        _, status = os.wait()
        if status:
            for child in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, 15)
            sys.exit(1)


main()
''',
    "asyncio": '''
async def main():
    start()
    gate, tasks, failed = asyncio.Semaphore(CROWD), set(), []

    async def one(number):
        try:
            await serve(number)
        except BaseException as error:
            failed.append(error)
        gate.release()

    number = 0
    while number < REQUESTS and not failed:
        await gate.acquire()
        task = asyncio.create_task(one(number))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        await asyncio.sleep(0)
        number += 1
    if failed:
        raise failed[0]
    await asyncio.gather(*tasks)


asyncio.run(main())
''',
    "nested": '''
async def session(first, count):
    for number in range(first, min(first + count, REQUESTS)):
        await serve(number)
        await asyncio.sleep(0)


async def main():
    start()
    number = 0
    while number < REQUESTS:
        await session(number, 1000)
        number += 1000


asyncio.run(main())
''',
}
ASYNCHRONOUS = ("asyncio", "nested")
CLOSED = ("py_mmap", "py_shm", "py_stacks")


def expression(text, **parts):
    return ast.parse(text.format(**{k: ast.unparse(v) for k, v in parts.items()}),
                     mode="eval").body


class Renderer(ast.NodeTransformer):
    """Rewrites a copy of a function's tree."""
    def __init__(self, composition, functions, names, budget, tables):
        self.carrier, self.names, self.budget = composition.carrier, names, budget
        self.tables = tables
        self.own = {f.name for f in functions}
        self.coroutines = coroutines(functions, composition.structure)
        self.closed = self.carrier in CLOSED

    def visit_Name(self, node):
        if node.id == "B":
            return ast.Constant(self.budget)
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_arg(self, node):
        return ast.arg(self.names.get(node.arg, node.arg))

    def visit_FunctionDef(self, node):
        kind = ast.AsyncFunctionDef if node.name in self.coroutines else ast.FunctionDef
        body = [part for n in node.body for part in self.listed(self.visit(n))]
        return kind(self.names.get(node.name, node.name), self.visit(node.args), body, [],
                    lineno=0)

    @staticmethod
    def listed(part):
        return part if isinstance(part, list) else [part]

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Call) and node.value.func.id == "drop":
            block = self.visit(node.value.args[0])
            if self.closed:
                return ast.Expr(expression("{x}.close()", x=block))
            # Python frees at the last reference: the name goes.
            return ast.Delete([ast.Name(block.id, ast.Del())])
        return self.generic_visit(node)

    def visit_Call(self, node):
        word = node.func.id
        arguments = [self.visit(a) for a in node.args]
        if word in self.own:
            call = ast.Call(ast.Name(self.names.get(word, word), ast.Load()), arguments, [])
            return ast.Await(call) if word in self.coroutines else call
        if word == "make":
            return expression(MAKE[self.carrier][1], n=arguments[0])
        if word == "size":
            return expression(MAKE[self.carrier][2], x=arguments[0])
        if word == "hold":
            return ast.Constant(None)
        if word in ("len", "length", "range"):
            return ast.Call(ast.Name(word, ast.Load()), arguments, [])
        if word == "wait":
            return expression("await asyncio.sleep({n} / 1000)" if self.coroutines
                              else "time.sleep({n} / 1000)", n=arguments[0])
        return self.stored(word, arguments, node.args[0].id in self.tables)

    def stored(self, word, arguments, table):
        close = ".close()" if self.closed else ""
        texts = {
            "keep": "{s}.append({x})",
            "put": "put_in_place({s}, {x}, {y})" if close else "{s}.__setitem__({x}, {y})",
            "pop": ("{s}.pop(next(iter({s})))" if table else "{s}.pop(0)") + close,
            "pop_last": ("{s}.popitem()[1]" if table else "{s}.pop()") + close,
            "clear": "[b.close() for b in {s}%s], {s}.clear()" % (".values()" if table else "")
                     if close else "{s}.clear()",
            "item": "{s}[{x}]",
            "total": "sum(%s for b in {s}%s)" % (MAKE[self.carrier][2].replace("{x}", "b"),
                                                 ".values()" if table else ""),
        }
        return expression(texts[word], **dict(zip("sxy", arguments)))


def coroutines(functions, structure):
    """The functions that are coroutines in this structure."""
    if structure not in ASYNCHRONOUS:
        return set()
    if structure == "nested":
        return {f.name for f in functions} - called_by_setup(functions)
    found, grew = {"handle", "background"}, True
    while grew:
        grew = False
        for f in functions:
            calls = {n.func.id for n in ast.walk(f) if isinstance(n, ast.Call)}
            if f.name not in found and calls & (found | {"wait"}):
                found.add(f.name)
                grew = True
    return found & {f.name for f in functions}


def called_by_setup(functions):
    """The setups and what they call: nothing is awaited before the first request."""
    found = {f.name for f in functions if f.name.endswith("setup")}
    while True:
        more = {n.func.id for f in functions if f.name in found for n in ast.walk(f)
                if isinstance(n, ast.Call)} & {f.name for f in functions}
        if more <= found:
            return found
        found |= more


def tables_of(functions):
    """The stores that are filled by put(): dictionaries."""
    return {n.args[0].id for f in functions for n in ast.walk(f)
            if isinstance(n, ast.Call) and n.func.id == "put"}


def without_put(text):
    """`s.__setitem__(k, x)` as a person writes it."""
    tree = ast.parse(text)

    class Table(ast.NodeTransformer):
        def visit_Expr(self, node):
            call = node.value
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and \
                    call.func.attr == "__setitem__":
                return ast.Assign([ast.Subscript(call.func.value, call.args[0], ast.Store())],
                                  call.args[1], lineno=0)
            return node
    return ast.unparse(ast.fix_missing_locations(Table().visit(tree)))


def rendered(composition, mechanism, background, names, budget, fraction):
    """The text of main.py."""
    functions = mechanism.functions + (background.functions if background else [])
    stores = mechanism.stores + (background.stores if background else [])
    tables = tables_of(functions)
    r = Renderer(composition, functions, names, budget, tables)
    imports = {"asyncio", "contextlib", "os", "sys", "threading", "time", "traceback"}
    module = MAKE[composition.carrier][0]
    parts = ["\n".join("import " + m for m in sorted(imports | ({module} if module else set())))]
    if module == "torch" and composition.limiter == "fraction":
        parts.append("torch.cuda.set_per_process_memory_fraction(%r)" % fraction)
    parts.append("REQUESTS = %s\nCROWD = %d" % (mechanism.requests or "1 << 40",
                                                mechanism.crowd))
    parts.append("\n".join("%s = %s" % (names.get(s, s), "{}" if s in tables else "[]")
                           for s in stores))
    parts.append(LENGTH.strip())
    if composition.carrier in HELPERS:
        parts.append(HELPERS[composition.carrier].strip())
    if tables and composition.carrier in CLOSED:
        parts.append(PUT_CLOSED.strip())
    for f in functions:
        tree = ast.fix_missing_locations(r.visit(ast.parse(ast.unparse(f)).body[0]))
        parts.append(without_put(ast.unparse(tree)))
    setups = [names.get(f.name, f.name) for f in functions if f.name.endswith("setup")]
    parts.append("def start():\n" + "".join("    %s()\n" % s for s in setups) + "    return")
    serve = [w for w in ("background", "handle") if any(f.name == w for f in functions)]
    asynchronous = composition.structure in ASYNCHRONOUS
    parts.append("%sdef serve(number):\n" % ("async " if asynchronous else "")
                 + "".join("    %s%s(number)\n" % ("await " if w in r.coroutines else "",
                                                   names.get(w, w)) for w in serve))
    parts.append(MAINS[composition.structure].strip())
    return "\n\n\n".join(p.rstrip() for p in parts if p) + "\n"
