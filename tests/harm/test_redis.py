#!/usr/bin/env python3
"""Redis: the same data set, replies and ends without the preload and with it, under its own
benchmark, over forks (BGSAVE, BGREWRITEAOF), a restart from its files, and SIGTERM."""

import re
import signal
import subprocess
import sys
import time

import harness
from harness import Failed, check, need

FILL = b"""
local n = tonumber(ARGV[1])
for i = 1, n do
  redis.call('SET', 'string:' .. i, string.rep('x' .. i, i % 200))
  redis.call('HSET', 'hash:' .. (i % 300), 'field' .. i, i * 7)
  redis.call('RPUSH', 'list:' .. (i % 50), 'item' .. i)
  redis.call('ZADD', 'sorted:' .. (i % 20), (i * 7919) % 10007, 'member' .. i)
  redis.call('SADD', 'set:' .. (i % 10), i, 's' .. i)
  redis.call('XADD', 'stream', i .. '-1', 'k', 'v' .. i)
  if i % 3 == 0 then redis.call('DEL', 'string:' .. (i - 2)) end
  if i % 5 == 0 then redis.call('APPEND', 'string:' .. i, string.rep('y', 5000)) end
end
return redis.call('DBSIZE')
"""


class Server:
    def __init__(self, side, *more):
        self.side, self.socket = side, side.path("s")
        argv = [need("redis-server"), "--port", "0", "--unixsocket", self.socket, "--dir", side.top,
                "--save", "", "--appendonly", "yes", "--enable-debug-command", "yes", "--daemonize",
                "no"]
        self.log = open(side.path("server.log"), "ab")
        self.p = side.start(argv + list(more), stdout=self.log, stderr=subprocess.STDOUT)
        limit = time.monotonic() + 60
        while self.say("PING", must=False) != b"PONG\n":
            check(self.p.poll() is None and time.monotonic() < limit, "the server does not start: "
                  + self.tail())
            time.sleep(0.05)

    def tail(self):
        with open(self.side.path("server.log"), errors="replace") as f:
            return f.read()[-1500:]

    def say(self, *words, data=None, must=True):
        rc, out, err = self.side.run([need("redis-cli"), "-s", self.socket, *words], data=data)
        if must and (rc or err):
            raise Failed("%s: %s: %s: %s %s" % (self.side.name, words[0], harness.how(rc), err,
                                                self.tail()))
        return out

    def wait_until(self, field, value):
        limit = time.monotonic() + 60
        while ("%s:%s" % (field, value)).encode() not in self.say("INFO", "persistence"):
            check(time.monotonic() < limit, "%s does not become %s: %s"
                  % (field, value, self.tail()))
            time.sleep(0.05)

    def benchmark(self, *words):
        """Names of the tests that ran; how fast is nobody's business here."""
        rc, out, err = self.side.run([need("redis-benchmark"), "-s", self.socket, "--csv", *words])
        return rc, re.findall(rb'^"([^"]+)",', out, re.M), err

    def end(self):
        self.p.send_signal(signal.SIGTERM)
        try:
            rc = self.p.wait(60)
        except subprocess.TimeoutExpired:
            self.p.kill()
            raise Failed("%s: the server does not end: %s" % (self.side.name, self.tail()))
        finally:
            self.log.close()
        return rc


def session(side):
    got = {}
    s = Server(side)
    try:
        got["allocator"] = re.search(rb"mem_allocator:(\S+)", s.say("INFO", "memory"))[1]
        got["fill"] = s.say("EVAL", FILL.decode(), "0", "4000")
        got["digest"] = s.say("DEBUG", "DIGEST")
        got["bgsave"] = s.say("BGSAVE")
        s.wait_until("rdb_bgsave_in_progress", 0)
        s.wait_until("rdb_last_bgsave_status", "ok")
        got["rewrite"] = s.say("BGREWRITEAOF")
        s.wait_until("aof_rewrite_scheduled", 0)
        s.wait_until("aof_rewrite_in_progress", 0)
        s.wait_until("aof_last_bgrewrite_status", "ok")
        got["reload"] = s.say("DEBUG", "RELOAD")
        got["digest again"] = s.say("DEBUG", "DIGEST")
        check(got["digest"] == got["digest again"], "a reload changed the data")
        lines = b"".join(b"SET pipe:%d %d\nGET pipe:%d\nINCR pipe:n\n" % (i, i * i, i)
                         for i in range(500))
        got["pipe"] = s.say(data=lines)
        got["errors"] = [s.say(*w, must=False) for w in (["INCR", "stream"], ["NOSUCH"],
                                                         ["SETRANGE", "a", "-1", "x"])]
        got["benchmark"] = s.benchmark("-n", "20000", "-c", "20", "-q", "-P", "8", "-t",
                                       "set,get,incr,lpush,rpush,lpop,sadd,hset,spop,"
                                       "zadd,lrange_100,mset")
        check(got["benchmark"][0] == 0 and len(got["benchmark"][1]) >= 12,
              "benchmark: %s" % (got["benchmark"],))
        got["large"] = s.benchmark("-n", "300", "-d", "300000", "-t", "set,get")
        s.say("FLUSHALL")
        got["fill again"] = s.say("EVAL", FILL.decode(), "0", "1000")
        got["last digest"] = s.say("DEBUG", "DIGEST")
        got["purge"] = s.say("MEMORY", "PURGE")
    finally:
        got["end"] = harness.how(s.end())
    s = Server(side, "--io-threads", "2", "--io-threads-do-reads", "yes")
    try:
        got["restart"] = s.say("DEBUG", "DIGEST")
        got["threads"] = s.benchmark("-n", "1500", "-c", "4", "--threads", "2", "-t", "set,get")
        check(got["restart"] == got["last digest"], "the restart lost data")
    finally:
        got["end again"] = harness.how(s.end())
    return got


def server(job):
    need("redis-server", "redis-cli", "redis-benchmark")
    job.about("Redis " + harness.version(["redis-server", "--version"], r"v=([\d.]+)"),
              "a data set through saves, a rewrite, a reload and a restart; its benchmark; I/O "
              "threads")
    got = job.both(session)
    check(got["end"] == "status 0", "the server ends with " + got["end"])
    # The server uses jemalloc, by its plain names and by its own.
    found = job.preload.traces(least=100000, processes=6)
    return "%s, %d traces, %d events" % (got["allocator"].decode(), len(found),
                                         sum(p["events"] for p in found))


if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, {"server": server}))
