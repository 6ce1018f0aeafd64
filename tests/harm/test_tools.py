#!/usr/bin/env python3
"""Everyday programs: shells, git, archives, databases. The same files, words and ends."""

import hashlib
import os
import sys

import harness
from harness import check, need, output, version

BASH = r"""
set -u
declare -A seen
work() {
	local i
	for ((i = 0; i < 300; i++)); do
		seen["k$((i % 37))"]+="$i,"
		text=$(printf '%05d' "$i" | tr 0-9 a-j)
		case $text in *b*) printf '%s ' "${text//a/A}" ;; esac
	done
	echo "${#seen[@]} ${seen[k3]}"
}
work
trap 'echo caught USR1' USR1
kill -USR1 $$
( exit 9 ); echo "subshell $?"
sh -c 'kill -TERM $$'; echo "killed $?"
seq 1 20000 | sort -R --random-source=/dev/zero | sort -n | md5sum
exec 5< <(for i in 1 2 3; do echo "from a process substitution $i"; done); cat <&5
coproc rev; echo abcdef >&"${COPROC[1]}"; exec {COPROC[1]}>&-; cat <&"${COPROC[0]}"
find "$TMPDIR" -maxdepth 1 -name 'no such' -o -type p | wc -l
awk 'BEGIN { for (i = 0; i < 50000; i++) a[i % 1000] = a[i % 1000] "x"; n = 0; for (k in a) n += length(a[k]); print n }'
ulimit -v 200000; bash -c 'x=$(head -c 400000000 /dev/zero | tr "\0" x); echo ${#x}' 2>&1 | sed 's/.*xrealloc/xrealloc/; s/[0-9]\{4,\}/N/g' | head -1
exit 42
"""

SQLITE = r"""
import hashlib, sqlite3, sys, threading
path = sys.argv[1]
db = sqlite3.connect(path)
db.execute("create table t (id integer primary key, name text, n real, b blob)")
for i in range(20000):
    db.execute("insert into t values (?,?,?,?)", (i, "name %d" % (i * 7919 % 10007), i / 3, bytes([i % 256]) * (i % 500)))
db.execute("create index by_name on t (name, n)")
db.commit()
out = []
def ask(k):
    c = sqlite3.connect(path)
    out.append((k, c.execute("select count(*), sum(n), max(name), total(length(b)) from t where id % 5 = ?", (k,)).fetchall()))
    c.close()
threads = [threading.Thread(target=ask, args=(k,)) for k in range(5)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(out))
print(db.execute("select a.name, count(*) from t a join t b on a.name = b.name group by 1 order by 2 desc, 1 limit 5").fetchall())
db.execute("delete from t where id % 3 = 0"); db.commit(); db.execute("vacuum")
print(db.execute("pragma integrity_check").fetchall())
try:
    db.execute("select * from nothing")
except sqlite3.Error as e:
    print(type(e).__name__, e)
db.close()
print(hashlib.sha256(open(path, "rb").read()).hexdigest())
sys.exit(6)
"""


def bash(job):
    shell = need("bash")
    job.about("bash " + version([shell, "--version"], r"version ([\d.]+)"),
              "jobs, signals, pipes, a memory limit")
    got = job.both(lambda side: output(side, side.run([shell, "-c", BASH])))
    check(got[0] == "status 42", "bash ends with %s: %s" % (got[0], got[2]))
    check(b"killed 143" in got[1] and b"fedcba" in got[1], "it printed only %s" % got[1])
    return "%d traces" % len(job.preload.traces(least=1000, processes=5))


def git(job):
    program = need("git")
    job.about("git " + version([program, "--version"], r"version ([\d.]+)"),
              "commits, merges, packs, clones, to the bit")
    when = "2020-01-01T00:00:00Z"
    env = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}

    def session(side):
        here = os.path.join(job.top, "repository")
        os.makedirs(here)

        def say(*words, rc=0, data=None):
            return output(side,
                          side.run([program, "-c", "user.name=N", "-c", "user.email=n@example.org",
                                    "-c", "init.defaultBranch=main", "-c", "gc.auto=0",
                                    "-c", "protocol.file.allow=always", *words],
                                   cwd=here, env=env, rc=rc, data=data))

        said = [say("init", "-q")]
        for k in range(12):
            for i in range(25):
                with open(os.path.join(here, "f%d.txt" % i), "w") as f:
                    f.write("".join("%d %d\n" % (i, (j * (k + 1)) % (97 + i))
                                    for j in range(200 + k * i)))
            said.append(say("add", "-A"))
            said.append(say("commit", "-q", "-m", "round %d" % k))
            if k == 5:
                said.append(say("branch", "side"))
        said.append(say("checkout", "-q", "side"))
        with open(os.path.join(here, "f3.txt"), "w") as f:
            f.write("conflict\n")
        said.append(say("commit", "-q", "-a", "-m", "on the side"))
        said.append(say("merge", "main", rc=1))
        said.append(say("merge", "--abort"))
        said.append(say("rebase", "-q", "-X", "theirs", "main"))
        said.append(say("log", "--stat", "-p", "--all", "--graph"))
        said.append(say("grep", "-c", " 96$"))
        said.append(say("blame", "f7.txt"))
        said.append(say("-c", "pack.threads=1", "repack", "-q", "-a", "-d", "-f"))
        said.append(say("-c", "pack.threads=2", "fsck", "--full", "--strict"))
        said.append(say("clone", "-q", "--no-local", ".", "copy"))
        said.append(say("-C", "copy", "rev-parse", "HEAD", "main~3^{tree}", "nothing", rc=128))
        packs = os.path.join(here, ".git/objects/pack")
        digests = []
        for n in sorted(os.listdir(packs)):
            if n.endswith(".pack"):
                with open(os.path.join(packs, n), "rb") as f:
                    digests.append((n, hashlib.sha256(f.read()).hexdigest()))
        os.rename(here, side.path("repository"))
        return said, digests

    job.both(session)
    return "%d traces" % len(job.preload.traces(least=5000, processes=40))


def archives(job):
    """Compressors with threads, and a pipe of them."""
    for p in ("xz", "zstd", "gzip", "tar", "sha256sum"):
        need(p)
    job.about("tar, gzip, xz %s, zstd %s" % (version(["xz", "--version"], r"([\d.]+)"),
                                             version(["zstd", "--version"], r"v([\d.]+)")),
              "archives, with threads, to the bit")
    script = r"""
set -e
cd "$TMPDIR"
seq 1 400000 >data
xz -T2 -3 --block-size=500000 -k data
zstd -q -T2 -7 data
gzip -k data
xz -dc data.xz | cmp - data
zstd -dcq data.zst | cmp - data
tar -c --sort=name --mtime=@0 --owner=0 --group=0 data data.xz | zstd -q -19 -T2 | sha256sum
sha256sum data.xz data.zst
xz -t data.zst
"""
    got = job.both(lambda side: output(side, side.run([need("bash"), "-c", script])))
    check(got[0] == "status 1" and b"data.zst" in got[2], "ends with %s" % (got,))
    return "%d traces" % len(job.preload.traces(least=100, processes=4))


def sqlite(job):
    job.about("SQLite "
              + version([harness.PYTHON, "-c", "import sqlite3; print(sqlite3.sqlite_version)"],
                        r"([\d.]+)"),
              "tables, indexes, readers in threads, vacuum: the file to the bit")
    got = job.both(lambda side: output(side,
                                       side.run([harness.PYTHON, "-c", SQLITE, side.path("t.db")])))
    check(got[0] == "status 6", "ends with %s: %s" % (got[0], got[2]))
    return "%d events" % max(p["events"] for p in job.preload.traces(least=20000))


FFMPEG = r"""
set -e
cd "$TMPDIR"
exact="-flags +bitexact -fflags +bitexact"
run() { ffmpeg -nostdin -hide_banner -loglevel error "$@"; }
run -f lavfi -i testsrc2=size=320x240:rate=25 -f lavfi -i sine=frequency=440 -t 4 -c:v libx264 -preset fast -threads 3 -c:a aac $exact a.mp4
run -i a.mp4 -filter_complex "[0:v]scale=160:120,split[a][b];[b]hflip,negate[c];[a][c]hstack,drawgrid=w=20" -c:v libvpx-vp9 -threads 4 -row-mt 1 -t 1 -an $exact b.webm
run -i a.mp4 -vf "hue=h=t*30,gblur,eq=contrast=1.5" -f framemd5 frames
run -i a.mp4 -f md5 audio -map 0:a
run -i b.webm -c:v ffv1 -slices 12 -threads 2 $exact c.mkv
sha256sum a.mp4 b.webm frames audio c.mkv
ffprobe -v error -show_entries stream=codec_name,width,nb_read_frames -count_frames -of csv a.mp4
run -i nothing.mp4 -f null - || exit 9
"""


def ffmpeg(job):
    """Encoders and filters with threads, much of it in assembly that keeps no frame pointers."""
    program = need("ffmpeg")
    job.about("ffmpeg " + version([program, "-version"], r"version (\d[\d.]+)"),
              "x264, VP9, AAC and filters in threads, to the bit")
    got = job.both(lambda side: output(side, side.run([need("bash"), "-c", FFMPEG])))
    check(got[0] == "status 9" and b"c.mkv" in got[1], "it ends with %s" % (got,))
    found = job.preload.traces(least=1000, processes=5)
    return "%d traces, %d events" % (len(found), sum(p["events"] for p in found))


CASES = {"bash": bash, "git": git, "archives": archives, "sqlite": sqlite, "ffmpeg": ffmpeg}

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
