"""worker.py - a process that runs a round of workloads/decode.py on command.

Owns the pipe to it. The caller chooses the command before the program, and its device."""
import json
import os
import subprocess

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workloads", "decode.py")


class Ended(Exception):
    """It ended before its time."""


class Worker:
    def __init__(self, python, workload, environment, before=()):
        """before: a command in front, such as `whyoom run --`."""
        self.process = subprocess.Popen([*before, python, SCRIPT, workload], env=environment,
                                        text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.line()  # ready

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise Ended(f"{' '.join(self.process.args)} ended with {self.process.wait()}")
        return line

    def round(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.line())

    def end(self):
        self.process.stdin.close()
        self.process.wait()
