# SPDX-License-Identifier: GPL-2.0-or-later
"""The versions of QEMU that the device is built in: which there are, and where the source of each comes from."""

import hashlib
import io
import os
import tarfile
import tempfile
from pathlib import Path
from unittest import mock

from line_cases import refused, small_mirror
from tool import fails, hghca, holds, same, tier

from hghca_lib import buildroot, cache, qemu, tiers

SOURCE = """\
Package: qemu
Binary: qemu
Version: 1:{version}
Format: 3.0 (quilt)
Directory: .
Files:{md5}
Checksums-Sha256:{sha256}

"""


def package(version):
    return [f"qemu_{version}.dsc", f"qemu_{version.partition('-')[0]}.orig.tar.xz"]


def put_sources(mirror, *versions, lost=None):
    """Make the mirror have QEMU's source packages of these versions, without the archive of the lost one."""
    listed = ""
    for version in versions:
        lists = {"md5": "", "sha256": ""}
        for name in package(version):
            file = mirror / name
            file.write_text(f"{name}\n")
            for kind, lines in lists.items():
                digest = hashlib.new(kind, file.read_bytes()).hexdigest()
                lists[kind] = f"{lines}\n {digest} {file.stat().st_size} {name}"
        listed += SOURCE.format(version=version, **lists)
        if version == lost:
            (mirror / package(version)[1]).unlink()
    (mirror / "Sources").write_text(listed)


def test_unknown_version():
    """--qemu with an unknown version, or with a file that is no source, is refused with what there is"""
    for command in (["exec", "--qemu", "9.9", "--", "true"], ["setup", "--qemu", "9.9"], ["demo", "--qemu", "9.9"],
                    ["test", "--qemu", "9.9"], ["ci", "--qemu", "9.9", "."]):
        fails(hghca(*command), 2, "no QEMU", "9.9", "cure:", "10.0, 11.1", ".dsc, .tar")
    fails(hghca("exec", "--qemu", __file__, "--", "true"), 2, "no QEMU", "cure:")
    fails(hghca("exec", "--qemu", "/nonexistent/qemu.tar", "--", "true"), 2, "no QEMU /nonexistent/qemu.tar")


def test_choice():
    """The version of --qemu is what the suites build too, and each version has a build tree"""
    root = buildroot.make()
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ):
        os.environ.pop(qemu.VARIABLE, None)
        trees = [qemu.tree_key(root, qemu.EMULATOR)]
        file = Path(folder) / "qemu-1.tar"
        for data, name in ((b"", "11.1"), (b"1", str(file)), (b"2", str(file))):
            file.write_bytes(data)
            qemu.choose(name)
            qemu.choose(None)
            same(os.environ[qemu.VARIABLE], name, "environment of the suites")
            trees.append(qemu.tree_key(root, qemu.EMULATOR))
        qemu.choose(qemu.STOCK)
        same((len(set(trees)), qemu.tree_key(root, qemu.EMULATOR)), (4, trees[0]), "different trees, and that of the default")


def test_other_program():
    """A source archive in which QEMU's build is not found is refused with the line that is missing"""
    root = buildroot.make()
    with (tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cached,
          mock.patch.dict(os.environ, HGHCA_CACHE=cached)):
        file = Path(folder) / "other program.tar"
        with tarfile.open(file, "w") as archive:
            for name in ("VERSION", "hw/meson.build"):
                member = tarfile.TarInfo(f"other/{name}")
                member.size = 1
                archive.addfile(member, io.BytesIO(b"\n"))
        qemu.choose(str(file))
        holds(refused(qemu.make, root), "hw/meson.build has no line `subdir('hyperv')`", "cure:", "HOOKS")
        same(list((cache.root() / "qemu-tree").iterdir()), [], "entries left in the cache")


@tier(tiers.ALL)
def test_fetched_source():
    """Of a mirror's sources of QEMU the newest of the version asked for is taken; one that is not there whole is an error"""
    with small_mirror() as root:
        put_sources(root.mirror, "11.0.1+ds-1", "11.10.0+ds-1")
        holds(refused(qemu.source, root, "11.1"), "suite trixie-backports of the mirror has no QEMU 11.1", "cure:",
              "HGHCA_MIRROR", "--qemu FILE")
        put_sources(root.mirror, "11.1.9+ds-1", "11.1.10+ds-1~bpo13+1", lost="11.1.10+ds-1~bpo13+1")
        holds(refused(qemu.source, root, "11.1"), "lacks files of QEMU 1:11.1.10+ds-1~bpo13+1", "trixie-backports", "cure:",
              "--qemu FILE")
        same(list((cache.root() / "qemu-source").iterdir()), [], "entries left in the cache")
        put_sources(root.mirror, "11.0.2+ds-1", "11.1.9+ds-1", "11.1.10+ds-1~bpo13+1", "11.10.0+ds-1")
        place, binds = qemu.source(root, "11.1")
        same((place, list(binds)), ("/mnt/source/qemu_*.dsc", ["source"]), "place")
        same(sorted(path.name for path in binds["source"].iterdir()),
             sorted([*package("11.1.10+ds-1~bpo13+1"), "version"]), "files of the entry")
