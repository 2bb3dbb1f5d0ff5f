# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's stock kernel and a small initrd, both from the build root.

The kernel, its modules and the headers for the driver therefore always have the
same version.
"""

import dataclasses
from pathlib import Path

from . import cache, repo

STEP = "guest kernel"
CURE = "remove the folder `kernel` of the cache and run `tools/hghca setup` again"
INITRD_MODULES = ["virtio_blk", "ext4"]
SCRIPT = """
set -e
version=$1
shift
mkdir -p /tmp/initrd/bin /tmp/initrd/modules /tmp/initrd/dev /tmp/initrd/disk
cp /bin/busybox /tmp/initrd/bin/
cp /mnt/scripts/initrd-init /tmp/initrd/init
number=10
for module in "$@"; do
    modprobe -S $version --show-depends $module
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
    xz -dc $file > /tmp/initrd/modules/$number-$(basename $file .xz)
    number=$((number + 1))
done
cd /tmp/initrd
find . | cpio --quiet -o -H newc > /mnt/out/initrd
cp /boot/vmlinuz-$version /mnt/out/vmlinuz
"""


@dataclasses.dataclass
class Kernel:
    """What to boot, as host paths; `version` is that of the stock kernel, whose initrd all use."""
    image: Path
    initrd: Path
    version: str


def kernel_key(buildroot):
    return cache.key(buildroot.key, SCRIPT, *INITRD_MODULES, repo.path("tools/guest/initrd-init"))


def is_made(buildroot):
    return cache.entry("kernel", kernel_key(buildroot)).is_dir()


def make(buildroot):
    """Kernel and initrd, built first if they are missing."""
    version = buildroot.kernel_version()

    def build(folder):
        log = cache.log_path("kernel")
        log.unlink(missing_ok=True)
        buildroot.run(["sh", "-c", SCRIPT, "sh", version, *INITRD_MODULES], log, STEP, CURE,
                      {"out": folder, "scripts": repo.path("tools/guest")})

    folder = cache.make("kernel", kernel_key(buildroot), build, 128 * cache.MIB, STEP)
    return Kernel(folder / "vmlinuz", folder / "initrd", version)
