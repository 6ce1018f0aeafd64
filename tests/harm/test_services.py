#!/usr/bin/env python3
"""Databases, proxies, caches, brokers and application servers under load: the same answers, over
reloads, restarts from their files and killed workers; and the same ends."""

import hashlib
import http.server
import os
import re
import signal
import socket
import subprocess
import sys

import harness
from harness import check, need, output, version
from services import Daemon, Origin, children, listens, whole, wrong
from test_servers import Server

THREADS = 6
WSGI_PATHS = ["/make/%d" % (i % 40) for i in range(60)] + ["/thread/%d" % i for i in range(6)] + [
    "/child/%d" % i for i in range(4)] + ["/nowhere"]
PATHS = ["/%d" % (i % 50) for i in range(120)] + ["/moved", "/nowhere"]


# --- databases ---

SQL = [
    "CREATE TABLE t (id INT PRIMARY KEY, k INT, s VARCHAR(60), v DOUBLE, b BLOB, KEY (k)) "
        "ENGINE=InnoDB",
    "INSERT INTO t SELECT seq, seq * 7919 % 1009, CONCAT('name ', seq * 31 % 4099), seq / 7, "
        "REPEAT(CHAR(65 + seq % 26), seq % 400) FROM seq_1_to_40000",
    "SELECT COUNT(*), SUM(k), MAX(s), ROUND(SUM(v), 3), SUM(LENGTH(b)) FROM t",
    "SELECT s, COUNT(*) n, AVG(k) FROM t GROUP BY s ORDER BY n DESC, s LIMIT 5",
    "SELECT COUNT(*), SUM(a.id) FROM t a JOIN t b ON a.k = b.k AND a.id < b.id",
    "SELECT k, MAX(r) FROM (SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) r FROM t) x "
        "GROUP BY k LIMIT 4",
    "WITH RECURSIVE f (n, a, b) AS (SELECT 1, 0, 1 UNION ALL SELECT n + 1, b, a + b FROM f WHERE n "
        "< 60) SELECT MAX(a) FROM f",
    "SELECT MD5(GROUP_CONCAT(s ORDER BY id)) FROM t WHERE k < 30",
    "CREATE TABLE m (id INT, w TEXT, FULLTEXT (w)) ENGINE=Aria; INSERT INTO m SELECT id, CONCAT(s, "
        "' word', k) FROM t",
    "SELECT COUNT(*) FROM m WHERE MATCH (w) AGAINST ('word77')",
    "ALTER TABLE t ADD COLUMN j JSON DEFAULT ('{\"a\": [1, 2, 3]}'), ADD INDEX (s)",
    "SELECT SUM(JSON_EXTRACT(j, '$.a[1]')) FROM t",
    "START TRANSACTION; DELETE FROM t WHERE k % 3 = 0; ROLLBACK; DELETE FROM t WHERE k % 5 = 0; "
        "OPTIMIZE TABLE t",
    "SELECT COUNT(*), SUM(id) FROM t; CHECKSUM TABLE t",
    "SET STATEMENT max_statement_time = 1 FOR SELECT COUNT(*) FROM t a, t b, t c WHERE a.v + b.v + "
        "c.v = 0.5",
    "SELECT * FROM nothing",
    "INSERT INTO t (id) VALUES (7), (7)",
]


def mariadb(job):
    need("mariadb", "mariadb-install-db")
    program = need("mariadbd")
    job.about("MariaDB " + version([program, "--version"], r"Ver ([\d.]+)"),
              "queries, full-text search, ALTER, a statement that is cut off, clients at once, a "
              "kill and the recovery")

    def session(side):
        options = ["--no-defaults", "--datadir=" + side.path("data"), "--user=root"]
        made = side.run([need("mariadb-install-db"), *options,
                         "--auth-root-authentication-method=normal", "--skip-test-db"], rc=0)
        argv = [program, *options, "--socket=" + side.path("s"), "--skip-networking",
                "--innodb-buffer-pool-size=64M", "--pid-file=" + side.path("pid")]

        def say(query):
            return output(side, side.run([need("mariadb"), "--no-defaults", "-u", "root", "-N",
                                          "-S", side.path("s"), "-e", query] +
                                         ([] if query == "SELECT 1"
                                          or query.startswith("CREATE DATABASE") else ["d"])))

        def start():
            return Daemon(side, argv, lambda: say("SELECT 1")[1] == b"1\n")

        got = {"made": made[0]}
        s = start()
        try:
            got["database"] = say("CREATE DATABASE d")
            got["queries"] = [say(q) for q in SQL]
            seen = {}

            def client(k):
                seen[k] = [say("SELECT COUNT(*), SUM(id), MAX(s) FROM t WHERE k %% 6 = %d; INSERT "
                               "INTO m SELECT %d, REPEAT('w', %d)" % (k, i, i * 50))
                           for i in range(8)]
            harness.at_once(client, 5)
            got["clients"] = sorted(seen.items())
            got["before the kill"] = say("CHECKSUM TABLE t; SELECT COUNT(*) FROM m")
        finally:
            got["killed"] = s.stop(signal.SIGKILL)
        s = start()
        try:
            got["recovered"] = say("CHECKSUM TABLE t; CHECK TABLE t")
        finally:
            got["end"] = s.stop()
        got["wrong"] = wrong(s.log)
        return got

    got = job.both(session)
    check(got["end"] == "status 0" and not got["wrong"], "it ends with %s" % got)
    check(got["queries"][2][1].startswith(b"40000\t")
          and b"max_statement_time" in got["queries"][14][2], "queries: %s" % got["queries"])
    return whole(job, 50000, 10)


SLAPD = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
pidfile %(top)s/pid
modulepath /usr/lib/ldap
moduleload back_mdb
sizelimit unlimited
database mdb
maxsize 67108864
suffix "dc=example,dc=org"
rootdn "cn=admin,dc=example,dc=org"
rootpw secret
directory %(top)s/data
index objectClass eq
index uid,cn eq,sub
"""


def slapd(job):
    program = need("slapd")
    need("slapadd", "ldapsearch", "ldapadd", "ldapmodify")
    job.about("OpenLDAP " + version([program, "-V"], r"slapd ([\d.]+)"),
              "entries loaded, added, changed; searches by clients at once; a restart")

    def session(side):
        os.makedirs(side.path("data"))
        with open(side.path("conf"), "w") as f:
            f.write(SLAPD % {"top": side.top})
        entry = ("dn: uid=u%d,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: u%d\ncn: Name "
                 "%d\nsn: %s\nmail: u%d@example.org\n\n")

        def entries(numbers):
            return "".join(entry % (i, i, i * 7919 % 1009, "x" * (i % 90 + 1), i) for i in numbers)
        with open(side.path("in.ldif"), "w") as f:
            f.write("dn: dc=example,dc=org\nobjectClass: dcObject\nobjectClass: organization\no: "
                    "e\ndc: example\n\n" + entries(range(2000)))
        got = {"load": side.run([need("slapadd"), "-q", "-f", side.path("conf"), "-l",
                                 side.path("in.ldif")])[0]}
        port = harness.free_port()
        url = "ldap://127.0.0.1:%d" % port
        who = ["-x", "-H", url, "-D", "cn=admin,dc=example,dc=org", "-w", "secret"]
        argv = [program, "-f", side.path("conf"), "-h", url, "-d", "0"]

        def search(*words):
            return output(side, side.run([need("ldapsearch"), "-LLL", "-x", "-H", url, "-b",
                                          "dc=example,dc=org", *words]))

        def all_of_it():
            end, out, err = search("(objectClass=*)")
            return end, hashlib.sha256(b"\n\n".join(sorted(out.split(b"\n\n")))).hexdigest(), err

        s = Daemon(side, argv, lambda: listens(port))
        try:
            got["all"] = all_of_it()
            got["add"] = output(side, side.run([need("ldapadd"), *who],
                                               data=entries(range(2000, 2600)).encode()))
            change = "".join("dn: uid=u%d,dc=example,dc=org\nchangetype: modify\nreplace: sn\nsn: "
                             "changed %d\n\n" % (i, i) for i in range(0, 900, 3))
            change += "".join("dn: uid=u%d,dc=example,dc=org\nchangetype: delete\n\n" % i
                              for i in range(1, 900, 7))
            got["change"] = output(side, side.run([need("ldapmodify"), *who], data=change.encode()))
            seen = {}

            def client(k):
                seen[k] = [search("(cn=*%d*)" % (k * 10 + i), "uid", "sn") for i in range(10)]
            harness.at_once(client, 4)
            got["searches"] = sorted(seen.items())
            got["errors"] = [search("(&(broken"), search("-b", "dc=nothing"),
                             output(side,
                                    side.run([need("ldapadd"), *who], data=entries([5]).encode()))]
            got["changed"] = all_of_it()
        finally:
            got["end"] = s.stop()
        s = Daemon(side, argv, lambda: listens(port))
        try:
            got["again"] = all_of_it()
        finally:
            got["end again"] = s.stop(signal.SIGINT)
        return got

    got = job.both(session)
    check(got["load"] == 0 and got["end"] == "status 0"
          and got["again"] == got["changed"] != got["all"], "it ends with %s" % got)
    return whole(job, 10000, 10)


def memcached(job):
    program = need("memcached")
    job.about("memcached " + version([program, "--version"], r"([\d.]+)"),
              "sets, gets, counts and evictions by clients at once, in its threads")

    def session(side):
        path = side.path("s")
        s = Daemon(side, [program, "-u", "root", "-s", path, "-m", "64", "-t", "4", "-I", "2m"],
                   lambda: os.path.exists(path))
        seen = {}

        def client(k):
            c = socket.socket(socket.AF_UNIX)
            c.connect(path)
            f, total = c.makefile("rwb"), hashlib.sha256()
            for i in range(1500):
                body = b"%d " % i * (i * 31 % 400)
                f.write(b"set c%d-%d 0 0 %d\r\n%s\r\nget c%d-%d\r\n"
                        % (k, i, len(body), body, k, i))
                if i % 7 == 0:
                    f.write(b"delete c%d-%d\r\nget c%d-%d\r\nset n%d 0 0 1\r\n5\r\nincr n%d "
                            b"37\r\nappend n%d 0 0 1\r\nx\r\n" % (k, i, k, i, k, k, k))
                f.write(b"mn\r\n")
                f.flush()
                while (line := f.readline()) != b"MN\r\n":
                    check(line, "the server closes")
                    total.update(line)
            seen[k] = total.hexdigest()
            c.close()
        try:
            harness.at_once(client, 6)
            got = {"clients": sorted(seen.items())}
            c = socket.socket(socket.AF_UNIX)
            c.connect(path)
            f = c.makefile("rwb")
            for words in (b"set big 0 0 3000000\r\n" + b"x" * 3000000 + b"\r\n", b"nothing\r\n",
                          b"flush_all\r\n", b"get c1-1\r\n"):
                f.write(words)
                f.flush()
                got[words[:12]] = f.readline()
            c.close()
        finally:
            got["end"] = s.stop()
        got["log"] = wrong(s.log)
        return got

    got = job.both(session)
    check(len(got["clients"]) == 6 and got[b"get c1-1\r\n"] == b"END\r\n", "answers: %s" % got)
    return got["end"] + ", " + whole(job, 100)


def mosquitto(job):
    program = need("mosquitto")
    need("mosquitto_pub", "mosquitto_sub")
    job.about("mosquitto " + version([program, "-h"], r"version ([\d.]+)"),
              "messages of three qualities to subscribers, retained ones over a restart")

    def session(side):
        port = harness.free_port()
        with open(side.path("conf"), "w") as f:
            f.write("listener %d 127.0.0.1\nallow_anonymous true\nuser root\npersistence "
                    "true\npersistence_location %s/\nmax_queued_messages 0\n" % (port, side.top))
        argv = [program, "-c", side.path("conf")]

        def publish(*words, data=None):
            return output(side, side.run([need("mosquitto_pub"), "-h", "127.0.0.1", "-p", str(port),
                                          *words], data=data))

        def subscribe(count, *words):
            p = side.start([need("mosquitto_sub"), "-h", "127.0.0.1", "-p", str(port), "-C",
                            str(count), "-W", "60", *words],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            return p

        def told(p):
            out, err = p.communicate(timeout=90)
            return harness.how(p.returncode), hashlib.sha256(
                b"\n".join(sorted(out.split(b"\n")))).hexdigest(), err
        got = {}
        s = Daemon(side, argv, lambda: listens(port))
        try:
            # a session that the broker keeps, so that no message comes too early
            for q in (0, 1, 2):
                got["session %d" % q] = told(subscribe(1, "-E", "-c", "-i", "s%d" % q, "-q", "2",
                                                       "-t", "a/+/%d" % q))
            for q in (1, 2):
                lines = b"".join(b"%d %s\n" % (i, b"x" * (i * 31 % 700)) for i in range(2500))
                got["published %d" % q] = publish("-q", str(q), "-t", "a/b/%d" % q, "-l",
                                                  data=lines)
                got["told %d" % q] = told(subscribe(2500, "-c", "-i", "s%d" % q, "-q", "2", "-t",
                                                    "a/+/%d" % q))
            for i in range(1, 26):
                got["retained %d" % i] = publish("-r", "-q", "1", "-t", "kept/%d" % i, "-m",
                                                 "y" * i * 200)
            got["kept"] = told(subscribe(25, "-t", "kept/#", "-v"))
        finally:
            got["end"] = s.stop()
        s = Daemon(side, argv, lambda: listens(port))
        try:
            got["kept over a restart"] = told(subscribe(25, "-t", "kept/#", "-v"))
            got["refused"] = publish("-t", "wrong/#", "-m", "x")
        finally:
            got["end again"] = s.stop(signal.SIGINT)
        got["wrong"] = wrong(s.log)
        return got

    got = job.both(session)
    check(got["end"] == "status 0" and not got["wrong"] and got["kept"][0] == "status 0"
          and got["told 2"][0] == "status 0", "it ends with %s" % got)
    return whole(job, 10000, 10)


# --- proxies ---

HAPROXY = """
global
    maxconn 500
    nbthread 3
    stats socket %(top)s/stats mode 600 level admin expose-fd listeners
defaults
    mode http
    timeout connect 20s
    timeout client 60s
    timeout server 60s
    retries 3
frontend f
    bind 127.0.0.1:%(port)d
    compression algo gzip
    compression type text/plain
    acl many path_reg ^/[0-9]+$
    http-request deny deny_status 410 if { path /denied }
    use_backend a if many
    default_backend b
backend a
    balance roundrobin
    http-reuse safe
    server one 127.0.0.1:%(origin)d
    server two 127.0.0.1:%(origin)d
backend b
    http-response set-header X-B 1
    server one 127.0.0.1:%(origin)d
"""


def haproxy(job):
    program = need("haproxy")
    job.about("HAProxy " + version([program, "-v"], r"version ([\d.]+)"),
              "a master and its worker with three threads, compression, reloads under load")

    def session(side):
        port = harness.free_port()
        with Origin() as origin:
            with open(side.path("conf"), "w") as f:
                f.write(HAPROXY % {"top": side.top, "port": port, "origin": origin.port})
            got = {"check": side.run([program, "-c", "-f", side.path("conf")])[0]}
            s = Daemon(side, [program, "-W", "-f", side.path("conf")], lambda: listens(port))
            try:
                got["load"] = harness.requests(port, PATHS + ["/denied"], THREADS)
                for _ in range(2):
                    s.p.send_signal(signal.SIGUSR2)
                    got.setdefault("while it reloads", []).append(harness.requests(port, PATHS, 3))
                harness.wait_for(lambda: listens(port), s.tail)
                got["after it"] = harness.requests(port, PATHS, 2)
            finally:
                got["end"] = s.stop()
        got["wrong"] = wrong(s.log)
        return got

    got = job.both(session)
    check(got["check"] == 0 and not got["wrong"] and got["load"]["/denied"][0][0] == 410
          and got["load"]["/7"][0][0] == 200, "answers: %s" % got)
    return "%s, %s" % (got["end"], whole(job, 500, 3))


VCL = """vcl 4.1;
import std;
backend default { .host = "127.0.0.1"; .port = "%d"; }
sub vcl_recv { if (req.url == "/synth") { return (synth(418, "Teapot")); } if (req.url ~ "9$") { return (pass); } if (req.method == "PURGE") { return (purge); } }
sub vcl_backend_response { set beresp.do_gzip = true; set beresp.ttl = 1h; }
sub vcl_deliver { unset resp.http.X-Varnish; unset resp.http.Age; unset resp.http.Via; set resp.http.X-Rev = regsub(req.url, "^/", std.toupper("p")); }
sub vcl_synth { set resp.http.Content-Type = "text/plain"; synthetic("short and stout"); return (deliver); }
"""


def varnish(job):
    program = need("varnishd")
    need("varnishadm", "gcc")
    job.about("Varnish " + version([program, "-V"], r"varnish-([\d.]+)"), "compiles its "
              "configuration twice, caches, passes, purges under load; its child is killed")

    def session(side):
        port = harness.free_port()
        with Origin() as origin:
            with open(side.path("v.vcl"), "w") as f:
                f.write(VCL % origin.port)
            admin = [need("varnishadm"), "-n", side.path("n")]
            s = Daemon(side, [program, "-F", "-n", side.path("n"), "-a", "127.0.0.1:%d" % port,
                              "-f", side.path("v.vcl"), "-s", "malloc,64m",
                              "-j", "none", "-p", "thread_pool_min=20"], lambda: listens(port))
            got = {}
            try:
                paths = PATHS + ["/synth"]
                got["load"] = harness.requests(port, paths, THREADS)
                got["from its cache"] = harness.requests(port, paths, THREADS)
                got["loaded"] = [output(side, side.run([*admin, *words])) for words in
                                 (["vcl.load", "again", side.path("v.vcl")], ["vcl.use", "again"],
                                  ["ban", "req.url ~ 7"], ["vcl.load", "wrong", "/dev/null"])]
                got["after it"] = harness.requests(port, paths, 3)
                pids = re.findall(rb"Child \((\d+)\) Started", open(s.log, "rb").read())
                os.kill(int(pids[-1]), signal.SIGKILL)
                harness.wait_for(lambda: len(re.findall(rb"Child \(\d+\) Started",
                                                        open(s.log, "rb").read())) > len(pids),
                                 s.tail)
                harness.wait_for(lambda: listens(port), s.tail)
                got["after a kill"] = harness.requests(port, paths, 3)
            finally:
                got["end"] = s.stop()
        got["wrong"] = wrong(s.log, ("signal=11", "signal=6", "Panic", "Assert", "whyoom: "))
        return got

    got = job.both(session)
    check(not got["wrong"] and got["loaded"][0][0] == "status 0"
          and got["load"]["/synth"][0][0] == 418, "answers: %s" % got)
    return "%s, %s" % (got["end"], whole(job, 5000, 3))


SQUID = """
http_port 127.0.0.1:%(port)d
http_access deny denied
http_access allow all
cache_mem 32 MB
cache_dir ufs %(top)s/cache 50 4 16
maximum_object_size_in_memory 4 KB
pid_filename %(top)s/pid
access_log stdio:%(top)s/access.log
cache_log %(top)s/cache.log
coredump_dir %(top)s
pinger_enable off
shutdown_lifetime 1 seconds
visible_hostname localhost
logfile_rotate 1
netdb_filename none
"""


def squid(job):
    program = need("squid")
    need("curl")
    job.for_user("proxy")
    job.about("Squid " + version([program, "--version"], r"Version ([\d.]+)"),
              "a cache on the disk, an access list, a reload, a restart from it")

    def session(side):
        port = harness.free_port()
        with Origin() as origin:
            with open(side.path("conf"), "w") as f:
                f.write("acl denied urlpath_regex denied\n" + SQUID
                        % {"top": side.top, "port": port})
            # -n: its names in /dev/shm
            argv = [program, "-f", side.path("conf"), "-n", "harm%d" % port]
            got = {"check": side.run([*argv, "-k", "parse"])[0],
                   "made": side.run([*argv, "-N", "-z"])[0]}

            def fetch(numbers):
                urls = [w for i in numbers for w in ("http://127.0.0.1:%d/%s" % (origin.port, i),
                                                     "-o", "%s.out" % i)]
                end = side.run([need("curl"), "-s", "--parallel", "--parallel-max", "6", "-w",
                                "%{http_code} %{url}\n", "-x", "127.0.0.1:%d" % port, *urls],
                               preload=False)
                found = {}
                for i in numbers:
                    with open(side.path("%s.out" % i), "rb") as f:
                        found[i] = hashlib.sha256(f.read()).hexdigest() if str(
                            i).isdigit() else None
                return end[0], sorted(re.sub(rb"http://[^/]*", b"", x)
                                      for x in end[1].splitlines()), found
            s = Daemon(side, [*argv, "-N", "-d", "1"], lambda: listens(port))
            try:
                got["load"] = fetch([*range(1, 60), "denied", "moved"])
                got["again"] = fetch([*range(1, 60), "nothing"])
                got["reload"] = side.run([*argv, "-k", "reconfigure"])[0]
                harness.wait_for(lambda: listens(port), s.tail)
                got["rotate"] = side.run([*argv, "-k", "rotate"])[0]
                harness.wait_for(lambda: listens(port)
                                 and os.path.exists(side.path("access.log.0")), s.tail)
                got["after it"] = fetch(range(1, 60))
            finally:
                got["end"] = s.stop()
            s = Daemon(side, [*argv, "-N", "-d", "1"], lambda: listens(port))
            try:
                got["after a restart"] = fetch(range(1, 60))
            finally:
                got["end again"] = s.stop()
        got["wrong"] = wrong(s.log) + wrong(side.path("cache.log"))
        return got

    got = job.both(session)
    check(got["end"] == "status 0" and not got["wrong"] and got["load"][1][0].startswith(b"200"),
          "answers: %s" % got)
    return whole(job, 5000, 3)


# --- web and application servers ---

APACHE = """
ServerRoot %(top)s
ServerName localhost
Listen 127.0.0.1:%(port)d
PidFile %(top)s/pid
User nobody
Group nogroup
ErrorLog %(top)s/error.log
%(modules)s
DocumentRoot %(top)s/www
StartServers 2
ServerLimit 4
ThreadsPerChild 10
MaxRequestWorkers 40
MinSpareThreads 10
MaxSpareThreads 40
MaxConnectionsPerChild 60
KeepAlive On
ScriptSock %(top)s/cgi
AddOutputFilterByType DEFLATE text/plain
TypesConfig /dev/null
AddType text/plain .txt
RewriteEngine On
RewriteRule ^/r/(.*)$ /$1 [PT]
ScriptAlias /cgi/ %(top)s/www/cgi/
ProxyPass /inner/ http://127.0.0.1:%(origin)d/
<Directory %(top)s/www>
Require all granted
Options +Indexes +ExecCGI
</Directory>
"""
MODULES = ("mpm_event authz_core dir mime alias rewrite deflate filter autoindex cgid proxy "
           "proxy_http setenvif").split()


def apache(job):
    """As root it refuses to run as root, as it was built: there as nobody."""
    program = need("apache2")
    job.for_user("nobody")
    job.about("Apache " + version([program, "-v"], r"Apache/([\d.]+)"),
              "the event MPM: files, compression, CGI, a proxy; processes that are replaced, one "
              "killed; a graceful restart")

    def session(side):
        port = harness.free_port()
        os.makedirs(side.path("www", "cgi"))
        for i in range(30):
            with open(side.path("www", "%d.txt" % i), "w") as f:
                f.write("".join("%d %d\n" % (i, j * 7919 % 1009) for j in range(i * 400 + 1)))
        with open(side.path("www", "cgi", "c"), "w") as f:
            f.write("#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\nseq 1 2000 | sort "
                    "-rn\necho \"$QUERY_STRING\"\n")
        os.chmod(side.path("www", "cgi", "c"), 0o755)
        modules = "\n".join("LoadModule %s_module /usr/lib/apache2/modules/mod_%s.so" % (m, m)
                            for m in MODULES)
        with Origin() as origin:
            with open(side.path("conf"), "w") as f:
                f.write(APACHE % {"top": side.top, "port": port, "origin": origin.port,
                                  "modules": modules})
            argv = [program, "-f", side.path("conf"), "-D", "FOREGROUND"]
            got = {"check": side.run([program, "-t", "-f", side.path("conf")])[0]}
            paths = (["/%d.txt" % (i % 30) for i in range(90)]
                     + ["/inner/%d" % i for i in range(20)] + ["/cgi/c?%d" % i for i in range(6)] +
                     ["/r/%d.txt" % i for i in range(9)] + ["/", "/none", "/cgi/none"])
            s = Daemon(side, argv, lambda: listens(port))
            try:
                got["load"] = harness.requests(port, paths, THREADS)
                s.p.send_signal(signal.SIGUSR1)
                got["while it restarts"] = harness.requests(port, paths, 4)
                os.kill(max(children(s)), signal.SIGKILL)
                got["after a kill"] = harness.requests(port, paths, 4)
                s.p.send_signal(signal.SIGHUP)
                harness.wait_for(lambda: listens(port), s.tail)
                got["after a restart"] = harness.requests(port, paths, 4)
            finally:
                got["end"] = s.stop()
        got["wrong"] = wrong(side.path("error.log"),
                             ("Segmentation", "exit signal Abort", "whyoom: "))
        return got

    got = job.both(session)
    check(got["end"] == "status 0" and not got["wrong"] and got["load"]["/29.txt"][0][0] == 200
          and got["load"]["/cgi/c?3"][0][0] == 200, "answers: %s" % got)
    return whole(job, 500, 5)


FPM = """
[global]
error_log = %(top)s/error.log
daemonize = no
[www]
listen = %(top)s/s
user = root
pm = static
pm.max_children = 3
pm.max_requests = 40
clear_env = yes
php_admin_flag[display_errors] = off
catch_workers_output = yes
"""
FPM_PROGRAM = r"""<?php
$n = (int)($_GET['n'] ?? 0); $what = $_GET['what'] ?? '';
if ($what == 'memory') { ini_set('memory_limit', '16M'); $x = ''; while (true) $x .= str_repeat('y', 100000); }
if ($what == 'throw') throw new Exception('on purpose');
if ($what == 'child') { echo exec("echo child $n"); exit; }
$a = []; for ($i = 0; $i < 4000; $i++) $a["k" . $i * 7919 % 5003] = str_repeat("x", $i * $n % 90);
ksort($a); echo md5(serialize($a)), "\n", preg_replace('/(\d)(\d)/', '$2$1', implode(',', array_keys($a))), "\n", json_encode(array_slice($a, 0, 50));
"""
FPM_NGINX = """
daemon off; master_process off; pid %(top)s/n.pid; error_log %(top)s/n.log;
events {}
http {
    access_log off; client_body_temp_path %(top)s/b; proxy_temp_path %(top)s/p; fastcgi_temp_path %(top)s/f; uwsgi_temp_path %(top)s/u; scgi_temp_path %(top)s/c;
    server { listen 127.0.0.1:%(port)d;
        location / { fastcgi_pass unix:%(top)s/s; fastcgi_param SCRIPT_FILENAME %(top)s/t.php; fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD GET; } }
}
"""


def php_fpm(job):
    """Behind nginx, which is not recorded here."""
    nginx = need("nginx")
    found = sorted(n for n in os.listdir("/usr/sbin") if n.startswith("php-fpm"))
    program = need(found[-1] if found else "php-fpm")
    job.about("PHP-FPM " + version([program, "-v"], r"PHP ([\d.]+)"),
              "workers that are replaced, one killed, a reload, a script over its memory limit")

    def session(side):
        port = harness.free_port()
        for name, text in (("fpm", FPM), ("t.php", FPM_PROGRAM), ("nginx", FPM_NGINX)):
            with open(side.path(name), "w") as f:
                f.write(text % {"top": side.top, "port": port} if name != "t.php" else text)
        argv = [program, "-n", "-F", "-y", side.path("fpm")] + (["-R"] if os.getuid() == 0 else [])
        s = Daemon(side, argv, lambda: os.path.exists(side.path("s")))
        paths = ["/?n=%d" % (i % 30) for i in range(80)] + ["/?what=memory", "/?what=throw",
                                                            "/?what=child&n=3"]
        got = {}
        try:
            with open(side.path("front.log"), "wb") as log:
                front = side.start([nginx, "-c", side.path("nginx"), "-p", side.top], preload=False,
                                   stdout=log, stderr=log)
            try:
                harness.wait_for(lambda: listens(port), s.tail)
                got["load"] = harness.requests(port, paths, THREADS)
                victim = min(children(s))
                os.kill(victim, signal.SIGKILL)
                # a request that it had accepted would be lost
                harness.wait_for(lambda: len(children(s) - {victim}) == 3, s.tail)
                got["after a kill"] = harness.requests(port, paths, 3)
                s.p.send_signal(signal.SIGUSR2)
                harness.wait_for(lambda: "reloading" in open(side.path("error.log")).read(), s.tail)
                harness.wait_for(lambda: harness.Connection(port).get("/?n=1")[0] == 200, s.tail)
                got["after a reload"] = harness.requests(port, paths, 3)
            finally:
                front.kill()
                front.wait()
        finally:
            got["end"] = s.stop(signal.SIGQUIT)
        got["wrong"] = wrong(side.path("error.log"), ("SIGSEGV", "SIGABRT", "whyoom: "))
        return got

    got = job.both(session)
    check(got["end"] == "status 0" and not got["wrong"] and got["load"]["/?n=7"][0][0] == 200
          and got["load"]["/?what=memory"][0][0] == 500,
          "answers: %s" % got)
    return whole(job, 500, 5)


def uwsgi(job):
    """It closes the connection where an application raises, so /fail is not asked."""
    program = need("uwsgi")
    job.about("uWSGI " + version([program, "--version"], r"([\d.]+)"),
              "preforked workers with threads under load, one killed, a graceful reload")

    def session(side):
        port = harness.free_port()
        s = Server(side, [program, "--plugin", "python3", "--http-socket", "127.0.0.1:%d" % port,
                          "--master", "--processes", "3", "--threads", "3",
                          "--enable-threads", "--chdir", harness.HERE, "--wsgi", "app:wsgi",
                          "--max-requests", "150", "--die-on-term", "--disable-logging",
                          "--py-call-osafterfork"], port, env={"PYTHONDONTWRITEBYTECODE": "1"})
        got = {}
        try:
            got["load"] = harness.requests(port, WSGI_PATHS, THREADS)
            victims = s.workers(2)
            os.kill(min(victims), signal.SIGKILL)
            harness.wait_for(lambda: len(s.workers(2) - victims) > 0, s.tail)
            got["after a kill"] = harness.requests(port, WSGI_PATHS, THREADS)
            before = victims | s.workers(2)
            s.p.send_signal(signal.SIGHUP)
            harness.wait_for(lambda: not s.workers(1) & before, s.tail)
            got["after a reload"] = harness.requests(port, WSGI_PATHS, THREADS)
        finally:
            got["end"] = harness.stop(s.p, signal.SIGTERM, s.tail)
        got["wrong"] = s.wrong()
        return got

    got = job.both(session)
    check(got["end"] == "status 0" and not got["wrong"] and got["load"]["/make/7"][0][0] == 200,
          "it ends with %s" % got)
    return whole(job, 2000, 4)


CASES = {"mariadb": mariadb, "slapd": slapd, "memcached": memcached, "mosquitto": mosquitto,
         "haproxy": haproxy, "varnish": varnish,
         "squid": squid, "apache": apache, "php-fpm": php_fpm, "uwsgi": uwsgi}

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
