"""What the watcher costs, by hand: `cost.py BUILD [SECONDS]` prints a line for a program with a
million events a second in mode full, and for a Python server in mode sampled. By CPU time, so that
a busy machine counts little."""
import os
import subprocess
import sys
import tempfile
import time

BUILD = os.path.realpath(sys.argv[1])
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 30
os.environ.setdefault("WHYOOM_EXE", f"{BUILD}/analyzer/cmd/whyoom")
SHIM = f"{BUILD}/shim/libwhyoom.so"

from lib import PROGRAM, Server, of  # noqa: E402


def measure(name, command, mode, interval):
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "WHYOOM_DIR": folder, "WHYOOM_QUIET": "1", "LD_PRELOAD": SHIM,
               "WHYOOM_MODE": mode}
        program = subprocess.Popen(command, env=env)
        time.sleep(3)
        with Server("--interval", interval, folder) as s:
            time.sleep(3)
            before, begin = s.values(), time.monotonic()
            time.sleep(SECONDS)
            after, took = s.values(), time.monotonic() - begin
        program.kill()
        program.wait()
    cpu, events = (of(after, f"whyoom_{n}_total") - of(before, f"whyoom_{n}_total")
                   for n in ("watch_cpu_seconds", "events"))
    live = of(after, "whyoom_memory_live_bytes", space="host")
    print(f"{name}: {events / took / 1e6:.3f} M events/s, read at {events / cpu / 1e6:.1f} M "
          f"events a second of a core; {100 * cpu / took:.2f} % of a core; watcher "
          f"{of(after, 'whyoom_watch_resident_bytes') / 2**20:.1f} MiB resident, program "
          f"{live / 2**20:.1f} MiB live", flush=True)


measure("full, 2 threads", [f"{BUILD}/tests/watch/churn", "2", "1000", "1"], "full", 1)
measure("sampled server", [os.path.realpath(sys.executable), "-c", PROGRAM, "leak", "1000"],
        "sampled", 2)
