"""The same service, whose readers take each segment away when they have read it."""
import json
import os
from multiprocessing import shared_memory

SCALE = int(os.environ.get("SCALE", "1"))
SEGMENT = 192 * 1024


def publish(answer):
    segment = shared_memory.SharedMemory(create=True, size=SEGMENT * SCALE)
    segment.buf[:len(answer)] = answer
    for at in range(0, segment.size, 4096):
        segment.buf[at] = 1
    return segment


def read(segment):
    text = bytes(segment.buf[:64])
    segment.close()
    segment.unlink()
    return len(text)


def think(question):
    words = ["%s %d" % (question, k) for k in range(1500)]
    return json.dumps(sorted(words)).encode()


def serve(requests):
    waiting = []
    for i in range(requests):
        waiting.append(publish(think("question %d" % i)))
        if len(waiting) > 4:
            read(waiting.pop(0))
    for segment in waiting:
        read(segment)


serve(500)
