#!/usr/bin/env python3
"""The simulated device: test_simgpu.py CASE. Programs link with it as with CUDA; it is
preloaded."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIBRARY = os.environ["WHYOOM_TEST_SIMGPU"]
PROGRAMS = os.environ["WHYOOM_TEST_PROGS"]
RUNNER = os.environ.get("WHYOOM_TEST_RUNNER", "").split()
passed = failed = 0


def check(good, text):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        print("FAILED: " + text)


def same(got, wanted, what):
    check(got == wanted, f"{what}: {got!r}, not {wanted!r}")


class Machine:
    """A machine that nobody else has, and a folder for what stands in for libraries."""

    def __init__(self, devices="256MiB", **options):
        self.folder = tempfile.mkdtemp(prefix="whyoom-simgpu-test-")
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith(("WHYOOM_SIMGPU", "CUDA_", "LD_"))}
        self.environment.update(WHYOOM_SIMGPU=devices, TMPDIR=self.folder,
                                WHYOOM_SIMGPU_MACHINE="test-%d-%d" % (os.getpid(), id(self)))
        self.environment.update({"WHYOOM_SIMGPU_" + k: v for k, v in options.items()})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)
        path = "/dev/shm/whyoom-simgpu.%d.%s" % (os.geteuid(),
                                                 self.environment["WHYOOM_SIMGPU_MACHINE"])
        check(not os.path.exists(path) or self.killed, "the last process left " + path)
        if os.path.exists(path):
            os.unlink(path)

    killed = False

    def start(self, *command, **more):
        command = [os.path.join(PROGRAMS, "simgpu-" + command[0]), *command[1:]]
        if RUNNER:
            command = RUNNER + ["-E", "LD_PRELOAD=" + LIBRARY] + command
            environment = self.environment
        else:
            environment = dict(self.environment, LD_PRELOAD=LIBRARY)
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=dict(environment, **more))

    def run(self, *command, **more):
        process = self.start(*command, **more)
        out, err = process.communicate(timeout=120)
        self.errors = err
        return process.returncode, out


def program(name, devices="256MiB", arguments=(), **options):
    """One that counts by itself."""
    global passed, failed
    with Machine(devices, CONTEXT="16MiB", **options) as machine:
        status, out = machine.run(name, *arguments)
        m = re.search(r"^(\d+) passed, (\d+) failed$", out, re.M)
        print(out[:3000], end="")
        if status and not (m and int(m[2])):
            print(machine.errors)
        check(m and status == (int(m[2]) > 0), f"{name} ended with {status}")
        if m:
            passed += int(m[1])
            failed += int(m[2])
        said = [line for line in machine.errors.splitlines() if "simulated GPU" in line]
        if name not in ("spans", "wanting"):
            same(len(said), 1, "lines that say it is simulated")
            check("not real" in said[0], said[0])


def case_memory():
    program("memory")


def case_virtual():
    program("virtual")


def case_pools():
    program("pools")


def case_streams():
    program("streams")


def case_lookup():
    program("lookup")


def case_spans():
    program("spans")


def case_runtime():
    program("runtime", arguments=[os.path.join(PROGRAMS, "libmajor11.so"),
                                  os.path.join(PROGRAMS, "libmajor13.so")])


def case_libraries():
    program("libraries")


def case_standins():
    library = os.path.join(PROGRAMS, "libwants.so")
    program("wanting", arguments=[library])
    with Machine() as machine:
        made = []
        for _ in range(2):
            status, _ = machine.run("wanting", library)
            same(status, 0, "the program")
            made.append(sorted((os.path.relpath(os.path.join(base, n), machine.folder),
                                os.stat(os.path.join(base, n)).st_mtime_ns)
                               for base, _, names in os.walk(machine.folder) for n in names))
        check(made[0] and made[0] == made[1], f"written once only: {made}")
        names = {os.path.basename(n) for n, _ in made[0]}
        check({"libcublas.so.13", "libcudnn.so.9"} <= names, f"{names}")
        # What others may write to is not trusted.
        for base in os.listdir(machine.folder):
            os.chmod(os.path.join(machine.folder, base), 0o777)
        status, _ = machine.run("wanting", library)
        check(status != 0 and "can stand in" in machine.errors, machine.errors)


def case_processes():
    with Machine(CONTEXT="16MiB") as machine:
        same(machine.run("share", "level"), (0, "240 256\n"), "alone")
        holder = machine.start("share", "hold", "100")
        same(holder.stdout.readline(), "0\n", "a process of 100 MiB")
        same(machine.run("share", "level"), (0, "124 256\n"), "beside it")
        _, out = machine.run("share", "processes")
        users = dict(pair.split("=") for pair in out.split())
        same(users.get(str(holder.pid)), "116", "NVML's figure for it")
        same(len(users), 2, "processes")
        same(machine.run("share", "fail", "124"), (0, "0 0\n"), "what is left")
        same(machine.run("share", "fail", "126"), (0, "2 0\n"), "more than is left")
        # Gone without a word, and not even waited for: what it had comes back.
        holder.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
        same(machine.run("share", "fail", "238"), (0, "0 0\n"), "after its death")
        same(machine.run("share", "level"), (0, "240 256\n"), "after its death")
        holder.communicate()
        # Another machine knows nothing of this one.
        holder = machine.start("share", "hold", "100")
        holder.stdout.readline()
        with Machine(CONTEXT="16MiB") as other:
            same(other.run("share", "level"), (0, "240 256\n"), "another machine")
        # Who comes later gets what is there, whatever he asks for.
        same(machine.run("share", "level", WHYOOM_SIMGPU="1GiB"), (0, "124 256\n"), "other wishes")
        check("has other devices" in machine.errors, machine.errors)
        holder.communicate()
        # The context alone may be too much.
        holder = machine.start("share", "hold", "230")
        holder.stdout.readline()
        same(machine.run("share", "level")[0], 3, "no room for a context")
        holder.communicate()


def case_ipc():
    """Another process's memory has its size and costs nothing more; what is in it is not there."""
    with Machine(CONTEXT="16MiB") as machine:
        holder = machine.start("share", "export", "100")
        handle = holder.stdout.readline().strip()
        same(len(handle), 128, "a handle of 64 bytes")
        # 256 MiB, less two contexts and the 100; closed once, and then it is none.
        same(machine.run("share", "import", handle), (0, "100 124 0 0 1\n"), "opened elsewhere")
        same(machine.run("share", "import", "00" + handle[2:]), (0, ""), "no handle")
        holder.communicate()
        same(machine.run("share", "level"), (0, "240 256\n"), "afterwards")


def case_kills():
    """Many at once, killed at any moment: in the end nothing is missing."""
    with Machine("1GiB", CONTEXT="2MiB") as machine:
        for round_ in range(12):
            processes = [machine.start("share", "hold", "20") for _ in range(5)]
            time.sleep(0.004 * round_)
            for p in processes:
                p.kill()
            for p in processes:
                p.communicate()
        same(machine.run("share", "level"), (0, "1022 1024\n"), "in the end")


def case_devices():
    for devices, wanted in {
            "3GiB": "0 Simulated GPU=%d" % (3 << 30),
            "1.5GiB": "0 Simulated GPU=%d" % (1536 << 20),
            "2x1GiB": "0" + 2 * (" Simulated GPU=%d" % (1 << 30)),
            "A100-80GB,512MiB": "0 NVIDIA A100-SXM4-80GB=%d Simulated GPU=%d" % (81050 << 20,
                                                                                 512 << 20),
            "rtx 4090": "0 NVIDIA GeForce RTX 4090=%d" % (24217 << 20),
            "": "0 Simulated GPU=%d" % (24 << 30),
            "much": "100", "17x1GiB": "100", "1KiB": "100", "0x1GiB": "100"}.items():
        with Machine(devices) as machine:
            same(machine.run("share", "devices"), (0, wanted + "\n"), f"'{devices}'")
            same("WHYOOM_SIMGPU" in machine.errors or "can be" in machine.errors or
                 "neither" in machine.errors, wanted == "100", "a complaint")
    with Machine("1GiB,2GiB,3GiB") as machine:
        for visible, sizes in {"2,0": [3, 1], "1": [2], "": None, "0,7,1": [1], "-1": None}.items():
            wanted = ("0" + "".join(" Simulated GPU=%d" % (n << 30) for n in sizes)
                      if sizes else "100")
            same(machine.run("share", "devices", CUDA_VISIBLE_DEVICES=visible),
                 (0, wanted + "\n"), f"visible: '{visible}'")


def case_failures():
    for options, wanted in ((dict(FAIL_CALL="cuMemAlloc", FAIL_NTH="2"), "0 2 0 0\n"),
                            (dict(FAIL_CALL="cuMemAlloc", FAIL_FROM="2"), "0 2 2 0\n"),
                            (dict(FAIL_SIZE="20MiB"), "0 2 2 0\n"),
                            (dict(FAIL_CALL="cuMemHostAlloc", FAIL_NTH="1"), "0 0 0 2\n"),
                            (dict(FAIL_CALL="cuMemAlloc", FAIL_RATE="1000000"), "2 2 2 0\n"),
                            (dict(FAIL_RATE="0"), "0 0 0 0\n")):
        with Machine(CONTEXT="2MiB", **options) as machine:
            same(machine.run("share", "fail", "10", "20", "30"), (0, wanted), f"{options}")
    with Machine(CONTEXT="2MiB", FAIL_RATE="500000", FAIL_CALL="cuMemAlloc") as machine:
        sizes = ["1"] * 100
        first, second = (machine.run("share", "fail", *sizes)[1] for _ in range(2))
        check(first == second and 25 < first.count("2") < 75, f"half of them: {first}")


def case_backing():
    for bound, kept in (("1MiB", 1 << 20), ("0", 0), ("64MiB", 4 << 20)):
        with Machine(CONTEXT="2MiB", BACKING=bound) as machine:
            same(machine.run("share", "write"), (0, f"{kept}\n"), f"a bound of {bound}")
            same(machine.errors.count("dropped"), int(kept < 4 << 20), "said once")


def case_library():
    """No symbol of a younger C library, and nothing of CUDA, is needed."""
    out = subprocess.run(["objdump", "-T", LIBRARY], capture_output=True, text=True).stdout
    for version in set(re.findall(r"GLIBC_([\d.]+)", out)):
        check(tuple(map(int, version.split("."))) <= (2, 28), f"needs GLIBC_{version}")
    out = subprocess.run(["objdump", "-p", LIBRARY], capture_output=True, text=True).stdout
    same(re.findall(r"SONAME\s+(\S+)", out), ["libcuda.so.1"], "its name")
    for need in re.findall(r"NEEDED\s+(\S+)", out):
        check(re.match(r"lib(c|dl|pthread)\.so\.|ld-linux", need), f"needs {need}")


globals()["case_" + sys.argv[1]]()
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
