"""services.py - how a test starts a service in the foreground and looks at it, and the server that
proxies ask."""

import hashlib
import http.server
import re
import signal
import socket
import subprocess
import threading

import harness
from harness import check


class Daemon:
    """A service that a test has started in the foreground; ready: whether it answers."""

    def __init__(self, side, argv, ready, env=None, name="log"):
        self.side, self.log = side, side.path(name)
        with open(self.log, "ab") as log:
            self.p = side.start(argv, env=env, stdout=log, stderr=subprocess.STDOUT)
        harness.wait_for(lambda: self.p.poll() is not None or ready(), self.tail)
        check(self.p.poll() is None, "%s: %s does not start: %s"
              % (side.name, argv[0], self.tail()))

    def tail(self):
        with open(self.log, errors="replace") as f:
            return f.read()[-1500:]

    def stop(self, sig=signal.SIGTERM):
        return harness.stop(self.p, sig, self.tail)


def children(daemon):
    with open("/proc/%d/task/%d/children" % (daemon.p.pid, daemon.p.pid)) as f:
        return {int(x) for x in f.read().split()}


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
        return True
    except OSError:
        return False


def wrong(path, words=("SIGSEGV", "Segmentation", "signal 11", "signal 6", "SIGABRT", "Assert",
                       "whyoom: ")):
    """What a crash would have left in the log."""
    with open(path, errors="replace") as f:
        text = f.read()
    return [w for w in words if w in text]


def whole(job, least, processes=1, explained=harness.EXPLAINED):
    found = job.preload.traces(least=least, processes=processes, explained=explained)
    return "%d traces, %d events" % (len(found), sum(p["events"] for p in found))


class Origin(http.server.ThreadingHTTPServer):
    """What proxies ask: a server in this process, that is never recorded."""

    daemon_threads, request_queue_size = True, 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        """A proxy may give a connection up."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = re.sub(r"^http://[^/]*", "", self.path)
        number = path[1:]
        body = b"".join(b"%d %d\n" % (int(number), j * 7919 % 1009)
                        for j in range(int(number) * 300)) if number.isdigit() else path.encode()
        self.send_response(200 if number.isdigit() else 302 if number == "moved" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "text/plain")
        self.send_header("Cache-Control", "max-age=60")
        if number == "moved":
            self.send_header("Location", "/7")
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        body = hashlib.sha256(
            self.rfile.read(int(self.headers["Content-Length"]))).hexdigest().encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
