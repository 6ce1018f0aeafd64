"""render_c.py - a mechanism as a program in C or C++.

The carrier is a header of runtime/, which says what `block` and `store` are and how MAKE, DROP and
the calls of stores work; the request structure is a main() of structure.h."""
import ast

from language import block_names, is_block, returns_block

OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%",
             ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
             ast.And: "&&", ast.Or: "||"}
STORE_CALLS = {"keep": "store_keep", "put": "store_put", "pop": "store_pop",
               "pop_last": "store_pop_last", "clear": "store_clear", "len": "store_len",
               "total": "store_total", "item": "store_item"}
MACROS = {"make": "MAKE", "drop": "DROP", "size": "SIZE", "hold": "NONE", "wait": "wait_ms",
          "length": "length_of"}


class Renderer:
    def __init__(self, mechanism, functions, names, budget):
        self.mechanism, self.functions, self.names = mechanism, functions, names
        self.budget = budget
        self.block_functions = returns_block(functions)
        self.lines = []

    def name(self, word):
        return self.names.get(word, word)

    def expression(self, node):
        if isinstance(node, ast.Constant):
            return "%d" % node.value
        if isinstance(node, ast.Name):
            return "%dL" % self.budget if node.id == "B" else self.name(node.id)
        if isinstance(node, ast.BinOp):
            return "(%s %s %s)" % (self.expression(node.left), OPERATORS[type(node.op)],
                                   self.expression(node.right))
        if isinstance(node, ast.Compare):
            return "(%s %s %s)" % (self.expression(node.left), OPERATORS[type(node.ops[0])],
                                   self.expression(node.comparators[0]))
        if isinstance(node, ast.BoolOp):
            words = " %s " % OPERATORS[type(node.op)]
            return "(%s)" % words.join(map(self.expression, node.values))
        if isinstance(node, ast.Call):
            return self.call(node)
        raise ValueError("line %d: no expression of the language" % node.lineno)

    def call(self, node):
        word = node.func.id
        arguments = [self.expression(a) for a in node.args]
        if word in STORE_CALLS:
            return "%s(&%s)" % (STORE_CALLS[word], ", ".join(arguments))
        return "%s(%s)" % (MACROS.get(word) or self.name(word), ", ".join(arguments))

    def statement(self, node, depth, known, blocks):
        indent = "\t" * depth
        if isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Call):
                self.lines.append(indent + self.expression(node.value) + ";")
        elif isinstance(node, ast.Return):
            value = " " + self.expression(node.value) if node.value else ""
            self.lines.append("%sreturn%s;" % (indent, value))
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            operator = "=" if isinstance(node, ast.Assign) else OPERATORS[type(node.op)] + "="
            kind = "" if target.id in known else "block " if target.id in blocks else "long "
            known.add(target.id)
            self.lines.append("%s%s%s %s %s;" % (indent, kind, self.name(target.id), operator,
                                                 self.expression(node.value)))
        elif isinstance(node, ast.If):
            self.lines.append("%sif (%s) {" % (indent, self.expression(node.test)))
            self.body(node.body, depth + 1, set(known), blocks)
            if node.orelse:
                self.lines.append(indent + "} else {")
                self.body(node.orelse, depth + 1, set(known), blocks)
            self.lines.append(indent + "}")
        elif isinstance(node, ast.While):
            self.lines.append("%swhile (%s) {" % (indent, self.expression(node.test)))
            self.body(node.body, depth + 1, set(known), blocks)
            self.lines.append(indent + "}")
        elif isinstance(node, ast.For):
            k = self.name(node.target.id)
            bounds = [self.expression(a) for a in node.iter.args]
            first, last = bounds if len(bounds) == 2 else ("0", bounds[0])
            self.lines.append("%sfor (long %s = %s; %s < %s; %s++) {" % (indent, k, first, k, last,
                                                                        k))
            self.body(node.body, depth + 1, known | {node.target.id}, blocks)
            self.lines.append(indent + "}")
        elif not isinstance(node, ast.Pass):
            raise ValueError("line %d: no statement of the language" % node.lineno)

    def body(self, nodes, depth, known, blocks):
        for node in nodes:
            self.statement(node, depth, known, blocks)

    def head(self, function):
        blocks = block_names(function, self.block_functions)
        returns = "block" if function.name in self.block_functions else "long" if any(
            isinstance(n, ast.Return) and n.value for n in ast.walk(function)) else "void"
        parameters = ", ".join(("block " if a.arg in blocks else "long ") + self.name(a.arg)
                               for a in function.args.args)
        return "%s %s(%s)" % (returns, self.name(function.name), parameters or "void")

    def function(self, function):
        self.lines += ["__attribute__((noinline)) static " + self.head(function), "{"]
        known = {a.arg for a in function.args.args}
        self.body(function.body, 1, known, block_names(function, self.block_functions))
        self.lines += ["}", ""]


def rendered(composition, mechanism, background, names, budget):
    """The text of main.c or main.cpp."""
    functions = mechanism.functions + (background.functions if background else [])
    stores = mechanism.stores + (background.stores if background else [])
    r = Renderer(mechanism, functions, names, budget)
    r.lines = ["#define REQUESTS %dL\n#define CROWD %d" % (mechanism.requests or 1 << 40,
                                                      mechanism.crowd),
               '#include "%s.h"' % composition.carrier, ""]
    r.lines += ["static store %s;" % r.name(s) for s in stores] + [""]
    r.lines += ["static %s __attribute__((noinline));" % r.head(f) for f in functions] + [""]
    for f in functions:
        r.function(f)
    r.lines += ["static void start(void)", "{"]
    r.lines += ["\t%s();" % r.name(f.name) for f in functions if f.name.endswith("setup")]
    r.lines += ["}", "", "static void serve(long number)", "{"]
    if background and any(f.name == "background" for f in functions):
        r.lines.append("\t%s(number);" % r.name("background"))
    r.lines += ["\t%s(number);" % r.name("handle"), "}", "",
                '#include "%s.h"' % composition.structure]
    return "\n".join(r.lines) + "\n"
