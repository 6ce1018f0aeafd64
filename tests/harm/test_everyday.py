#!/usr/bin/env python3
"""Tools of every day that fork, trace, multiplex, encrypt and transfer: the same words, files and
ends. test_tools.py has those that a fresh machine can run in a few minutes."""

import hashlib
import os
import re
import sys
import tempfile

import harness
from harness import check, need, output, version
from services import Daemon, Origin, listens, whole

RSYNC = r"""
set -e
cd "$TMPDIR"
mkdir -p from/deep/er
for i in $(seq 1 400); do seq $i $((i * 37 % 900 + i)) >from/deep/f$i; done
seq 1 300000 >from/large
ln -s deep/f3 from/link; ln from/deep/f4 from/hard; chmod 640 from/deep/f5; truncate -s 3M from/sparse
find from -exec touch -h -d @1600000000 {} +
rsync -aHS --info=stats0 from/ to/
sed -i 's/^7$/changed/; 5000,5100d' from/large; rm from/deep/f1*; seq 9 >from/new
touch -d @1600000100 from/large from/new from/deep
rsync -aH --delete --no-whole-file --itemize-changes from/ to/
rsync -an --checksum --itemize-changes from/ to/
rsync -a --compress --bwlimit=20000 --partial --exclude='f2*' from/ rsync://127.0.0.1:PORT/m/
rsync -a --list-only rsync://127.0.0.1:PORT/m/ | grep -v -e sparse -e '\.$' | md5sum
rsync -a --delete rsync://127.0.0.1:PORT/m/ back/
(cd to; find . -type f | sort | xargs sha256sum) | sha256sum
(cd back; find . -printf '%p %m %s %T@ %l\n' | sort) | grep -v ' 4096 ' | sha256sum
rsync -a rsync://127.0.0.1:PORT/nothing/ x 2>&1 | head -1
rsync -a nothing x || exit $((RC = $?))
"""
OPENSSL = r"""
set -e
cd "$TMPDIR"
seq 1 300000 >data
for c in aes-256-cbc aes-128-ctr chacha20 camellia-256-cbc; do
	openssl enc -$c -pbkdf2 -S 0102030405060708 -pass pass:x -in data -out data.$c
	openssl enc -d -$c -pbkdf2 -S 0102030405060708 -pass pass:x -in data.$c | cmp - data
done
openssl dgst -sha3-512 data; openssl dgst -blake2b512 data; openssl dgst -hmac k -sha256 data; sha256sum data.*
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.pem 2>/dev/null
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out ec.pem
openssl req -x509 -new -key ec.pem -subj /CN=localhost -days 30 -out ec.crt
openssl req -new -key rsa.pem -subj /CN=client -out rsa.csr
openssl x509 -req -in rsa.csr -CA ec.crt -CAkey ec.pem -set_serial 7 -days 30 -out rsa.crt 2>/dev/null
openssl verify -CAfile ec.crt rsa.crt
openssl pkeyutl -sign -inkey rsa.pem -rawin -digest sha256 -in data -out sig
openssl x509 -in rsa.crt -pubkey -noout >rsa.pub
openssl pkeyutl -verify -pubin -inkey rsa.pub -rawin -digest sha256 -in data -sigfile sig
openssl cms -sign -nodetach -signer rsa.crt -inkey rsa.pem -in ec.crt -outform PEM -out signed; openssl cms -verify -CAfile ec.crt -in signed -inform PEM 2>&1 | tail -1
openssl dhparam -check -noout 512 2>/dev/null && echo parameters
for i in $(seq 1 60); do openssl prime -hex -generate -bits 64 >/dev/null; done
openssl s_server -accept PORT -cert ec.crt -key ec.pem -CAfile ec.crt -Verify 1 -rev -quiet >server.log 2>&1 &
for i in $(seq 1 100); do openssl s_client -connect 127.0.0.1:PORT -brief -cert rsa.crt -key rsa.pem </dev/null >/dev/null 2>&1 && break || sleep 0.1; done
for v in tls1_2 tls1_3; do
	for i in 1 2 3 4 5 6; do
		rm -f answer
		(echo "turn me round $i"; n=0; until [ -s answer ] || [ $((n += 1)) -gt 400 ]; do sleep 0.05; done) |
			timeout 60 openssl s_client -quiet -no_ign_eof -$v -connect 127.0.0.1:PORT -CAfile ec.crt -cert rsa.crt -key rsa.pem \
				-verify_return_error >answer 2>/dev/null || true
		cat answer
	done
done
kill %1; wait || true
openssl rsa -in nothing 2>/dev/null || exit 9
"""
GNUPG = r"""
set -e
cd "$TMPDIR"
echo "s2k-count 65536" >"$GNUPGHOME/gpg-agent.conf"
gpg() { command gpg --batch --yes --no-tty --s2k-count 65536 --pinentry-mode loopback --passphrase secret "$@"; }
seq 1 200000 >data
gpg --quick-generate-key 'N <n@example.org>' ed25519 sign 0 2>/dev/null
gpg --quick-generate-key 'R <r@example.org>' rsa2048 sign 0 2>/dev/null
fingerprint() { gpg --list-keys --with-colons "$1" 2>/dev/null | sed -n 's/^fpr:*\([0-9A-F]*\):$/\1/p' | head -1; }
key=$(fingerprint n@example.org)
gpg --quick-add-key "$key" cv25519 encr 0
gpg --quick-add-key "$(fingerprint r@example.org)" rsa2048 encr 0
for to in n@example.org r@example.org; do
	gpg --trust-model always -r $to -e -o $to.gpg data
	gpg -d $to.gpg 2>/dev/null | cmp - data && echo decrypted
	gpg -u $to --detach-sign -a -o $to.sig data
	gpg --verify $to.sig data 2>&1 | grep -c Good
done
for c in AES256 TWOFISH CAMELLIA256; do gpg --symmetric --cipher-algo $c -o $c.gpg data; gpg -d $c.gpg 2>/dev/null | sha256sum; done
gpg --clearsign -u n@example.org <<<"a text"  | gpg --verify 2>&1 | grep -c Good
gpg --export-secret-keys n@example.org >secret.key
gpg --delete-secret-keys "$key"; gpg --list-secret-keys --with-colons | grep -c ^sec
gpg --import secret.key 2>/dev/null; gpg --list-secret-keys --with-colons | grep -c ^sec
echo spoiled >>data; gpg --verify n@example.org.sig data 2>&1 | grep -c BAD
gpg --print-md SHA512 data
gpgconf --kill all
gpg -d data 2>/dev/null || exit 9
"""
GDB_PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; int n; char text[20]; };
static struct node *list;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) void add(int n)
{
	struct node *x = malloc(sizeof(*x) + n % 50);

	x->n = n;
	snprintf(x->text, sizeof(x->text), "node %d", n);
	pthread_mutex_lock(&lock);
	x->next = list;
	list = x;
	pthread_mutex_unlock(&lock);
}
static void *work(void *k)
{
	for (int i = 0; i < 2000; i++)
		free(malloc(i * 7 + (long)k));
	return k;
}
int main(void)
{
	pthread_t t[4];

	for (int i = 0; i < 400; i++)
		add(i);
	for (long k = 0; k < 4; k++)
		pthread_create(&t[k], NULL, work, (void *)k);
	for (int k = 0; k < 4; k++)
		pthread_join(t[k], NULL);
	printf("%d\n", list->n);
	fflush(stdout);
	*(volatile int *)16 = 1;
	return 0;
}
"""
GDB = r"""
set pagination off
set width 0
set debuginfod enabled off
set print thread-events off
set print address off
break add if n % 40 == 39
commands
silent
printf "at %d: %s\n", n, list ? list->text : "none"
backtrace 2
continue
end
run
echo stopped by the fault\n
backtrace 1
print *list
print $_siginfo.si_signo
python
import gdb
node, total = gdb.parse_and_eval("list"), 0
while int(node) != 0:
    total += int(node["n"]); node = node["next"]
print("sum", total, len([s for s in gdb.lookup_global_symbol("main").symtab.linetable()]) > 5)
end
print $_strlen(list->text)
call (void)add(1000)
print list->n
disassemble /s add
ptype struct node
delete
tbreak main
run
watch list
continue
finish
next
kill
quit 6
"""
# What is in the panes at the end is what the shells printed, whatever was drawn in between.
TMUX = r"""
cd "$TMPDIR"
unset TMUX
t() { tmux -S "$SHORT/s" -f /dev/null "$@"; }
t new-session -d -s a -x 100 -y 40 "exec sh"
t set-option -g history-limit 5000
t set-option -g status-interval 1
for w in 1 2 3; do
	t split-window -t a "exec sh"
	t select-layout -t a tiled
	t new-window -t a "exec sh"
done
for p in $(t list-panes -s -t a -F '#{pane_id}' | sort); do
	t send-keys -t $p "PS1=; seq 1 3000; seq 1 2500 | sha256sum >out$p; printf '\\033[31mred\\033[0m \\303\\244\\n'; echo end >done$p" Enter
done
for p in $(t list-panes -s -t a -F '#{pane_id}' | sort); do
	n=0
	while [ ! -e done$p ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done
	cat out$p done$p
done
t new-window -t a -n last "seq 1 2000; printf '\\033[31mred\\033[0m \\303\\244\\n'; touch shown; exec sleep 600"
while [ ! -e shown ]; do sleep 0.1; done
sleep 1
t capture-pane -p -e -J -S - -t a:last | sha256sum
t list-windows -t a -F '#{window_index} #{window_panes} #{window_width}x#{window_height}'
for i in $(seq 1 200); do t set-buffer -b b$((i % 20)) "$(printf 'x%.0s' $(seq 1 $i))"; done
t list-buffers -F '#{buffer_name} #{buffer_size}' | sort
t display-message -p -t a '#{session_windows} #{e|+:40,2} #{s/a/b/:session_name}'
t has-session -t nothing 2>&1
t kill-server
t list-sessions 2>/dev/null || exit 9
"""
# Inside: another root, other process ids, no network, and what cannot be done.
BWRAP = r"""
set -e
cd "$TMPDIR"
cat >inside.py <<'END'
import hashlib, os, socket, subprocess, sys, threading
print(os.getpid(), os.getuid(), sorted(os.listdir("/proc"))[:1], socket.gethostname(), os.path.exists("/home"))
rows = [{"id": i, "text": "x" * (i * 31 % 300)} for i in range(20000)]
print(hashlib.sha256(repr(rows).encode()).hexdigest())
out = []
threads = [threading.Thread(target=lambda k=k: out.append(len([bytes(i) for i in range(k * 500)]))) for k in range(6)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(out), subprocess.run(["sh", "-c", "echo child; exit 3"], capture_output=True))
if os.fork() == 0: os._exit(5)
print(os.wait()[1])
try:
    open("/usr/written", "w")
except OSError as e:
    print(e.strerror)
try:
    socket.create_connection(("127.0.0.1", 9), 1)
except OSError as e:
    print(e.strerror)
sys.exit(7)
END
bwrap --ro-bind / / --tmpfs /home --proc /proc --dev /dev --bind "$WRITABLE" "$WRITABLE" --unshare-all --hostname inside --die-with-parent \
	--new-session --cap-drop ALL python3 inside.py || echo bwrap $?
unshare --fork --pid --mount --net --uts --ipc --mount-proc sh -c 'hostname inside; exec python3 inside.py' || echo unshare $?
unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none /mnt && seq 1 100000 >/mnt/x && sort -rn /mnt/x | sha256sum; python3 inside.py | tail -4' || echo user $?
setpriv --no-new-privs --bounding-set=-all python3 inside.py | tail -3 || echo setpriv $?
nsenter --target $$ --mount --pid python3 -c 'print(sum(len(bytes(i)) for i in range(5000)))'
bwrap --ro-bind /usr /usr nothing 2>/dev/null || exit 9
"""


def script(job, program, asked, name, what, text, least, processes, status=9, env=None, port=False,
           explained=harness.EXPLAINED):
    need(*program)
    job.about("%s %s" % (name, version(*asked)), what)

    def one(side):
        number = harness.free_port() if port else 0
        # the paths of sockets must be short
        with tempfile.TemporaryDirectory(prefix="whyoom-", dir="/tmp",
                                         ignore_cleanup_errors=True) as folder:
            variables = {"SHORT": folder, "WRITABLE": side.top, "GNUPGHOME": folder, **(env or {})}
            end, out, err = output(side,
                                   side.run([need("bash"), "-c", text.replace("PORT", str(number))],
                                            env=variables))
        return [end] + [x.replace(folder.encode(), b"SHORT") for x in (out, err)]

    got = job.both(one)
    check(got[0] == "status %d" % status, "it ends with %s" % (got,))
    return whole(job, least, processes, explained)


def rsync(job):
    program = need("rsync")
    job.about("rsync " + version([program, "--version"], r"version ([\d.]+)"),
              "copies, differences, deletions, to and from its server")

    def session(side):
        port = harness.free_port()
        os.makedirs(side.path("served"))
        user = "uid = root\ngid = root\n" if os.getuid() == 0 else ""
        with open(side.path("conf"), "w") as f:
            f.write("use chroot = no\n%s[m]\npath = %s\nread only = no\n"
                    % (user, side.path("served")))
        s = Daemon(side, [program, "--daemon", "--no-detach", "--config", side.path("conf"),
                          "--port", str(port), "--address", "127.0.0.1"],
                   lambda: listens(port))
        try:
            got = output(side, side.run([need("bash"), "-c", RSYNC.replace("PORT", str(port))]))
        finally:
            end = s.stop()
        return got, end

    got, end = job.both(session)
    check(got[0] == "status 23" and b"f1" in got[1], "it ends with %s" % (got,))
    return "%s, %s" % (end, whole(job, 1000, 10))


def curl(job):
    program = need("curl")
    job.about("curl " + version([program, "--version"], r"curl ([\d.]+)"),
              "transfers by the hundred at once, redirects, uploads, refusals")

    def session(side):
        with Origin() as origin:
            top = "http://127.0.0.1:%d/" % origin.port

            def run(*words):
                end, out, err = side.run([program, "-s", "--no-progress-meter", *words])
                return end, sorted(out.replace(b"%d" % origin.port,
                                               b"PORT").splitlines()), err.replace(
                                                   b"%d" % origin.port, b"PORT")
            show = ["-w", "%{http_code} %{size_download} %{num_redirects} %{url_effective}\n"]
            got = {"many": run("--parallel", "--parallel-max", "20", *show,
                               *[w for i in range(300)
                                 for w in (top + str(i % 90), "-o", side.path("o%d" % i))]),
                   "one after the other": run(*show, "-o", side.path("p#1"), top + "[1-90]"),
                   "redirected": run("-L", *show, "-o", side.path("q"), top + "moved"),
                   "refused": run("-f", *show, top + "nothing")}
            with open(side.path("large"), "wb") as f:
                f.write(b"0123456789abcdef" * 500000)
            got["up"] = run("-T", side.path("large"), top + "up")
            got["nobody"] = run("http://127.0.0.1:9/")
            files = hashlib.sha256()
            for i in range(300):
                with open(side.path("o%d" % i), "rb") as f:
                    files.update(f.read())
            got["files"] = files.hexdigest()
        return got

    got = job.both(session)
    check(got["many"][0] == 0 and got["many"][1][0].startswith(b"200 ") and got["refused"][0] == 22,
          "answers: %s" % got)
    return whole(job, 10000, 3)


def gdb(job):
    program = need("gdb")
    job.about("GNU gdb " + version([program, "--version"], r"(\d+\.\d+)"), "breakpoints, a "
              "watchpoint, a fault, calls into a program that is recorded, too; its Python")
    binary = os.path.join(job.top, "debugged")
    job.plain.run([need("gcc"), "-g", "-O1", "-pthread", "-o", binary,
                   job.source("debugged.c", GDB_PROGRAM)], rc=0)
    commands = job.source("commands", GDB)

    def one(side):
        end, out, err = output(side,
                               side.run([program, "-q", "-nx", "-batch", "-x", commands, binary],
                                        env={"DEBUGINFOD_URLS": ""}))
        return end, re.sub(rb"process \d+", b"process N", out), err

    got = job.both(one)
    check(got[0] == "status 6" and b"stopped by the fault" in got[1] and b"sum 79800" in got[1],
          "it ends with %s" % (got,))
    return whole(job, 10000, 2)


CASES = {
    "rsync": rsync,
    "curl": curl,
    "gdb": gdb,
    "openssl": lambda job: script(job, ["openssl"], (["openssl", "version"], r"OpenSSL ([\d.]+)"),
                                  "OpenSSL",
                                  "ciphers, digests, keys, certificates; its TLS server and "
                                  "clients", OPENSSL, 3000, 20, port=True),
    "gnupg": lambda job: script(job, ["gpg", "gpg-agent"],
                                (["gpg", "--version"], r"GnuPG\) ([\d.]+)"), "GnuPG",
                                "keys, signatures, ciphers, through its agent", GNUPG, 1000, 10),
    "tmux": lambda job: script(job, ["tmux"], (["tmux", "-V"], r"tmux (\S+)"), "tmux",
                               "shells in panes, buffers, what they show", TMUX, 5000, 5,
                               env={"TERM": "xterm-256color"}),
    "bwrap": lambda job: script(job, ["bwrap", "unshare", "nsenter", "setpriv"],
                                (["bwrap", "--version"], r"bubblewrap ([\d.]+)"),
                                "bubblewrap, unshare",
                                "Python in other namespaces, another root, without rights", BWRAP,
                                10000, 4,
                                # between two roots, bwrap cannot reach its trace's directory: an
                                # event is counted there, not written
                                explained=harness.EXPLAINED | {"no_space"}),
}

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
