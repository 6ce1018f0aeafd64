#!/usr/bin/env python3
"""Interpreters and runtimes with memory managers, collectors, threads and faults of their own, each
with a program of its language; and a browser, whose processes are forked by a zygote and put into
sandboxes."""

import os
import sys
import tempfile

import harness
from harness import check, need, output, version

RUBY = r"""
require 'json'; require 'digest'
h = {}
20000.times { |i| h["k#{i}"] = [i.to_s * 5, {a: i, b: [1, 2, 3]}] }
puts Digest::SHA256.hexdigest(JSON.generate(h))
puts 8.times.map { |t| Thread.new { (0..3000).map { |i| (i * t).to_s }.join.size } }.map(&:value).inspect
r, w = IO.pipe
pid = fork { w.puts (1..10000).map { |x| x * x }.sum; exit!(3) }
Process.wait pid; w.close; puts r.read, $?.exitstatus, `echo child`
GC.start; GC.compact
f = Fiber.new { 100.times { |i| Fiber.yield "x" * i } }
puts 50.times.map { f.resume.size }.sum
def deep(n) = deep(n + 1)
begin; deep(0); rescue SystemStackError => e; puts e.class; end
exit 4
"""
# Its extensions are loaded with RTLD_DEEPBIND; it grows large blocks in place, and ends by its own
# limit.
PHP = r"""<?php
$a = []; for ($i = 0; $i < 200000; $i++) $a["k$i"] = str_repeat("x", $i % 50);
ksort($a); echo md5(serialize($a)), "\n";
function numbers($n) { for ($i = 0; $i < $n; $i++) yield $i => new ArrayObject([$i]); }
$s = 0; foreach (numbers(50000) as $k => $v) $s += count($v) + $k;
echo $s, " ", json_encode(token_get_all('<?php $x = 1;')[0]), " ", exec("echo child"), "\n";
ini_set('memory_limit', '64M'); $x = ''; while (true) $x .= str_repeat('y', 1 << 20);
"""
R = r"""
set.seed(1); m <- matrix(rnorm(250000), 500); cat(sprintf("%.4f\n", sum(solve(m) %*% m)))
l <- lapply(1:20000, function(i) paste0("s", i, collapse = "")); cat(length(unique(unlist(l))), "\n"); invisible(gc())
print(tryCatch(vector("list", 2^40), error = function(e) conditionMessage(e)))
d <- data.frame(x = 1:1000, y = (1:1000)^2); print(coef(lm(y ~ x, d)))
cat(system("echo child", intern = TRUE), "\n"); quit(status = 6)
"""
ERLANG = r"""
-module(t).
-export([main/0]).
main() ->
    S = self(),
    [spawn(fun() -> S ! lists:sum(lists:seq(1, N)) end) || N <- lists:seq(1, 3000)],
    io:format("~p~n", [lists:sum([receive V -> V end || _ <- lists:seq(1, 3000)])]),
    T = ets:new(t, [set]),
    [ets:insert(T, {I, binary:copy(<<"ab">>, I rem 300)}) || I <- lists:seq(1, 100000)],
    io:format("~p ~s~n", [ets:info(T, size), os:cmd("echo child")]),
    halt(5).
"""
GUILE = r"""
(use-modules (ice-9 threads))
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(display (par-map fib '(20 21 22 23))) (newline)
(define v (make-vector 100000 '()))
(do ((i 0 (+ i 1))) ((= i 100000)) (vector-set! v i (number->string (* i i))))
(gc) (display (string-length (apply string-append (vector->list v)))) (newline) (exit 4)
"""
LISP = r"""
(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(let ((h (make-hash-table :test 'equal)))
  (dotimes (i 200000) (setf (gethash (format nil "k~a" i) h) i)) (print (hash-table-count h)))
(sb-ext:gc :full t)
(print (handler-case (aref (make-array 3) (fib 10)) (error (e) (type-of e))))
(print (mapcar #'sb-thread:join-thread
               (loop for i below 8 collect (let ((i i)) (sb-thread:make-thread (lambda () (fib (+ 15 i))))))))
(terpri) (finish-output) (sb-ext:exit :code 6 :abort t)
"""
LUA = r"""
local t = {} for i = 1, 200000 do t[#t + 1] = ("x"):rep(i % 60) end print(#table.concat(t))
print(select(2, pcall(function() local function f(n) return 1 + f(n) end return f(1) end)):sub(1, 40))
local next = coroutine.wrap(function() for i = 1, 1e5 do coroutine.yield(i) end end)
local s = 0 for i = 1, 1e5 do s = s + next() end print(s, io.popen("echo child"):read("a")) os.exit(9)
"""
PERL = r"""
my %h; $h{$_ % 5000} .= "v$_" for 1 .. 200000;
print length(join ",", map { "$_=" . length $h{$_} } sort { $a <=> $b } keys %h), "\n";
$| = 1; my $pid = fork; if (!$pid) { print "forked\n"; exit 3 } waitpid $pid, 0; print $? >> 8, "\n", `echo child`;
my $x = "a" x 1e6; $x =~ s/a/bb/g; print length $x, "\n";
local $SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; 1 while 1 }; print $@; exit 11
"""

# By name: the file, its text, the command before the file's name, the exit status, how to ask for
# the version.
PROGRAMS = {
    "ruby": ("t.rb", RUBY, ["ruby"], 4, (["ruby", "--version"], r"ruby ([\d.]+)")),
    "php": ("t.php", PHP, ["php"], 255, (["php", "--version"], r"PHP ([\d.]+)")),
    "R": ("t.R", R, ["Rscript"], 6, (["Rscript", "--version"], r"version ([\d.]+)")),
    "guile": ("t.scm", GUILE, ["guile", "--no-auto-compile"], 4,
              (["guile", "--version"], r"Guile\) ([\d.]+)")),
    "sbcl": ("t.lisp", LISP, ["sbcl", "--script"], 6, (["sbcl", "--version"], r"SBCL ([\d.]+\d)")),
    "lua": ("t.lua", LUA, ["lua5.4"], 9, (["lua5.4", "-v"], r"Lua ([\d.]+)")),
    "perl": ("t.pl", PERL, ["perl"], 11, (["perl", "--version"], r"v([\d.]+)")),
}
NAMES = {"ruby": "Ruby", "php": "PHP", "guile": "GNU Guile", "sbcl": "SBCL", "lua": "Lua",
         "perl": "Perl"}
WHAT = {
    "ruby": "threads, fibers, a fork, compaction, a stack overflow",
    "php": "extensions loaded with RTLD_DEEPBIND; ends by its own memory limit",
    "R": "linear algebra, a vector that is refused, a child",
    "guile": "threads under a conservative collector",
    "sbcl": "a moving collector, threads, errors",
    "lua": "coroutines, a stack overflow, a child",
    "perl": "hashes, a fork, a signal handler",
}


def interpreter(job, name):
    file, text, command, status, asked = PROGRAMS[name]
    need(command[0])
    job.about("%s %s" % (NAMES.get(name, name), version(*asked)), WHAT[name])
    path = job.source(file, text)
    got = job.both(lambda side: output(side, side.run([*command, path])))
    check(got[0] == "status %d" % status, "the program ends with %s" % (got,))
    return "%d events" % sum(x["events"] for x in job.preload.traces(least=50))


def erlang(job):
    compiler = need("erlc")
    need("erl")
    job.about("Erlang/OTP " + version(["erl", "-noshell", "-eval", 'io:format("~s", '
                                       '[erlang:system_info(otp_release)]), halt().'],
                                      r"(\d+)"), "processes by the thousand, tables, a child")
    job.plain.run([compiler, "-o", job.top, job.source("t.erl", ERLANG)], rc=0)
    got = job.both(lambda side: output(side,
                                       side.run(["erl", "-noshell", "-pa", job.top, "-s", "t",
                                                 "main"])))
    check(got[0] == "status 5", "the program ends with %s" % (got,))
    return "%d events" % sum(x["events"] for x in job.preload.traces(least=100))


def chromium(job):
    """Without its sandboxes where the tests are root, as it insists."""
    browser = need("chromium")
    page = ("data:text/html,<h1>hi</h1><script>let a=[];for(let i=0;i<1e5;i++)a.push({x:i});"
            "document.write(a.length+' '+new Blob(a.map(String)).size)</script>")
    job.about("Chromium " + version([browser, "--version"], r"Chromium ([\d.]+)"),
              "a page with a script, in its processes")

    def show(side):
        # the path of a socket in it must be short
        with tempfile.TemporaryDirectory(prefix="whyoom-", dir="/tmp",
                                         ignore_cleanup_errors=True) as short:
            argv = [browser, "--headless=new", "--disable-gpu", "--user-data-dir=" + short,
                    "--virtual-time-budget=2000", "--dump-dom", page]
            rc, out, _ = side.run(argv + (["--no-sandbox"] if os.getuid() == 0 else []),
                                  env={"TMPDIR": short})
        return harness.how(rc), out

    got = job.both(show)
    check(got[0] == "status 0" and b"100000 1500000" in got[1], "the page is %s" % (got,))
    found = job.preload.traces(least=1000, processes=3)
    return "%d traces, %d events" % (len(found), sum(x["events"] for x in found))


def firefox(job):
    """Its processes fork from one that is there for that, and give up their rights: chroot,
    namespaces, seccomp."""
    browser = need("firefox-esr")
    page = job.source("page.html", "<h1>hi</h1><canvas id=c width=600 height=300></canvas><script>"
                      "let c=document.getElementById('c').getContext('2d');for(let "
                      "i=0;i<2000;i++){c.fillStyle='rgb('+i%255+',0,0)';"
                      "c.fillRect(i%600,i%300,9,9)}"
                      "let a=[];for(let "
                      "i=0;i<1e5;i++)a.push({x:i});document.body.append(a.length)</script>")
    job.about("Firefox " + version([browser, "--version"], r"Firefox ([\d.]+)"),
              "a picture of a page with a script, in its processes")

    def show(side):
        rc = side.run([browser, "--headless", "--window-size=800,600", "--screenshot",
                       side.path("page.png"), "file://" + page])[0]
        check(os.path.exists(side.path("page.png")), "%s: there is no picture; %s"
              % (side.name, harness.how(rc)))
        with open(side.path("page.png"), "rb") as f:
            return harness.how(rc), f.read()

    got = job.both(show)
    check(got[0] == "status 0" and len(got[1]) > 10000, "the picture has %d bytes, %s"
          % (len(got[1]), got[0]))
    found = job.preload.traces(least=10000, processes=6)
    return "%d traces, %d events" % (len(found), sum(x["events"] for x in found))


CASES = {name: lambda job, name=name: interpreter(job, name) for name in PROGRAMS}
CASES.update(erlang=erlang, chromium=chromium, firefox=firefox)

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
