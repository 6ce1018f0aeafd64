"""The package beside what its users have: FastAPI's requests are marked, pandas gets tables."""

import glob
import json
import os

import pytest
from conftest import SOURCE, install, interpreter

APP = """
import asyncio, sys, threading, time, urllib.error, urllib.request
import uvicorn
from fastapi import FastAPI, WebSocket
from fastapi.responses import StreamingResponse
from whyoom.asgi import Middleware

app = FastAPI()
app.add_middleware(Middleware)
kept = []

@app.get("/items/{item}")
async def read(item: str, mib: int = 1):
    held = bytearray(mib << 20)
    await asyncio.sleep(0.01)
    return {"size": len(held)}

@app.post("/keep")
def keep():
    kept.append(bytearray(3 << 20))
    return {}

@app.get("/stream")
def stream():
    return StreamingResponse(iter([b"a", b"b"]))

server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
thread = threading.Thread(target=server.run)
thread.start()
while not server.started:
    time.sleep(0.01)
port = server.servers[0].sockets[0].getsockname()[1]

def ask(path, data=None):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code
asked = [threading.Thread(target=ask, args=(f"/items/{n}?mib=5",)) for n in range(8)]
for t in asked: t.start()
for t in asked: t.join()
print(ask("/items/7"), ask("/keep", b""), ask("/stream"), ask("/nothing"))
server.should_exit = True
thread.join()
"""
PLAIN = """
import asyncio, whyoom.asgi
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
sent = []
async def send(message): sent.append(message["type"])
async def receive(): return {}
wrapped = whyoom.asgi.Middleware(app)
asyncio.run(wrapped({"type": "http", "method": "PUT", "path": "/secret"}, receive, send))
asyncio.run(wrapped({"type": "lifespan"}, receive, send))
named = whyoom.asgi.Middleware(app, name=lambda scope: "mine")
asyncio.run(named({"type": "http", "method": "PUT", "path": "/secret"}, receive, send))
print(sent)
"""


@pytest.fixture(scope="module")
def beside(wheel):
    made = install(wheel, "frameworks")
    made.add(interpreter("frameworks"))
    return made


def names(made, trace):
    r = made.run(made.whyoom, "export", "--format", "jsonl", trace)
    events = [json.loads(line) for line in r.stdout.splitlines() if '"kind": "mark"' in line]
    ended = {e["id"] for e in events if e["phase"] == "end"}
    begun = [e for e in events if e["phase"] == "begin"]
    assert {e["id"] for e in begun} == ended
    return [e["name"] for e in begun]


def test_fastapi(beside, work):
    answers = '{"size":1048576} {} ab 404\n'
    assert beside.script(APP).stdout == answers
    r = beside.script(APP, trace=work + "/t")
    assert r.stdout == answers, r.stderr
    assert sorted(names(beside, work + "/t")) == (
        ["GET"] + 9 * ["GET /items/{item}"] + ["GET /stream", "POST /keep"])
    r = beside.script("""
import sys, whyoom
q = whyoom.report(sys.argv[1]).requests
print(q.source, max(r.peak_bytes for r in q.ended + q.in_flight
                    if r.name == "GET /items/{item}") >> 20)
""", work + "/t")
    assert r.stdout == "marks 5\n", r.stdout + r.stderr


def test_any_asgi_application(beside, work):
    r = beside.script(PLAIN, trace=work + "/t", options=["--no-cmdline"])
    assert r.stdout == "['http.response.start', 'http.response.start']\n", r.stderr
    assert names(beside, work + "/t") == ["PUT", "mine"]
    for path in glob.glob(work + "/t/*"):
        with open(path, "rb") as f:
            assert b"/secret" not in f.read(), path


def test_pandas(beside):
    traces = sorted(p for p in glob.glob(SOURCE + "/tests/golden/v2/*") if os.path.isdir(p))
    r = beside.script("""
import sys, whyoom
for path in sys.argv[1:]:
    r = whyoom.report(path)
    tables = r.to_pandas()
    assert {k: len(v) for k, v in tables.items()} == {k: len(v) for k, v in r.tables().items()}
    ledger = r.to_pandas("ledger")
    if len(ledger):
        assert ledger.groupby("space").bytes.sum().sum() == sum(
            x.bytes for l in r.ledger for x in l.rows)
try:
    r.to_pandas("nothing")
except KeyError as e:
    print(e)
""", *traces)
    assert "there is no table 'nothing'; there are processes, memory" in r.stdout, (
        r.stdout + r.stderr)


def test_without_pandas(installed):
    trace = sorted(glob.glob(SOURCE + "/tests/golden/v2/*"))[0]
    r = installed.script("import sys, whyoom\ntry: whyoom.report(sys.argv[1]).to_pandas()\n"
                         "except ImportError as e: print(e)", trace)
    assert r.stdout == "No module named 'pandas'\n", r.stderr
