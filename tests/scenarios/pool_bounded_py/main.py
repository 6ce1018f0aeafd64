"""Uploads are worked on by four threads, however many uploads there are."""
import concurrent.futures
import time
import os

SCALE = int(os.environ.get("SCALE", "1"))


def decode(number):
    return bytearray(8000000 * SCALE)


def handle(number):
    pixels = decode(number)
    time.sleep(0.02)
    return len(pixels)


def main():
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        for size in (2, 3, 2, 3, 90):
            list(pool.map(handle, range(size)))


main()
