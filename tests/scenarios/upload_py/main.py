"""Reports are uploaded and parsed; one is far larger than the others, is answered with 507, and the
service goes on."""
import os

SCALE = int(os.environ.get("SCALE", "1"))


def parse(body):
    rows = [line.split(",") for line in body.split("\n")]
    return len(rows), len(rows[0])


def upload(lines):
    return parse("\n".join(f"a{i},b{i},c{i},d" for i in range(lines)))


def handle(lines):
    try:
        return 200, upload(lines)
    except MemoryError:
        return 507, "too large"


def main():
    served = [handle(900000 * SCALE if n == 500 else 500 + n * 37 % 1500)[0] for n in range(1200)]
    print(served.count(200), served.count(507))


main()
