"""In a container: a server that keeps every upload, and a worker process that needs its share."""
import os
import subprocess
import sys

SCALE = int(os.environ.get("SCALE", "1"))
WORKER = """
table = bytearray(30 << 20)
for i in range(0, len(table), 4096):
    table[i] = 1
print("ready", flush=True)
while input():
    pass
"""
uploads = {}


def receive(number):
    body = bytearray(200000 * SCALE)
    for i in range(0, len(body), 4096):
        body[i] = number & 255
    uploads[number] = body


def thumbnail(number):
    return len(bytes(uploads[number][:50000]))


def main():
    worker = subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    worker.stdout.readline()
    for number in range(100000):
        receive(number)
        thumbnail(number)
        if number % 50 == 0:
            worker.stdin.write(b"go\n")
            worker.stdin.flush()


main()
