"""client.py PORT - longer and longer requests, until one is not answered; then it stops the
server."""
import http.client
import json
import sys

port = int(sys.argv[1])


def send(method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request(method, path, json.dumps(body) if body else None)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


length = 256
while length < 1 << 20:
    status, answer = send("POST", "/generate", {"batch": 8, "prompt": length, "tokens": 8})
    if status != 200:
        print(f"{length:>7} tokens of prompt: {status}, {answer['error']}", flush=True)
        break
    print(f"{length:>7} tokens of prompt: answered, {answer['reserved'] >> 20} MiB reserved",
          flush=True)
    length += length // 2 // 64 * 64
send("GET", "/stop")
