#!/usr/bin/env python3
"""Makes the golden traces of a format: `make.py v1`, `make.py v2`. They are kept in the tree and
never made anew: a file that was readable once must stay so. A new version adds a folder."""

import os
import sys

from writer import *


def every_kind():
    d = Definitions(0)
    d.string(1, "/data/model.bin")
    d.module(1, "/usr/bin/server", bytes(range(20)), bias=0x550000000000,
             ranges=((0, 0x5000, 0, 1),))
    d.module(2, "/usr/lib/libpython3.11.so.1.0", b"\x01" * 20, bias=0x7F0000000000)
    # def f(): line 10; 2 bytes each: 10, 11, none, 9
    d.code(1, 0x30B, 10, "Chat.turn", "/srv/chat.py", bytes([0x80, 0, 0xD8, 1, 1, 0xF8, 0xE8, 5]))
    d.code(2, 0x309, 5, "old", "/srv/old.py", bytes([4, 1, 2, 255, 2, 3]), flags=1)
    d.code(3, 0x30A, 7, "middle", "/srv/middle.py", bytes([4, 1, 2, 128, 2, 0]))
    d.stack(1, [("native", 1, 0x1234, False), ("native", 1, 0x2000, False)])
    d.stack(2, [("native", 2, 0x8000, False), ("python", 1, 2), ("python", 2, 5), ("python", 3, -1),
                ("native", 0, 0x7FFF00001000, True)], base=1, keep=1)
    d.stack(3, [("end", 1), ("native", 1, 0x40, False), ("cut", 100), ("native", 1, 0x30, False)])
    d.stack(4, [("native", 1, 0x2000, False)], base=1, keep=1)  # stack 1 again
    d.record(9, b"\x01\x02")  # a kind of a newer version
    d.record(STRING, varint(77) + blob("cut short"), committed=0)
    d.hole(24)
    d.info("exe", "/usr/bin/server")
    d.info("cmdline", "server\0--port\0" + "8000\0")
    d.info("whyoom.version", "0.1.0")
    d.thread_name(1, 1001, "server")
    d.thread_name(2, 1002, "worker")

    a = Chunk(1, 1000, seal=True)
    a.alloc(0x7F1000000010, 64, 1, 1100)
    a.alloc(0x7F1000000060, 4096, 2, 1200, api=1)
    a.alloc(0x7F1000002000, 4096, 2, 1300, api=3)
    a.free(0x7F1000000010, 1400, realloc=True)
    a.alloc(0x7F1000000010, 128, 1, 1500, api=2)
    a.free(0x7F1000000060, 1600, realloc=True)
    a.unfree(0x7F1000000060, 1700)
    a.extended(MAP, 0x7F2000000000, 1 << 20, 3, 8, 16, 1, 1, 4096, 2, ticks=1800)
    a.extended(UNMAP, 0x7F2000000000, 4096, 12, 0, ticks=1900)
    a.extended(UNUNMAP, 0x7F2000000000, 4096, ticks=2000)
    a.extended(ADVISE, 0x7F2000000000, 8192, 4, ticks=2100)
    a.extended(BRK, 0x555500000000, 0x555500021000, 1, ticks=2200)
    a.levels(FAILED, [0, 0, 1, 12, 1 << 40, 0, 0, 3], [(1, 5 << 20), (128, 6 << 20)], ticks=2300)
    a.levels(LEVEL, [0], [(1, 5 << 20), (5, 100 << 20), (32, 7 << 20)], ticks=2400)
    a.extended(ALLOC_WIDE, 0x7F3000000003, 5, 4, 4, ticks=2500)
    a.extended(FREE_WIDE, 0x7F3000000003, 0, ticks=2600)
    a.extended(NOTICE, 5, 0x030B02F0, ticks=2700)
    a.extended(FORK, 4712, ticks=2800)
    a.extended(200, 1, 2, 3, ticks=2900)
    a.extended(MARK, 1, 7, 1, ticks=3000)
    a.side(1150, ALLOC, 0x7F4000000000, 24, 1, 0x10)
    a.side(2650, FREE, 0x7F4000000000)
    b = Chunk(2, 1050, sequence=0)
    b.alloc(0x7F5000000000, 1 << 30, 2, 1450)
    b.free(0x7F1000002000, 1550)
    b.free(0x7F6000000000, 1650)  # never seen
    b.extended(THREAD_EXIT, ticks=3100)
    s = Chunk(0, 900, kind=SHARED, tid=0)
    s.extended(SHARED_THREAD, 3, 1003, ticks=950)
    s.alloc(0x7F7000000000, 8, 1, 1250)
    s.extended(SHARED_THREAD, 1, 1001, ticks=3200)
    s.extended(SIGNAL, 6, 0, 0, ticks=3300)
    s.extended(EXIT, 1, 3, ticks=3400)
    return trace([d, a, b, s], end=(1, 3), end_mono_ns=3400, start=(500, 500, 1700000000000000000))


def order():
    """Late releases within and beyond 100 us, ties, and clocks that are interpolated."""
    d = Definitions(0)
    d.stack(1, [("native", 0, 0x1000, True)])
    hz = 2  # ticks a nanosecond
    a = Chunk(1, 0, 0)
    b = Chunk(2, 10, 5)
    c = Chunk(3, 20, 10)
    releases = []
    for i in range(300):
        t = 1000 + i * 1000
        address = 0x10000 + 64 * i
        a.alloc(address, i + 1, 1, t)
        b.alloc(address, 1000 + i, 1, t + (100 if i % 3 else 0))
        # At the same tick, a little late, later than 100 us, within it though far, or never.
        late_by = {0: 0 if i % 3 == 0 else 150, 1: 250000, 2: 199000, 3: 200, 4: 200}.get(i % 7)
        if late_by is not None:
            releases.append((t + late_by, address))
    for t, address in sorted(releases):
        c.free(address, t)
    late = Chunk(1, 600000, 300100, sequence=1, seal=True)
    late.free(0x10000, 700000)
    return trace([d, a, b, c, late], ticks_hz=hz * 1000000000, pid=100)


def killed():
    """The file after a SIGKILL: an event cut short, a slot that was claimed and never written, a
    definition without its commit, no end; and the losses of a full disk and a budget."""
    d = Definitions(0)
    d.stack(1, [("native", 0, 0x1000, True)])
    d.record(STACK, varint(2) + varint(0) + varint(0) + varint(1) + varint(4) + svarint(0x2000),
             committed=0)
    a = Chunk(1, 0, 0)
    a.alloc(0x1000, 100, 1, 10)
    a.extended(NOTICE, 1, 1 << 31, ticks=20)
    a.alloc(0x2000, 100, 2, 30)
    a.body += bytes([1, 0x80])
    b = Chunk(2, 5, 5)
    b.alloc(0x3000, 100, 1, 15)
    b.override["committed"] = SLOT
    beyond = Chunk(3, 5, 5, size=1 << 20)
    beyond.alloc(0x4000, 100, 1, 25)
    cut = beyond.encode()[:SLOT]
    return trace([d, a, bytes(SLOT), b, bytes(SLOT), cut], dropped=(3, 0, 1, 0, 1000),
                 dropped_bytes=50000,
                 flags=3, pid=200)


def forked():
    a = Chunk(1, 0, 0)
    for i in range(50):
        a.free(0x1000 + 16 * i, 10 + i)
        a.alloc(0x1000 + 16 * i, 8, 0, 10 + i)
    return trace([a], flags=4, pid=201, ppid=200, start=(0, 0, 1700000001000000000))


def supervisor():
    a = Chunk(1, 0, 0)
    a.levels(LEVEL_OF, [200], [(1, 1 << 20), (6, 0)], ticks=100)
    a.extended(CHILD_END, 200, 2, 9, 1, ticks=2000000000)
    return trace([a], mode=2, pid=199, end=(1, 137))


def spaces():
    """Version 1.1: spaces beside the host's, each kind of event and each flag once, and attempts
    that failed at three levels."""
    d = Definitions(0)
    for id, text in enumerate(("cuMemAlloc_v2", "cudaMalloc", "torch", "cuMemCreate", "cuMemMap",
                               "cuMemRelease",
                               "cuMemUnmap", "cuCtxCreate_v2", "cuMemAllocAsync",
                               "cuGraphAddMemAllocNode",
                               "cuMemHostRegister_v2", "cuMemAllocManaged", "cuMemFree_v2"), 1):
        d.string(id, text)
    names = ("cuda:0", "torch:0", "pool:0", "graph:0", "managed", "pinned", "foreign", "va",
             "cuda:1")
    for id, name in enumerate(names, 1):
        d.space(id, name, 1 if name in ("torch:0", "pool:0", "graph:0") else 0)
    cuda, torch, pool, graph, managed, pinned, foreign, va, second = range(1, 10)
    d.code(1, 0x30B, 10, "Server.answer", "/srv/serve.py", bytes([0x80, 0]))
    d.stack(1, [("native", 0, 0x1000, True), ("python", 1, 0)])
    d.stack(2, [("native", 0, 0x2000, True)])
    d.info("cuda.driver", "/usr/lib/libcuda.so.1")
    d.info("torch.blocks", "recorded")
    a, b = Chunk(1, 1000, seal=True), Chunk(2, 1010)
    a.levels(SPACE_CALL, [cuda, 8, 0x55, 0, 0, 1], [(96, 900 << 20), (97, 1 << 30)], ticks=1100,
             after=(0,))
    a.levels(LEVEL, [cuda], [(96, 900 << 20), (97, 1 << 30), (98, 10 << 20)], ticks=1110)
    a.extended(SPACE_ALLOC, cuda, 1, 0x7F0000000000, 20 << 20, 1, 0, 0x55, 0, 2, 0, ticks=1200)
    a.extended(SPACE_ALLOC, torch, 3, 0x7F0000000000, 2 << 20, 1, 0x99, 0, 0, 0, 0, ticks=1210)
    a.levels(LEVEL, [torch], [(99, 20 << 20), (100, 2 << 20)], ticks=1220)
    a.extended(SPACE_FREE, torch, 3, 0x7F0000000000, 0x99, 0, 0, ticks=1230)
    a.extended(SPACE_ALLOC, cuda, 4, 0x1001, 2 << 20, 2, 0, 0x55, 1, 0, 0, ticks=1300)
    a.extended(SPACE_ALLOC, cuda, 4, 0x1001, 0, 2, 0, 0x55, 1 | 2, 0, 0, ticks=1310)
    a.extended(SPACE_ALLOC, va, 4, 0x700000000000, 1 << 30, 2, 0, 0, 0, 0, 0, ticks=1320)
    a.extended(SPACE_MAP, 5, 0x700000000000, 2 << 20, 0, 0x1001, 2, ticks=1330)
    a.extended(SPACE_FREE, 0, 6, 0x1001, 0, 1, 0, ticks=1340)
    a.extended(SPACE_UNMAP, 7, 0x700000000000, 2 << 20, ticks=1350)
    a.extended(SPACE_UNUNMAP, 0x700000000000, 2 << 20, ticks=1360)
    a.extended(SPACE_ALLOC, pool, 9, 0x7F1000000000, 1 << 20, 1, 0x77, 0x66, 4, 2, 0, ticks=1400)
    a.levels(SPACE_CALL, [pool, 0, 0x66, 0, 0, 0], [(99, 32 << 20), (100, 1 << 20)], ticks=1410,
             after=(0,))
    a.extended(SPACE_ALLOC, graph, 10, 0x7F2000000000, 1 << 20, 1, 0, 0x44, 8, 0, 0, ticks=1420)
    a.extended(SPACE_CLEAR, graph, 10, 4, 0x44, 0, ticks=1430)
    a.extended(SPACE_ALLOC, pinned, 11, 0x7F3000000000, 1 << 16, 1, 0, 0x55, 32, 0, 0, ticks=1440)
    a.extended(SPACE_ALLOC, managed, 12, 0x7F4000000000, 1 << 20, 1, 0, 0x55, 0, 0, 0, ticks=1450)
    a.extended(SPACE_ALLOC, foreign, 1, 0x7F5000000000, 1 << 20, 1, 0, 0x55, 0, 0, 0, ticks=1460)
    a.extended(SPACE_ALLOC, cuda, 1, 0x1002, 0, 1, 0, 0x55, 1 | 64, 0, 0, ticks=1470)
    a.extended(SPACE_ALLOC, cuda, 1, 0x1003, 4096, 1, 0, 0x55, 1 | 16, 0, 0, ticks=1480)
    a.extended(SPACE_FREE, 0, 13, 0x7F4000000000, 0, 0, 2, ticks=1490)
    a.extended(SPACE_UNFREE, 0, 0x7F4000000000, 0, ticks=1495)
    device = [(96, 10 << 20), (97, 1 << 30)]
    a.levels(FAILED, [cuda, 0, 2, 2, 40 << 20, 0, 0, 1], device, ticks=1500, after=(1, 2, 5, 0))
    a.levels(FAILED, [cuda, 0, 2, 2, 41 << 20, 0, 0, 1], [], ticks=1510, after=(0, 2, 5, 1))
    a.levels(FAILED, [torch, 0, 3, 2, 39 << 20, 0, 0, 1], [(99, 20 << 20), (100, 0)], ticks=1520,
             after=(0, 3, 5, 0))
    a.levels(FAILED, [pinned, 0, 2, 2, 1 << 40, 0, 0, 2], [(1, 1 << 20)], ticks=1600,
             after=(11, 0, 6, 2))
    # of the host: nothing follows
    a.levels(FAILED, [0, 0, 1, 12, 1 << 40, 0, 0, 2], [], ticks=1610)
    a.extended(EXIT, 1, 1, ticks=3000)
    # Another thread takes at once a block that this one released; its clock is a little behind.
    b.extended(SPACE_ALLOC, second, 1, 0x7F6000000000, 1 << 20, 2, 0, 0, 0, 0, 0, ticks=1400)
    b.extended(SPACE_FREE, 0, 13, 0x7F0000000000, 0, 0, 0, ticks=1525)
    b.extended(SPACE_ALLOC, cuda, 1, 0x7F0000000000, 1 << 20, 2, 0, 0x55, 0, 0, 7, ticks=1525)
    b.levels(SPACE_CALL, [second, 8, 0x56, 1, 2, 2], [(101, 1 << 30), (96, 1 << 29), (97, 1 << 30)],
             ticks=1530,
             after=(2,))
    b.extended(SPACE_CLEAR, second, 13, 2, 0, 0, ticks=1540)
    b.extended(SPACE_CLEAR, cuda, 13, 1, 0x55, 0, ticks=1550)
    b.extended(SPACE_CLEAR, pool, 13, 3, 0x66, 0, ticks=1560)
    return trace([d, a, b], minor=1, end=(1, 1), end_mono_ns=3000, flags=10)


def devices():
    """Version 1.1: a device seen from outside; the host's levels as before."""
    d = Definitions(0)
    d.space(1, "gpu:0")
    d.space(2, "gpu:1")
    d.info("gpu.0.uuid", "GPU-00000000-0000-0000-0000-000000000000")
    d.info("gpu.0.name", "Simulated GPU")
    a = Chunk(1, 0, 0)
    a.levels(LEVEL_OF, [4711], [(1, 1 << 20)], ticks=100)  # as 1.0 wrote it
    a.levels(LEVEL_OF, [4711], [(1, 2 << 20)], ticks=200, after=(0,))
    a.levels(LEVEL_OF, [4711], [(102, 300 << 20), (103, 50)], ticks=300, after=(1,))
    a.levels(LEVEL_OF, [4712], [(102, 100 << 20), (103, 50)], ticks=310, after=(1,))
    a.levels(LEVEL, [1], [(96, 600 << 20), (97, 1 << 30), (103, 50)], ticks=320)
    a.levels(LEVEL, [2], [(96, 1 << 30), (97, 1 << 30), (103, 50)], ticks=330)
    a.levels(LEVEL_OF, [4712], [(102, 0), (103, 50)], ticks=400, after=(1,))
    a.levels(LEVEL, [1], [(96, 700 << 20), (97, 1 << 30), (103, 50)], ticks=410)
    a.extended(CHILD_END, 4711, 1, 1, 1, ticks=5000)
    return trace([d, a], minor=1, mode=2, pid=4700, end=(1, 1))


def marks():
    """Version 1.2: each mark once, and tasks that interleave, move and end; keys that are used
    again."""
    d = Definitions(0)
    for id, text in enumerate(("/chat", "loading", "forward", "torch", "tokens"), 1):
        d.string(id, text)
    d.code(1, 0x30B, 10, "Server.answer", "/srv/serve.py", bytes([0x80, 0]))
    d.stack(1, [("native", 0, 0x1000, True), ("python", 1, 0)])
    a, b = Chunk(1, 1000, seal=True), Chunk(2, 1010)
    first, second, third = 0x7F0000001000, 0x7F0000002000, 0x7F0000003000
    begin, end, point, enter, leave = range(1, 6)
    a.alloc(0x1000, 10, 1, 1100)  # of none
    a.extended(MARK, begin, 7, 2, 1, 1, 0, ticks=1110)
    a.extended(MARK, end, 7, 0, 1, 0, 0, ticks=1120)
    a.extended(TASK, first, ticks=1200)
    a.extended(MARK, begin, 1 << 48, 1, 0, 1, 0, ticks=1210)
    a.alloc(0x2000, 20, 1, 1220)
    a.extended(TASK, second, ticks=1230)
    a.extended(MARK, begin, 42, 1, 0, 1, 0, ticks=1240)
    a.alloc(0x3000, 30, 1, 1250)
    a.extended(TASK, first, ticks=1260)
    a.alloc(0x2040, 21, 1, 1270)
    a.free(0x3000, 1275)
    a.unfree(0x3000, 1276)
    a.extended(MARK, leave, 1 << 48, 0, 0, 1, 0, ticks=1280)
    a.extended(MARK, begin, 3, 3, 2, 1, 4, ticks=1290)
    a.extended(MARK, end, 3, 0, 2, 1, 4, ticks=1300)
    a.extended(MARK, point, 0, 5, 4, 1, 4, ticks=1310)
    a.extended(TASK_END, second, ticks=1400)  # 42 has not ended
    a.extended(TASK, second, ticks=1410)  # another one
    a.alloc(0x4000, 40, 1, 1420, api=3)
    a.extended(TASK_END, 0x7F0000009000, ticks=1430)  # of none that was seen
    a.side(1425, ALLOC, 0x4100, 24, 1, 0)
    b.extended(MARK, enter, 1 << 48, 0, 0, 1, 0, ticks=1225)
    b.alloc(0x5000, 50, 1, 1226)
    b.extended(TASK, first, ticks=1500)  # went on in another thread
    b.alloc(0x5040, 51, 1, 1510)
    b.extended(TASK_END, first, ticks=1600)
    b.free(0x5040, 1610)  # still of the one that ended
    b.extended(TASK, first, ticks=1620)
    b.alloc(0x5080, 52, 1, 1630)
    b.extended(TASK, 0, ticks=1640)
    b.alloc(0x50C0, 53, 1, 1650)
    a.extended(TASK, third, ticks=1700)
    b.extended(TASK_END, third, ticks=1800)  # at the same tick: the end comes first
    a.extended(TASK, third, ticks=1800)
    a.alloc(0x6000, 60, 1, 1810)
    later = Chunk(1, 1900, sequence=1)
    later.alloc(0x6040, 61, 1, 1910)  # the task goes on in the next chunk
    s = Chunk(0, 900, kind=SHARED, tid=0)
    s.extended(SHARED_THREAD, 3, 1003, ticks=2000)
    s.extended(TASK, first, ticks=2010)
    s.extended(SHARED_THREAD, 4, 1004, ticks=2020)
    s.alloc(0x7000, 70, 1, 2030)  # has none of its own
    s.extended(SHARED_THREAD, 3, 1003, ticks=2040)
    s.alloc(0x7040, 71, 1, 2050)
    s.extended(MARK, end, 1 << 48, 0, 0, 0, 0, 99, ticks=2060)  # and a field of a newer version
    return trace([d, a, b, later, s], minor=2, end=(1, 0), end_mono_ns=3000)


def arenas():
    """Version 1.3: an interpreter's arenas, while they grow and when one more is refused."""
    d = Definitions(0)
    d.string(1, "python3")
    d.stack(1, [("native", 0, 0x1000, True)])
    a = Chunk(1, 1000)
    for i in range(4):
        a.extended(MAP, 0x7F0000000000 + (i << 20), 1 << 20, 3, 8, 0, 0, 0, 0, 1, ticks=1100 + i)
    a.levels(LEVEL, [0], [(1, 6 << 20), (72, 4 << 20), (73, 3 << 20), (74, 512 << 10)], ticks=1200)
    a.levels(FAILED, [0, 8, 1, 12, 1 << 20, 0, 0, 1],
             [(72, 4 << 20), (73, 1 << 20), (74, 3 << 20), (128, 64 << 20)], ticks=1300)
    return trace([d, a], minor=3, end=(1, 1), end_mono_ns=3000, flags=10)


def sampled():
    """Mode sampled, then full for a while, then paused: version 2.1."""
    d = Definitions(0)
    d.stack(1, [("native", 0, 0x1000, True)])
    d.stack(2, [("native", 0, 0x2000, True)])
    d.info("sampled.every", "524288")
    d.info("sampled.exact_from", "1048576")
    a, b = Chunk(1, 1000, seal=True), Chunk(2, 1010)
    a.extended(SAMPLED_ALLOC, 0x7F1000000010, 16, 524288, 1, 0, ticks=1100)
    a.extended(SAMPLED_ALLOC, 0x7F1000000100, 100000, 524288, 2, 1, ticks=1200)
    a.extended(SAMPLED_ALLOC, 0x7F1000100000, 1048575, 524288, 1, 2, ticks=1300)
    a.alloc(0x7F2000000010, 1 << 20, 2, 1400)
    a.free(0x7F1000000010, 1500)
    a.extended(SAMPLED_ALLOC, 0x7F1000000010, 24, 524288, 1, 2, ticks=1600)  # its realloc
    a.free(0x7F2000000010, 1700, realloc=True)
    a.alloc(0x7F3000000010, 2 << 20, 2, 1800, api=2)
    a.extended(NOTICE, 2, 1, 65536, 1048576, ticks=1900)
    a.extended(SAMPLED_ALLOC, 0x7F1000000203, 40, 65536, 1, 0, ticks=2000)
    a.extended(FREE_WIDE, 0x7F1000000203, 0, ticks=2100)
    a.extended(NOTICE, 2, 0, 0, 0, ticks=2200)
    a.alloc(0x7F1000000300, 40, 1, 2300)
    a.free(0x7F1000000400, 2400)  # was not chosen
    a.extended(NOTICE, 3, 1, ticks=2500)
    a.free(0x7F1000000300, 2600)
    a.extended(NOTICE, 3, 0, ticks=2700)
    a.extended(NOTICE, 4, 1234, ticks=2700)
    b.free(0x7F1000000100, 1550)
    b.unfree(0x7F1000000100, 1560)
    b.free(0x7F1000100000, 1570)
    return trace([d, a, b], major=2, minor=1, mode=1)


def expected():
    """Version 2.0: stacks and sizes that are not written because they followed the last one
    before."""
    d = Definitions(0)
    for i in range(1, 8):
        d.stack(i, [("native", 0, 0x1000 * i, True)])
    d.stack(8, [("native", 0, 0x2000, True)])  # stack 2 again
    d.stack(988, [("native", 0, 0x9000, True)])  # its position in the table is that of stack 1
    a, at = Chunk(1, 1000, seal=True), iter(range(0x7F0000000000, 0x7F0000100000, 64))
    ticks = iter(range(1100, 9000, 10))
    def alloc(chunk, size, stack, expect=False, api=0):
        chunk.alloc(next(at), size, stack, next(ticks), api, expect)
    alloc(a, 0, 0, expect=True)  # at the start: no stack, no bytes
    for size, stack in ((16, 1), (32, 2), (48, 3)):
        alloc(a, size, stack)
    alloc(a, 16, 1)
    alloc(a, 32, 2, expect=True)  # as it was
    alloc(a, 64, 3, expect=True, api=1)  # of another size
    alloc(a, 16, 1, expect=True)
    alloc(a, 32, 2, expect=True, api=2)
    alloc(a, 64, 3, expect=True)
    alloc(a, 64, 3)  # the same stack, and then expected to follow itself
    alloc(a, 64, 3, expect=True)
    alloc(a, 24, 988)  # this and 1 share a position
    alloc(a, 40, 5)
    alloc(a, 16, 1)
    alloc(a, 40, 5, expect=True)
    alloc(a, 1 << 33, 6)
    alloc(a, 8, 5)
    alloc(a, 1 << 33, 6, expect=True)
    alloc(a, 8, 8)
    alloc(a, 8, 7)
    alloc(a, 8, 8)
    alloc(a, 8, 7, expect=True)
    a.free(0x7F0000000040, 9000)
    b = Chunk(1, 10000, sequence=1)  # knows nothing of the one before
    ticks = iter(range(10100, 19000, 10))
    for size, stack in ((16, 1), (32, 2), (16, 1)):
        alloc(b, size, stack)
    alloc(b, 32, 2, expect=True)
    return trace([d, a, b], major=2, end=(1, 0), end_mono_ns=20000)


def lengths():
    """Version 2.2: the length of a request's input, which grows."""
    d = Definitions(0)
    d.string(1, "/chat")
    d.stack(1, [("native", 0, 0x1000, True)])
    begin, end, length, request = 1, 2, 6, 1 << 48
    a, b = Chunk(1, 1000, seal=True), Chunk(2, 1010)
    a.extended(MARK, begin, request, 1, 0, 1, 0, ticks=1100)
    a.extended(MARK, length, request, 0, 0, 1, 0, 4096, ticks=1110)
    a.alloc(0x1000, 4096, 1, 1120)
    # and a field of a newer version
    b.extended(MARK, length, request, 0, 0, 0, 0, 1 << 40, 7, ticks=1130)
    a.extended(MARK, end, request, 0, 0, 1, 0, ticks=1140)
    return trace([d, a, b], major=2, minor=2, end=(1, 0), end_mono_ns=3000)


def checkpoint():
    """Version 2.4: old chunks were replaced twice, and a third replacement was under way at the
    kill. One that was to become a hole is still there."""
    d = Definitions(0)
    for i in range(1, 5):
        d.stack(i, [("native", 0, 0x1000 * i, True)])
    d.info("sampled.every", "524288")
    d.info("sampled.exact_from", "1048576")
    d.string(1, "cuMemAlloc")
    d.string(2, "cudaMalloc")
    d.space(1, "cuda:0")
    old = part(1, 0, 10)  # the one before: not read any more
    old.extended(SHARED_THREAD, 1, 1001)
    old.alloc(0x7F0000001000, 77, 1, 20)
    # the live blocks at 5000, of three threads, of which the third has ended; in two parts
    a, b = part(2, 0, 10, 2 * SLOT), part(2, 1, 10)
    a.extended(SHARED_THREAD, 1, 1001)
    a.alloc(0x7F1000000010, 1 << 20, 2, 100)
    a.extended(SAMPLED_ALLOC, 0x7F1000200020, 100, 524288, 1, 0, ticks=110)
    a.extended(SHARED_THREAD, 3, 1003)
    a.extended(MAP, 0x7F2000000000, 1 << 21, 3, 8, 0, 0, 0, 0, 3, ticks=120)
    a.extended(SAMPLED_ALLOC, 0x7F1000300000, 4000, 524288, 3, 1, ticks=130)
    a.extended(SHARED_THREAD, 2, 1002)
    a.extended(SPACE_ALLOC, 1, 1, 0x7F4000000000, 1 << 26, 4, 0, 0x55AA, 0, 2, 0, ticks=140)
    a.extended(WENT, 0, 3, 4000, 40 << 20, 65536, 100, 900, ticks=150)
    a.extended(CHECKPOINT, 10, 3 << 20, 70000, 1 << 30, 69990, (1 << 30) - (5 << 20), 9 << 20, 0,
               ticks=2000)
    b.extended(SHARED_THREAD, 2, 1002)
    b.levels(LEVEL, [0], [(1, 6 << 20)], ticks=2500)
    b.extended(TASK, 0x5000, ticks=2600)  # is still at it
    b.extended(WENT, 0, 3, 7, 700000, 131072, 70, 80, ticks=2650)
    b.extended(WENT, 0, 99, 1, 5, 5, 1, 1, ticks=2660)  # a stack without a definition
    b.extended(SAMPLED_ALLOC, 0x7F1000400008, 64, 65536, 4, 2, ticks=2700)
    b.extended(SHARED_THREAD, 1, 1001)
    b.extended(SAMPLED_ALLOC, 0x7F1000500010, 128, 65536, 4, 0, ticks=5000)  # at that very moment
    b.extended(CHECKPOINT, 2000, 2 << 20, 40000, 1 << 29, 39000, 1 << 28, 12 << 20, 3, 99,
               ticks=5000)
    # a thread's chunk over that moment: deltas of events that no longer count, a signal handler's
    c = Chunk(1, 4000, sequence=7, seal=True)
    c.alloc(0x7F1000000010, 1 << 20, 2, 4100)
    c.free(0x7F1000300000, 4200)
    c.extended(TASK, 0x6000, ticks=4300)
    c.extended(CHECKPOINT, 10, 1, 1, 1, 1, 1, 1, 1, ticks=4400)  # not here
    c.extended(WENT, 0, 3, 7, 700000, 131072, 70, 80, ticks=4500)  # nor this
    c.side(5000, ALLOC, 0x7F1000600000, 8, 1)
    c.side(5001, ALLOC, 0x7F1000600040, 16, 1)
    c.alloc(0x7F1000000800, 1 << 21, 1, 5000)
    c.alloc(0x7F1000000810, 1 << 21, 1, 5010)
    c.alloc(0x7F1000000820, 1 << 22, 2, 5020)
    c.free(0x7F1000500010, 5030)
    c.extended(FREE_WIDE, 0x7F1000400008, 0, ticks=5040)
    e = Chunk(2, 5100, sequence=4)
    e.alloc(0x7F1000700000, 1 << 20, 3, 5110)  # for the task that began before
    e.extended(SPACE_FREE, 0, 1, 0x7F4000000000, 0, 0, 2, ticks=5120)
    e.free(0x7F1000999000, 5130)  # was released while the checkpoint was written, or never seen
    e.extended(NOTICE, 7, 9 << 20, 1048576, 2097152, ticks=5140)
    e.extended(NOTICE, 8, 1234, 4194304, 2097152, ticks=5150)
    s = Chunk(0, 4900, kind=SHARED, tid=0)
    s.extended(SHARED_THREAD, 4, 1004, ticks=4910)
    s.alloc(0x7F1000800000, 1 << 20, 1, 4920)
    s.alloc(0x7F1000900000, 1 << 20, 1, 5200)
    new = part(3, 0, 10)
    new.extended(SHARED_THREAD, 1, 1001)
    new.alloc(0x7F0000002000, 78, 1, 20)
    torn = part(3, 1, 10, seal=False)
    torn.override = {"committed": SLOT}
    return trace([d, new, a, bytes(SLOT), old, c, b, e, s, torn], major=2, minor=4, mode=1,
                 start=(10, 10, 1700000000000000000),
                 checkpoints=((1, 1, 3000), (2, 2, 5000)), paused_bytes=12345, in_brief=(7, 89))


def unwhole():
    """Version 2.4: the newest checkpoint is not whole, so the one before it counts."""
    d = Definitions(0)
    d.stack(1, [("native", 0, 0x1000, True)])
    one, two = part(4, 0), part(5, 1)
    one.extended(SHARED_THREAD, 1, 1001)
    one.alloc(0x7F0000001000, 77, 1, 20)
    two.extended(SHARED_THREAD, 1, 1001)
    two.alloc(0x7F0000002000, 78, 1, 30)
    a = Chunk(1, 900, sequence=1, seal=True)
    a.alloc(0x7F0000003000, 79, 1, 1000)
    a.alloc(0x7F0000004000, 80, 1, 1001)
    a.free(0x7F0000001000, 3001)
    return trace([d, one, two, a], major=2, minor=4, mode=1,
                 checkpoints=((4, 1, 1000), (5, 2, 3000)))


def lost():
    """Version 2.4: no checkpoint is whole."""
    d = Definitions(0)
    d.stack(1, [("native", 0, 0x1000, True)])
    one = part(1, 0, seal=False)
    one.extended(SHARED_THREAD, 1, 1001)
    one.alloc(0x7F0000001000, 77, 1, 20)
    a = Chunk(1, 900, sequence=1, seal=True)
    a.alloc(0x7F0000003000, 79, 1, 1000)
    a.free(0x7F0000001000, 3001)
    return trace([d, one, a], major=2, minor=4, mode=1, checkpoints=((1, 1, 2000), (0, 0, 0)))


def work():
    """The input of v2/packed: blocks of few sizes that come and go, so that the chunk is split, and
    all kinds of its events."""
    d = Definitions(0)
    for i in range(1, 8):
        d.stack(i, [("native", 0, 0x1000 * i, True)])
    state, live, spare, ticks = 12345, {}, {}, 1000
    a = Chunk(1, 1000, seal=True)
    for n in range(4000):
        state = (state * 1103515245 + 12345) % (1 << 31)
        slot, what, ticks = (state >> 8) % 50, (state >> 16) % 60, ticks + (
            state >> 20) % 40 + 1000 * (n % 97 == 0)
        size = 24 + slot % 5 * 1000 + (1 << 33) * (slot == 49)
        if what == 0:
            a.levels(LEVEL, (0,), ((1, state),), ticks=ticks)
        elif slot in live:
            a.free(live[slot], ticks, realloc=what % 7 == 1)
            if what == 1:
                a.unfree(live[slot], ticks)
            else:
                spare[slot] = live.pop(slot)
        else:
            live[slot] = spare.get(slot, 0x7F0000000000 + 64 * (state % 100000))
            stack = 1 + slot % 7
            place = (a.last_stack * 2654435761 & 0xFFFFFFFF) >> 22
            a.alloc(live[slot], size, stack, ticks, api=what % 4,
                    expect=a.expected.get(place, (0, 0))[0] == stack)
    a.side(ticks, 1, 0x7E0000000000, 77, 3)
    return trace([d, a], major=2, end=(1, 0), end_mono_ns=1 << 30)


def volumes():
    """Version 2.6: files of a tmpfs are mapped, of one that is seen later, and space is refused
    there."""
    d = Definitions(0)
    d.string(1, "/dev/shm/psm_1")
    d.string(2, "/data/model.bin")
    d.stack(1, [("native", 0, 0x1000, True)])
    there = [(112, 64 << 20), (113, 60 << 20), (114, 39)]
    a = Chunk(1, 1000, seal=True)
    a.levels(MAP, [0x7F2000000000, 1 << 20, 3, 8, 16, 3, 1, 0, 1], there + [(115, 7), (116, 4096)],
             ticks=1100)
    # on a disk: nothing follows
    a.extended(MAP, 0x7F3000000000, 1 << 20, 1, 8, 16, 1, 2, 0, 1, ticks=1200)
    a.levels(MAP, [0x7F4000000000, 1 << 20, 3, 8, 16, 3, 1, 0, 1], [], ticks=1300)
    a.levels(LEVEL, [0], [(1, 5 << 20)] + there, ticks=1400)
    a.levels(FAILED, [0, 15, 1, 28, 64 << 20, 0, 0, 1], there, ticks=1500)
    return trace([d, a], major=2, minor=6)


def unrecorded():
    """Version 2.8: started programs without recordings; one entry is being filled, one start
    failed, one reason is a newer one, one path fills its entry, and some starts found none."""
    d = Definitions(0)
    d.stack(1, [("native", 0, 0x1000, True)])
    a = Chunk(1, 1000, seal=True)
    a.alloc(0x7F0000001000, 77, 1, 1100)
    a.free(0x7F0000001000, 1200)
    return trace([d, a], major=2, minor=8, unrecorded=12, programs=(
        (1, 2, b"/usr/local/bin/musl"), (255, 0, b""), (5, 0, b"/failed"),
        (5, 1, b"/sbin/ldconfig"), (99, 1, b"/new"),
        (8, 3, b"/" + 118 * b"x"), (3, 1, b"/caf\xc3\xa9 bar"),
        *((w, 1, b"p") for w in (2, 4, 6, 7)))[:16])


def early():
    """Releases of a just handed-over block with the earlier time: by up to a microsecond, by more,
    of realloc's block, and so early that they took the block that lived there before."""
    d = Definitions(0)
    d.stack(1, [("native", 0, 0x1000, True)])
    a = Chunk(1, 1000)
    b = Chunk(2, 1000)
    for i in range(200):
        t, address = 2000 + 20000 * i, 0x10000 + 64 * i
        by = (1, 40, 1000, 1001, 40)[i % 5]
        if i % 3 == 0:  # two blocks, one after the other: the second is released before the first
            a.alloc(address, 48, 1, t)
            a.free(address, t + 9000)
        a.alloc(address, 32, 1, t + 10000, api=2 if i % 5 == 4 else 0)
        b.free(address, t + 10000 - by)
        if i % 2:
            b.alloc(address, 16, 1, t + 10000 + 8000)
    return trace([d, a, b], major=2, minor=6)


def rights():
    """A process that gave up its user, its root directory and, by a filter, all other rights:
    version 2.7."""
    d = Definitions(0)
    d.stack(1, [("native", 0, 0x1000, True)])
    a = Chunk(1, 1000)
    for i in range(50):
        a.alloc(0x10000 + 64 * i, 48, 1, 2000 + 100 * i)
    # a hole at the end, which is no part of it
    return trace([d, a], major=2, minor=7, dropped=[0] * 8 + [321], dropped_bytes=654321,
                 rights={1: 3000, 4: 4000, 6: 6500},
                 stopped=(7000, 3, 6)) + bytes(4 * SLOT)


def given_back():
    """A process that gave up rights and was recorded to its end, in its user's directory."""
    a = Chunk(1, 1000)
    a.alloc(0x10000, 48, 0, 2000)
    return trace([a], pid=4712, ppid=4711, major=2, minor=7, rights={1: 1500})


# v1/packed is `whyoom pack` of v1/spaces, v2/packed that of work().
GOLDENS = {"v1": {
    "arenas/4711.0.whyoom": arenas,
    "marks/4711.0.whyoom": marks,
    "spaces/4711.0.whyoom": spaces, "spaces/run.whyoom": devices,
    "kinds/4711.0.whyoom": every_kind, "order/100.0.whyoom": order, "killed/200.0.whyoom": killed,
    "killed/201.0.whyoom": forked, "killed/run.whyoom": supervisor,
}, "v2": {
    "expected/4711.0.whyoom": expected, "sampled/4711.0.whyoom": sampled,
    "lengths/4711.0.whyoom": lengths, "volumes/4711.0.whyoom": volumes,
    "rights/4711.0.whyoom": rights, "rights/uid.65534/4712.0.whyoom": given_back,
    "early/4711.0.whyoom": early, "unrecorded/4711.0.whyoom": unrecorded,
    "checkpoint/4711.0.whyoom": checkpoint, "unwhole/4711.0.whyoom": unwhole,
    "unwhole/4712.0.whyoom": lost,
}}


def make(folder):
    for name, build in GOLDENS[os.path.basename(folder)].items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(build())


if __name__ == "__main__":
    make(sys.argv[1])
