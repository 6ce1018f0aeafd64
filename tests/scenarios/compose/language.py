"""language.py - mechanisms: what allocates, what keeps it, and what the right answer is.

A mechanism is a class in mechanisms/*.py, written in the small part of Python that stands below,
and never imported: it is parsed here, and rendered as a program in C, C++ or Python. Its docstring
says what happens and names the public report that it follows.

    class SessionTable:
        \"\"\"Sessions are kept by client and never ended. https://...\"\"\"
        cause = "state-retention"
        also = ["leak"]             # as right: no trace can tell the two apart
        unnamed = []                # as right where the names do not tell
        blame = ["remember"]        # the functions that may be blamed, or whose callee may
        carriers = HOST + DEVICE
        structures = SERVED
        sessions = store()          # a list of blocks, which outlives the calls

        def parse(i):
            return make(B // 400)

        def handle(i):              # a request
            keep(sessions, parse(i))

What a function may say: assignments, `if`, `while`, `for k in range(...)`, `return`, calls of the
mechanism's other functions, integers with + - * // % and comparisons, and these:

    make(n)          a block of n bytes       size(x)            its bytes
    drop(x)          frees it                 hold()             no block (a variable that gets one)
    keep(s, x)       appends it to a store    put(s, k, x)       at place k, frees what was there
    pop(s)           frees the oldest         pop_last(s)        frees the newest
    clear(s)         frees all                len(s), total(s)   blocks, their bytes
    item(s, k)       the block at place k     wait(ms)           waits as for a slow neighbour
    length(i)        100 to 1,000, as if at random: the tokens of request i
    B                the bytes that the limit leaves to the program, at the limit's factor 1

A parameter or a variable is an integer unless it gets a block; parameters named x, y or z are
blocks. `setup()` runs before the first request, `handle(i)` for each. Every block that is not kept
must be dropped. A mechanism without an end runs until its memory ends; `requests = N` ends it.
"""
import ast
import dataclasses
import os

HERE = os.path.dirname(os.path.abspath(__file__))

C = ["c_malloc", "c_small", "c_mmap"]
CPP = ["cpp_vector", "cpp_string", "cpp_map"]
PYTHON = ["py_small", "py_large", "py_bytes", "py_text", "py_mmap", "numpy"]
HOST = C + CPP + PYTHON
BLOCKS = ["c_malloc", "c_mmap", "cpp_vector", "cpp_string", "py_bytes", "py_text", "numpy"]
SHARED = ["c_shm", "py_shm"]
STACKS = ["c_stacks", "py_stacks"]
DEVICE = ["torch", "cuda"]
SERVED = ["loop", "threads", "asyncio", "forked", "nested"]
ALONE = ["loop", "nested"]
WORDS = {name: value for name, value in globals().items() if name.isupper() and name != "HERE"}

CALLS = {"make", "drop", "keep", "put", "pop", "pop_last", "clear", "len", "total", "item", "wait",
         "length", "size", "hold", "range"}
BLOCK_CALLS = {"make", "item", "hold"}
FACTORS = (0.5, 1, 2)


class Fault(Exception):
    """A mechanism that is not written in this language: file, line and what is wrong."""


@dataclasses.dataclass
class Mechanism:
    """A parsed mechanism. `functions` are ast.FunctionDef in the order of the file."""
    name: str
    file: str
    text: str
    label: dict
    stores: list
    functions: list

    def __getattr__(self, key):
        try:
            return self.__dict__["label"][key]
        except KeyError:
            raise AttributeError(key) from None

    def function(self, name):
        return next((f for f in self.functions if f.name == name), None)


DEFAULTS = {"cause": None, "also": [], "unnamed": [], "blame": [], "carriers": HOST,
            "structures": SERVED, "factors": list(FACTORS), "requests": 0, "crowd": 4,
            "limiters": None, "backgrounds": None}


def label_value(node, file):
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    if names - set(WORDS):
        raise Fault("%s:%d: unknown word %s" % (file, node.lineno, ", ".join(names - set(WORDS))))
    return eval(compile(ast.Expression(node), file, "eval"), {"__builtins__": {}}, dict(WORDS))


def parsed(node, file):
    label, stores, functions = dict(DEFAULTS), [], []
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            functions.append(part)
        elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
            name = part.targets[0].id
            if isinstance(part.value, ast.Call) and part.value.func.id == "store":
                stores.append(name)
            elif name in label:
                label[name] = label_value(part.value, file)
            else:
                raise Fault("%s:%d: there is no key %s" % (file, part.lineno, name))
        elif not isinstance(part, ast.Expr):
            raise Fault("%s:%d: neither a key, a store nor a function" % (file, part.lineno))
    made = Mechanism(node.name, os.path.basename(file), ast.get_docstring(node) or "", label,
                     stores, functions)
    check(made, node)
    return made


def stores_of(made, word):
    return {n.args[0].id for f in made.functions for n in ast.walk(f)
            if isinstance(n, ast.Call) and getattr(n.func, "id", "") == word}


def check(made, node):
    known = {f.name for f in made.functions} | CALLS
    where = "%s:%d: %s" % (made.file, node.lineno, made.name)
    if not (made.function("handle") if made.cause else made.function("background")):
        raise Fault(where + " has no %s(i)" % ("handle" if made.cause else "background"))
    kept, placed = (stores_of(made, word) for word in ("keep", "put"))
    if kept & placed:
        raise Fault(where + " fills " + ", ".join(kept & placed) + " by keep() and by put()")
    for call in (n for f in made.functions for n in ast.walk(f) if isinstance(n, ast.Call)):
        if not isinstance(call.func, ast.Name) or call.func.id not in known:
            raise Fault("%s:%d: no such function" % (made.file, call.lineno))
    for name in made.label["blame"]:
        if not made.function(name):
            raise Fault(where + " blames " + name + ", which it does not have")


def mechanisms():
    """All mechanisms by name, in a fixed order."""
    found = {}
    folder = os.path.join(HERE, "mechanisms")
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".py"):
            continue
        path = os.path.join(folder, file)
        with open(path) as f:
            tree = ast.parse(f.read(), path)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                if node.name in found:
                    raise Fault("%s:%d: a second %s" % (file, node.lineno, node.name))
                found[node.name] = parsed(node, path)
    return found


def returns_block(functions):
    """The names of the functions that return a block."""
    known, grew = set(), True
    while grew:
        grew = False
        for f in functions:
            blocks = block_names(f, known)
            for part in ast.walk(f):
                if isinstance(part, ast.Return) and part.value is not None and f.name not in known \
                        and is_block(part.value, blocks, known):
                    known.add(f.name)
                    grew = True
    return known


def is_block(node, blocks, block_functions):
    if isinstance(node, ast.Name):
        return node.id in blocks
    return isinstance(node, ast.Call) and node.func.id in BLOCK_CALLS | block_functions


def block_names(function, block_functions):
    """The parameters and variables of a function that are blocks."""
    found = {a.arg for a in function.args.args if a.arg in ("x", "y", "z")}
    for part in ast.walk(function):
        if isinstance(part, ast.Assign) and is_block(part.value, found, block_functions):
            found.add(part.targets[0].id)
    return found
