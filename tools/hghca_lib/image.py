# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's disk: a stock Debian 13 with the modules of the build root's kernel.

The kernel's test of DMA engines, dmatest, is one of them: Debian does not build it, so it is built from Debian's source
of the kernel. The disk holds no files of this project; these are on the payload disk.
"""

import os
import shutil

from . import buildroot as buildroot_module
from . import cache, host

STEP = "guest image"
SIZE_BYTES = 6 * cache.GIB
# The capacity for the guest's writes to its disk; the file is sparse, so it costs nothing until then.
ROOM_MIB = 3072
PACKAGES = """
    rdma-core libibverbs1 ibverbs-utils ibverbs-providers librdmacm1 rdmacm-utils libibumad3
    perftest qperf python3 python3-pyverbs
    iproute2 iputils-ping iputils-arping ethtool pciutils kmod procps psmisc util-linux mount
    udhcpc udhcpd openssh-server openssh-client netcat-openbsd iperf3 tcpdump strace gdb
    fio nvme-cli open-iscsi nfs-common nfs-kernel-server ksmbd-tools bash less nano
    gawk bsdextrautils lsof udev dmsetup e2fsprogs multipath-tools sg3-utils xfsprogs
    ucx-utils libfabric-bin openmpi-bin python3-mpi4py
""".split()
# Not unpacked. UCX is built for AMD's GPUs; only its plugins load their libraries, 230 MB with a compiler.
EXCLUDED = buildroot_module.DOCUMENTS + """
    /usr/lib/x86_64-linux-gnu/ucx/*rocm* /usr/lib/x86_64-linux-gnu/libamdhip64.so* /usr/lib/x86_64-linux-gnu/libhiprtc*
    /usr/lib/x86_64-linux-gnu/libhsa-runtime64.so* /usr/lib/x86_64-linux-gnu/libamd_comgr.so*
    /usr/lib/x86_64-linux-gnu/libLLVM*.so* /usr/lib/llvm-*/* /usr/lib/x86_64-linux-gnu/libz3.so*
""".split()
# Unpacked in the image: xz takes seconds of boot time in an emulated machine.
PLAIN_MODULES = ["drivers/infiniband", "drivers/nvme", "drivers/block", "drivers/target", "fs", "net", "lib", "crypto"]
INSTALL = """
set -e
version=$1
cp -a /usr/lib/modules/$version /mnt/guest/usr/lib/modules/
rm -f /mnt/guest/usr/lib/modules/$version/build /mnt/guest/usr/lib/modules/$version/source
cd /mnt/guest/usr/lib/modules/$version/kernel
shift
find "$@" -name '*.ko.xz' -print0 | xargs -0 -P2 -n32 unxz
mkdir /tmp/dmatest
tar -xOf /usr/src/linux-source-6.12.tar.xz --wildcards '*/drivers/dma/dmatest.c' > /tmp/dmatest/dmatest.c
echo 'obj-m := dmatest.o' > /tmp/dmatest/Kbuild
make -C /usr/lib/modules/$version/build M=/tmp/dmatest modules
install -D -m 644 /tmp/dmatest/dmatest.ko ../extra/dmatest.ko
depmod -b /mnt/guest $version
mkdir -p /mnt/guest/usr/share/rdma-core-tests
tar -xzf /usr/src/hghca/rdma-core_*.orig.tar.gz -C /mnt/guest/usr/share/rdma-core-tests \\
    --strip-components=1 --wildcards '*/tests/*.py'
"""
CURE = "remove the folder `image` of the cache and run `tools/hghca setup` again"


def image_key():
    return cache.key(buildroot_module.BUILD.key(), *PACKAGES, *EXCLUDED, *PLAIN_MODULES, INSTALL, str(ROOM_MIB))


def is_made():
    return cache.entry("image", image_key()).is_dir()


def make(root_later):
    """The path of the guest's disk, built first if it is missing.

    root_later: the Future of the build root, which is needed only when the packages have been unpacked.
    """
    key = image_key()

    def build(folder):
        log = cache.log_path("image")
        log.unlink(missing_ok=True)
        root = folder / "root"
        buildroot_module.debootstrap(root, PACKAGES, EXCLUDED, log, STEP)
        _adapt(root)
        buildroot = root_later.result()
        buildroot.run(["sh", "-c", INSTALL, "sh", buildroot.kernel_version(), *PLAIN_MODULES], log, STEP, CURE,
                      {"guest": root})
        host.run_logged(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", str(root),
                         str(folder / "disk.ext4"), f"{disk_mib(root)}M"], log, STEP, CURE)
        shutil.rmtree(root)

    return cache.make("image", key, build, SIZE_BYTES, STEP) / "disk.ext4"


def disk_mib(root):
    """The size of the disk in MiB: the files below root, a tenth more for the file system, and free space."""
    used = sum(os.lstat(os.path.join(folder, name)).st_blocks * 512
               for folder, folders, files in os.walk(root) for name in folders + files)
    return used * 11 // (10 * cache.MIB) + ROOM_MIB


def _adapt(root):
    """The few files in which the guest differs from a fresh Debian."""
    (root / "opt/hghca").mkdir(parents=True, exist_ok=True)
    (root / "share").mkdir(exist_ok=True)
    (root / "usr/lib/modules").mkdir(exist_ok=True)
    (root / "etc/hostname").write_text("guest\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n127.0.1.1 guest\n"
                                    "10.10.0.1 guest1\n10.10.0.2 guest2\n")
