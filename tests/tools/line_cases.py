# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of other lines than the build root's: which packages are fetched, from a mirror of small ones made here."""

import contextlib
import io
import os
import tempfile
from pathlib import Path
from unittest import mock

from tool import fails, hghca, holds, same

from hghca_lib import buildroot, cache, cli, debug_kernel, kernel, lines, module, repo
from hghca_lib.errors import ToolError

FIRST, SECOND = "7.3.9+deb13-amd64", "7.3.10+deb13-amd64"
# NAME FILES DEPENDS: a package.
PACK = """
set -e
mkdir -p /tmp/new/DEBIAN
for file in $2; do
    mkdir -p "/tmp/new/$(dirname "$file")"
    echo "/usr/src/$1" > "/tmp/new/$file"
done
printf 'Package: %s\\nVersion: 1\\nArchitecture: amd64\\nMaintainer: none\\nDescription: none\\nDepends: %s\\n' "$1" "$3" \
    > /tmp/new/DEBIAN/control
dpkg-deb -Znone -b /tmp/new /mnt/mirror
cd /mnt/mirror
dpkg-scanpackages . > Packages
"""
# FILE...: a package of sources that has these files.
PACK_SOURCES = """
set -e
mkdir -p /tmp/new/DEBIAN /tmp/new/usr/src
for file in "$@"; do
    mkdir -p "/tmp/linux-source-7.3/$(dirname "$file")"
    touch "/tmp/linux-source-7.3/$file"
done
tar -cJf /tmp/new/usr/src/linux-source-7.3.tar.xz -C /tmp linux-source-7.3
printf 'Package: linux-source-7.3\\nVersion: 7.3.9-1\\nArchitecture: all\\nMaintainer: none\\nDescription: none\\n' \
    > /tmp/new/DEBIAN/control
dpkg-deb -Znone -b /tmp/new /mnt/mirror
cd /mnt/mirror
dpkg-scanpackages . > Packages
"""


class Root(buildroot.BuildRoot):
    """The build root, with a folder as the mirror of all suites."""

    def __init__(self, root, mirror):
        super().__init__(root.path, root.key)
        self.mirror = mirror
        self.have()

    def command(self, argv, binds=None, cwd="/", env=None):
        return super().command(argv, {**(binds or {}), "mirror": self.mirror}, cwd, env)

    def have(self, *versions, image=True):
        """Make these versions the ones that the mirror has."""
        for file in self.mirror.iterdir():
            file.unlink()
        (self.mirror / "Packages").touch()
        for version in versions:
            for package in [*headers(version), *(images(version) if image else [])]:
                done = self.output(["sh", "-c", PACK, "sh", *package])
                same(done.returncode, 0, done.stderr)


def headers(version):
    name = f"linux-headers-{version}"
    return [(name, f"usr/src/{name}/Makefile", f"{name}-common, linux-kbuild-{version}, gcc"),
            (f"{name}-common", f"usr/src/{name}-common/Makefile", "make"),
            (f"linux-kbuild-{version}", f"usr/lib/linux-kbuild-{version}/fixdep", "libc6")]


def images(version):
    """The first in the form of newer Debians, the other as in older ones."""
    if version == SECOND:
        return [(f"linux-image-{version}", f"boot/vmlinuz-{version} lib/modules/{version}/kernel/fs/ext4.ko",
                 "kmod, initramfs-tools | dracut")]
    return [(f"linux-image-{version}", f"usr/share/doc/{version}", f"linux-binary-{version}, linux-modules-{version}"),
            (f"linux-binary-{version}", f"usr/lib/modules/{version}/vmlinuz", "kmod"),
            (f"linux-modules-{version}", f"usr/lib/modules/{version}/kernel/fs/ext4.ko", "kmod")]


@contextlib.contextmanager
def small_mirror():
    """A Root with an empty mirror, and an empty cache; the build root itself is that of the real cache."""
    real = buildroot.make()
    with (tempfile.TemporaryDirectory() as cached, tempfile.TemporaryDirectory() as mirror,
          mock.patch.dict(os.environ, HGHCA_CACHE=cached),
          mock.patch.object(lines, "sources", lambda root, suite: "deb [trusted=yes] file:/mnt/mirror ./\n")):
        root = Root(real, Path(mirror))
        with mock.patch.object(buildroot, "make", lambda: root):
            yield root


def refused(call, *arguments):
    """The message of a call that must fail."""
    try:
        call(*arguments)
    except ToolError as error:
        return str(error)
    raise AssertionError("no error")


def unpacked(root, found):
    """What make_of_line does with the packages of an image, in place of a kernel that boots: the files."""
    with tempfile.TemporaryDirectory() as folder:
        lines.fetch_image(root, found, Path(folder), cache.log_path("test-line"), "test")
        boot, modules = Path(folder) / "boot", Path(folder) / "lib/modules"
        return sorted(path.name for path in [*boot.iterdir(), *modules.rglob("*.ko")])


def unpacked_names(version):
    return ["ext4.ko", f"vmlinuz-{version}"]


def test_unknown_line():
    """--kernel with a line that Debian does not have here is refused with the lines there are, and that a file will do"""
    fails(hghca("exec", "--kernel", "6.5", "--", "true"), 2, "no kernel of the line 6.5", "6.1, 6.12, 7.3", "bzImage")
    fails(hghca("exec", "--kernel", "7.3", "--modules", "/", "--", "true"), 2, "7.3 kernel needs no modules", "cure:")
    fails(hghca("setup", "--kernel", "6.5"), 2, "6.5", "6.1", "7.3")
    fails(hghca("demo", "--kernel", "debug-6.1"), 2, "no kernel image debug-6.1", "debug, kcsan, debug-7.3, kcsan-7.3", "cure:")
    fails(hghca("exec", "--kernel", "kcsan-7.3", "--modules", "/", "--", "true"), 2, "kcsan-7.3 kernel needs no modules")


def test_stock_line():
    """--kernel 6.12 is the stock kernel, which is of that line"""
    for command in ("exec", "setup"):
        same(cli.chosen_kernel(cli.parser().parse_args([command, "--kernel", "6.12"])), None, "kernel")
    version = buildroot.make().kernel_version()
    assert version.startswith(f"{lines.STOCK}."), version


def test_absent_line():
    """A mirror without the line is an error that names the suite and the ways out, and leaves nothing"""
    with small_mirror():
        holds(refused(lines.make, "6.1"), "suite bookworm of the mirror has no kernel of the line 6.1", "cure:",
              "HGHCA_MIRROR", "bzImage")
        same(list((cache.root() / lines.KIND).iterdir()), [], "entries left in the cache")


def test_newest():
    """--kernel newest is the highest version that the mirror has, of whatever line; what cannot be had is told with apt's reason"""
    with small_mirror() as root:
        root.have(SECOND, "7.10-amd64", image=False)
        same(lines.make(lines.NEWEST).version, "7.10-amd64")
    with small_mirror() as root:
        root.have(FIRST, image=False)
        for file in root.mirror.glob("*.deb"):
            file.unlink()
        holds(refused(lines.make, lines.NEWEST), "the newest kernel is not to be had: ", f"linux-headers-{FIRST}", "log:",
              "cure:", "bzImage")
        same(list((cache.root() / lines.KIND).iterdir()), [], "entries left in the cache")
    same(lines.names(), ["6.1", "6.12", "7.3"], "lines, of which the newest is not one")


def test_unreachable_mirror():
    """A mirror that does not answer is an error of the network, not a mirror without the line"""
    unreachable = "deb [trusted=yes] http://127.0.0.1:9 ./\n"
    options = ['Acquire::Retries::Delay "false"', 'Acquire::http::Proxy "DIRECT"']
    with (small_mirror(), mock.patch.object(lines, "sources", lambda root, suite: unreachable),
          mock.patch.object(buildroot, "apt_options", lambda: options)):
        holds(refused(lines.make, "6.1"), "headers of Linux 6.1: sh failed", "log:", "cure: check the network")


def test_mirror():
    """Lines come from the build root's mirror, or from the one that HGHCA_MIRROR names"""
    root = mock.Mock()
    with tempfile.TemporaryDirectory() as folder:
        root.path = Path(folder)
        (root.path / "etc/apt").mkdir(parents=True)
        (root.path / "etc/apt/sources.list").write_text("deb http://a/debian trixie main\n"
                                                        "deb http://a/debian trixie-updates main\n")
        with mock.patch.dict(os.environ):
            os.environ.pop("HGHCA_MIRROR", None)
            same(lines.sources(root, "bookworm"), "deb http://a/debian bookworm main\n")
            os.environ["HGHCA_MIRROR"] = "http://b/debian"
            same(lines.sources(root, "bookworm"), "deb http://b/debian bookworm main\n")


def test_fetched_packages():
    """The newest version of the line is taken: headers alone for a build, the image of the same version to boot it"""
    with small_mirror() as root:
        root.have("7.30.1+deb13-amd64", FIRST)
        found = lines.make("7.3")
        same(found.version, FIRST)
        same(sorted(path.name for path in found.folder.iterdir()), ["usr", "version"], "files of the entry")
        same((found.path() / "Makefile").read_text(), f"{lines.PLACE}/usr/src/linux-headers-{FIRST}\n", "Makefile")
        same(module.place(root, found), (f"{lines.PLACE}/usr/src/linux-headers-{FIRST}", {"kernel": found.folder}),
             "place")
        root.have(FIRST, SECOND)
        same(lines.make("7.3"), found, "headers")
        same(unpacked(root, found), unpacked_names(FIRST), "files")


def test_successor():
    """If the mirror no longer has the version of the headers, its successor is taken for both, with a word"""
    with small_mirror() as root, mock.patch.object(kernel, "of_headers", unpacked):
        root.have(FIRST)
        old = lines.make("7.3")
        root.have(SECOND)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            files, found = kernel.make_of_line(root, "7.3")
        same((files, found.version, lines.make("7.3")), (unpacked_names(SECOND), SECOND, found), "successor")
        same(said.getvalue(),
             f"hghca: the suite trixie-backports of the mirror has no Linux {FIRST}; {SECOND} takes its place\n")
        same(len([path for path in old.folder.parent.iterdir() if FIRST in path.name]), 1, "old headers that stay")
        root.have(FIRST, image=False)
        lines.renew(found)
        holds(refused(kernel.make_of_line, root, "7.3"), f"has no Linux {FIRST}", "cure:", "HGHCA_MIRROR")


def test_sources():
    """The sources of a line are fetched, as a whole and without what the builds in a kernel's tree do not read, and kept"""
    kept = ["Makefile", "arch/arm/Kconfig", "arch/x86/a.c", "drivers/dma/a.c", "drivers/infiniband/a.c", "drivers/net/Kconfig",
            "include/sound/a.h"]
    unread = ["arch/arm/a.S", "arch/arm64/boot/dts/a.dts", "drivers/net/ethernet/a.c", "sound/core/a.c", "tools/testing/a.c"]
    with small_mirror() as root:
        holds(refused(lines.source, "7.3"), "the suite trixie-backports of the mirror has no sources of the line 7.3", "cure:")
        same(root.output(["sh", "-c", PACK_SOURCES, "sh", *kept, *unread]).returncode, 0, "status")
        found = lines.source("7.3")
        same(sorted(str(path.relative_to(found)) for path in found.rglob("*") if path.is_file()), kept, "files")
        same((found.parent / "version").read_text(), "7.3.9-1\n", "version")
        listed = root.output(["tar", "-tf", f"/mnt/source/{lines.ARCHIVE}"], {"source": lines.archive("7.3").parent}).stdout
        same(sorted(name.partition("/")[2] for name in listed.split() if not name.endswith("/")), sorted(kept + unread),
             "files of the archive")
        root.have()
        same(lines.source("7.3"), found, "sources")


def test_kernel_with_checkers():
    """A kernel with checkers of another line is built from all sources of that line, with the fragment of what differs there"""
    # A build that keeps the names of the sources and the fragments as the configuration.
    configure = 'tar -tJf "$1" | sed -n "s,.*/,source ,p" > .config; shift; cat "$@" >> .config'
    with (small_mirror() as root, mock.patch.object(debug_kernel, "CONFIGURE", configure),
          mock.patch.object(debug_kernel, "BUILD", "true"), mock.patch.object(debug_kernel, "PRUNE", "true")):
        same(root.output(["sh", "-c", PACK_SOURCES, "sh", "read.c", "drivers/net/unread.c"]).returncode, 0, "status")
        made = debug_kernel.make(root, "kcsan-7.3")
        said = (made.tree / ".config").read_text()
        holds(said, "source read.c\n", "source unread.c\n",
              *(repo.path(f"tools/kernel/{name}.config").read_text() for name in ("debug", "debug-7.3", "kcsan")))
        root.have()
        same(debug_kernel.make(root, "kcsan-7.3"), made, "kernel")
        keys = {name: debug_kernel.tree_key(root, name) for name in debug_kernel.RECIPES}
        same(len(set(keys.values())), len(keys), "number of keys")
        with mock.patch.object(lines, "SOURCE", "another"):
            same([name for name, key in keys.items() if debug_kernel.tree_key(root, name) != key], ["debug-7.3", "kcsan-7.3"],
                 "kernels that depend on the sources of another line")
