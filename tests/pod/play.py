"""play.py - plays the pods of /mnt/plan.json one after the other, in the machine, and writes what
was seen of each to /mnt/out/NAME.json. Judges nothing: run does, outside."""
import json
import os
import re
import sys
import threading
import traceback
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kubelet import CGROUPS, Pod, read, until, write  # noqa: E402

END = 400  # seconds until a program is out of memory, where a processor is imitated


def metrics_of(pod, sidecar):
    port = sidecar.spec["ports"][0]["containerPort"]

    def ask():
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=20) as r:
                return r.read().decode()
        except (urllib.error.URLError, ConnectionError):
            return ""
    return pod.network(ask)


class Inbox:
    """What is pushed, in the pod's network; the first time it says that it is not ready."""
    def __init__(self, pod, port):
        self.lines, self.refused = [], 0
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                if not inbox.refused:
                    inbox.refused = 1
                    self.send_response(503)
                else:
                    inbox.lines.append(body)
                    self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = pod.network(lambda: HTTPServer(("127.0.0.1", port), Handler))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def followed(pod, plan):
    """The recorder and the sidecar: what the sidecar says once the server was killed."""
    seen = {"ends": [], "reports": [], "metrics": []}
    inbox = Inbox(pod, plan["inbox"])
    server = pod.start()
    sidecar = pod.containers[plan["sidecar"]]
    until(lambda: metrics_of(pod, sidecar), "metrics of the sidecar")
    for number, command in enumerate(plan["commands"]):
        if number:
            server.cgroup.remove()
            server.spec["command"] = command
            server.start()
        seen["ends"].append(server.ended(END))
        if seen["ends"][-1]["reason"] != "OOMKilled":
            raise RuntimeError("%s ended with %s" % (server.name, seen["ends"][-1]))
        try:
            until(lambda n=number: len(inbox.lines) > n, "a pushed report")
        except TimeoutError as why:
            seen["late"] = str(why)
        seen["metrics"].append(metrics_of(pod, sidecar))
        seen["reports"].append(sidecar.execute(*plan["ask"], "--format", "json"))
    seen["pushed"], seen["refused"] = inbox.lines, inbox.refused
    seen["files"] = sorted(os.listdir(plan["traces"] % pod.volumes[plan["volume"]]))
    seen["sidecar"] = {"running": sidecar.process.poll() is None, "log": read(sidecar.log)[-3000:],
                       "starts": sidecar.starts, "events": sidecar.cgroup.events()}
    return seen


def messaged(pod, plan):
    """`whyoom run` in the container: its termination message, and the next start's."""
    seen = {"ends": []}
    server = pod.start()
    seen["ends"].append(server.ended(END))
    if plan["next"]:
        server.cgroup.remove()
        server.start()
        until(lambda: read(server.message) or server.process.poll() is not None,
              "a message of the next start")
        seen["next"] = read(server.message)
    return seen


def main():
    with open("/mnt/plan.json") as f:
        plans = json.load(f)
    os.makedirs(CGROUPS)
    for path in (os.path.dirname(CGROUPS), CGROUPS):
        write(path + "/cgroup.subtree_control", "+memory +pids")
    for plan in plans:
        print("== %s" % plan["name"], flush=True)
        pod, seen = None, {}
        try:
            pod = Pod(plan)
            seen = (followed if plan["sidecar"] else messaged)(pod, plan)
        except Exception:  # the next pod may do
            seen["error"] = traceback.format_exc()[-3000:]
            seen["logs"] = {name: read(os.path.join(pod.folder, name))[-2000:]
                            for name in sorted(os.listdir(pod.folder))
                            if re.search(r"\.(log|message)$", name)} if pod else {}
        write("/mnt/out/%s.json" % plan["name"], json.dumps(seen))
        if pod:
            pod.stop()


if __name__ == "__main__":
    main()
