#!/usr/bin/env python3
"""Web servers under load: the same answers to the same requests, over worker processes that are
forked, replaced, killed and reloaded; and the same ends."""

import http.client
import os
import signal
import subprocess
import sys

import harness
from harness import Skip, check, need, version

THREADS = 6
PATHS = (["/make/%d" % (i % 40) for i in range(60)] + ["/thread/%d" % i for i in range(6)]
         + ["/child/%d" % i for i in range(4)] +
         ["/fail", "/nowhere"])
NGINX = """
daemon off; pid %(top)s/pid; error_log %(top)s/error.log notice; worker_processes 2; %(user)s
events { worker_connections 256; }
http {
    access_log %(top)s/access.log; client_body_temp_path %(top)s/b; proxy_temp_path %(top)s/p;
    fastcgi_temp_path %(top)s/f; uwsgi_temp_path %(top)s/u; scgi_temp_path %(top)s/s;
    types { text/html html; } default_type text/plain; gzip on; gzip_types text/plain; gzip_min_length 100;
    server { listen 127.0.0.1:%(port)d; root %(top)s/www; autoindex_exact_size on;
        location /inner/ { proxy_pass http://127.0.0.1:%(port)d/; }
        location = /sub { return 302 /0.txt; }
        location /limit { return 413; } }
}
"""


class Server:
    """A server that a test has started, on a port of its own."""

    def __init__(self, side, argv, port, env=None):
        self.side, self.port, self.log = side, port, side.path("server.log")
        with open(self.log, "ab") as log:
            self.p = side.start(argv, env=env, stdout=log, stderr=subprocess.STDOUT)
        harness.wait_for(lambda: self.p.poll() is not None or self.get("/pid"), self.tail)
        check(self.p.poll() is None, "it does not start: " + self.tail())

    def tail(self):
        with open(self.log, errors="replace") as f:
            return f.read()[-2000:]

    def get(self, path):
        """The body, None where nobody answers."""
        try:
            c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            c.request("GET", path)
            body = c.getresponse().read()
            c.close()
            return body
        except (OSError, http.client.HTTPException):
            return None

    def workers(self, at_least):
        """The ids of the processes that answer."""
        found = set()

        def enough():
            pid = self.get("/pid")
            found.update([int(pid)] if pid else [])
            return len(found) >= at_least
        harness.wait_for(enough, lambda: "only %s answer: %s" % (found, self.tail()))
        return found

    def load(self):
        return harness.requests(self.port, PATHS, THREADS)

    def wrong(self):
        """What a crash would have left in the log."""
        with open(self.log, errors="replace") as f:
            text = f.read()
        return [w for w in ("SIGSEGV", "SIGABRT", "Fatal Python error", "Segmentation",
                            "WORKER TIMEOUT", "whyoom: ") if w in text]


def gunicorn_session(side, kind):
    port = harness.free_port()
    got = {}
    s = Server(side, [need("gunicorn"), "--chdir", harness.HERE, "-b", "127.0.0.1:%d" % port, "-w",
                      "3", *kind, "app:wsgi"],
               port, env={"PYTHONDONTWRITEBYTECODE": "1"})
    try:
        got["load"] = s.load()
        victims = s.workers(2)
        os.kill(min(victims), signal.SIGKILL)
        harness.wait_for(lambda: len(s.workers(2) - victims) > 0, s.tail)
        got["after a kill"] = s.load()
        s.p.send_signal(signal.SIGHUP)
        before = victims | s.workers(2)
        harness.wait_for(lambda: not s.workers(1) & before, s.tail)
        got["after a reload"] = s.load()
        s.p.send_signal(signal.SIGTTIN)
        got["with one worker more"] = s.load()
    finally:
        got["end"] = harness.stop(s.p, signal.SIGTERM, s.tail)
    got["wrong"] = s.wrong()
    return got


def gunicorn(job, kind):
    program = need("gunicorn")
    job.about("gunicorn " + version([program, "--version"], r"([\d.]+)"),
              "preforked workers (%s) under load, one killed, a reload" % " ".join(kind))
    got = job.both(lambda side: gunicorn_session(side, kind))
    check(got["end"] == "status 0" and not got["wrong"],
          "it ends with %s, %s" % (got["end"], got["wrong"]))
    check(got["load"]["/make/7"][0][0] == 200 and got["load"]["/fail"][0][0] == 500,
          "answers: %s" % got["load"])
    found = job.preload.traces(least=2000, processes=6)
    return "%d traces, %d events" % (len(found), sum(p["events"] for p in found))


def uvicorn_session(side, more):
    port = harness.free_port()
    s = Server(side, [harness.PYTHON, "-m", "uvicorn", "--app-dir", harness.HERE, "--port",
                      str(port), "--no-access-log",
                      *more, "app:asgi"], port, env={"PYTHONDONTWRITEBYTECODE": "1"})
    got = {}
    try:
        got["load"] = s.load()
        got["again"] = s.load()
    finally:
        got["end"] = harness.stop(s.p, signal.SIGINT, s.tail)
    got["wrong"] = s.wrong()
    return got


def uvicorn(job, what, more):
    found = version([harness.PYTHON, "-m", "uvicorn", "--version"], r"uvicorn ([\d.]+)")
    if found == "?":
        raise Skip("there is no uvicorn")
    job.about("uvicorn " + found, what + " under load")
    got = job.both(lambda side: uvicorn_session(side, more))
    check(not got["wrong"], "it ends with %s, %s" % (got["end"], got["wrong"]))
    check(got["load"]["/thread/3"][0][0] == 200 and got["load"]["/fail"][0][0] == 500,
          "answers: %s" % got["load"])
    found = job.preload.traces(least=5000)
    return "%s, %d traces, %d events" % (got["end"], len(found), sum(p["events"] for p in found))


def nginx_session(side, program):
    port = harness.free_port()
    os.makedirs(side.path("www"))
    for i in range(30):
        with open(side.path("www", "%d.txt" % i), "w") as f:
            f.write("".join("%d %d\n" % (i, j * 7919 % 1009) for j in range(i * 400 + 1)))
    with open(side.path("www", "pid"), "w") as f:
        f.write("0")
    with open(side.path("conf"), "w") as f:
        f.write(NGINX % {"top": side.top, "port": port, "user": "user root;" if os.getuid() == 0
                         else ""})
    got = {"test": side.run([program, "-t", "-c", side.path("conf"), "-p", side.top])[0]}
    s = Server(side, [program, "-c", side.path("conf"), "-p", side.top], port)
    paths = ["/%d.txt" % (i % 30) for i in range(120)] + ["/inner/%d.txt" % i
                                                          for i in range(30)] + [
                                                              "/sub", "/limit", "/none"]
    try:
        got["load"] = harness.requests(port, paths, THREADS)
        s.p.send_signal(signal.SIGHUP)
        got["while it reloads"] = harness.requests(port, paths, THREADS)
        os.rename(side.path("access.log"), side.path("access.1"))
        s.p.send_signal(signal.SIGUSR1)
        harness.wait_for(lambda: os.path.exists(side.path("access.log")), s.tail)
        got["after its log was moved"] = harness.requests(port, paths, 2)
    finally:
        got["end"] = harness.stop(s.p, signal.SIGQUIT, s.tail)
    with open(side.path("error.log")) as f:
        text = f.read()
    got["wrong"] = [w for w in ("signal 11", "signal 6", "alert", "emerg", "crit") if w in text]
    got["wrong"] += s.wrong()
    return got


def nginx(job):
    program = need("nginx")
    job.about("nginx " + version([program, "-v"], r"nginx/([\d.]+)"),
              "two workers under load, a reload, reopened logs, a proxy to itself")
    got = job.both(lambda side: nginx_session(side, program))
    check(got["end"] == "status 0" and not got["wrong"],
          "it ends with %s, %s" % (got["end"], got["wrong"]))
    check(got["load"]["/29.txt"][0][0] == 200, "answers: %s" % got["load"])
    found = job.preload.traces(least=1000, processes=3)
    return "%d traces, %d events" % (len(found), sum(p["events"] for p in found))


CASES = {
    "gunicorn": lambda job: gunicorn(job, ["-k", "sync"]),
    "gunicorn-preload": lambda job: gunicorn(job,
                                             ["-k", "gthread", "--threads", "4", "--max-requests",
                                              "100"]),
    "nginx": nginx,
    "uvicorn": lambda job: uvicorn(job, "one process", []),
    "uvicorn-workers": lambda job: uvicorn(job, "two spawned workers", ["--workers", "2"]),
}

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
