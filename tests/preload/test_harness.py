#!/usr/bin/env python3
"""The harness, with programs that do not end."""

import sys

from harness import *

CASES = {}


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def hangs(job, script, argv0="/bin/sh", **more):
    """The failure's text; no process of the program is left, and little more than its time went
    by."""
    start = time.monotonic()
    try:
        job.run([argv0, "-c", script], **{"timeout": 2, **more})
    except Failed as e:
        p, token = job.started[-1]
        equal(hung.processes(p.pid, token), [], "processes that are left")
        check(time.monotonic() - start < 60, "it took %.0f s", time.monotonic() - start)
        return str(e)
    raise Failed("%s is not said to hang" % script)


@case
def hung_is_told(job):
    """Each process with its id, name and its threads' waits; also if only children hang that hold
    the output, in a session of their own, or stopped."""
    for script, names in (("sleep 971 & sleep 972", ("sh", "sleep 971", "sleep 972")),
                          ("sleep 973 & exit 0", ("sleep 973",)),
                          ("setsid sleep 974 & echo words >&2; exit 0", ("sleep 974", "words")),
                          ("trap '' TERM HUP INT; kill -STOP $$", ("kill -STOP", "state T"))):
        said = hangs(job, script)
        check("hangs (2 s)" in said, "no limit in: %s", said)
        for name in names:
            check(name in said, "%r is not in: %s", name, said)
        for part in ("pid ", "thread ", "system call ", "state "):
            check(part in said, "%r is not in: %s", part, said)


@case
def hung_shows_stacks(job):
    """With a debugger that is installed and allowed."""
    if not any(shutil.which(tool) for tool, _ in hung.STACKS):
        raise Skip("neither gdb nor eu-stack is there")
    p, _, _ = job.start(["/bin/sleep", "100"])
    if not hung.stacks(p.pid):
        raise Skip("other processes may not be looked at here")
    said = hangs(job, "sleep 975")
    check("nanosleep" in said, "no stack in: %s", said)


@case
def hung_has_no_longer_than_its_case(job):
    """A program's limit is the rest of its case's."""
    job.until = time.monotonic() + 2
    hangs(job, "sleep 976", timeout=600)


@case
def hung_ends_with_its_case(job):
    """A case that fails, or is ended from outside, leaves no program running."""
    for how_it_ends in ("raise Failed('on purpose')",
                        "os.kill(os.getpid(), signal.SIGTERM); time.sleep(30)"):
        script = ("import sys\nsys.path.insert(0, %r)\nfrom harness import *\n"
                  "def it(job):\n    p, _, _ = job.start(['/bin/sh', '-c', 'sleep 977 & sleep "
                  "978'])\n"
                  "    print(p.pid, job.started[-1][1], flush=True)\n    time.sleep(0.3)\n    %s\n"
                  "sys.exit(main(['x', 'it'], {'it': it}))\n") % (HERE, how_it_ends)
        done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE,
                              env=dict(os.environ, WHYOOM_TEST_TMP=job.top), timeout=60, text=True)
        check(done.returncode, "it passes: %s", done.stdout)
        pid, token = done.stdout.splitlines()[0].split()
        equal(hung.processes(int(pid), token), [], "processes that are left; %s" % done.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
