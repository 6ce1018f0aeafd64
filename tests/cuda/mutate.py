#!/usr/bin/env python3
"""mutate.py [NAME...]: do the tests notice when a care is taken out? In a copy of the tree, one
after the other is, the recorder is built, and the case that is said to show it has to fail. Where
the text that a change replaces is no longer there, the change has to be written anew; lint finds
those, by tests/lint/mutations.py.

docs/cuda-pitfalls.md tells what each of them is about."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS = 60  # a case that waits longer has failed
LINK = "the link"  # in place of a case: the recorder cannot even be linked

# path under shim/, the text (any white space is as good as any other), what stands there instead,
# and MODULE:CASE, which is to fail
Change = collections.namedtuple("Change", "file old new case")
CHANGES = {
    # what a call's pointers lead to
    "failed-out": Change("hooks/hook_cuda.c", "(result || !(out) ? 0 : WORD(*(out)))",
                         "(!(out) ? 0 : WORD(*(out)))",
                         "pitfalls:pointers"),
    "null-out": Change("hooks/hook_cuda.c", "(result || !(out) ? 0 : WORD(*(out)))",
                       "(result ? 0 : WORD(*(out)))",
                       "pitfalls:pointers"),
    "failed-pitch": Change("hooks/hook_cuda.c", "result || !(pitch) ?", "!(pitch) ?",
                           "pitfalls:pointers"),
    "failed-probe": Change("hooks/hook_cuda.c", "if (c.outer && !result) cuda_probed",
                           "if (c.outer) cuda_probed",
                           "pitfalls:pointers"),
    "null-probe": Change("hooks/hook_cuda.c", "(available) ? *(available) : 0", "*(available)",
                         "cuda:failures"),
    "unread-in": Change("hooks/hook_cuda.c", "return result != GPU_ERROR_NOT_INITIALIZED &&",
                        "return true ||",
                        "pitfalls:pointers"),
    # whose memory it is
    "named-device": Change("hooks/hook_cuda.c", "device ? prop->location.id : 0", "-1",
                           "cuda:early"),
    "host-location": Change("hooks/hook_cuda.c", "prop && !device ? CUDA_PINNED : CUDA_DEVICE",
                            "CUDA_DEVICE", "cuda:failures"),
    "other-device": Change("cuda/cuda_device.c", "context && (device < 0 || now == device)",
                           "context", "kinds:contexts"),
    "other-before": Change("cuda/cuda_note.c", "&& c->before_device == d->device", "",
                           "kinds:contexts"),
    # when the driver is asked
    "errno": Change("cuda/cuda_device.c", "errno = errno_;", "(void)errno_;", "pitfalls:errno"),
    "no-context": Change("cuda/cuda_device.c", "if (!now) return -1;",
                         "if (!now) return QUERY(ctx_device, &device) ? -1 : device;",
                         "cuda:early"),
    "before-init": Change("cuda/cuda_device.c", "if (!had_context || !is_safe_moment())",
                          "if (!is_safe_moment())", "pitfalls:early"),
    "refused-init": Change("cuda/cuda_note.c", "result == GPU_ERROR_NOT_INITIALIZED ||", "",
                           "pitfalls:early"),
    "callback": Change("cuda/cuda_note.c", "|| result == GPU_ERROR_NOT_PERMITTED", "",
                       "pitfalls:callback"),
    "capture": Change("cuda/cuda_device.c", "!__atomic_load_n(&captures, __ATOMIC_ACQUIRE) && "
                      "!cuda_self.querying",
                      "!cuda_self.querying", "cuda:capture"),
    "capture-refused": Change("hooks/hook_cuda.c", "if (result) cuda_device_capture(-1);", "",
                              "pitfalls:captures"),
    "capture-goes-on": Change("hooks/hook_cuda.c",
                              "if (!result || result == GPU_ERROR_CAPTURE_INVALIDATED ||",
                              "if (true || result == GPU_ERROR_CAPTURE_INVALIDATED ||",
                              "pitfalls:captures"),
    "capture-invalid": Change("hooks/hook_cuda.c", "result == GPU_ERROR_CAPTURE_INVALIDATED ||", "",
                              "pitfalls:captures"),
    "allocator-lock": Change("cuda/cuda_note.c", ".last_memory = true,", ".last_memory = false,",
                             "cuda:torch"),
    "ending": Change("cuda/cuda_device.c", "!shim.ending &&", "", "pitfalls:ending"),
    "ending-vfork": Change("lifecycle.c", "if (sys_getpid() != shim.pid) return; /* a vfork child "
                           "*/",
                           "shim.ending = true; if (sys_getpid() != shim.pid) return;",
                           "pitfalls:vforked"),
    "inherited": Change("cuda/cuda_device.c", "!inherited &&", "", "pitfalls:forked"),
    "copy": Change("cuda/cuda_device.c", "&& !shim_is_copy();", ";", "pitfalls:forked"),
    "filter": Change("cuda/cuda_device.c", "!shim.sandboxed && !filter_any() &&",
                     "!shim.sandboxed &&", "pitfalls:filtered"),
    "often": Change("cuda/cuda_note.c", "!claim_turn(&sample_due[device]) ||", "", "kinds:samples"),
    "context-stays": Change("cuda/cuda_device.c", "QUERY(ctx_pop, &popped);", "(void)popped;",
                            "kinds:contexts"),
    # one event for each allocation
    "nested": Change("cuda/cuda_call.h", "t->depth++ == 0 && !t->querying",
                     "(t->depth++, !t->querying)", "cuda:nested"),
    "longjmp": Change("cuda/cuda_call.h", "if (__builtin_expect(t->depth && frame > t->frame, 0)) "
                      "t->depth = 0;", "",
                      "pitfalls:jumps"),
    "longjmp-label": Change("cuda/cuda_call.h", "t->frame = frame; if (t->label && frame > "
                            "t->label_frame) t->label = 0;",
                            "t->frame = frame;", "pitfalls:jumps"),
    "retry": Change("cuda/cuda_note.c", "if (SHIM_LIKELY(!group)) return 0;", "return 0;",
                    "cuda:retry"),
    "multicast": Change("hooks/hook_cuda.c", "#define FLAGS_MULTICAST (TRACE_SPACE_HANDLE | "
                        "TRACE_SPACE_MULTICAST)",
                       "#define FLAGS_MULTICAST TRACE_SPACE_HANDLE", "kinds:foreign"),
    "reference": Change("hooks/hook_cuda.c", ".flags = TRACE_SPACE_HANDLE | TRACE_SPACE_REFERENCE",
                        ".flags = TRACE_SPACE_HANDLE", "kinds:handles"),
    "foreign": Change("hooks/hook_cuda.c", "#define KIND_FOREIGN_HANDLE CUDA_FOREIGN",
                      "#define KIND_FOREIGN_HANDLE CUDA_DEVICE",
                      "kinds:foreign"),
    "captured": Change("hooks/hook_cuda.c",
                       "bool captured = c->outer && cuda_device_captures(WORD(stream));",
                       "bool captured = false;", "kinds:graphs"),
    # which functions are wrapped, and for whom
    "prefix": Change("cuda/cuda_find.c",
                     "for (uint32_t i = hash(name) % TABLE_SLOTS; by_symbol[i]; "
                     "i = (i + 1) % TABLE_SLOTS) "
                     "if (!strcmp(rows[by_symbol[i]].symbol, name)) return by_symbol[i];",
                     "for (unsigned i = 1; i < CUDA_IDS; i++) if (cuda_wrapper[i][0] && "
                     "!strncmp(name, rows[i].symbol, strlen(rows[i].symbol))) return (enum "
                     "cuda_id)i;", "pitfalls:names"),
    "not-in-driver": Change("cuda/cuda_find.c",
                            "(rows[id].library == DRIVER ? LIBCUDA : CLASSIFIED)", "CLASSIFIED",
                            "pitfalls:names"),
    "export-table": Change("cuda/cuda_api.def",
                           "cuGetExportTable, 3000, ANY, ONE, LOOKUP, (const void "
                           "**out, const struct gpu_uuid *id), (out, id), NONE)",
                           "cuGetExportTable, 3000, ANY, ONE, LOOKUP, (const void "
                           "**out, const struct gpu_uuid *id), (out, id), FAILS(0))",
                           "pitfalls:names"),
    "patchers": Change("cuda/cuda_find.c", '"libucm",', "", "routes:excluded"),
    "unloaded": Change("cuda/cuda_find.c", "if (!symbols_module_of(now, &where) &&", "if (false &&",
                       "pitfalls:unloading"),
    "few-lookups": Change("hooks/hook_cuda.c", "if (cuda_self.label == l->id)",
                          "static __thread int many; if (many++ > 100) return; if (cuda_self.label "
                          "== l->id)",
                          "pitfalls:lookups"),
    # the child of a fork writes a trace of its own
    "fork-spaces": Change("cuda/cuda_note.c", "memset(space_defined, 0, sizeof(space_defined));",
                          "", "cuda:forked"),
    "fork-names": Change("cuda/cuda_note.c", "memset(names, 0, sizeof(names));", "", "cuda:forked"),
    "fork-driver": Change("cuda/cuda_find.c", 'if (driver.path[0]) definitions_info("cuda.driver", '
                          'driver.path);', "",
                          "pitfalls:forked"),
    # locks, memory, the end
    "loader-lock": Change("cuda/cuda_note.c", "uint64_t context = 0, now = 0; if (device < 0)",
                          "uint64_t context = 0, now = 0; extern int dladdr(const void *, void *); "
                          "void *where_[4]; "
                          "dladdr((void *)c->start.pc, where_); if (device < 0)",
                          "pitfalls:loader"),
    "allocates": Change("cuda/cuda_note.c", "uint64_t context = 0, now = 0; if (device < 0)",
                        "uint64_t context = 0, now = 0; extern void *malloc(size_t); "
                        "__asm__ volatile(\"\" ::\"r\"(malloc(8))); if (device < 0)",
                        "pitfalls:heap"),
    "unlinked": Change("cuda/cuda_device.c", "if (QUERY(memory, &now, &all) != GPU_SUCCESS)",
                       "extern gpu_result cuMemGetInfo_v2(size_t *, size_t *); if "
                       "(cuMemGetInfo_v2(&now, &all))",
                       LINK),
    "killed": Change("trace/trace_file.c", "how = MAP_SHARED | (bytes",
                     "how = MAP_PRIVATE | (bytes", "pitfalls:killed"),
    "said": Change("hooks/hook_torch.c",
                   'if (blocks_fact) definitions_info("torch.blocks", blocks_fact);', "",
                   "cuda:torch"),
}


class Stale(Exception):
    pass


class Failed(Exception):
    pass


def changed(text, change):
    """The text with the change made: runs of white space, and the ends of a macro's lines, count as
    one blank."""
    words = [re.escape(word) for word in change.old.split()]
    found = list(re.finditer(r"(?:\s|\\\n)+".join(words), text))
    if len(found) != 1:
        raise Stale(f"shim/{change.file} has this {len(found)} times: {change.old}")
    return text[:found[0].start()] + change.new + text[found[0].end():]


def stale(tree):
    """The changes that no longer fit the tree: their text or their case is gone. It only reads
    files, and is cheap."""
    problems = []
    for name, change in CHANGES.items():
        try:
            path = os.path.join(tree, "shim", change.file)
            with open(path) as f:
                changed(f.read(), change)
            if change.case != LINK:
                module, case = change.case.split(":")
                with open(os.path.join(tree, "tests", "cuda", f"test_{module}.py")) as f:
                    if f"def case_{case}(" not in f.read():
                        raise Stale(f"there is no case {change.case}")
        except (OSError, Stale) as error:
            problems.append(f"{name}: {error}")
    return problems


class Copy:
    """A copy of the tree, and a build of what the tests here need."""

    def __init__(self, folder):
        self.tree, self.build = os.path.join(folder, "tree"), os.path.join(folder, "build")
        shutil.copytree(TOP, self.tree, symlinks=True,
                        ignore=lambda base, names: {"build", ".git", "__pycache__"} & set(names))
        self.run("meson", "setup", self.build, self.tree)
        targets = json.loads(self.run("meson", "introspect", "--targets", self.build))
        self.library, = (t["filename"][0] for t in targets if t["name"] == "whyoom"
                         and "shared" in t["type"])
        self.programs = os.path.join(self.build, "tests", "cuda")
        self.targets = [os.path.relpath(f, self.build) for t in targets for f in t["filename"]
                        if f == self.library or f.startswith(self.programs + os.sep)]

    @staticmethod
    def run(*command):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{command[:2]}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout

    def make(self):
        self.run("ninja", "-C", self.build, *self.targets)

    def passes(self, case):
        module, name = case.split(":")
        script = os.path.join(self.tree, "tests", "cuda", f"test_{module}.py")
        try:
            done = subprocess.run([sys.executable, script, self.library, self.programs, self.tree,
                                   name],
                                  capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return False
        if "0 passed, 0 failed" in done.stdout:
            raise Stale(f"there is no case {case}")
        return done.returncode == 0

    def without(self, change):
        """Whether the case still passes when the change is made."""
        path = os.path.join(self.tree, "shim", change.file)
        with open(path) as f:
            before = f.read()
        after = changed(before, change)
        try:
            with open(path, "w") as f:
                f.write(after)
            try:
                self.make()
            except Failed:
                if change.case == LINK:
                    return False
                raise
            return change.case == LINK or self.passes(change.case)
        finally:
            with open(path, "w") as f:
                f.write(before)


def main():
    names = sys.argv[1:] or list(CHANGES)
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="whyoom-mutate-") as folder:
        copy = Copy(folder)
        copy.make()
        for case in sorted({CHANGES[name].case for name in names} - {LINK}):
            if not copy.passes(case):
                print(f"{case} fails with everything in place")
                return 1
        for name in names:
            try:
                why = "nothing failed" if copy.without(CHANGES[name]) else ""
            except (Stale, Failed) as error:
                why = str(error)
            passed, failed = passed + (not why), failed + bool(why)
            print(f"{name}: {why or CHANGES[name].case + ' fails'}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
