"""A service hands its answers to others in shared memory, and nobody takes the segments away
again."""
import json
import os
import sys
from multiprocessing import shared_memory

SCALE = int(os.environ.get("SCALE", "1"))
SEGMENT = 192 * 1024
published = {}


def publish(name, answer):
    segment = shared_memory.SharedMemory(create=True, size=SEGMENT * SCALE)
    segment.buf[:len(answer)] = answer
    for at in range(0, segment.size, 4096):
        segment.buf[at] = 1
    published[name] = segment


def think(question):
    words = ["%s %d" % (question, k) for k in range(1500)]
    return json.dumps(sorted(words)).encode()


def serve(requests):
    for i in range(requests):
        publish("answer-%d" % i, think("question %d" % i))


serve(int(sys.argv[1]) if len(sys.argv) > 1 else 900)
