"""A search service: each session maps the index of its tenant, and none closes it."""
import mmap
import os
import tempfile

SCALE = int(os.environ.get("SCALE", "1"))
TENANTS = 5
SESSIONS = {}


def make_index(folder, tenant):
    path = os.path.join(folder, "index%d" % tenant)
    with open(path, "wb") as f:
        f.truncate((2 << 20) * SCALE)
    return path


def open_index(path):
    with open(path, "rb") as f:
        return mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)


def search(session, path, question):
    if session not in SESSIONS:
        SESSIONS[session] = open_index(path)
    index = SESSIONS[session]
    hits = [at for at in range(0, len(index), 4096 * SCALE) if index[at] != question % 251]
    page = ["hit %d of %s: %s" % (at, path, "x" * (question % 400)) for at in hits]
    return len("\n".join(page))


def main():
    with tempfile.TemporaryDirectory() as folder:
        paths = [make_index(folder, tenant) for tenant in range(TENANTS)]
        for n in range(1500):
            search("%d-%d" % (n % TENANTS, n // 10), paths[n % TENANTS], n)


main()
