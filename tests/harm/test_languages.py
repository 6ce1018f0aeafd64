#!/usr/bin/env python3
"""Programs of other makers: Go's and Rust's, static ones, musl's, ones with other allocators, ones
that gain rights, and ones under Valgrind and the sanitizers. Where nothing can be recorded, the
program runs as it would, and `whyoom run` says so before it starts it."""

import os
import pwd
import re
import shutil
import subprocess
import sys

import harness
from harness import Skip, check, need, output, version

GO = r"""
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
)
%s
func nothing() (s string) {
	defer func() { s = fmt.Sprint(recover()) }()
	var p *[10]int
	return fmt.Sprint(p[3])
}

func deep(n int) int {
	if n == 0 {
		return 0
	}
	var pad [100]int
	pad[n %% 100] = n
	return deep(n-1) + pad[n %% 100]
}

func main() {
	debug.SetGCPercent(20)
	var wg sync.WaitGroup
	sums := make([]int, 2000)
	for i := range sums {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			kept := [][]byte{}
			for j := 0; j < 50; j++ {
				kept = append(kept, make([]byte, (i*j)%%3000))
				sums[i] += len(kept[j]) + foreign(j)
			}
		}(i)
	}
	wg.Wait()
	total := 0
	for _, s := range sums {
		total += s
	}
	fmt.Println("sums", total, nothing(), deep(100000))
	for i := 0; i < 8; i++ {
		wg.Add(1)
		go func() { runtime.LockOSThread(); foreign(i); wg.Done() }() // the thread ends with it
	}
	wg.Wait()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for i := 0; i < 100000; i++ {
		fmt.Fprintln(z, i*7919%%1009)
	}
	z.Close()
	fmt.Printf("zip %%x\n", sha256.Sum256(b.Bytes()))
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	for i := 0; i < 50; i++ {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(c, "hello %%d", i)
		c.(*net.TCPConn).CloseWrite()
		back, _ := io.ReadAll(c)
		total += len(back)
	}
	fmt.Println("echoed", total)
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGUSR1)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println("caught", <-caught)
	out, err := exec.Command("/bin/sh", "-c", "echo child; exit 4").CombinedOutput()
	fmt.Printf("%%s%%v\n", out, err)
	os.Exit(9)
}
"""
CGO = """
/*
#include <stdlib.h>
#include <string.h>
static int foreign_c(int n) { char *p = malloc(n + 100); memset(p, n, n + 100); int r = p[n / 2] & 127; free(p); return r; }
*/
import "C"

func foreign(n int) int { return int(C.foreign_c(C.int(n))) }
"""
PURE = "\nfunc foreign(n int) int { return n & 127 }\n"

RUST = r"""
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

struct Dropped(Arc<Mutex<usize>>);
impl Drop for Dropped { fn drop(&mut self) { *self.0.lock().unwrap() += 1; } }

fn work(seed: usize) -> usize {
    let mut m: HashMap<String, Vec<u8>> = HashMap::new();
    let mut b = BTreeMap::new();
    for i in 0..3000 {
        m.entry(format!("k{}", (i * 7919 + seed) % 211)).or_default().extend(vec![(i % 256) as u8; i % 90]);
        b.insert((i * 31 + seed) % 1009, Box::new([i; 8]));
    }
    m.values().map(|v| v.len()).sum::<usize>() + b.values().map(|x| x[3]).sum::<usize>()
}

fn main() {
    let drops = Arc::new(Mutex::new(0));
    let (tx, rx) = mpsc::channel();
    let threads: Vec<_> = (0..40).map(|i| { let tx = tx.clone(); thread::spawn(move || tx.send((i, work(i))).unwrap()) }).collect();
    for t in threads { t.join().unwrap(); }
    drop(tx);
    let mut all: Vec<_> = rx.iter().collect();
    all.sort();
    println!("{:?}", all);
    let d = drops.clone();
    std::panic::set_hook(Box::new(|_| {}));
    let r = thread::spawn(move || { let _kept: Vec<_> = (0..500).map(|_| Dropped(d.clone())).collect(); let v: Vec<u8> = vec![]; v[work(1)] }).join();
    println!("panicked {} dropped {}", r.is_err(), drops.lock().unwrap());
    let mut huge: Vec<u8> = Vec::new();
    println!("reserve {:?}", huge.try_reserve(1 << 50).is_err());
    let l = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = l.local_addr().unwrap();
    let server = thread::spawn(move || { for c in l.incoming().take(20) { let mut c = c.unwrap(); let mut s = String::new(); c.read_to_string(&mut s).unwrap(); c.write_all(s.to_uppercase().as_bytes()).unwrap(); } });
    let mut n = 0;
    for i in 0..20 {
        let mut c = std::net::TcpStream::connect(to).unwrap();
        write!(c, "hello {}", i).unwrap();
        c.shutdown(std::net::Shutdown::Write).unwrap();
        let mut s = String::new();
        c.read_to_string(&mut s).unwrap();
        n += s.len();
    }
    server.join().unwrap();
    let out = std::process::Command::new("/bin/sh").args(["-c", "echo child; exit 4"]).output().unwrap();
    println!("echoed {} {:?} {}", n, String::from_utf8(out.stdout), out.status);
    std::process::exit(11);
}
"""

# What any C program may do; it prints what depends on each step.
PLAIN = r"""
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	char *kept[200] = {0};
	uintptr_t sum = 0;

	for (int i = 0; i < 20000; i++) {
		int k = (seed = seed * 1103515245 + 12345) % 200;
		size_t n = seed >> 20;
		void *aligned;

		if (i % 5 == 0 && kept[k] && (kept[k] = realloc(kept[k], n + 1)) == NULL)
			abort();
		else if (i % 5) {
			free(kept[k]);
			kept[k] = i % 3 ? malloc(n + 1) : calloc(1, n + 1);
		}
		if (!kept[k])
			continue;
		kept[k][n] = (char)i;
		sum += (unsigned char)kept[k][n] + n;
		if (i % 100 == 0 && !posix_memalign(&aligned, 64, n + 1)) {
			sum += (uintptr_t)aligned % 64;
			free(aligned);
		}
	}
	for (int k = 0; k < 200; k++)
		free(kept[k]);
	return (void *)sum;
}

int main(int argc, char **argv)
{
	pthread_t t[8];
	int status;

	for (uintptr_t i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < 8; i++) {
		void *sum;

		pthread_join(t[i], &sum);
		printf("%d %lu\n", i, (unsigned long)(uintptr_t)sum);
	}
	fflush(stdout);
	for (int i = 0; i < 10; i++)
		if (!fork()) {
			work((void *)(uintptr_t)i);
			_exit(i);
		}
	for (int sum = 0, i = 0; i < 10 && wait(&status) > 0; i++)
		printf("%s", (sum += WEXITSTATUS(status), i == 9) ? (sum == 45 ? "children\n" : "lost\n") : "");
	errno = 0;
	volatile size_t huge = (size_t)-1 / 2 - (size_t)argc;
	char *p = malloc(huge);
	printf("huge %d %d %u\n", p != NULL, errno, (unsigned)(geteuid() - getuid()));
	free(p);
	return argc > 1 ? atoi(argv[1]) : 13;
}
"""


def built(job, argv):
    """The program argv builds as job.top/program, with the compilers' own homes and caches."""
    env = dict(os.environ, GOCACHE=os.path.join(job.top, "gocache"), GOFLAGS="-mod=mod",
               GO111MODULE="off",
               CCACHE_DISABLE="1")
    path = os.path.join(job.top, "program")
    p = subprocess.run(argv + ["-o", path] if argv[1:2] != ["build"] else argv[:2] + ["-o", path]
                       + argv[2:],
                       env=env, cwd=job.top, capture_output=True, text=True, timeout=600)
    if p.returncode:
        raise harness.Failed("%s: %s" % (argv, p.stderr[-1500:]))
    return path


def both(job, argv, status, env=None):
    got = job.both(lambda side: output(side, side.run(argv, env=env)))
    check(got[0] == "status %d" % status, "the program ends with %s" % (got,))
    return got


def warned(job, argv, status, words):
    """`whyoom run` says before it starts it that nothing can be recorded, and ends as the program
    does."""
    plain = output(job.plain, job.plain.run(argv))
    rc, out, err = job.plain.run([harness.WHYOOM, "run", "-o", job.plain.path("by-run"), "--",
                                  *argv])
    check((harness.how(rc), out) == plain[:2] and rc == status, "under whyoom run: status %s, %r"
          % (rc, out[-300:]))
    check(re.search(words, err.decode()), "whyoom run says %r, not %r" % (err, words))


def go(job, what):
    compiler = need("go")
    job.about(version([compiler, "version"], r"(go[\d.]+ )").replace("go", "Go ").strip(),
              "goroutines, faults, children; " + what)
    path = job.source("main.go", GO % (CGO if what == "cgo" else PURE))
    os.environ["CGO_ENABLED"] = "1" if what == "cgo" else "0"
    p = built(job, [compiler, "build", path])
    both(job, [p], 9)
    if what == "static":
        harness.records_nothing()
        warned(job, [p], 9, "statically linked")
        return None
    return "%d events" % max(x["events"] for x in job.preload.traces(least=20000))


def rust(job):
    # a manager of several compilers looks for them in a home that is not there under test
    compiler = "/usr/bin/rustc" if os.path.exists("/usr/bin/rustc") else need("rustc")
    job.about("Rust " + version([compiler, "--version"], r"rustc ([\d.]+)"),
              "threads, a panic that unwinds, sockets, children")
    p = built(job, [compiler, "-O", job.source("main.rs", RUST)])
    both(job, [p], 11)
    return "%d events" % max(x["events"] for x in job.preload.traces(least=20000))


def c_program(job, more=(), compiler="gcc"):
    return built(job, [need(compiler), "-O1", "-g", "-w", job.source("plain.c", PLAIN), "-pthread",
                       *more])


def static(job):
    harness.records_nothing()
    job.about("a static program", "nothing is recorded; `whyoom run` says so")
    p = c_program(job, ["-static"])
    both(job, [p], 13)
    warned(job, [p], 13, "statically linked")


def musl(job):
    harness.records_nothing()
    need("musl-gcc")
    job.about("musl " + version(["ldd-musl" if shutil.which("ldd-musl")
                                 else "/lib/ld-musl-x86_64.so.1"], r"Version ([\d.]+)"),
              "its loader refuses the library, or the program runs unrecorded; `whyoom run` says "
              "so and leaves it out")
    p = c_program(job, compiler="musl-gcc")
    plain = output(job.plain, job.plain.run([p], rc=13))
    rc, out, err = job.preload.run([p])
    check((rc, out) == (13, plain[1]) or rc == 127 and b"relocating" in err,
          "with LD_PRELOAD: %s %r" % (rc, err[:500]))
    warned(job, [p], 13, "musl")
    return "with LD_PRELOAD by hand, status %d: %s" % (rc, err.decode().splitlines()[0] if err
                                                       else "no complaint")


def setuid(job):
    harness.records_nothing()
    if os.getuid():
        raise Skip("needs root")
    job.about("a setuid program", "started by another user: nothing is recorded, nothing is said")
    with open(c_program(job), "rb") as f:
        data = f.read()
    job.for_user("nobody")
    p = os.path.join(job.top, "gains-rights")
    with open(p, "wb") as f:
        f.write(data)
    os.chmod(p, 0o4755)
    got = both(job, [p], 13)
    nobody = pwd.getpwnam("nobody").pw_uid
    if b" %d\n" % (-nobody % (1 << 32)) not in got[1]:
        raise Skip("setuid has no effect where the test runs")
    check(not os.path.exists(job.preload.trace) and not got[2], "it was recorded, or said %r"
          % got[2])


def allocator_library(name):
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                   "/usr/lib"):
        for file in ("lib%s.so.2" % name, "lib%s.so.4" % name, "lib%s.so.2.0" % name):
            if os.path.exists(os.path.join(folder, file)):
                return os.path.join(folder, file)
    raise Skip("there is no lib%s" % name)


def allocator(job, name):
    """Linked, preloaded after us, and before us."""
    library = allocator_library(name)
    job.about("%s (%s)" % (name.split("_")[0], os.path.basename(os.path.realpath(library))),
              "linked; preloaded before and after")
    p = c_program(job)
    shutil.move(p, p + "-plain")
    linked = c_program(job, ["-Wl,--no-as-needed", library])
    both(job, [linked], 13)
    least = max(x["events"] for x in job.preload.traces(least=100000))
    for order in ("%(other)s", "%(ours)s:%(other)s"), ("%(other)s", "%(other)s:%(ours)s"):
        results = []
        for side, value in zip(job.sides, order):
            env = {"LD_PRELOAD": value % {"other": library, "ours": harness.SHIM}}
            results.append(output(side, side.run([p + "-plain"], env=env)))
        harness.same(results[1], results[0], "preloaded as " + order[1])
        # a program that uses its allocator's operators, and is an interpreter besides
        results = []
        for side, value in zip(job.sides, order):
            env = {"LD_PRELOAD": value % {"other": library, "ours": harness.SHIM},
                   "PYTHONMALLOC": "malloc"}
            results.append(output(side, side.run([harness.PYTHON, "-c", """
import subprocess, threading, json, os
def work(n): seen[n] = len(json.dumps([json.loads(json.dumps({"a": [n] * 50})) for i in range(200)]))
seen = {}
t = [threading.Thread(target=work, args=(n,)) for n in range(20)]
[x.start() for x in t]; [x.join() for x in t]
print(sorted(seen.items()), subprocess.run(["/bin/sh", "-c", "echo child"], capture_output=True).stdout)
os._exit(5)
"""], env=env)))
        harness.same(results[1], results[0], "Python, preloaded as " + order[1])
        check(results[0][0] == "status 5", "Python ends with %s" % (results[0],))
    return "%d events when linked" % least


WRONG = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	char *p = malloc(10), *q = malloc(20);

	printf("%d\n", (int)strlen(strcpy(q, "abc")));
	fflush(stdout);
	free(p);
	if (argc > 1)
		p[3] = 1;
	free(p == q ? p : q);
	return 4;
}
"""


def profiler(job):
    """gperftools' CPU profiler: SIGPROF at 1 kHz, whose handler walks the stack of whoever it
    interrupts, us as well."""
    library = "/usr/lib/%s-linux-gnu/libprofiler.so" % os.uname().machine
    if not os.path.exists(library):
        raise Skip("there is no libprofiler (package libgoogle-perftools-dev)")
    job.about("gperftools' profiler (%s)" % os.path.basename(os.path.realpath(library)),
              "SIGPROF at 1 kHz in threads and children")
    p = c_program(job, ["-Wl,--no-as-needed", library])

    def session(side):
        profile = side.path("profile")
        env = {"CPUPROFILE": profile, "CPUPROFILE_FREQUENCY": "1000"}
        said = [output(side, side.run([p], env=env))[:2] for _ in range(5)]
        return said, os.path.getsize(profile) > 2000  # samples, not only a header
    said, sampled = job.both(session)
    check(said[0][0] == "status 13" and sampled, "it ends with %s, %s" % (said[0], sampled))
    return "%d events" % max(x["events"] for x in job.preload.traces(least=100000))


def without_numbers(text):
    """What a checker says, without addresses, ids of processes and times."""
    return re.sub(r"0x[0-9A-Fa-f]+|\d{2,}", "N", text.decode(errors="replace"))


def valgrind(job):
    program = need("valgrind")
    job.about("Valgrind " + version([program, "--version"], r"valgrind-([\d.]+)"),
              "its checkers find the same errors in the same places")
    plain = c_program(job)
    shutil.move(plain, plain + "-plain")
    wrong = built(job, [need("gcc"), "-O0", "-g", "-w", job.source("wrong.c", WRONG)])

    def session(side):
        got = []
        for tool, argv in (("memcheck", [wrong]), ("memcheck", [wrong, "x"]),
                           ("memcheck", [plain + "-plain"]),
                           ("helgrind", [plain + "-plain"]), ("massif", [wrong])):
            rc, out, err = side.run([program, "-q", "--tool=" + tool, "--error-exitcode=9"
                                     if tool != "massif" else "--massif-out-file=massif",
                                     *argv], timeout=400)
            got.append((harness.how(rc), out, without_numbers(err)))
        return got

    got = job.both(session)
    check([x[0] for x in got] == ["status %d" % x for x in (4, 9, 13, 13, 4)]
          and "free'd" in got[1][2], "it ends with %s" % (got,))


def sanitizers(job):
    """By hand: the same, or refused with a line; `whyoom run` leaves the library out, and says
    so."""
    harness.records_nothing()
    job.about("programs built with sanitizers",
              "they do what they did, unrecorded, or AddressSanitizer's library refuses; "
                                                "`whyoom run` leaves them alone and says so")
    known = []
    path = job.source("wrong.c", WRONG)
    for compiler in ("gcc", "clang"):
        for kind in ("address", "thread", "memory", "undefined", "leak"):
            if not shutil.which(compiler):
                continue
            try:
                p = built(job, [compiler, "-O0", "-g", "-w", "-fsanitize=" + kind, path])
            except harness.Failed:
                continue  # not every compiler has every one
            env = {"ASAN_OPTIONS": "detect_leaks=0", "WHYOOM_QUIET": "1"}
            for more in ([], ["x"]):
                plain = job.plain.run([p, *more], env=env)
                ours = job.preload.run([p, *more], env=env)
                run = job.plain.run([harness.WHYOOM, "run", "-o", job.plain.path("by-run"), "--", p,
                                     *more], env=env)
                where = "%s -fsanitize=%s %s" % (compiler, kind, more)
                harness.same(run[:2], plain[:2], where + " under whyoom run")
                if b"runtime does not come first" in ours[2] and ours[0] == 1:
                    continue
                harness.same(ours[:2], plain[:2], where)
                first = [re.search(r"ERROR: .*?Sanitizer: [\w-]+|WARNING: .*?Sanitizer: [\w-]+|$",
                                   without_numbers(x[2]))[0]
                         for x in (plain, ours)]
                harness.same(first[1], first[0], where + ", what it found")
            known.append(compiler[0] + kind[0])
    if not known:
        raise Skip("no compiler has a sanitizer")
    return " ".join(known)


CASES = {
    "profiler": profiler,
    "valgrind": valgrind,
    "sanitizers": sanitizers,
    "go-cgo": lambda job: go(job, "cgo"),
    "go-static": lambda job: go(job, "static"),
    "rust": rust,
    "static": static,
    "musl": musl,
    "setuid": setuid,
}
for _name in ("jemalloc", "tcmalloc_minimal", "mimalloc"):
    CASES[_name.split("_")[0]] = lambda job, name=_name: allocator(job, name)

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
