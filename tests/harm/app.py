"""app.py - what the Python servers of these tests serve: a WSGI and an ASGI application.

Every answer depends on its path alone. /make makes garbage and large buffers, /thread does so in
threads, /child runs a program, /fail raises, /pid is for the tests, which ask who answers.
"""

import asyncio
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys


def work(n):
    records = [{"id": i, "text": "x" * (i * 7919 % 300),
                "tags": ["t%d" % (i * k % 97) for k in range(10)]}
               for i in range(n)]
    back = json.loads(json.dumps(records))
    block = bytearray(n * 2000)
    block[::97] = b"y" * len(block[::97])
    return hashlib.sha256(repr(back).encode() + bytes(block)).hexdigest()


def threads(n):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return " ".join(pool.map(work, range(n, n + 4)))


def child(n):
    return subprocess.run([sys.executable, "-S", "-c", "print(sum(range(%d)))" % n],
                          capture_output=True, text=True).stdout


def answer(path):
    """(status, text)"""
    what, _, n = path.strip("/").partition("/")
    if what == "fail":
        raise ValueError("on purpose")
    if what == "pid":
        return 200, str(os.getpid())
    made = {"make": work, "thread": threads, "child": child}.get(what)
    return (200, made(int(n))) if made else (404, "nothing here\n")


def wsgi(environ, start_response):
    status, text = answer(environ["PATH_INFO"])
    body = text.encode()
    start_response("%d X" % status, [("Content-Type", "text/plain"),
                                     ("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            what = (await receive())["type"]
            await send({"type": what + ".complete"})
            if what.endswith("shutdown"):
                return
    path = scope["path"]
    await asyncio.sleep(0)
    if path.startswith("/thread"):
        n = int(path.split("/")[2])
        loop = asyncio.get_running_loop()
        made = await asyncio.gather(*(loop.run_in_executor(None, work, n + i) for i in range(4)))
        status, text = 200, " ".join(made)
    elif path.startswith("/child"):
        p = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", "print(sum(range(%d)))"
                                                 % int(path.split("/")[2]),
                                                 stdout=asyncio.subprocess.PIPE)
        status, text = 200, (await p.communicate())[0].decode()
    else:
        status, text = answer(path)
    await send({"type": "http.response.start", "status": status,
                "headers": [(b"content-type", b"text/plain")]})
    for i in range(0, len(text), 100):
        await send({"type": "http.response.body", "body": text[i:i + 100].encode(),
                    "more_body": True})
    await send({"type": "http.response.body"})
