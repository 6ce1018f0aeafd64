#!/usr/bin/env python3
"""Real programs under the preload: what they print, make and return is what they print, make and
return without it. Each case runs a program both ways and compares; the trace must be sound, too."""

import hashlib
import os
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "preload"))
from harness import *  # noqa: E402

CASES = {}
SOURCE = os.environ.get("WHYOOM_TEST_SOURCE", os.path.join(HERE, "..", ".."))


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def need(name):
    path = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    check(path, "%s is not installed", name)
    return path


def recorded(r, least=1):
    """Traces are whole, and nothing but what a budget leaves out is missing. Their number."""
    for pid, image, path in r.files:
        t = read.Trace(path)
        lost = {DROPS[i]: n for i, n in enumerate(t.dropped[:8]) if n and DROPS[i] not in ("budget", "vfork")}
        check(not t.torn and not lost, "%s: torn %d, dropped %s", os.path.basename(path), t.torn, lost)
    check(len(r.files) >= least, "%d traces", len(r.files))
    return len(r.files)


def both(job, argv, least=1, shown=lambda s: s, **kw):
    """The same program without and with the preload: same status and output."""
    plain = job.run(argv, preload=False, rc=None, timeout=400, **kw)
    r = job.run(argv, rc=None, timeout=800, **kw)
    equal(how(r.rc), how(plain.rc), "exit of %s; stderr: %s" % (argv[:3], r.err[-1000:]))
    equal(shown(r.out), shown(plain.out), "stdout of %s" % argv[:3])
    equal(shown(r.err), shown(plain.err), "stderr of %s" % argv[:3])
    recorded(r, least)
    return plain, r


def sha(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


@case
def redis(job):
    """redis-server under the preload: every command of its benchmark, a save in a forked child, a shutdown."""
    server, bench, cli = need("redis-server"), need("redis-benchmark"), need("redis-cli")
    answers = []
    note = ""
    for preload in (False, True):
        sock = job.path("redis%d" % preload)
        p, directory, _ = job.start([server, "--port", "0", "--unixsocket", sock, "--save", "", "--dir", job.top,
                                     "--dbfilename", "dump%d.rdb" % preload, "--io-threads", "2"],
                                    preload=preload, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + 20
            while not os.path.exists(sock):
                check(p.poll() is None and time.monotonic() < deadline, "redis-server does not start")
                time.sleep(0.05)
            out = subprocess.run([bench, "-s", sock, "-n", "20000", "-c", "20", "-P", "4", "-q"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=CLEAN_ENV, timeout=300)
            text = words(out.stdout).replace("\r", "\n")
            done = sorted(set(re.findall(r"^([A-Z_]+[^:\n]*): [\d.]+ requests per second", text, re.M)))
            check(out.returncode == 0 and len(done) >= 15, "redis-benchmark: %d, %s", out.returncode, text[-500:])
            check("rror" not in text, "redis-benchmark: %s", [x for x in text.splitlines() if "rror" in x][:3])
            script = "".join("SET k%d %s\nAPPEND k%d tail\nLPUSH l%d %d\n" % (i, "v" * (i % 700), i, i % 7, i)
                             for i in range(2000))
            script += "DBSIZE\nSTRLEN k1999\nLRANGE l3 0 5\nSAVE\nDEBUG DIGEST\nFLUSHALL\nDBSIZE\nMEMORY USAGE nothing\n"
            subprocess.run([cli, "-s", sock, "FLUSHALL"], env=CLEAN_ENV, stdout=subprocess.DEVNULL, check=True)
            said = subprocess.run([cli, "-s", sock], input=script.encode(), stdout=subprocess.PIPE, env=CLEAN_ENV,
                                  timeout=60).stdout
            subprocess.run([cli, "-s", sock, "BGSAVE"], env=CLEAN_ENV, stdout=subprocess.DEVNULL, check=True)
            for _ in range(100):
                info = subprocess.run([cli, "-s", sock, "INFO", "persistence"], env=CLEAN_ENV, stdout=subprocess.PIPE).stdout
                if b"rdb_bgsave_in_progress:0" in info:
                    break
                time.sleep(0.05)
            check(b"rdb_last_bgsave_status:ok" in info, "BGSAVE failed")
            subprocess.run([cli, "-s", sock, "SHUTDOWN", "NOSAVE"], env=CLEAN_ENV, stdout=subprocess.DEVNULL)
            log = words(p.communicate(timeout=30)[0])
            equal(p.returncode, 0, "exit of redis-server: %s" % log[-400:])
            answers.append((done, said))
        finally:
            if p.poll() is None:
                p.kill()
                p.communicate()
        if preload:
            r = Result(0, "", "", directory, "", p.pid, 0)
            recorded(r)
            note = "%d commands, traces of %d MiB" % (len(done), sum(os.path.getsize(f[2]) for f in r.files) >> 20)
    equal(answers[1][0], answers[0][0], "commands that succeeded")
    equal(answers[1][1], answers[0][1], "answers")
    return note


@case
def gcc(job):
    """A C++ file compiled twice is the same object; an error is the same error."""
    gxx = need("g++")
    source = job.path("big.cc")
    with open(source, "w") as f:
        f.write(CXX_SOURCE)
    outs = []
    for preload in (False, True):
        out = job.path("out.o")
        r = job.run([gxx, "-O2", "-g", "-std=c++17", "-pipe", "-c", source, "-o", out], preload=preload, timeout=600)
        outs.append((sha(out), r.err, r.out))
        os.unlink(out)
        exe = job.path("a.out")
        job.run([gxx, "-O0", source, "-o", exe], preload=preload, timeout=600)
        outs[-1] += (sha(exe), job.run([exe], preload=preload).out)
    equal(outs[1], outs[0], "objects and programs")
    recorded(r, 2)
    with open(source, "a") as f:
        f.write("int broken() { return undeclared_thing; }\n")
    both(job, [gxx, "-c", source, "-o", job.path("broken.o")])


CXX_SOURCE = r"""
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
template <int N> struct Fib { static constexpr long value = Fib<N - 1>::value + Fib<N - 2>::value; };
template <> struct Fib<0> { static constexpr long value = 0; };
template <> struct Fib<1> { static constexpr long value = 1; };
using V = std::variant<int, std::string, std::vector<int>>;
int main()
{
	std::map<std::string, std::unordered_map<int, V>> m;
	for (int i = 0; i < 100; i++)
		m[std::to_string(i % 10)][i] = i % 2 ? V(i) : V(std::string(static_cast<size_t>(i), 'x'));
	std::regex r("([a-z]+)([0-9]+)");
	std::smatch s;
	std::string text = "abc123";
	std::ostringstream o;
	if (std::regex_match(text, s, r))
		o << s[1] << s[2] << Fib<80>::value;
	std::vector<std::function<int(int)>> f;
	for (int i = 0; i < 50; i++)
		f.push_back([i](int x) { return x + i; });
	int total = 0;
	for (auto &g : f)
		total = g(total);
	std::cout << o.str() << ' ' << total << ' ' << m.size() << '\n';
}
"""


@case
def node(job):
    """V8, its worker threads, buffers, children and promises."""
    script = job.path("program.js")
    with open(script, "w") as f:
        f.write(NODE_PROGRAM)
    plain, r = both(job, [need("node"), "--expose-gc", script])
    check("done" in r.out, "stdout: %s; stderr: %s", r.out[-500:], r.err[-500:])
    both(job, [need("node"), "-e", "process.on('exit', () => console.log('bye')); throw new Error('on purpose')"],
         shown=lambda s: re.sub(r"0x[0-9a-f]+", "0x", s))


NODE_PROGRAM = r"""
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib'), cp = require('child_process');
if (!isMainThread) {
	let map = new Map();
	for (let i = 0; i < 50000; i++) map.set('k' + i, { i, s: 'x'.repeat(i % 50) });
	parentPort.postMessage([workerData, map.size, crypto.createHash('sha256').update('w' + workerData).digest('hex')]);
} else (async () => {
	const results = await Promise.all([1, 2, 3, 4].map(n => new Promise((yes, no) => {
		const w = new Worker(__filename, { workerData: n });
		w.on('message', yes); w.on('error', no);
	})));
	console.log(JSON.stringify(results));
	const data = Buffer.from(Array.from({ length: 200000 }, (_, i) => i & 255));
	const packed = zlib.gzipSync(data, { level: 9 });
	console.log(packed.length, zlib.gunzipSync(packed).equals(data));
	console.log(cp.execFileSync('/bin/echo', ['child']).toString().trim());
	console.log(cp.spawnSync('/bin/sh', ['-c', 'kill -9 $$']).signal);
	let kept = [];
	for (let i = 0; i < 300; i++) { kept.push(Buffer.alloc(100000, i)); if (i % 50 == 0) { kept = []; global.gc(); } }
	const keys = crypto.scryptSync('password', 'salt', 32).toString('hex');
	console.log(keys, JSON.parse(JSON.stringify({ a: [1, 2, { b: kept.length }] })).a[2].b);
	await new Promise(yes => setTimeout(yes, 20));
	console.log('done');
})();
"""


@case
def sqlite(job):
    """A database with an index, built in memory and on disk."""
    script = ("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);\n"
              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<60000) "
              "INSERT INTO t SELECT i, printf('%08d-%s', i*7919 % 60000, hex(i)), i/7.0 FROM n;\n"
              "CREATE INDEX ti ON t(b);\nSELECT count(*), sum(length(b)), round(sum(c), 3) FROM t;\n"
              "SELECT b FROM t ORDER BY b DESC LIMIT 5;\nPRAGMA integrity_check;\n")
    python = "/usr/bin/python3"
    program = "import sqlite3,sys\nd=sqlite3.connect(sys.argv[1])\n" \
              "for s in sys.stdin.read().split(';\\n'):\n    print(d.execute(s).fetchall()) if s else None\n"
    for where in (":memory:", "disk"):
        outs = []
        for preload in (False, True):
            path = where if where == ":memory:" else job.path("db%d" % preload)
            with open(job.path("script"), "w") as f:
                f.write(script)
            r = job.run(["/bin/sh", "-c", "exec %s -c \"$0\" %s < %s" % (python, path, job.path("script")), program],
                        preload=preload, timeout=200)
            outs.append(r.out)
        equal(outs[1], outs[0], "answers")
        check("ok" in outs[1], "integrity: %s", outs[1])


@case
def git(job):
    """A repository with history: the same objects; fsck, gc with its threads."""
    exe = need("git")
    ids = []
    for preload in (False, True):
        top = job.path("repo%d" % preload)
        steps = ("git init -q %s && cd %s && for i in 1 2 3 4 5 6 7 8; do seq $((i * 1000)) > f$i; mkdir -p d$i; "
                 "seq $i 3 5000 > d$i/g; git add . && git commit -q -m c$i; done; git gc -q && git fsck --strict && "
                 "git log --stat --format=%%H | sha1sum && git diff HEAD~5 | sha1sum") % (top, top)
        env = {"GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z", "HOME": job.top,
               "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
        r = job.run(["/bin/sh", "-c", steps], preload=preload, env=env, timeout=300)
        ids.append(r.out)
        check(exe and len(r.out.split()) >= 4, "stdout: %s", r.out)
    equal(ids[1], ids[0], "ids of all objects")
    return "%d traces" % recorded(r)


@case
def shell(job):
    """Pipelines, subshells, traps, job control and exit statuses of dash and bash."""
    script = ("trap 'echo trapped' USR1; kill -USR1 $$; (exit 3); echo $?; seq 1000 | sort -rn | head -3; "
              "for i in 1 2 3; do (sleep 0.0$i; exit $i) & done; wait; echo $?; sh -c 'kill -TERM $$'; echo $?; "
              "x=$(cat /proc/self/status | grep -c .); [ $x -gt 10 ] && echo many; ls /nowhere 2>/dev/null || echo none; "
              "exec 3>&1; echo three >&3; ulimit -n 64; ls /proc/self/fd | wc -l; exec false")
    for sh in ("/bin/sh", "/bin/bash"):
        both(job, [sh, "-c", script], least=0)


def cpython(job, module):
    """One module of CPython's own tests: each test ends as it does without us."""
    python = "/usr/bin/python3"
    have = subprocess.run([python, "-c", "import test.%s" % module], env=CLEAN_ENV, stderr=subprocess.DEVNULL)
    check(have.returncode == 0, "CPython's own tests (libpython3-testsuite) are not installed")

    def results(preload, only=()):
        argv = [python, "-m", "test", "-v", "-u", "none", module]
        for name in only:
            argv += ["-m", name]
        r = job.run(argv, preload=preload, env={"WHYOOM_QUIET": "1"}, rc=None, timeout=800,
                    stderr=subprocess.STDOUT)
        found = {}
        for name, where, state in re.findall(
                r"^(test\w+) \(([\w.]+)\)(?:\n[^\n]*?)?? \.\.\. (?:[^\n]*?)(ok|FAIL|ERROR|skipped|expected failure)\b",
                r.out, re.M):
            found[where if where.endswith(name) else where + "." + name] = state
        return r, found

    plain_run, plain = results(False)
    run, mine = results(True)
    check(len(plain) > 20, "only %d results: %s", len(plain), plain_run.out[-600:])
    bad = sorted(k for k in plain if mine.get(k) != plain[k] and plain[k] in ("ok", "skipped", "expected failure"))
    if bad:  # timing strikes both ways: what fails must do so twice
        names = sorted({k.rsplit(".", 1)[1] for k in bad})
        again = results(True, names)[1]
        bad = [k for k in bad if again.get(k) != plain[k]]
    check(not bad, "%s", ["%s: %s, not %s" % (k, mine.get(k), plain[k]) for k in bad][:10])
    if run.rc != plain_run.rc and mine == plain:
        raise Failed("exit %s, not %s: %s" % (how(run.rc), how(plain_run.rc), run.out[-800:]))
    for pid, image, path in run.files:
        try:
            t = read.Trace(path)
        except (OSError, read.Refused):
            continue
        check(not t.torn, "%s: torn", path)
    ok = sum(v == "ok" for v in mine.values())
    return "%d ok, %d skipped, %d failed both ways, %d traces, %.0f s and %.0f s" % (
        ok, sum(v == "skipped" for v in mine.values()), len(mine) - ok - sum(v == "skipped" for v in mine.values()),
        len(run.files), plain_run.seconds, run.seconds)


for _m in ("test_threading", "test_subprocess", "test_multiprocessing_fork"):
    CASES["python-" + _m[5:].replace("_", "-")] = lambda job, m=_m: cpython(job, m)


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
