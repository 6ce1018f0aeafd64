#!/usr/bin/env python3
"""PostgreSQL: a fork for each connection under pgbench, parallel workers, queries that are compiled
while they run, refused memory, a backend that is killed, and a shutdown."""

import glob
import os
import signal
import subprocess
import sys

import harness
from harness import Skip, check, output, version

QUERIES = [
    "SELECT count(*), sum(abalance), sum(length(filler)) FROM pgbench_accounts",
    "SELECT tid, bid, tbalance FROM pgbench_tellers ORDER BY tid",
    "SELECT count(*), sum(delta), min(tid), max(aid) FROM pgbench_history",
    # parallel workers: dynamic shared memory, and processes of their own
    "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = "
        "0; "
    "SELECT a.bid, count(*), sum(hashtext(b.filler || a.aid)::bigint) FROM pgbench_accounts a "
    "JOIN pgbench_accounts b ON b.aid = a.aid + 1 GROUP BY 1 ORDER BY 1",
    "SET jit_above_cost = 0; SET jit_optimize_above_cost = 0; SET jit_inline_above_cost = 0; "
    "SELECT sum(aid * 2 + bid), avg(aid)::numeric(20, 6) FROM pgbench_accounts WHERE aid % 7 = 3",
    "SELECT md5(string_agg(md5(i::text), '' ORDER BY i % 1000, i)) FROM generate_series(1, 100000) "
        "i",
    "SELECT count(*) FROM (SELECT regexp_split_to_table(repeat('ab cd ', 5000), ' ') x) t",
    "SELECT length(repeat('x', 1 << 30) || repeat('y', 1 << 30))",
    "WITH RECURSIVE f(n) AS (SELECT f.n FROM nothing f) SELECT * FROM f",
    "CREATE FUNCTION deep(i int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN deep(i + 1); END'",
    "SELECT deep(0)",  # its own check of the stack's depth
    "DO $$ BEGIN RAISE division_by_zero; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'caught %', "
        "SQLERRM; END $$",
]


def programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"),
                   key=lambda p: int(p.split("/")[4]))
    if not found:
        raise Skip("there is no PostgreSQL (package postgresql)")
    return os.path.dirname(found[-1])


class Server:
    def __init__(self, side, where):
        self.side, self.where = side, where
        self.log = side.path("server.log")
        with open(self.log, "wb") as log:
            self.p = side.start([where + "/postgres", "-D", side.path("data"), "-k", side.top, "-c",
                                 "listen_addresses=",
                                 "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c",
                                 "max_stack_depth=1MB"],
                                stdout=log, stderr=subprocess.STDOUT)
        harness.wait_for(lambda: self.p.poll() is not None or b"1\n" in self.say("SELECT 1")[1],
                         self.tail)
        check(self.p.poll() is None, "it does not start: " + self.tail())

    def tail(self):
        with open(self.log, errors="replace") as f:
            return f.read()[-1500:]

    def client(self, program, *words):
        return self.side.run([os.path.join(self.where, program), "-h", self.side.top, "-U",
                              "postgres", *words])

    def say(self, query):
        return output(self.side, self.client("psql", "-X", "-q", "-A", "-t", "-d", "postgres", "-c",
                                             query))


def transactions(result):
    """What pgbench counted; how fast it was is nobody's business here."""
    rc, out, err = result
    return rc, [x for x in out.splitlines() if b"transaction" in x and b"actually" in x
                or b"failed" in x], err


def session(side, where):
    side.run([where + "/initdb", "-D", side.path("data"), "-U", "postgres", "-A", "trust", "-N",
              "--locale=C.UTF-8"], rc=0)
    got = {}
    s = Server(side, where)
    try:
        check(s.client("pgbench", "-i", "-q", "-s", "2", "postgres")[0] == 0,
              "pgbench -i: " + s.tail())
        got["a fork for each"] = transactions(s.client(
            "pgbench", "-C", "-c", "4", "-j", "2", "-t", "60", "--random-seed=7", "postgres"))
        got["kept connections"] = transactions(s.client(
            "pgbench", "-M", "prepared", "-c", "6", "-j", "3", "-t", "300", "--random-seed=8", "-S",
            "postgres"))
        got["queries"] = [s.say(q) for q in QUERIES]
        # The server ends all its children and starts anew when one of them dies.
        p = side.start([os.path.join(where, "psql"), "-h", side.top, "-U", "postgres", "-X", "-d",
                        "postgres"],
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, bufsize=1)
        p.stdin.write("\\pset tuples_only on\n\\pset format unaligned\nSELECT pg_backend_pid();\n")
        p.stdin.flush()
        line = p.stdout.readline()
        while not line.strip().isdigit():
            check(line, "psql says nothing")
            line = p.stdout.readline()
        os.kill(int(line), signal.SIGKILL)
        p.communicate("SELECT 2;\n", timeout=60)
        got["psql after the kill"] = p.returncode
        harness.wait_for(lambda: b"1\n" in s.say("SELECT 1")[1], s.tail)
        got["after the restart"] = s.say(QUERIES[0])
    finally:
        got["end"] = harness.stop(s.p, signal.SIGINT, s.tail)
    with open(s.log) as f:
        text = f.read()
    got["log"] = {w: w in text for w in ("was terminated by signal 9",
                                         "all server processes terminated", "PANIC",
                                         "signal 11", "signal 6", "stuck",
                                         "database system is shut down")}
    return got


def server(job):
    where = programs()
    job.for_user("postgres")
    job.about("PostgreSQL " + version([where + "/postgres", "--version"], r"([\d.]+)"),
              "pgbench with a connection (a fork) for each transaction, parallel and compiled "
              "queries, a killed backend")
    got = job.both(lambda side: session(side, where))
    check(got["end"] == "status 0" and got["log"]["was terminated by signal 9"],
          "it ends with %s" % got)
    check(b"240/240" in got["a fork for each"][1][0], "pgbench: %s" % (got["a fork for each"],))
    check(b"depth limit" in got["queries"][10][2], "no limit: %s" % (got["queries"][10],))
    found = job.preload.traces(least=20000, processes=30)
    return "%d traces, %d events" % (len(found), sum(p["events"] for p in found))


if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, {"server": server}))
