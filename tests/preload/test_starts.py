#!/usr/bin/env python3
"""exec, posix_spawn and the calls built on them: programs that this library cannot be loaded into
run as without it, their children are recorded again if possible, and the starting process
records the gap."""

import glob
import shutil
import stat
import sys
import tempfile

from harness import *

CASES = {}
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "progs", "process", "started.c")


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def clang_folder():
    if not shutil.which("clang"):
        return None
    found = subprocess.run(["clang", "-print-file-name=libclang_rt.asan-x86_64.so"],
                           stdout=subprocess.PIPE, text=True).stdout
    return os.path.dirname(found.strip()) or None


# How a program is linked: the command, and its name in the table; None: it is recorded.
KINDS = {
    "plain": (["gcc"], None),
    "static": (["gcc", "-static"], "static"),
    "musl": (["musl-gcc"], "musl"),
    "musl-static": (["musl-gcc", "-static"], "static"),
    "asan": (["gcc", "-fsanitize=address"], "sanitizer"),
    "asan-inside": (["gcc", "-fsanitize=address", "-static-libasan"], "sanitizer"),
    "tsan": (["gcc", "-fsanitize=thread"], "sanitizer"),
    "ubsan": (["gcc", "-fsanitize=undefined"], None),
    "clang-asan": (["clang", "-fsanitize=address"], "sanitizer"),
    "clang-asan-library": (["clang", "-fsanitize=address", "-shared-libasan",
                            "-Wl,-rpath," + (clang_folder() or "/")], "sanitizer"),
    "clang-msan": (["clang", "-fsanitize=memory"], "sanitizer"),
}


def build(job, *names):
    """{kind: path} of those that can be built and run here. They are kept for the next case."""
    out = {}
    os.makedirs(os.path.join(TMP, "started"), exist_ok=True)
    for name in names or KINDS:
        command, _ = KINDS[name]
        path = os.path.join(TMP, "started", "started-" + name)
        if not shutil.which(command[0]):
            continue
        if not os.path.exists(path) or os.stat(path).st_mtime < os.stat(SOURCE).st_mtime:
            fresh = job.path("started-" + name)
            subprocess.run([*command, "-O1", "-o", fresh, SOURCE], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            if not os.path.exists(fresh) or job.run([fresh], preload=False, rc=None).rc != 5:
                continue
            os.rename(fresh, path)
        out[name] = path
    if len(out) < min(2, len(names or KINDS)):
        raise Skip("no compiler for these")
    return out


def told(r):
    """{(path, why): count} of all traces of a run."""
    out = {}
    for t in r.traces:
        for p in t.unrecorded_programs:
            key = (os.path.basename(p["path"]), p["why"])
            out[key] = out.get(key, 0) + p["count"]
    return out


def same(job, argv, **kw):
    """Its output and its end are as without us. Return the run with us."""
    kw.setdefault("rc", None)
    env = kw.pop("env", {})
    plain = job.run(argv, preload=False, env=env, **kw)
    r = job.run(argv, env=env, **kw)
    equal((how(r.rc), r.out, r.err), (how(plain.rc), plain.out, plain.err),
          "what %s does" % " ".join(argv)[:200])
    return r


@case
def starts_by_every_call(job):
    """Each call of libc's, by fork and vfork; environment and arguments stay as the caller has
    them."""
    programs = build(job, "plain", "musl", "asan", "static")
    for name, path in programs.items():
        r = same(job, ["starts", "calls", path], rc=0)
        why = KINDS[name][1]
        if why:
            # 13 calls by fork and by vfork, twice posix_spawn; the shells of system, popen and
            # wordexp are others
            count = told(r).get((os.path.basename(path), why), 0)
            check(count >= 28, "%s: %d of 28 starts are told: %s", name, count, told(r))
        else:
            equal(told(r), {}, "what is told of plain ones")


@case
def starts_that_fail(job):
    """errno, and the shell that takes unknown files: as without us."""
    os.makedirs(job.path("f", "folder"))
    for name, mode, content in (("unreadable", 0o600, b"#!/bin/sh\nexit 4\n"),
                                ("text", 0o755, b"echo text $1; exit 6\n"),
                                ("empty", 0o755, b""),
                                ("no-interpreter", 0o755, b"#!/nowhere/sh\n"),
                                ("damaged", 0o755, b"\x7fELF\2\1\1" + bytes(500))):
        with open(job.path("f", name), "wb") as f:
            f.write(content)
        os.chmod(job.path("f", name), mode)
    r = same(job, ["starts", "errors", job.path("f")], rc=0)
    # a file that no machine runs, but a shell takes, has begun
    check(all(name == "damaged" for name, _ in told(r)), "told of starts that failed is %s",
          told(r))


TOOLS = {
    "sh": "%s one; echo $?",
    "sh-becomes": "exec %s one",
    "env": "env A=1 %s one; echo $?",
    "env-empty": "env -i %s one; echo $?",
    "timeout": "timeout 60 %s one; echo $?",
    "xargs": "printf 'a\\nb\\n' | xargs -n1 %s; echo $?",
    "nice": "nice -n 1 nohup %s one; echo $?",
    "find": "find / -maxdepth 0 -exec %s one \\;; echo $?",
    "make": "printf 'all:\\n\\t@%s one || echo failed\\n\\t@true; %s two || echo failed\\n' > "
        "m.mk; make -s -f m.mk; echo $?",
    "script": "printf '#!%s\\n' > s; chmod 755 s; ./s one; echo $?",
    "awk": "awk 'BEGIN { print system(\"%s one\"); \"%s two\" | getline x; print x }'",
    "subprocess": sys.executable + " -c 'import subprocess as s; print(s.run([\"%s\", \"one\"], "
        "stdout=s.PIPE)); "
                  "print(s.run(\"%s two; exit 3\", shell=True, stdout=s.PIPE, "
        "env=dict(__import__(\"os\").environ)))'",
    "multiprocessing": sys.executable + " mp.py %s",
}
MULTIPROCESSING = """import multiprocessing as m, os, subprocess, sys
def work(path):
    return subprocess.run([path, "one"], stdout=subprocess.PIPE).returncode, os.spawnv(os.P_WAIT, path, [path, "two"])
if __name__ == "__main__":
    for how in "fork", "spawn", "forkserver":
        with m.get_context(how).Pool(1) as pool:
            print(how, pool.map(work, sys.argv[1:]), flush=True)
"""


def by_tool(job, tool):
    programs = build(job, *(("musl", "asan") if tool == "multiprocessing" else ()))
    with open(job.path("mp.py"), "w") as f:
        f.write(MULTIPROCESSING)
    for name, path in programs.items():
        line = TOOLS[tool]
        r = same(job, ["/bin/sh", "-c", line.replace("%s", path)], cwd=job.top)
        why = KINDS[name][1]
        if why and tool != "env-empty":
            check(told(r).get((os.path.basename(path), why)), "%s by %s: told is %s", name, tool,
                  told(r))
    return ", ".join(programs)


for _tool in TOOLS:
    CASES["starts-by-" + _tool] = lambda job, tool=_tool: by_tool(job, tool)


@case
def starts_back_again(job):
    """The children of an unrecorded program are recorded: there the library is back. Then once
    more, two of them deep."""
    programs = build(job)
    second = [programs[name] for name in ("static", "musl", "asan", "clang-asan")
              if name in programs]
    deep = 0
    for name, path in programs.items():
        for chain in ([path, "run"], *([path, "run", other, "run"] for other in second)):
            script = " ".join(chain + [programs["plain"]]) + "; exit $?"
            r = same(job, ["/bin/sh", "-c", script])
            traces = [t for t in r.traces
                      if os.path.basename(t.infos.get("exe", "")) == "started-plain"]
            last = [t for t in traces if any(e.size == 100000 for e in t.all("ALLOC"))]
            check(last, "under %s nothing is recorded; stderr: %s",
                  [os.path.basename(c) for c in chain], r.err)
            check("::" not in last[0].infos["env.LD_PRELOAD"], "LD_PRELOAD is %s",
                  last[0].infos["env.LD_PRELOAD"])
            deep += 1
    return "%d chains" % deep


@case
def starts_leave_no_trace_in_the_environment(job):
    """A change for one program is undone in the next."""
    programs = build(job, "plain", "musl", "asan", "static", "tsan")
    for name, path in programs.items():
        for asan in ("", "color=never"):
            env = {"ASAN_OPTIONS": asan} if asan else {}
            r = job.run(["/bin/sh", "-c", "%s run env; exit 0" % path], env=env)
            lines = [x for x in r.out.splitlines()
                     if x.startswith(("LD_PRELOAD=", "ASAN_OPTIONS="))]
            equal(sorted(lines),
                  sorted(["LD_PRELOAD=" + SHIM] + ["ASAN_OPTIONS=" + asan] * bool(asan)),
                  "after " + name)


@case
def starts_with_other_preloads(job):
    """The user's libraries stay, in their order, and are loaded where we are not."""
    programs = build(job, "plain", "asan", "musl")
    other = os.path.join(PROGS, "libjumping_clock.so")
    for lists in (SHIM + ":" + other, other + ":" + SHIM, other + " " + SHIM):
        r = job.run(["/bin/sh", "-c",
                     "%s run env; exit 0" % programs.get("musl", programs["plain"])], preload=lists)
        check("LD_PRELOAD=" + lists in r.out.splitlines(), "LD_PRELOAD after musl, of %s: %s",
              lists, r.out)
    # another library in front of AddressSanitizer's: that refuses, as it does without us
    if "asan" in programs:
        plain = job.run(["/bin/sh", "-c", programs["asan"] + "; exit $?"], preload=other, rc=None)
        r = job.run(["/bin/sh", "-c", programs["asan"] + "; exit $?"], preload=SHIM + ":" + other,
                    rc=None)
        cut = lambda text: text.split("==")[-1]
        equal((r.rc, r.out, cut(r.err)), (plain.rc, plain.out, cut(plain.err)),
              "AddressSanitizer behind another one")


@case
def starts_while_threads_allocate(job):
    """By fork, vfork and posix_spawn, from a process in which other threads are at work."""
    for name, path in build(job, "musl", "static", "asan").items():
        count = 60 if name == "asan" else 300
        r = same(job, ["starts", "threads", path, str(count)], rc=0, timeout=120)
        equal(r.err, "bad 0\n", "children of kind " + name)
        equal(told(r).get((os.path.basename(path), KINDS[name][1])), count, "what is told")


@case
def starts_with_a_large_environment(job):
    """3,000 variables: more than fit on a stack; and the children of vfork leave nothing behind."""
    for name, path in build(job, "musl", "static").items():
        r = job.run(["starts", "large", path, "300"])
        check(r.err.startswith("bad 0,"), "children: %s", r.err)
        check(int(r.err.split()[-2]) <= 256, "300 starts took %s", r.err)


@case
def starts_where_the_library_is_not(job):
    """Another root, or other rights: the loader would complain on stderr; the trace records it
    instead."""
    copy = job.path("lib", "libwhyoom.so")
    os.mkdir(job.path("lib"))
    shutil.copy(SHIM, copy)
    r = job.run(["/bin/sh", "-c", "mv %s %s.away; /bin/echo x; exit 3" % (copy, copy)],
                preload=copy, rc=None)
    equal((r.rc, r.out, r.err), (3, "x\n", ""), "what it does")
    r = job.run([sys.executable, "-c", "import os\nos.rename(%r, %r)\nos.execv('/bin/echo', "
                 "['echo', 'x'])" % (copy + ".away", copy + ".gone")],
                preload=copy + ".away", rc=None)
    equal((r.rc, r.out, r.err), (0, "x\n", ""), "what it does")
    equal(told(r), {("echo", "library"): 1}, "what is told")


@case
def starts_that_change_their_rights(job):
    """A setuid program: as without us, and recorded."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        raise Skip("needs root and setpriv")
    programs = build(job, "plain")
    top = tempfile.mkdtemp(prefix="whyoom-test-", dir="/var/tmp")
    try:
        os.chmod(top, 0o755)
        shim, path = shutil.copy(SHIM, top), shutil.copy(programs["plain"],
                                                         os.path.join(top, "setuid"))
        os.chmod(path, 0o4755)
        os.mkdir(os.path.join(top, "t"), 0o700)
        os.chown(os.path.join(top, "t"), 65534, 65534)
        script = "%s one; exit $?" % path
        as_nobody = ["setpriv", "--reuid", "65534", "--clear-groups"]
        as_nobody[0] = shutil.which("setpriv")
        plain = job.run([*as_nobody, "/bin/sh", "-c", script], preload=False, rc=None, cwd=top)
        r = job.run([*as_nobody, "env", "LD_PRELOAD=" + shim,
                     "WHYOOM_DIR=" + os.path.join(top, "t"), "/bin/sh", "-c", script],
                    preload=False, rc=None, directory=os.path.join(top, "t"), cwd=top)
        equal((r.rc, r.out, r.err), (plain.rc, plain.out, plain.err), "what it does")
        if plain.rc != 5:
            raise Skip("no setuid programs here")
        equal(told(r), {("setuid", "setuid"): 1}, "what is told")
    finally:
        shutil.rmtree(top)


@case
def starts_in_a_read_only_root(job):
    """No process may write a trace there: no message without a request; a process that can records
    it."""
    if not shutil.which("bwrap"):
        raise Skip("bubblewrap is not installed")
    argv = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "/bin/sh", "-c",
            "/bin/echo x; /bin/echo y; exit 3"]
    argv[0] = shutil.which("bwrap")
    if job.run(argv, preload=False, rc=None).rc != 3:
        raise Skip("bubblewrap may not do this here")
    r = same(job, argv)
    equal(r.rc, 3, "its end")
    equal(told(r), {("sh", "directory"): 1}, "what is told")
    r = job.run(argv, env={"WHYOOM_VERBOSE": "1"}, rc=3)
    check(r.err.count("\n") == 1 and r.err.startswith("whyoom: "), "asked, it says %r", r.err)


@case
def starts_of_another_machine(job):
    """Of 32 bits: its loader would complain; here none has to be installed, as a file that cannot
    run is enough."""
    with open(build(job, "plain", "static")["plain"], "rb") as f:
        head = f.read()
    with open(job.path("odd"), "wb") as f:
        f.write(head[:18] + b"\x16" + head[19:])  # EM_S390
    os.chmod(job.path("odd"), 0o755)
    r = same(job, [sys.executable, "-c", "import subprocess\ntry: subprocess.run([%r])\nexcept "
                   "OSError as e: print(e)" % job.path("odd")])
    equal(told(r), {}, "what is told of a start that failed")
    # which the shell then takes for a script
    r = same(job, ["/bin/sh", "-c", "env %s; exit 3" % job.path("odd")])
    check(set(told(r)) <= {("odd", "machine")}, "what is told: %s", told(r))


@case
def starts_cost_little(job):
    """The cost of our look for an execve, which is refused after it, so that nothing else is
    measured; and for one by vfork, of a program that itself is static."""
    path = build(job, "static", "plain")["static"]
    best = {}
    for _ in range(8):
        for way, count in (("refused", "500"), ("cost", "50")):
            for what in (False, True):
                n = int(job.run(["starts", way, path, count], preload=what,
                                stdout=subprocess.DEVNULL).err)
                best[way, what] = min(n, best.get((way, what), n))
    more = (best["refused", True] - best["refused", False]) / 1000
    check(more < 50, "%.1f us more for each execve", more)
    return "%.1f us more for each execve; by vfork %.0f us instead of %.0f" % (
        more, best["cost", True] / 1000, best["cost", False] / 1000)


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
