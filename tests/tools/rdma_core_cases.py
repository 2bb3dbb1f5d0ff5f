# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs providers in the source trees of several versions of rdma-core.

The source of one is fetched from Debian when it is first asked for, so the tests that need it are not in the gate.
"""

import hashlib
import re
import tarfile
import tempfile
from pathlib import Path
from unittest import mock

from line_cases import refused, small_mirror
from tool import holds, same, tier

from hghca_lib import buildroot, cache, provider, rdma_core, repo, tiers

CONFIGURE = ("cmake -G Ninja -S rdma-core -B /mnt/out/build -DNO_PYVERBS=1 -DNO_MAN_PAGES=1 "
             "-DCMAKE_C_FLAGS=-I/mnt/tree/include")
# Compile the objects of both providers alone, as other compilers warn of rdma-core itself; their number at the end.
COMPILE = r"""
cd /mnt/tree
%s > /tmp/said 2>&1 || { cat /tmp/said; exit 1; }
objects=$(ninja -C /mnt/out/build -t targets all | sed -n 's,^\(providers/.*/\(ernic-rdmav[0-9]*\|hghca\).dir/.*\.o\):.*,\1,p')
ninja -C /mnt/out/build $objects 2>&1 | grep -v '^\[\|^ninja: Entering'
echo "$objects" | wc -w
"""
# Compilers of rdma-core's CI, and their options of CMake. cgcc runs sparse, and finds glibc's headers at fault.
CHECKERS = {"clang": "-DENABLE_WERROR=1", "cgcc": ""}
PLANTED = "\n__be32 planted(void);\n__be32 planted(void)\n{\n\treturn 5;\n}\n"
FINDING = "ah.c:%d:16: warning: incorrect type in return expression"
SOURCE = """\
Package: rdma-core
Binary: rdma-core
Version: {version}
Format: 3.0 (quilt)
Directory: .
Files:
 {md5} {size} {file}
Checksums-Sha256:
 {sha256} {size} {file}

"""


def compiled(tree, checker):
    """What a checker says to the sources of the providers, as lines, of which the last one is the number of objects."""
    with tempfile.TemporaryDirectory() as out:
        done = buildroot.make().output(["sh", "-c", COMPILE % f"CC={checker} {CONFIGURE} {CHECKERS[checker]}"],
                                       {"tree": tree, "out": out})
    return done.stdout.splitlines()


def features(tree):
    """The features that the probes find in a tree."""
    with tempfile.TemporaryDirectory() as out:
        done = buildroot.make().output(["sh", "-c", CONFIGURE], {"tree": tree, "out": out}, "/mnt/tree")
        same(done.returncode, 0, done.stderr)
        return set(re.findall(r"-DCOMPAT_HAS_(\w+)=1", (Path(out) / "build/build.ninja").read_text()))


def plugins(folder):
    return [path.name for path in folder.glob("*-rdmav*.so")]


def put_source(mirror, *versions):
    """Make the mirror have the source of rdma-core in these versions, each an archive of its name."""
    listed = ""
    for version in versions:
        file = mirror / f"rdma-core_{version.partition('-')[0]}.orig.tar.gz"
        with tarfile.open(file, "w:gz") as archive:
            archive.addfile(tarfile.TarInfo(version))
        data = file.read_bytes()
        listed += SOURCE.format(version=version, file=file.name, size=len(data), md5=hashlib.md5(data).hexdigest(),
                                sha256=hashlib.sha256(data).hexdigest())
    (mirror / "Sources").write_text(listed)


@tier(tiers.ALL)
def test_fetched_source():
    """Of a mirror's sources of rdma-core the newest of the version asked for is taken; without one it is an error"""
    with small_mirror() as root:
        put_source(root.mirror, "64.0-1", "650.1-1")
        holds(refused(rdma_core.archive, root, "65"), "suite unstable of the mirror has no rdma-core 65", "cure:",
              "HGHCA_MIRROR")
        same(list((cache.root() / rdma_core.KIND).iterdir()), [], "entries left in the cache")
        put_source(root.mirror, "64.0-1", "65.10-1.1", "65.9-2", "650.1-1")
        place, binds = rdma_core.archive(root, "65")
        same((place, list(binds)), ("/mnt/source", ["source"]), "place")
        same([path.name for path in binds["source"].iterdir()], ["rdma-core_65.10.orig.tar.gz"], "files of the entry")


@tier(tiers.ALL)
def test_newest():
    """The providers compile for the newest rdma-core without a warning, and a plugin's name has the ABI of its tree"""
    root = buildroot.make()
    same(plugins(provider.make(root, rdma_core.NEWEST)), ["libernic-rdmav65.so"], "plugins")
    same(plugins(provider.make(root)), ["libernic-rdmav34.so"], "plugins")


@tier(tiers.ALL)
def test_other_compilers():
    """clang and sparse say nothing to the providers in the newest rdma-core, and sparse finds what is planted"""
    root = buildroot.make()
    count = [str(1 + len(provider.sources()))]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        rdma_core.make_tree(root, rdma_core.NEWEST, tree, cache.log_path("test-rdma-core"), "test", "")
        rdma_core.sync_tree(rdma_core.NEWEST, tree)
        for checker in CHECKERS:
            same(compiled(tree, checker), count, f"what {checker} says")
        spoilt = tree / "rdma-core/providers/hghca/ah.c"
        spoilt.write_text(spoilt.read_text() + PLANTED)
        holds("\n".join(compiled(tree, "cgcc")), FINDING % (spoilt.read_text().count("\n") - 1))


@tier(tiers.ALL)
def test_probes():
    """Of rdma-core 56.1 the probes of providers/compat find no feature, of the newest one all"""
    root = buildroot.make()
    probes = {path.stem.upper() for path in repo.path("providers/compat/probes").glob("*.c")}
    with mock.patch.object(rdma_core, "folders", lambda version: (*rdma_core.PROVIDERS, rdma_core.COMPAT)):
        for version, wanted in ((rdma_core.STOCK, {"PRESENT"}), (rdma_core.NEWEST, probes)):
            with tempfile.TemporaryDirectory() as folder:
                tree = Path(folder)
                rdma_core.make_tree(root, version, tree, cache.log_path("test-rdma-core"), "test", "")
                rdma_core.sync_tree(version, tree)
                same(features(tree), wanted, f"features of rdma-core {version}")
