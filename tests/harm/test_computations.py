#!/usr/bin/env python3
"""Languages with runtimes of their own, computer algebra and scriptable editors: each computes for
a second or more, and prints the same, writes the same files and ends the same. What needs a
compiler is compiled under the recorder, too."""

import hashlib
import os
import sys

import harness
from harness import check, need, output, version

OCTAVE = r"""
n = 260; a = reshape (mod ((1:n*n) * 7919, 1009), n, n) / 1009 + n * eye (n);
printf ("%.6f %.6f\n", norm (inv (a) * a - eye (n)) < 1e-8, sum (sum (a * a')) / n);
printf ("%.4f ", sort (abs (eig (a)))(1:4)); printf ("\n");
s = 0; c = cell (1, 400);
for i = 1:400; c{i} = sprintf ("%d,", 1:mod (i, 60)); s += numel (strsplit (c{i}, ",")); endfor
printf ("%d %d\n", s, numel (unique (c)));
m = containers.Map ("KeyType", "double", "ValueType", "any");
for i = 1:400; m(mod (i * 31, 150)) = ones (1, mod (i, 90)); endfor
printf ("%d %d\n", m.Count, sum (cellfun (@numel, values (m))));
p = sparse (mod ((1:20000) * 31, 900) + 1, mod ((1:20000) * 17, 900) + 1, 1, 900, 900);
printf ("%d %.3f\n", nnz (p), full (sum (sum (p * p))));
x = fft (mod ((1:65536) * 7919, 1009)); printf ("%.3f\n", abs (x(7)));
try; zeros (2^40, 2^20); catch e; disp (e.message); end_try_catch
try; ones (2, 3) * ones (2, 3); catch e; disp (e.message); end_try_catch
save ("-text", "-z", "saved", "c"); d = load ("saved"); printf ("%d\n", isequal (d.c, c));
[status, text] = system ("echo child; exit 3"); printf ("%d %s", status, text);
exit (6);
"""
MAXIMA = r"""
display2d: false$
ratmx: true$
factor(expand((x^20 - 1) * (x^14 + x^7 + 1) * (x + 3)^9));
integrate(x^5 * exp(-x) * sin(2*x), x);
string(ratsimp(diff(exp(sin(x)) / (1 + x^2), x, 3)));
m: genmatrix(lambda([i, j], 1 / (i + j - 1)), 14, 14)$
determinant(m);
is(equal(invert(m) . m, ident(14)));
solve(x^4 - 5*x^2 + 6 = 0, x);
bfloat(%pi), fpprec: 200;
factor(2^137 - 1);
sum(binomial(500, k)^2, k, 0, 500) - binomial(1000, 500);
length(makelist(primep(10^6 + i), i, 1, 5000));
a: make_array(hashed)$
for i: 1 thru 20000 do a[mod(i * 7919, 3001)]: i$
taylor(tan(x) * log(1 + x), x, 0, 14);
errcatch(1/0);
quit()$
"""
AWK = r"""
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
BEGIN {
	for (i = 0; i < 300000; i++) { k = (i * 7919) % 10007; count[k]++; text[k % 500] = text[k % 500] "x" i % 10 }
	n = asorti(count, keys); print n, keys[1], keys[n], length(text[77])
	for (i = 0; i < 40000; i++) if (match(sprintf("%d-%x", i, i * 31), /([0-9]+)-(f+)/, m)) sum += m[1] + length(m[2])
	print sum, fib(23), gensub(/(a)(b)/, "\\2\\1", "g", "ababab"), strftime("%F", 0, 1), PROCINFO["version"] != ""
	for (i = 0; i < 200; i++) many[i][i % 7]["deep"] = i
	for (i in many) for (j in many[i]) total += many[i][j]["deep"]
	print total
	sorter = "sort -n"; for (i = 5000; i > 0; i--) print (i * 31) % 5003 |& sorter
	close(sorter, "to"); while ((sorter |& getline line) > 0) last = last line % 10
	print close(sorter), length(last), substr(last, 1, 40)
	"echo child" | getline x; print x, system("exit 3")
	exit 7
}
"""
PROLOG = r"""
:- use_module(library(clpfd)).
:- use_module(library(assoc)).
:- dynamic fact/2.
queens(N, Qs) :- length(Qs, N), Qs ins 1..N, safe(Qs), labeling([ff], Qs).
safe([]). safe([Q|Qs]) :- free(Q, Qs, 1), safe(Qs).
free(_, [], _). free(Q, [P|Qs], D) :- Q #\= P, abs(Q - P) #\= D, E is D + 1, free(Q, Qs, E).
nrev([], []). nrev([H|T], R) :- nrev(T, S), append(S, [H], R).
count(N, N) :- !. count(I, N) :- J is I + 1, count(J, N).
worker(K, S) :- numlist(1, 30000, L), foldl([X, A, B]>>(B is (A + X * K) mod 1000003), L, 0, S).
main :-
    queens(14, Qs), writeln(Qs),
    numlist(1, 600, L), nrev(L, R), nth0(7, R, E), writeln(E),
    forall(between(1, 60000, I), (K is I * 7919 mod 10007, assertz(fact(K, I)))),
    aggregate_all(count, fact(_, _), C), aggregate_all(sum(V), fact(77, V), W), writeln(C-W),
    findall(K-V, (between(1, 20000, V), K is V * 31 mod 5003), Ps), list_to_assoc_(Ps, A), assoc_to_keys(A, Ks), length(Ks, Kn), writeln(Kn),
    X is 3 ** 2000 mod (10 ** 40 + 7), writeln(X), count(0, 1000000),
    findall(T, (between(1, 6, N), thread_create((worker(N, S), thread_exit(S)), T, [])), Ts),
    findall(S, (member(T, Ts), thread_join(T, exited(S))), Ss), writeln(Ss),
    catch(atom_length(_, _), error(Err, _), (print(Err), nl)),
    catch(call_with_depth(0), error(resource_error(What), _), (print(What), nl)),
    retractall(fact(_, _)), garbage_collect, garbage_collect_atoms,
    shell('echo child; exit 3', St), writeln(St), halt(4).
call_with_depth(N) :- M is N + 1, call_with_depth(M), true(M).
true(_).
list_to_assoc_(Ps, A) :- empty_assoc(E), foldl([K-V, B, C]>>put_assoc(K, B, V, C), Ps, E, A).
:- set_prolog_flag(stack_limit, 60000000).
:- initialization(main).
"""
TCL = r"""
proc fib n {expr {$n < 2 ? $n : [fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]}}
for {set i 0} {$i < 300000} {incr i} {dict append d [expr {$i * 7919 % 5003}] "x$i"; set a([expr {$i % 900}]) $i}
puts "[dict size $d] [string length [dict get $d 77]] [array size a] [fib 24]"
puts [string range [expr {3 ** 3000}] 0 40]
puts [regsub -all {(\d)(\d)} [lsort -integer [lmap k [dict keys $d] {expr {$k * 31 % 4099}}]] {\2\1} out]
puts [string length $out]
set slaves {}
for {set i 0} {$i < 20} {incr i} {set s [interp create]; $s eval {proc f n {set l {}; for {set i 0} {$i < $n} {incr i} {lappend l [string repeat y $i]}; llength $l}}; lappend slaves $s}
puts [lmap s $slaves {$s eval {f 700}}]
foreach s $slaves {interp delete $s}
set n 0
proc tick {} {global n; incr n; if {$n < 400} {after 1 tick} else {set ::over 1}}
tick; vwait over; puts $n
proc gen {} {yield; for {set i 0} {$i < 20000} {incr i} {yield $i}}
coroutine g gen; set s 0; for {set i 0} {$i < 20000} {incr i} {incr s [g]}; puts $s
puts [catch {fib x} e]; puts $e
proc deep {} {deep}; puts [catch deep e]; puts $e
set p [open "|sort -n" r+]; for {set i 3000} {$i} {incr i -1} {puts $p [expr {$i * 31 % 3001}]}
close $p write; puts [string length [read $p]]; close $p
puts [exec sh -c "echo child"]
exit 8
"""
OCAML = r"""
module M = Map.Make (String)
type t = Leaf | Node of t * int * t
let rec insert x = function
  | Leaf -> Node (Leaf, x, Leaf)
  | Node (l, y, r) as n -> if x < y then Node (insert x l, y, r) else if x > y then Node (l, y, insert x r) else n
let rec depth = function Leaf -> 0 | Node (l, _, r) -> 1 + max (depth l) (depth r)
let rec forever n = 1 + forever (n + 1)
let () =
  let m = ref M.empty in
  for i = 1 to 120_000 do
    m := M.update (string_of_int (i * 7919 mod 10007)) (function None -> Some [i] | Some l -> Some (i :: l)) !m
  done;
  Printf.printf "%d %d\n" (M.cardinal !m) (List.length (M.find "77" !m));
  let t = ref Leaf in
  for i = 1 to 150_000 do t := insert (i * 7919 mod 100_003) !t done;
  Printf.printf "%d\n" (depth !t);
  let h = Hashtbl.create 16 in
  for i = 1 to 200_000 do Hashtbl.replace h (i mod 5003) (String.make (i mod 50) 'x') done;
  Printf.printf "%d %s\n" (Hashtbl.length h) (Digest.to_hex (Digest.string (Marshal.to_string !m [])));
  let weak = Weak.create 1000 in
  for i = 0 to 999 do Weak.set weak i (Some (Bytes.create 100)) done;
  Gc.compact ();
  let big = Array.init 300 (fun i -> Array.make (i * 40) (float i)) in
  Printf.printf "%.1f\n" (Array.fold_left (fun s a -> s +. Array.fold_left (+.) 0. a) 0. big);
  (try ignore (forever 0) with Stack_overflow -> print_endline "stack overflow");
  (try ignore (Bytes.create max_int) with Invalid_argument s -> print_endline s);
  let r, w = Unix.pipe () in
  flush stdout;
  (match Unix.fork () with
   | 0 -> ignore (Unix.write_substring w "forked" 0 6); Unix._exit 3
   | pid -> let b = Bytes.create 6 in
     ignore (Unix.read r b 0 6);
     (match Unix.waitpid [] pid with _, Unix.WEXITED n -> Printf.printf "%s %d\n" (Bytes.to_string b) n | _ -> ()));
  let results = Array.make 6 0 in
  let work k = for i = 1 to 100_000 do results.(k) <- (results.(k) + List.length [i; k; i + k]) mod 1_000_003 done in
  List.iter Thread.join (List.init 6 (fun k -> Thread.create work k));
  Printf.printf "%d\n%!" (Array.fold_left (+) 0 results);
  exit 9
"""
HASKELL = r"""
module Main where
import Control.Concurrent
import Control.Exception
import Control.Monad
import qualified Data.Map.Strict as M
import Data.IORef
import Data.List (foldl', sort)
import System.Exit
import System.IO
import System.Mem
import Foreign

fibs :: [Integer]
fibs = 0 : 1 : zipWith (+) fibs (tail fibs)

main :: IO ()
main = do
  let m = foldl' (\a i -> M.insertWith (++) (i * 7919 `mod` 10007) [i] a) M.empty [1 .. 150000 :: Int]
  print (M.size m, length (m M.! 77), sum (map length (M.elems m)))
  print (length (show (fibs !! 30000)))
  print (sum (take 500 (filter (\n -> all (\d -> n `mod` d /= 0) [2 .. n - 1]) [2 ..])) :: Int)
  done <- forM [1 .. 200 :: Int] $ \k -> do
    v <- newEmptyMVar
    _ <- forkIO (putMVar v $! foldl' (\a x -> (a * 31 + x) `mod` 1000003) k [1 .. 5000])
    return v
  results <- mapM takeMVar done
  print (sum results, last (sort results))
  n <- newIORef (0 :: Int)
  os <- forM [1 .. 8 :: Int] $ \k -> do
    v <- newEmptyMVar
    _ <- forkOS (replicateM_ 300 (allocaBytes (k * 1000) (\p -> poke (castPtr p) k >> peek (castPtr p) >>= \x -> atomicModifyIORef' n (\a -> (a + x, ())))) >> putMVar v ())
    return v
  mapM_ takeMVar os
  readIORef n >>= print
  ps <- forM [1 .. 3000] $ \i -> mallocForeignPtrBytes (i * 7) :: IO (ForeignPtr Word8)
  forM_ ps $ \p -> withForeignPtr p (`poke` 7)
  qs <- forM [1 .. 2000] $ \i -> mallocBytes (i * 5) :: IO (Ptr Word8)
  forM_ qs free
  performGC
  r <- try (evaluate (1 `div` (0 :: Int))) :: IO (Either ArithException Int)
  print r
  hFlush stdout
  exitWith (ExitFailure 5)
"""
CSHARP = r"""
using System; using System.Collections.Generic; using System.Diagnostics; using System.Linq; using System.Text;
using System.Threading; using System.Threading.Tasks; using System.Runtime.InteropServices; using System.Security.Cryptography;
class Node { public Node Left, Right; public int[] Load = new int[8];
	public static Node Make(int d) { return d == 0 ? new Node() : new Node { Left = Make(d - 1), Right = Make(d - 1) }; }
	public int Count() { return 1 + (Left == null ? 0 : Left.Count() + Right.Count()); } }
class Program {
	[DllImport("libc")] static extern IntPtr malloc(IntPtr n);
	[DllImport("libc")] static extern void free(IntPtr p);
	static int Main() {
		var d = new Dictionary<string, List<int>>();
		for (int i = 0; i < 200000; i++) { var k = "k" + i * 31 % 5003; if (!d.ContainsKey(k)) d[k] = new List<int>(); d[k].Add(i); }
		Console.WriteLine("{0} {1}", d.Count, d["k77"].Sum());
		int nodes = 0; for (int i = 0; i < 12; i++) nodes += Node.Make(13).Count(); Console.WriteLine(nodes);
		var sums = new long[16];
		Parallel.For(0, 16, k => { var l = new List<string>(); for (int i = 0; i < 4000; i++) l.Add(new string('x', i % 70)); sums[k] = l.Sum(s => s.Length) * k; });
		Console.WriteLine(sums.Sum());
		var threads = Enumerable.Range(0, 8).Select(k => new Thread(() => { for (int i = 1; i < 2000; i++) { var p = malloc((IntPtr)(i * 3)); Marshal.WriteByte(p, 7); free(p); } })).ToList();
		threads.ForEach(t => t.Start()); threads.ForEach(t => t.Join());
		int faults = 0; for (int i = 0; i < 300; i++) try { Node n = i < 0 ? new Node() : null; faults += n.Load.Length; } catch (NullReferenceException) { faults++; }
		Console.WriteLine(faults);
		try { var x = new byte[int.MaxValue]; Console.WriteLine(x.Length); } catch (OutOfMemoryException) { Console.WriteLine("no memory"); }
		var b = new StringBuilder(); for (int i = 0; i < 100000; i++) b.Append(i);
		Console.WriteLine(BitConverter.ToString(SHA256.Create().ComputeHash(Encoding.ASCII.GetBytes(b.ToString()))));
		GC.Collect(); GC.WaitForPendingFinalizers();
		var p2 = Process.Start(new ProcessStartInfo("/bin/sh", "-c \"echo child; exit 3\"") { UseShellExecute = false, RedirectStandardOutput = true });
		Console.Write(p2.StandardOutput.ReadToEnd()); p2.WaitForExit(); Console.WriteLine(p2.ExitCode);
		var file = Environment.GetEnvironmentVariable("TMPDIR") + "/written";
		System.IO.File.WriteAllLines(file, Enumerable.Range(0, 5000).Select(i => i.ToString())); Console.WriteLine(System.IO.File.ReadAllLines(file).Length);
		return 6;
	}
}
"""
LISP = r"""
(require 'cl-lib) (require 'json) (require 'subr-x)
(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(byte-compile 'fib)
(let ((h (make-hash-table :test 'equal)))
  (dotimes (i 60000) (push i (gethash (format "k%d" (% (* i 7919) 5003)) h)))
  (princ (format "%d %d %d\n" (hash-table-count h) (length (gethash "k77" h)) (fib 23))))
(with-temp-buffer
  (dotimes (i 20000) (insert (format "%d line %d\n" (% (* i 31) 4099) i)))
  (sort-numeric-fields 1 (point-min) (point-max))
  (goto-char (point-min))
  (while (re-search-forward "line \\([0-9]+\\)7$" nil t) (replace-match "<\\1>"))
  (princ (format "%s %d\n" (secure-hash 'sha256 (current-buffer)) (count-lines (point-min) (point-max))))
  (shell-command-on-region (point-min) (point-max) "sort -n | tail -3" nil t)
  (princ (buffer-string))
  (write-region (point-min) (point-max) (expand-file-name "written" (getenv "TMPDIR")) nil 'quiet))
(with-temp-buffer
  (c-mode)
  (dotimes (i 60) (insert (format "int f%d(int x)\n{\nif (x > %d) {\nreturn x;\n} else\nreturn f%d(x + 1);\n}\n\n" i i (1+ i))))
  (indent-region (point-min) (point-max))
  (font-lock-ensure)
  (princ (format "%s\n" (secure-hash 'md5 (buffer-string)))))
(princ (format "%s\n" (length (json-encode (cl-loop for i below 3000 collect `((id . ,i) (text . ,(make-string (% i 40) ?x))))))))
(princ (format "%s\n" (condition-case e (fib 'x) (error e))))
(princ (format "%s\n" (condition-case e (let ((max-lisp-eval-depth 400)) (cl-labels ((f (n) (1+ (f n)))) (f 1))) (error (car e)))))
(let ((threads (cl-loop for k below 4 collect (let ((k k)) (make-thread (lambda () (length (number-sequence 1 (* 1000 (1+ k))))))))))
  (princ (format "%s\n" (mapcar #'thread-join threads))))
(garbage-collect)
(princ (shell-command-to-string "echo child"))
(princ (format "%s" (* 1.0 (expt 3 400)))) (terpri)
(kill-emacs 5)
"""
VIM = r"""
set nocompatible nomore undolevels=1000 directory=. viminfo=
let lines = []
for i in range(60000)
	call add(lines, printf('%05d line %d word%d', (i * 7919) % 10007, i, i % 97))
endfor
call setline(1, lines)
silent sort
silent %s/\vline (\d+)7 /<\1> /e
silent g/word13$/m0
silent g/word14$/d
silent v/\d/d
normal! gg100Jggqqdwj@qq
normal! 500@q
silent undo
silent redo
let d = {}
for l in getline(1, '$')
	let k = matchstr(l, 'word\d*')
	let d[k] = get(d, k, 0) + strlen(l)
endfor
let out = [len(d), sha256(join(getline(1, '$'), "\n")), line('$'), string(sort(items(d)))]
call add(out, system('tr a-z A-Z', 'child'))
function Deep(n)
	return Deep(a:n + 1)
endfunction
try
	call Deep(0)
catch
	call add(out, matchstr(v:exception, 'E\d*'))
endtry
syntax on
silent write! edited
silent new | silent read !seq 1 3000
silent %!sort -rn
call add(out, sha256(join(getline(1, '$'), "\n")))
call writefile(out, 'out')
cquit 5
"""


def program(job, name, version_of, what, file, text, argv, status, least=50, files=(), before=(),
            env=None):
    """Runs a program text in an interpreter. argv: the command, PATH being the text; before:
    commands that run first, under the recorder, too; files: what it leaves, which is compared."""
    need(argv[0] if "/" not in argv[0] and argv[0] != "TOP" else before[0][0])
    job.about("%s %s" % (name, version(*version_of)), what)

    def run(side):
        with open(side.path(file), "w") as f:
            f.write(text)
        said = [output(side, side.run(words, env=env)) for words in before]
        said.append(output(side, side.run([a.replace("TOP", side.top) for a in argv], env=env)))
        left = {}
        for n in files:
            with open(side.path(n), "rb") as f:
                left[n] = hashlib.sha256(f.read()).hexdigest()
        return said, left

    said, _ = job.both(run)
    for words, (end, _, _) in zip(before, said):
        check(end == "status 0", "%s ends with %s" % (words, said))
    check(said[-1][0] == "status %d" % status, "the program ends with %s" % (said[-1],))
    found = job.preload.traces(least=least)
    return "%d traces, %d events" % (len(found), sum(x["events"] for x in found))


CASES = {
    "octave": lambda job: program(
        job, "GNU Octave", (["octave-cli", "--version"], r"version ([\d.]+)"),
        "linear algebra, sparse matrices, cells, maps, a matrix that is refused",
        "t.m", OCTAVE, ["octave-cli", "--norc", "--quiet", "t.m"], 6, least=5000,
        env={"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}),
    "maxima": lambda job: program(
        job, "Maxima", (["maxima", "--version"], r"Maxima ([\d.]+)"),
        "factors, integrals, exact matrices", "t.mac", MAXIMA,
        ["maxima", "--very-quiet", "-b", "t.mac"], 0),
    "gawk": lambda job: program(
        job, "gawk", (["gawk", "--version"], r"Awk ([\d.]+)"),
        "arrays, regular expressions, a coprocess", "t.awk", AWK,
        ["gawk", "-f", "t.awk"], 7, least=20000),
    "swipl": lambda job: program(
        job, "SWI-Prolog", (["swipl", "--version"], r"version ([\d.]+)"),
        "constraints, threads, a stack limit, its collectors", "t.pl", PROLOG,
        ["swipl", "-q", "t.pl"], 4, least=1000),
    "tcl": lambda job: program(
        job, "Tcl", (["sh", "-c", "echo 'puts [info patchlevel]' | tclsh"], r"([\d.]+)"),
        "dictionaries, interpreters, coroutines, events, pipes", "t.tcl", TCL,
        ["tclsh", "t.tcl"], 8, least=5000),
    "ocaml": lambda job: program(
        job, "OCaml", (["ocamlopt", "-version"], r"([\d.]+)"),
        "compiled natively: maps, threads, a fork, compaction, a stack overflow", "t.ml", OCAML,
        ["TOP/t"], 9, least=1000,
        before=[["ocamlopt", "-I", "+threads", "unix.cmxa", "threads.cmxa", "t.ml", "-o", "t"]]),
    "ocaml-bytecode": lambda job: program(
        job, "OCaml", (["ocamlc", "-version"], r"([\d.]+)"), "in its interpreter", "t.ml", OCAML,
        ["ocamlrun", "TOP/t.byte"], 9, least=1000,
        before=[["ocamlc", "-I", "+threads", "unix.cma", "threads.cma", "t.ml", "-o", "t.byte"]]),
    "ghc": lambda job: program(
        job, "GHC", (["ghc", "--version"], r"version ([\d.]+)"),
        "compiles a program, and that: green and system threads, foreign memory", "t.hs", HASKELL,
        ["TOP/t", "+RTS", "-N2"], 5, least=1000,
        before=[["ghc", "-v0", "-O1", "-threaded", "-rtsopts", "t.hs", "-o", "t"]]),
    "mono": lambda job: program(
        job, "Mono", (["mono", "--version"], r"version ([\d.]+)"),
        "compiles a program, and that: threads, null references by SIGSEGV, its collector", "t.cs",
        CSHARP,
        ["mono", "t.exe"], 6, least=1000, before=[["mcs", "t.cs", "-out:t.exe"]]),
    "emacs": lambda job: program(
        job, "GNU Emacs", (["emacs", "--version"], r"Emacs ([\d.]+)"),
        "sorts, indents, fontifies, encodes; children", "t.el", LISP,
        ["emacs", "-Q", "--batch", "-l", "t.el"], 5, least=5000, files=["written"]),
    "vim": lambda job: program(
        job, "Vim", (["vim", "--version"], r"IMproved ([\d.]+)"),
        "edits 60,000 lines: sorts, substitutes, macros, undo, filters", "t.vim", VIM,
        ["vim", "-es", "-u", "NONE", "-S", "t.vim"], 5, least=20000, files=["out", "edited"]),
}

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
