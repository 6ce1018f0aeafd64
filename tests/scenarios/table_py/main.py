"""A tool that returns a little, a thousand times; then one call that returns everything."""
import os

SCALE = int(os.environ.get("SCALE", "1"))


def run_tool(rows):
    return bytes(rows * 200)


def step(rows):
    payload = run_tool(rows)
    return len(payload)


def main():
    for i in range(3000):
        step(100 + i % 50)
    step(5000000 * SCALE)


main()
