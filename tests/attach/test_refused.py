"""What cannot be attached to is refused with the reason and the way out, and is not touched."""
import ctypes
import os
import shutil
import signal
import subprocess
import sys

import pytest
from lib import PROGS, SHIM, WHYOOM, attach, finish, left_clean, status, until

NOBODY = 65534
ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="needs root, to be another user")


def refused(pid, *options, **more):
    message = attach(WHYOOM, pid, *options, status=1, cwd="/var/tmp", **more)
    assert not os.path.exists(f"/var/tmp/whyoom.{pid}")
    return message


@pytest.fixture
def sleeper(programs):
    return programs.start("waits", "sleep", 120)


def test_no_process(sleeper):
    sleeper.kill()
    until(lambda: status(sleeper.pid)["State"][0] == "Z")
    assert "has ended, and its parent has not waited" in refused(sleeper.pid)
    sleeper.wait()
    assert "there is no process" in refused(sleeper.pid)
    for word in ("0", "-1", "x", "12x", "99999999999"):
        attach(WHYOOM, word, status=2)
        attach(WHYOOM, word, command="detach", status=2)


def test_usage():
    for words in ([], ["1", "2"], ["--for", "x", "1"], ["--for=0", "1"], ["--for", "-1", "1"],
                  ["--for", "400d", "1"], ["--nvtx", "1"], ["--off", "1"], ["--what", "1"],
                  ["--mode", "half", "1"], ["--max-rate", "1MiB", "1"]):
        done = subprocess.run([WHYOOM, "attach", *words], capture_output=True, text=True)
        assert done.returncode == 2 and "--help" in done.stderr, (words, done.stderr)


def test_a_thread(programs):
    p = programs.start("load", 2)
    other = max(int(t) for t in os.listdir(f"/proc/{p.pid}/task"))
    assert f"is a thread of process {p.pid}" in refused(other)
    finish(p)


def test_stopped(sleeper):
    sleeper.send_signal(signal.SIGSTOP)
    until(lambda: status(sleeper.pid)["State"][0] == "T")
    assert f"kill -CONT {sleeper.pid}" in refused(sleeper.pid)
    assert status(sleeper.pid)["State"][0] == "T"


def test_traced(sleeper):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    assert libc.ptrace(0x4206, sleeper.pid, 0, 0) == 0  # PTRACE_SEIZE
    assert f"is traced by process {os.getpid()}" in refused(sleeper.pid)
    sleeper.kill()


@pytest.mark.skipif(not os.path.exists("/proc/2/status") or status(2)["Name"] != "kthreadd",
                    reason="the kernel's are not seen here")
def test_kernel():
    assert "thread of the kernel" in refused(2)


def compile_waits(folder, *command):
    """The program built in another way; skips where there is no such compiler."""
    path = os.path.join(folder, "other")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "progs", "waits.c")
    done = subprocess.run([*command, "-D_GNU_SOURCE", source, "-o", path, "-lpthread"],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{' '.join(command)} does not work here")
    return path


@pytest.mark.parametrize("command, words", [
    (["gcc", "-static"], "is linked statically"),
    (["musl-gcc"], "musl's C library"),
    (["gcc", "-m32"], "32-bit program"),
    (["gcc", "-fsanitize=address"], "built with a sanitizer (libasan"),
    (["gcc", "-fsanitize=thread"], "built with a sanitizer (libtsan"),
    (["clang-14", "-fsanitize=address"], "built with a sanitizer (__asan_init"),
])
def test_built_otherwise(command, words, programs, folder):
    p = programs.start(compile_waits(folder, *command), "sleep", 120)
    assert words in refused(p.pid)
    left_clean(p.pid)


def test_recorded_already(programs, folder):
    p = programs.start("load", 1, env={"LD_PRELOAD": SHIM, "WHYOOM_DIR": folder + "/trace"})
    said = refused(p.pid)
    assert f"whyoom ctl {p.pid} resume" in said
    said = attach(WHYOOM, p.pid, command="detach", status=1)
    assert f"whyoom ctl {p.pid} pause" in said
    finish(p)


def test_not_attached(sleeper):
    assert "is not attached to" in attach(WHYOOM, sleeper.pid, command="detach", status=1)
    left_clean(sleeper.pid)


@needs_root
def test_other_user(sleeper, folder):
    """As nobody: root's process."""
    whyoom = os.path.join(folder, "whyoom")
    shutil.copy(WHYOOM, whyoom)
    said = attach(whyoom, sleeper.pid, status=1, cwd="/var/tmp", user=NOBODY, group=NOBODY)
    assert "is user 0's" in said and "sudo -u '#0'" in said
    left_clean(sleeper.pid)


@needs_root
def test_not_dumpable(programs, folder):
    whyoom = os.path.join(folder, "whyoom")
    shutil.copy(WHYOOM, whyoom)
    shutil.copy(os.path.join(PROGS, "attach-waits"), folder)
    p = programs.start(os.path.join(folder, "attach-waits"), "sleep", 120, user=NOBODY,
                       group=NOBODY, env={"NOT_DUMPABLE": "1"})
    said = attach(whyoom, p.pid, status=1, cwd="/var/tmp", user=NOBODY, group=NOBODY)
    assert "may not be traced" in said or "is user 0's" in said
    left_clean(p.pid)


@needs_root
def test_another_users_process(programs, stand_in, folder):
    """Its trace is its own, where it may write; and it cannot read the library, which it gets."""
    shutil.copy(os.path.join(PROGS, "attach-load"), folder)
    os.chmod(os.path.join(folder, "lib"), 0o700)
    p = programs.start(os.path.join(folder, "attach-load"), 2, user=NOBODY, group=NOBODY)
    out = os.path.join(folder, "trace")
    attach(stand_in, p.pid, "-o", out)
    assert os.stat(out).st_uid == NOBODY
    assert os.stat(os.path.join(out, "attached")).st_uid == NOBODY
    with open(f"/proc/{p.pid}/maps") as f:
        assert "/memfd:libwhyoom.so" in f.read()
    left_clean(p.pid)
    attach(stand_in, p.pid, command="detach")
    attach(stand_in, p.pid, "-o", out)
    os.mkdir(os.path.join(folder, "closed"), 0o700)
    attach(stand_in, p.pid, command="detach")
    said = attach(stand_in, p.pid, "-o", os.path.join(folder, "closed"), status=1)
    assert f"user {NOBODY}" in said and "-o" in said
    finish(p)


def mount_namespaces():
    return ROOT and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not mount_namespaces(), reason="mount namespaces are not allowed here")
def test_another_mount_namespace(programs, stand_in, folder):
    """It sees neither the library nor the directory."""
    inside = os.path.join(folder, "inside")
    os.mkdir(inside)
    # An empty directory lies over all that belongs to this test.
    script = (f"mkdir {folder}/over && cp {PROGS}/attach-load {folder}/over/ && "
              f"mount --bind {folder}/over {folder} && exec {folder}/attach-load 2")
    p = programs.start("/usr/bin/unshare", "-m", "sh", "-c", script)
    assert "must be a full path there" in attach(stand_in, p.pid, "-o", "trace", cwd=folder,
                                                 status=1)
    said = attach(stand_in, p.pid, "-o", os.path.join(folder, "trace"))
    here = os.path.join(folder, "over", "trace")  # under the mount, from here
    assert f"/proc/{p.pid}/root{folder}/trace" in said
    assert os.path.exists(os.path.join(here, "attached"))
    assert not os.path.exists(os.path.join(folder, "trace"))
    left_clean(p.pid)
    attach(stand_in, p.pid, command="detach")
    assert os.path.exists(os.path.join(here, "detached"))
    assert finish(p).startswith("right after ")


def test_seccomp_filter(programs, stand_in, folder):
    """A filter that allows all is only warned of."""
    script = ("import ctypes, os, sys\n"
              "libc = ctypes.CDLL(None)\n"
              "allow = ctypes.create_string_buffer(bytes([6, 0, 0, 0, 0, 0, 255, 127]))\n"
              "class Program(ctypes.Structure):\n"
              "    _fields_ = [('n', ctypes.c_ushort), ('p', ctypes.c_void_p)]\n"
              "program = Program(1, ctypes.addressof(allow))\n"
              "assert libc.prctl(38, 1, 0, 0, 0) == 0\n"
              "assert libc.prctl(22, 2, ctypes.byref(program)) == 0\n"
              f"os.execv('{PROGS}/attach-load', ['load', '2'])\n")
    p = programs.start(sys.executable, "-c", script)
    done = subprocess.run([stand_in, "attach", "-o", "trace", str(p.pid)], cwd=folder,
                          capture_output=True, text=True)
    assert done.returncode == 0 and "has a seccomp filter" in done.stderr
    finish(p)


def test_of_another_version(programs, folder):
    """A library without the functions is said to be one."""
    os.makedirs(os.path.join(folder, "bin"))
    os.makedirs(os.path.join(folder, "lib"))
    shutil.copy(WHYOOM, os.path.join(folder, "bin", "whyoom"))
    empty = os.path.join(folder, "empty.c")
    with open(empty, "w") as f:
        f.write("int nothing;\n")
    subprocess.run(["gcc", "-shared", "-fPIC", empty, "-o",
                    os.path.join(folder, "lib", "libwhyoom.so")], check=True)
    p = programs.start("load", 1)
    said = attach(os.path.join(folder, "bin", "whyoom"), p.pid, status=1, cwd=folder)
    assert "has no whyoom_attach()" in said
    left_clean(p.pid)
    finish(p)


def test_no_library_at_all(programs, folder):
    """dlopen()'s own words are passed on."""
    os.makedirs(os.path.join(folder, "bin"))
    os.makedirs(os.path.join(folder, "lib"))
    shutil.copy(WHYOOM, os.path.join(folder, "bin", "whyoom"))
    library = os.path.join(folder, "lib", "libwhyoom.so")
    with open(library, "w") as f:
        f.write("no library at all, but a text that is longer than an ELF header is\n" * 10)
    p = programs.start("load", 1)
    said = attach(os.path.join(folder, "bin", "whyoom"), p.pid, status=1, cwd=folder)
    assert "could not open" in said and "invalid ELF header" in said
    left_clean(p.pid)
    finish(p)
