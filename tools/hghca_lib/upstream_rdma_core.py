# SPDX-License-Identifier: GPL-2.0-or-later
"""The newest rdma-core's tree with the series of `tools/hghca export`, and what the CI of rdma-core does with a tree."""

import contextlib
import re
import shutil
import tempfile
from pathlib import Path

from . import buildroot, cache, rdma_core, repo, series, upstream
from .export_rdma_core import RDMA_CORE

VERSION = rdma_core.NEWEST
CMAKE = "cmake -G Ninja -S /mnt/tree -B /mnt/build -DIOCTL_MODE=both -DNO_PYVERBS=1 -DNO_MAN_PAGES=1"
# gcc 14 warns of libibumad. Each provider there is has its library built statically too.
GCC = f"{CMAKE} -DENABLE_STATIC=1 -DENABLE_WERROR=1 -DCMAKE_C_FLAGS=-Wno-error=stringop-truncation && ninja -C /mnt/build"
# The module pipes, of which the script takes one function, is gone from Python 3.13.
CHECK_BUILD = """
echo 'from shlex import quote' > /tmp/pipes.py
cd /mnt/build
PYTHONPATH=/tmp PYTHONWARNINGS=ignore python3 /mnt/tree/buildlib/check-build --src /mnt/tree --cc gcc
"""
# The providers alone, with what they are linked with. clang 19 warns of libibverbs.
CLANG = (f"CC=clang {CMAKE} -DCMAKE_BUILD_TYPE=Debug -DENABLE_WERROR=1 "
         '-DCMAKE_C_FLAGS=-Wno-error=cast-function-type-strict && ninja -C /mnt/build "$@"')
SPARSE = f'CC=cgcc {CMAKE} && ninja -C /mnt/build "$@"'
# A platform whose DMA is not coherent builds neither provider. Its build is configured only.
INCOHERENT = f"""
set -e
echo '#error Fail' > /mnt/tree/util/udma_barrier.h
{CMAKE}
"""
# pyverbs is the same with another provider, and takes most of the time.
DEBIAN = """
set -e
cp -r /mnt/tree /mnt/build/rdma-core
cd /mnt/build/rdma-core
EXTRA_CMAKE_FLAGS=-DNO_PYVERBS=1 dpkg-buildpackage -b -d --no-sign
"""
LINTIAN = "lintian --no-cfg --allow-root /mnt/build/ibverbs-providers_*.deb /mnt/build/libibverbs-dev_*.deb"


def tree():
    """The folder with the sources of rdma-core and the series, applied patch by patch."""
    root = buildroot.make()
    exported = cache.tree_key(repo.ROOT, *(repo.path(name) for name in (
        *RDMA_CORE.sources(), "tools/hghca_lib/export_rdma_core.py", "tools/hghca_lib/series.py", "tools/hghca_lib/rdma_core.py")))

    def build(folder):
        log, step, cure = cache.log_path("upstream"), "series in rdma-core's tree", f"change what {RDMA_CORE.module} inserts"
        core = rdma_core.unpack(root, VERSION, folder, log, step, rdma_core.CURE)
        series.write(RDMA_CORE, core, folder / "series", upstream.PERSON, signoff=True)
        root.run(["sh", "-c", upstream.APPLY], log, step, cure, {"series": folder / "series", "tree": core})

    return cache.make("upstream-rdma-core", cache.key(rdma_core.archive_key(root, VERSION), exported, upstream.APPLY), build,
                      64 * cache.MIB, "rdma-core's tree with the providers") / "rdma-core"


def patches():
    """The patches that the tree has, without the cover letter."""
    return sorted((tree().parent / "series").glob("*.patch"))[1:]


@contextlib.contextmanager
def copied():
    """Two folders for a build: a copy of the tree, and an empty one."""
    with tempfile.TemporaryDirectory(dir=cache.root(), prefix="upstream-") as folder:
        shutil.copytree(tree(), Path(folder) / "tree", symlinks=True)
        (Path(folder) / "build").mkdir()
        yield Path(folder) / "tree", Path(folder) / "build"


def run(script, core, build):
    """Run a script in the root of the packages, with the providers' targets; a CompletedProcess, whose output is in the log."""
    providers = ["hghca", f"ernic-rdmav{rdma_core.private_abi(tree().parent)}"]
    done = buildroot.make(rdma_core.PACKAGES).output(["sh", "-c", script, "sh", *providers],
                                                     {"tree": core, "build": build}, "/mnt/tree")
    with open(cache.log_path("upstream"), "a", encoding="utf-8") as file:
        file.write(done.stdout + done.stderr)
    return done


def targets(build):
    """What ninja builds in a folder that is configured."""
    return set(re.findall(r"^build (\S+?)[ :]", (build / "build.ninja").read_text(), re.MULTILINE))
