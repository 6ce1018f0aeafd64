"""server.py PORT MODEL - an inference server on the standard library: POST /generate {"batch",
"prompt", "tokens"}, where `prompt` is the number of tokens in it. MODEL is the module it takes:
`model`, or `mended`. A request for which there is no memory is answered with 507, one that is
longer than the model allows with 413, and the server goes on. GET /stop ends it."""
import importlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

from model import generate


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        ask = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if model.longest and ask["prompt"] + ask["tokens"] > model.longest:
            self.answer(413, {"error": f"more than {model.longest} tokens"})
            return
        try:
            with turn:
                prompts = torch.zeros(ask["batch"], ask["prompt"], dtype=torch.long, device="cuda")
                made = generate(model, prompts, ask["tokens"])
        except torch.OutOfMemoryError as error:
            print(f"torch.OutOfMemoryError: {error}", file=sys.stderr, flush=True)
            self.answer(507, {"error": "out of memory"})
        else:
            self.answer(200, {"tokens": made, "reserved": torch.cuda.memory_reserved()})

    def do_GET(self):
        self.answer(200, {"model": "random weights", "device": torch.cuda.get_device_name(0)})
        if self.path == "/stop":
            threading.Thread(target=server.shutdown).start()

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


turn = threading.Lock()
with torch.device("cuda"):
    model = importlib.import_module(sys.argv[2]).Transformer().half().eval()
server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(f"serving on port {server.server_port}, {torch.cuda.memory_allocated() >> 20} MiB taken",
      flush=True)
server.serve_forever()
