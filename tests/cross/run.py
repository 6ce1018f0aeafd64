#!/usr/bin/env python3
"""Cross-builds the shim, the simulated device and the programs of three suites for aarch64 and runs
their cases under qemu-user; the traces are read on this machine.

Left to native machines: cases that need what qemu-user does not emulate faithfully (killing a
process group at an exact moment, exec, seccomp, other users' rights, address-space limits).
"""
import glob
import os
import subprocess
import sys
import textwrap

TOP, BUILD = sys.argv[1:3]
EMULATOR = "qemu-aarch64 -L /usr/aarch64-linux-gnu"
CASES = {
    "test_calls.py": ["calls-successes", "calls-failures", "calls-free-errno", "calls-overflow",
                      "maps-plain", "maps-moves", "maps-failing", "maps-syscall", "maps-shared",
                      "maps-random-ranges"],
    "test_process.py": ["fork", "fork-tree", "fork-while-threads-allocate", "exec-fails",
                        "ends"],
    "test_guest.py": ["closes-all-descriptors", "changes-directory", "private-files",
                      "switched-off", "wrong-options", "budget"],
    "test_kill.py": ["storm-exact", "storm-cross", "threads-many", "thread-ends", "deep-stack",
                     "long-jumps", "before-and-after-main"],
}
FLAGS = ["-std=gnu11", "-O1", "-g", "-fno-builtin", "-fno-omit-frame-pointer", "-D_GNU_SOURCE",
         "-I" + os.path.join(TOP, "include"), "-w"]
# CUDA's cases are all of those scripts; not the ones that look at the loader's own output, at
# libraries of this machine, or that install filters; nor where libraries take each other's places,
# as qemu-user now and then refuses the loader to write where there was code before.
NOT_CUDA = {"test_routes.py": ["absent_bindings", "real_runtimes"],
            "test_pitfalls.py": ["filtered", "threads", "unloading"]}
# The simulated device's; not those that look at other processes, whose /proc qemu-user makes up.
SIMGPU = ["memory", "virtual", "pools", "streams", "lookup", "spans", "runtime"]
PROGRAMS = ["atexit", "calls", "guest", "maps", "processes", "storm", "threads"]

passed = 0
failed = []


def step(name, command, emulated=False, **options):
    """Runs a command. One under qemu-user that fails runs once more: with many threads the emulator
    itself fails now and then. Both outputs are printed, so that a case which fails often shows."""
    global passed
    for attempt in range(2 if emulated else 1):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", **options)
        if done.returncode == 0:
            passed += 1
            shown = done.stdout.strip()[-100:] if emulated else ""
            print(f"ok {name} {shown}{' (at the second attempt)' if attempt else ''}", flush=True)
            return True
        # Indented, as whoever reads this counts lines that begin with "N passed".
        print(f"FAILED {name} (exit {done.returncode}):\n"
              + textwrap.indent(done.stdout[-3000:], "    "), flush=True)
    failed.append(name)
    return False


def finish():
    print(f"{passed} passed, {len(failed)} failed", flush=True)
    if failed:
        sys.exit("failed: " + ", ".join(failed))


shim = os.path.join(BUILD, "shim", "libwhyoom.so")
if not os.path.exists(os.path.join(BUILD, "build.ninja")):
    if not step("configure", ["meson", "setup", BUILD, TOP, "--cross-file",
                              os.path.join(TOP, "tests", "cross", "aarch64.ini"),
                              "-Danalyzer=false"]):
        finish()
if not step("build", ["ninja", "-C", BUILD]):
    finish()
step("its symbols", [sys.executable, os.path.join(TOP, "tests", "lint", "symbols.py"), shim])
progs = os.path.join(BUILD, "progs")
os.makedirs(progs, exist_ok=True)
for name in PROGRAMS:
    source, = glob.glob(os.path.join(TOP, "tests", "preload", "progs", "*", name + ".c"))
    # Not position-independent: above one that is, qemu-user leaves brk no room to grow.
    step("build " + name, ["aarch64-linux-gnu-gcc", *FLAGS, "-no-pie", source, "-o",
                           os.path.join(progs, name), "-lpthread", "-lrt", "-ldl"])
# qemu-user emulates no ptrace(): what attaching needs of this machine is only compiled.
for name in ("machine_aarch64", "exported", "target", "tracee", "remote"):
    step("compile attach/" + name,
         ["aarch64-linux-gnu-gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror",
          "-D_GNU_SOURCE", "-I" + os.path.join(TOP, "analyzer"),
          "-I" + os.path.join(TOP, "include"), "-c",
          os.path.join(TOP, "analyzer", "attach", name + ".c"),
          "-o", os.path.join(BUILD, name + ".o")])
environment = dict(os.environ, WHYOOM_TEST_SHIM=shim, WHYOOM_TEST_PROGS=progs,
                   WHYOOM_TEST_TMP=os.path.join(BUILD, "tmp"), WHYOOM_TEST_SOURCE=TOP,
                   WHYOOM_TEST_RUNNER=EMULATOR)
for path in sorted(glob.glob(os.path.join(TOP, "tests", "cuda", "test_*.py"))):
    script = os.path.basename(path)
    step(script, [sys.executable, path, shim, os.path.join(BUILD, "tests", "cuda"), TOP,
                  *("-" + case for case in NOT_CUDA.get(script, ()))],
         emulated=True, timeout=600, env=dict(os.environ, WHYOOM_TEST_EMULATOR=EMULATOR))
for name in SIMGPU:
    step("simgpu " + name, [sys.executable, os.path.join(TOP, "tests", "simgpu", "test_simgpu.py"),
                            name],
         emulated=True, timeout=600,
         env=dict(os.environ, WHYOOM_TEST_RUNNER=EMULATOR,
                  WHYOOM_TEST_PROGS=os.path.join(BUILD, "tests", "simgpu"),
                  WHYOOM_TEST_SIMGPU=os.path.join(BUILD, "shim", "simgpu", "libwhyoom-simgpu.so")))
for script, cases in CASES.items():
    for case in cases:
        step(case, [sys.executable, os.path.join(TOP, "tests", "preload", script), case],
             emulated=True, env=environment, timeout=600)
finish()
