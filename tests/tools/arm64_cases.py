# SPDX-License-Identifier: GPL-2.0-or-later
"""The loopback controller on arm64: its driver is built for Debian's kernel and judged there by dmatest."""

import re
import subprocess
import tempfile
from pathlib import Path

from hghca_lib import buildroot, cache, debug_kernel, host, module, qemu, repo, tiers

from tool import same, tier

# Packages of arm64 are unpacked, not installed: the compiler that they ask for is one of arm64.
ARM64 = "/usr/src/arm64"
FETCH = f"""
set -e
dpkg --add-architecture arm64
apt-get update
mkdir {ARM64}
cd {ARM64}
version=$(apt-cache depends linux-headers-arm64:arm64 | sed -n 's/.*Depends: linux-headers-\\(.*\\)-arm64.*/\\1/p')
apt-get download linux-image-$version-arm64:arm64 linux-headers-$version-arm64:arm64 linux-headers-$version-common \\
    linux-kbuild-$version busybox-static:arm64
for package in *.deb; do
    dpkg -x $package .
done
rm *.deb
ln -s {ARM64}/usr/src/linux-headers-$version-common /usr/src/
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
"""
ROOT = buildroot.Recipe("arm64-root", "root with the kernel of arm64",
                        tuple("gcc-14-aarch64-linux-gnu make perl pahole cpio".split()), 2 * cache.GIB, FETCH)
DMATEST = f"tar -xOf {debug_kernel.SOURCE} --wildcards '*/drivers/dma/dmatest.c' > dmatest/dmatest.c"
BUILD = f"""
build() {{
    make -C {ARM64}/usr/src/linux-headers-*-arm64 M=$1 ARCH=arm64 CC=aarch64-linux-gnu-gcc-14 \\
        CROSS_COMPILE=aarch64-linux-gnu- W=1 $2
}}
echo 'obj-m := dmatest.o' > dmatest/Kbuild
build $PWD rdma-loopback.ko
build $PWD/dmatest dmatest.ko
mkdir -p initrd/bin initrd/dev initrd/proc initrd/sys
cp {ARM64}/usr/bin/busybox initrd/bin/
cp rdma-loopback.ko dmatest/dmatest.ko initrd/
cd initrd
find . | cpio --quiet -o -H newc > ../initrd.cpio
cp {ARM64}/boot/vmlinuz-* ../vmlinuz
"""
THREADS, ITERATIONS = 2, 1000
# Each controller has one channel: one with all extensions, one that a timer polls.
INIT = f"""#!/bin/busybox sh
busybox() {{ /bin/busybox "$@"; }}
busybox mount -t devtmpfs dev /dev
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox insmod /rdma-loopback.ko
for channel in dma0chan0 dma1chan0; do
    busybox insmod /dmatest.ko threads_per_chan={THREADS} iterations={ITERATIONS} test_buf_size=65536 timeout=20000 \\
        channel=$channel run=1
    while busybox grep -q Y /sys/module/dmatest/parameters/run; do busybox sleep 1; done
    busybox rmmod dmatest
done
busybox rmmod rdma-loopback
busybox poweroff -f
"""
CONTROLLERS = ["-device", "rdma-loopback", "-device", "rdma-loopback,extensions=0x37"]
MACHINE = ["-nodefaults", "-machine", "virt", "-cpu", "cortex-a57", "-smp", "2", "-m", "1G", "-display", "none",
           "-serial", "stdio", "-no-reboot", "-append", "console=ttyAMA0 loglevel=7 panic=-1"]
SUMMARY = re.compile(r"dmatest: (dma\d)chan0-copy\d+: summary (\d+) tests, (\d+) failures")
WARNED = re.compile(r"^.*(?:warning:|BUG:|WARNING:|Unable to handle|Call trace).*$", re.MULTILINE)
LIMIT_S = 600


@tier(tiers.ALL)   # it builds an emulator, and downloads a kernel
def test_loopback_on_arm64():
    """The loopback controller's driver is built for arm64 without a warning and moves what dmatest compares"""
    root, arm = buildroot.make(), buildroot.make(ROOT)
    emulator = qemu.make(root, qemu.ARM64)
    log = cache.log_path("arm64")
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.root(), prefix="arm64-") as folder:
        folder = Path(folder)
        cache.sync_tree(repo.ROOT, module.source_paths(), folder)
        (folder / "initrd").mkdir()
        (folder / "dmatest").mkdir()
        (folder / "initrd/init").write_text(INIT)
        (folder / "initrd/init").chmod(0o755)
        root.run(["sh", "-ec", DMATEST], log, "dmatest.c", "see the log", {"work": folder}, "/mnt/work")
        arm.run(["sh", "-ec", BUILD], log, "modules for arm64", "see the log", {"work": folder}, "/mnt/work")
        same(WARNED.findall(log.read_text()), [], "what the compiler said")
        argv = [*emulator.argv(), *MACHINE, "-kernel", folder / "vmlinuz", "-initrd", folder / "initrd.cpio", *CONTROLLERS]
        done = subprocess.run([*map(str, argv)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", env=host.environment(), timeout=LIMIT_S)
    with open(log, "a", encoding="utf-8") as file:
        file.write(done.stdout + done.stderr)
    found = sorted(SUMMARY.findall(done.stdout))
    same(found, [(dma, str(ITERATIONS), "0") for dma in ("dma0", "dma1") for _ in range(THREADS)], "dmatest's summaries")
    same(WARNED.findall(done.stdout), [], "what the kernel said")
    same(done.returncode, 0, "the emulator's status")
