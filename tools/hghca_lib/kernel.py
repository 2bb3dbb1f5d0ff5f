# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's kernel and a small initrd: the stock kernel, of the build root, or one of another line.

The kernel, its modules and the headers for the driver always have the same version.
"""

import dataclasses
import sys
from pathlib import Path

from . import cache, host, image, lines, repo

STEP = "guest kernel"
CURE = "remove the folders `kernel` and `kernel-line` of the cache and run the same command again"
KIND_OF_LINE = "kernel-line"
SIZE_BYTES_OF_LINE = 2 * cache.GIB
# What the guest needs to find its disks and to be reached; some kernels have it built in.
INITRD_MODULES = ["virtio_pci", "virtio_blk", "ext4", "virtio_console"]
# $1 is the folder of boot/ and lib/modules/; "" for the root's.
SCRIPT = """
set -e
base=$1 version=$2
shift 2
mkdir -p /tmp/initrd/bin /tmp/initrd/modules /tmp/initrd/dev /tmp/initrd/disk
cp /bin/busybox /tmp/initrd/bin/
cp /mnt/scripts/initrd-init /tmp/initrd/init
number=10
for module in "$@"; do
    modprobe -d $base/ -S $version --show-depends $module
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
    copy=/tmp/initrd/modules/$number-$(basename $file .xz)
    case $file in
    *.xz) xz -dc $file > $copy ;;
    *) cp $file $copy ;;
    esac
    number=$((number + 1))
done
cd /tmp/initrd
find . | cpio --quiet -o -H newc > /mnt/out/initrd
cp $base/boot/vmlinuz-$version /mnt/out/vmlinuz
"""
MODULES = """
set -e
base=$1 version=$2
shift 2
cd $base/lib/modules/$version
rm -f build source
cd kernel
find "$@" -name '*.ko.xz' -print0 | xargs -0 -r -P2 -n32 unxz
depmod -b $base $version
"""


@dataclasses.dataclass
class Kernel:
    """What to boot, as host paths.

    version: of the kernel whose initrd this is: a kernel with checkers, or of the user's, has that of the stock kernel.
    modules: a disk image with the modules, if the guest's disk does not have them.
    arguments: words of its command line that it needs besides the usual ones.
    """
    image: Path
    initrd: Path
    version: str
    modules: Path | None = None
    arguments: str = ""


def kernel_key(buildroot):
    return cache.key(buildroot.key, SCRIPT, *INITRD_MODULES, repo.path("tools/guest/initrd-init"))


def line_key(buildroot, headers):
    return cache.key(kernel_key(buildroot), lines.IMAGE, MODULES, *image.PLAIN_MODULES, headers.version)


def is_made(buildroot):
    return cache.entry("kernel", kernel_key(buildroot)).is_dir()


def is_line_made(buildroot, line):
    return (lines.is_made(buildroot, line) and
            cache.entry(KIND_OF_LINE, line_key(buildroot, lines.make(line))).is_dir())


def make(buildroot):
    """Kernel and initrd, built first if they are missing."""
    version = buildroot.kernel_version()

    def build(folder):
        log = cache.log_path("kernel")
        log.unlink(missing_ok=True)
        make_bootable(buildroot, "", version, folder, log, STEP)

    folder = cache.make("kernel", kernel_key(buildroot), build, 128 * cache.MIB, STEP)
    return Kernel(folder / "vmlinuz", folder / "initrd", version)


def make_of_line(buildroot, line):
    """The newest kernel of another line, and its headers, both fetched first if they are missing.

    Headers that are here may be older than what the mirror has now; their successor is then taken.
    """
    headers = lines.make(line)
    try:
        return of_headers(buildroot, headers), headers
    except lines.Superseded as error:
        successor = lines.renew(headers)
        made = of_headers(buildroot, successor)
        print(f"hghca: {error.what}; {successor.version} takes its place", file=sys.stderr)
        return made, successor


def of_headers(buildroot, headers):
    """Kernel, initrd and modules of the version of these headers."""
    step = f"Linux {headers.version}"

    def build(folder):
        log = cache.log_path(f"{KIND_OF_LINE}-{headers.line}")
        log.unlink(missing_ok=True)
        root = folder / "root"
        root.mkdir()
        lines.fetch_image(buildroot, headers, root, log, step)
        binds = {"root": root}
        buildroot.run(["sh", "-c", MODULES, "sh", "/mnt/root", headers.version, *image.PLAIN_MODULES], log, step, CURE,
                      binds)
        make_bootable(buildroot, "/mnt/root", headers.version, folder, log, step, binds)
        make_disk(root / "lib/modules" / headers.version, folder / "modules.ext4", log, step)
        cache.remove(root)

    folder = cache.make(KIND_OF_LINE, line_key(buildroot, headers), build, SIZE_BYTES_OF_LINE, step)
    return Kernel(folder / "vmlinuz", folder / "initrd", headers.version, folder / "modules.ext4")


def make_bootable(buildroot, base, version, folder, log, step, binds=None):
    """Put vmlinuz and the initrd into the folder, from `base`, which the build root sees."""
    buildroot.run(["sh", "-c", SCRIPT, "sh", base, version, *INITRD_MODULES], log, step, CURE,
                  {"out": folder, "scripts": repo.path("tools/guest"), **(binds or {})})


def make_disk(modules, disk, log, step):
    """A disk image with the contents of a folder of kernel modules."""
    size_kib = 16384 + 2 * sum(path.stat().st_size for path in modules.rglob("*") if path.is_file()) // 1024
    host.run_logged(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", str(modules), str(disk), f"{size_kib}k"],
                    log, step, "see the log")
