"""Small objects of two sizes side by side, all of one size released at the end; what remains is
written on stdout: how many objects, and of what size. A large block at the end makes the process
grow; it comes later than the shortest time between two readings (100 ms), or a fast machine has
none."""
import sys
import time

COUNT = 150000

small = []
large = []
for i in range(COUNT):
    small.append(b"%08d" % i)
    large.append(b"%08d" % i + b"x" * 300)
del large[:]
print(COUNT, sys.getsizeof(small[0]), COUNT, sys.getsizeof(b"x" * 308), flush=True)
time.sleep(0.25)
big = bytearray(200 << 20)
again = [bytearray(1000) for i in range(1000)]
