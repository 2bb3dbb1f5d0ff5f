# SPDX-License-Identifier: GPL-2.0-or-later
"""RDMA's user space of a guest: Debian's on the disk, or that of the newest rdma-core, which replaces it at boot.

It has the libraries, the providers of other adapters, the programs, pyverbs and the tests of that rdma-core, as its build
installs them. Our providers for it come from provider.make().
"""

from . import buildroot, cache, rdma_core

KIND = "userland"
# Debian's, and the one built here.
STOCK, NEWEST = NAMES = (rdma_core.STOCK, rdma_core.NEWEST)
CURE = "the error is in the log; the guest's own rdma-core needs no build"
# In the places of Debian's packages. Headers, manual pages and units of systemd are left out.
BUILD = """
set -e
cmake -G Ninja -S rdma-core -B build -DCMAKE_BUILD_TYPE=Release -DNO_MAN_PAGES=1 -DCMAKE_INSTALL_PREFIX=/usr \\
    -DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu -DCMAKE_INSTALL_SYSCONFDIR=/etc -DCMAKE_INSTALL_RUNDIR=/run \\
    -DPYTHON_EXECUTABLE=/usr/bin/python3 -DCMAKE_INSTALL_PYTHON_ARCH_LIB=/usr/lib/python3/dist-packages
ninja -C build
DESTDIR=/mnt/tree/installed ninja -C build install
cd installed
find usr -type f '(' -name '*.so*' -o -path 'usr/*bin/*' ')' -print0 |
    xargs -0 -n1 sh -c 'head -c 4 "$0" | grep -q ELF || exit 0; strip --strip-unneeded "$0"'
mkdir -p /mnt/out/usr/share/rdma-core-tests
cp -a --parents etc/libibverbs.d usr/bin usr/sbin usr/lib/x86_64-linux-gnu usr/lib/python3 /mnt/out
cp -a ../rdma-core/tests /mnt/out/usr/share/rdma-core-tests
"""


def userland_key(root, name):
    return cache.key(rdma_core.archive_key(root, name), rdma_core.UNPACK, rdma_core.PACKAGES.key(), BUILD)


def is_made(root, name):
    return cache.entry(KIND, userland_key(root, name)).is_dir()


def make(root, name):
    """The folder with the files that replace the guest's, built first if it is missing.

    root: the build root, for the source.
    """
    log, step = cache.log_path(f"{KIND}-{name}"), f"user space of rdma-core {name}"

    def build(folder):
        log.unlink(missing_ok=True)
        tree, files = folder / "tree", folder / "root"
        tree.mkdir()
        files.mkdir()
        rdma_core.unpack(root, name, tree, log, step, rdma_core.CURE)
        buildroot.make(rdma_core.PACKAGES).run(["sh", "-c", BUILD], log, step, CURE, {"tree": tree, "out": files}, "/mnt/tree")
        cache.remove(tree)

    return cache.make(KIND, userland_key(root, name), build, cache.GIB, step) / "root"
