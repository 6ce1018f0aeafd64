"""Serves the same all day; then an operator lowers the limit of the running process."""
import resource
import os

SCALE = int(os.environ.get("SCALE", "1"))

index = {key: "entry " * (200 * SCALE) for key in range(20000)}


def serve(number):
    page = bytearray(40000000 * SCALE)
    page[0] = number % 256
    return len(index[number % 20000]) + page[0]


def lower_limit():
    with open("/proc/self/statm") as f:
        pages = int(f.read().split()[0])
    now = pages * resource.getpagesize() + 10000000
    resource.setrlimit(resource.RLIMIT_AS, (now, now))


def main():
    for number in range(300):
        serve(number)
    lower_limit()
    for number in range(300):
        serve(number)


main()
