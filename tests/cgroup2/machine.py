"""machine.py - a Linux kernel with cgroup v2, as an ordinary program without privileges.

QEMU boots Debian's kernel. Its root is this machine's, read-only over 9p, so that the build tree
and the libraries are there without an image; /mnt is an ext4 image with what the run needs and
leaves. The kernel's package is fetched by apt once and kept in ~/.cache/whyoom-tests."""
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                     "whyoom-tests")
# In the order in which they depend on each other.
MODULES = ("virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk "
           "fscache netfs 9pnet 9pnet_virtio 9p crc16 crc32c_generic mbcache jbd2 ext4 zsmalloc "
           "zram").split()
TOOLS = "sh mount insmod mkdir chroot poweroff cat echo rm umount".split()
INIT = """#!/bin/sh
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for n in 1 2 3; do for m in /lib/m/*.ko; do insmod $m 2>/dev/null && rm $m; done; done
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=512000 root /new || echo "== no root"
mount -t proc proc /new/proc; mount -t sysfs sys /new/sys; mount -t devtmpfs dev /new/dev
mkdir -p /new/dev/shm; mount -t tmpfs shm /new/dev/shm
mount -t tmpfs run /new/run; mount -t tmpfs tmp /new/tmp
mount -t cgroup2 cgroup2 /new/sys/fs/cgroup
mount -t ext4 /dev/vda /new/mnt || echo "== no disk"
chroot /new /bin/bash /mnt/main.sh
echo "== rc $?"
umount /new/mnt
poweroff -f
"""


class Missing(Exception):
    """What cannot be had here."""


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise Missing("%s: %s" % (" ".join(command[:2]), done.stderr.strip()[-300:]))
    return done.stdout


def kernel_package():
    """The newest generic kernel of the archive. The cloud kernel has no 9p."""
    depends = output("apt-cache", "depends", "linux-image-amd64")
    found = re.search(r"Depends: (linux-image-\S+-amd64)", depends)
    if not found:
        raise Missing("apt knows no linux-image-amd64")
    return found[1]


def kernel():
    """The folder with vmlinuz and initrd.gz."""
    if not shutil.which("qemu-system-x86_64"):
        raise Missing("no qemu-system-x86_64")
    name = kernel_package()
    folder = os.path.join(CACHE, name)
    if os.path.exists(os.path.join(folder, "initrd.gz")):
        return folder
    os.makedirs(CACHE, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        output("apt-get", "download", "-q", name, cwd=work)
        deb = next(f for f in os.listdir(work) if f.endswith(".deb"))
        output("dpkg", "-x", deb, "tree", cwd=work)
        made = os.path.join(work, "made")
        os.makedirs(made)
        boot = os.path.join(work, "tree", "boot")
        shutil.copy(os.path.join(boot, next(f for f in os.listdir(boot)
                                            if f.startswith("vmlinuz"))),
                    os.path.join(made, "vmlinuz"))
        initramfs(os.path.join(work, "tree"), work, os.path.join(made, "initrd.gz"))
        os.rename(made, folder)
    return folder


def initramfs(tree, work, path):
    root = os.path.join(work, "root")
    for folder in ("bin", "lib/m", "proc", "sys", "dev", "new"):
        os.makedirs(os.path.join(root, folder))
    shutil.copy("/bin/busybox", os.path.join(root, "bin/busybox"))
    for tool in TOOLS:
        os.symlink("busybox", os.path.join(root, "bin", tool))
    found = {f[:-3]: os.path.join(base, f) for base, _, files in os.walk(tree) for f in files
             if f.endswith(".ko")}
    for number, module in enumerate(MODULES):
        if module in found:  # some are built in
            shutil.copy(found[module], os.path.join(root, "lib/m", "%02d-%s.ko" % (number,
                                                                                  module)))
    with open(os.path.join(root, "init"), "w") as f:
        f.write(INIT)
    os.chmod(os.path.join(root, "init"), 0o755)
    output("sh", "-c", "find . | cpio -o -H newc --quiet | gzip -1 >" + path, cwd=root)


def command_of(folder, image, accelerator, memory):
    return ["qemu-system-x86_64", *accelerator, "-machine", "q35", "-smp", "2", "-m", str(memory),
            "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio",
            "-kernel", folder + "/vmlinuz", "-initrd", folder + "/initrd.gz",
            "-append", "console=ttyS0 quiet panic=-1 oops=panic no_timer_check",
            "-drive", "file=%s,if=virtio,format=raw,cache=unsafe" % image,
            "-fsdev", "local,id=r,path=/,security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=r,mount_tag=root"]


TCG = ("-accel", "tcg,thread=multi", "-cpu", "max")


def boot(content, out, memory, timeout, said):
    """Boots with the folder `content` as /mnt, whose main.sh is run; copies /mnt/out to `out`.
    `said(line)` gets the console's lines. Raises Missing if no line comes."""
    folder = kernel()
    with tempfile.TemporaryDirectory() as work:
        image = os.path.join(work, "disk")
        output("mke2fs", "-q", "-t", "ext4", "-d", content, image, "2G")
        process = subprocess.Popen(command_of(folder, image, TCG, memory), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   errors="replace")
        ended = threading.Timer(timeout, process.kill)
        ended.start()
        lines, started = [], time.monotonic()
        for line in process.stdout:
            lines.append(line.strip())
            said(lines[-1])
        process.wait()
        ended.cancel()
        if not any(line.startswith("== rc") for line in lines):
            raise Missing("the machine did not run to its end in %d s; it said: %s" % (
                time.monotonic() - started, " | ".join(lines[-5:])))
        output("debugfs", "-R", "rdump /out " + work, image)
        shutil.copytree(os.path.join(work, "out"), os.path.join(out, "out"), dirs_exist_ok=True)
    return lines
