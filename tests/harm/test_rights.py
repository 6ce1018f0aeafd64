#!/usr/bin/env python3
"""Servers that start as root and give up their rights: the same answers, and no event is lost."""

import grp
import hashlib
import http.client
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys

import harness
from harness import Skip, check, need, version

APACHE = """
ServerRoot %(top)s
PidFile %(top)s/pid
Listen 127.0.0.1:%(port)d
ServerName localhost
User %(user)s
Group %(group)s
DefaultRuntimeDir %(top)s
LoadModule mpm_%(mpm)s_module /usr/lib/apache2/modules/mod_mpm_%(mpm)s.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
LoadModule filter_module /usr/lib/apache2/modules/mod_filter.so
AddOutputFilterByType DEFLATE text/plain
ErrorLog %(top)s/error.log
DocumentRoot %(top)s/www
"""
NGINX = """
daemon off; pid %(top)s/pid; error_log %(top)s/error.log notice; worker_processes 2; user %(user)s %(group)s;
events { worker_connections 256; }
http {
    access_log off; client_body_temp_path %(top)s/b; proxy_temp_path %(top)s/p;
    fastcgi_temp_path %(top)s/f; uwsgi_temp_path %(top)s/u; scgi_temp_path %(top)s/s;
    default_type text/plain; gzip on; gzip_types text/plain; gzip_min_length 100;
    server { listen 127.0.0.1:%(port)d; root %(top)s/www; }
}
"""
SQUID = """
http_port 127.0.0.1:%(port)d
cache_effective_user %(user)s
pid_filename none
cache_log %(top)s/cache.log
access_log none
cache_mem 16 MB
coredump_dir %(top)s
pinger_enable off
acl here src 127.0.0.1
http_access allow here
shutdown_lifetime 1 second
"""


def user_of(*names):
    """The first of these users that there is, and its group."""
    for name in names:
        try:
            found = pwd.getpwnam(name)
            return name, found.pw_uid, found.pw_gid
        except KeyError:
            pass
    raise Skip("there is none of the users %s" % " ".join(names))


def reachable(job):
    """The job moves to where every user can go: the tree itself may lie in somebody's home."""
    if os.getuid():
        raise Skip("needs root")
    shutil.rmtree(job.top)
    job.begin("/var/tmp")
    os.chmod(job.top, 0o755)
    job.shim = shutil.copy(harness.SHIM, os.path.join(job.top, "libwhyoom.so"))
    for side in job.sides:
        os.chmod(side.top, 0o777)


def pages(top):
    os.makedirs(os.path.join(top, "www"))
    for i in range(20):
        with open(os.path.join(top, "www", "%d.txt" % i), "w") as f:
            f.write("".join("%d %d\n" % (i, j * 7919 % 1009) for j in range(i * 300 + 1)))
    return ["/%d.txt" % (i % 20) for i in range(400)] + ["/none"]


class Started:
    """A server, until it is stopped."""

    def __init__(self, side, argv, port):
        self.log = side.path("server.log")
        with open(self.log, "ab") as log:
            # Apache ends its whole process group.
            self.p = side.start(argv, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        harness.wait_for(lambda: self.p.poll() is not None or self.listens(port), self.tail)
        check(self.p.poll() is None, "it does not start: " + self.tail())

    def listens(self, port):
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
            return True
        except OSError:
            return False

    def tail(self):
        with open(self.log, errors="replace") as f:
            return f.read()[-2000:]


def web(side, argv, conf, port, sig, **names):
    paths = pages(side.top)
    with open(side.path("conf"), "w") as f:
        f.write(conf % {"top": side.top, "port": port, **names})
    s = Started(side, argv + [side.path("conf")], port)
    try:
        got = {"load": harness.requests(port, paths, 6), "again": harness.requests(port, paths, 6)}
    finally:
        got_end = harness.stop(s.p, sig, s.tail)
    return {**got, "end": got_end}


def finish(job, got, least, processes=1):
    check(got["end"] in ("status 0", "SIGTERM"), "it ends with " + got["end"])
    found = job.preload.traces(least=least, processes=processes)
    check(any(p["rights"]["given_up_seconds"] for p in found), "no right was given up")
    check(not any(p["rights"]["stopped_seconds"] or p["rights"]["children"] for p in found),
          "the recording stopped")
    return "%d traces, %d events, none lost" % (len(found), sum(p["events"] for p in found))


def apache(job, mpm):
    program = need("apache2")
    user, _, gid = user_of("www-data", "nobody")
    reachable(job)
    job.about("apache2 " + version([program, "-v"], r"Apache/([\d.]+)"),
              "started as root, workers (%s) of another user, under load" % mpm)
    group = grp.getgrgid(gid).gr_name
    got = job.both(lambda side: web(side, [program, "-DFOREGROUND", "-f"], APACHE,
                                    harness.free_port(), signal.SIGTERM, user=user,
                                    group=group, mpm=mpm))
    return finish(job, got, 1000, 3)


def nginx(job):
    program = need("nginx")
    user, _, gid = user_of("www-data", "nobody")
    reachable(job)
    job.about("nginx " + version([program, "-v"], r"nginx/([\d.]+)"),
              "started as root, workers of another user, under load")
    group = grp.getgrgid(gid).gr_name
    got = job.both(lambda side: web(side, [program, "-p", side.top, "-c"], NGINX,
                                    harness.free_port(), signal.SIGQUIT, user=user, group=group))
    return finish(job, got, 1000, 3)


def memcached(job):
    program = need("memcached")
    user_of("nobody")
    reachable(job)
    job.about("memcached " + version([program, "-V"], r"([\d.]+)"),
              "started as root, -u nobody: values stored and read by 4 clients")

    def session(side):
        port = harness.free_port()
        s = Started(side, [program, "-u", "nobody", "-l", "127.0.0.1", "-p", str(port), "-U", "0",
                           "-m", "64", "-t", "4"], port)
        answers = []

        def client(me):
            c = socket.create_connection(("127.0.0.1", port), 30)
            f = c.makefile("rwb")
            digest = hashlib.sha256()
            for i in range(3000):
                value = b"%d " % i * (i % 900 + 1)
                f.write(b"set k%d-%d 0 0 %d\r\n%s\r\nget k%d-%d\r\n"
                        % (me, i, len(value), value, me, i))
                f.flush()
                for _ in range(4):
                    digest.update(f.readline())
            answers.append((me, digest.hexdigest()))
            c.close()
        try:
            harness.at_once(client, 4)
        finally:
            end = harness.stop(s.p, signal.SIGTERM, s.tail)
        return {"load": sorted(answers), "end": end}
    got = job.both(session)
    check(len(got["load"]) == 4, "answers: %s" % got["load"])
    return finish(job, got, 100)


def packet(kind, body):
    length = b""
    n = len(body)
    while True:
        length += bytes([n % 128 | (128 if n >= 128 else 0)])
        n //= 128
        if not n:
            return bytes([kind]) + length + body


def text(s):
    return struct.pack(">H", len(s)) + s


def next_packet(f):
    kind, n, shift = f.read(1)[0], 0, 0
    while True:
        b = f.read(1)[0]
        n |= (b & 127) << shift
        shift += 7
        if b < 128:
            return kind, f.read(n)


def mosquitto(job):
    program = need("mosquitto")
    user, _, _ = user_of("mosquitto", "nobody")
    reachable(job)
    job.about("mosquitto " + version([program, "-h"], r"version ([\d.]+)"),
              "started as root, becomes another user: 4 clients, retained messages")

    def session(side):
        port = harness.free_port()
        with open(side.path("conf"), "w") as f:
            f.write("user %s\nlistener %d 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n"
                    % (user, port))
        s = Started(side, [program, "-c", side.path("conf")], port)
        answers = []

        def client(me):
            c = socket.create_connection(("127.0.0.1", port), 60)
            f = c.makefile("rwb")
            topic = b"t/%d" % me
            f.write(packet(0x10, text(b"MQTT") + bytes([4, 2]) + struct.pack(">H", 60)
                           + text(b"client%d" % me)))
            f.write(packet(0x82, struct.pack(">H", 1) + text(topic + b"/#") + b"\0"))
            f.flush()
            check(next_packet(f)[0] == 0x20 and next_packet(f)[0] == 0x90, "no connection")
            digest = hashlib.sha256()
            # a topic of its own for each, retained: what the broker holds grows
            for i in range(4000):
                f.write(packet(0x31, text(topic + b"/%d" % i) + b"%d" % i * (i % 300 + 1)))
                f.flush()
                kind, body = next_packet(f)
                digest.update(body)
            f.write(packet(0xe0, b""))
            f.flush()
            answers.append((me, digest.hexdigest()))
            c.close()
        try:
            harness.at_once(client, 4)
        finally:
            end = harness.stop(s.p, signal.SIGTERM, s.tail)
        return {"load": sorted(answers), "end": end}
    got = job.both(session)
    check(len(got["load"]) == 4, "answers: %s" % got["load"])
    return finish(job, got, 20000)


def squid(job):
    program = need("squid")
    user, _, _ = user_of("proxy", "squid", "nobody")
    reachable(job)
    job.about("squid " + version([program, "-v"], r"Version ([\d.]+)"),
              "started as root, becomes another user: pages through it by 4 clients")

    def session(side):
        port, origin = harness.free_port(), harness.free_port()
        paths = pages(side.top)
        with open(side.path("conf"), "w") as f:
            f.write(SQUID % {"top": side.top, "port": port, "user": user})
        http_server = subprocess.Popen([harness.PYTHON, "-m", "http.server", "--bind", "127.0.0.1",
                                        "--directory", side.path("www"), str(origin)],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        s = None
        answers = []

        def client(me):
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            for path in paths:
                c.request("GET", "http://127.0.0.1:%d%s" % (origin, path))
                r = c.getresponse()
                answers.append((path, r.status,
                                hashlib.sha256(r.read() if r.status == 200 else b"").hexdigest()))
                if r.status != 200:
                    r.read()
            c.close()
        try:
            s = Started(side, [program, "-N", "-f", side.path("conf")], port)
            harness.wait_for(lambda: s.listens(origin), "no origin")
            harness.at_once(client, 4)
        finally:
            end = harness.stop(s.p, signal.SIGTERM, s.tail) if s else "nothing"
            http_server.kill()
            http_server.wait()
        return {"load": sorted(set(answers)), "requests": len(answers), "end": end}
    got = job.both(session)
    check(got["requests"] == 1604 and got["load"][0][1] == 200, "answers: %s" % got["load"][:3])
    return finish(job, got, 20000)


CASES = {
    "apache-event": lambda job: apache(job, "event"),
    "apache-prefork": lambda job: apache(job, "prefork"),
    "memcached": memcached,
    "mosquitto": mosquitto,
    "nginx": nginx,
    "squid": squid,
}

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
