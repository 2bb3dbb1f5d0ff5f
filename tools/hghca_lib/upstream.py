# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel's tree with the series of `tools/hghca export`, and builds of the drivers in it."""

import dataclasses
import os
import re
import shutil
import subprocess

from . import buildroot, cache, debug_kernel, export, lines, repo, series

LINE = lines.names()[-1]
FRAGMENT = "tools/kernel/upstream.config"
PERSON = series.Person("JingZhao HCA for Linux", "hghca@example.org")
FOLDERS = [driver.folder for driver in export.DRIVERS]
# A compiler for arm64, and what a kernel's tree needs to build its own tools.
CROSS = buildroot.Recipe("cross-root", "root with a compiler for arm64",
                         tuple("gcc libc6-dev gcc-aarch64-linux-gnu make perl python3 flex bison bc".split()), cache.GIB)
# The trees of newer kernels refuse the sparse of Debian 13, which does not know __typeof_unqual__.
SPARSE_SUITE = "forky"
SPARSE = lines.UPDATE + """
cd /mnt/out
apt-get download sparse
dpkg -x sparse_*.deb .
rm sparse_*.deb
"""
APPLY = """
set -e
for patch in /mnt/series/*.patch; do
    case $patch in */0000-*) continue;; esac
    patch --directory=/mnt/tree --strip=1 --fuzz=0 --silent < "$patch"
done
"""
# Fragments are lines behind tinyconfig's: of an option that is there twice, Kconfig takes the last.
CONFIGURE = """
set -e
make -s O=/mnt/build "$@" tinyconfig
cat /mnt/build/fragment >> /mnt/build/.config
make -s O=/mnt/build "$@" olddefconfig
make -s -j2 O=/mnt/build "$@" modules_prepare
"""
BUILD = ["make", "-j2", "O=/mnt/build", "W=1", "C=1", "CHECK=/mnt/sparse/usr/bin/sparse", "CF=-D__CHECK_ENDIAN__"]
# Steps, and what sparse says of the kernel's own vDSO, which a tree prepares before it builds a folder.
STEP = re.compile(r"^  [A-Z0-9]+ |^make|^/mnt/tree/arch/\w+/kernel/vdso/")
CHECKED = re.compile(r"^  CHECK   (?:/mnt/tree/)?(\S+)$", re.MULTILINE)
MODULES = ("INFINIBAND", "INFINIBAND_USER_ACCESS", *(driver.option for driver in export.DRIVERS))


@dataclasses.dataclass(frozen=True)
class Variant:
    """A build: its name, what its configuration changes in the fragment, arguments of make."""
    name: str
    changed: tuple = ()
    arguments: tuple = ()

    def fragment(self):
        """The lines of its configuration."""
        return repo.path(FRAGMENT).read_text() + "".join(f"{line}\n" for line in self.changed)

    def root(self):
        return buildroot.make(CROSS) if self.arguments else buildroot.make()


def off(option):
    return f"# CONFIG_{option} is not set"


# Those of one architecture are built in one folder: what a change does not concern is not compiled again.
VARIANTS = (
    Variant("as modules"),
    Variant("without on-demand paging", (off("INFINIBAND_ON_DEMAND_PAGING"),)),
    Variant("without DCB", (off("DCB"),)),
    Variant("without IPv6", (off("IPV6"),)),
    Variant("without access of users", (off("INFINIBAND_USER_ACCESS"), off("INFINIBAND_ON_DEMAND_PAGING"))),
    Variant("built in", tuple(f"CONFIG_{option}=y" for option in MODULES)),
    Variant("for arm64", arguments=("ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-")),
)


def tree():
    """The folder with the sources of Linux and the series, applied patch by patch."""
    source = lines.source(LINE)
    exported = cache.tree_key(repo.ROOT, *(repo.path(name) for name in (
        "Kbuild", *export.LINUX.sources(), export.TEXTS, "tools/hghca_lib/export.py",
        "tools/hghca_lib/series.py")))

    def build(folder):
        series.write(export.LINUX, source, folder / "series", PERSON, signoff=True)
        # Unchanged files are links to those of the source: patch puts a new file in the place of one that it changes.
        shutil.copytree(source, folder / "tree", symlinks=True, copy_function=os.link)
        buildroot.make().run(["sh", "-c", APPLY], cache.log_path("upstream"), "series in the kernel's tree",
                             "change what tools/hghca_lib/export.py inserts",
                             {"series": folder / "series", "tree": folder / "tree"})

    return cache.make("upstream-tree", cache.key(source.parent.name, exported, APPLY), build, 64 * cache.MIB,
                      "kernel's tree with the drivers") / "tree"


def patches():
    """The patches that the tree has, without the cover letter."""
    return sorted((tree().parent / "series").glob("*.patch"))[1:]


def sparse():
    """The folder with a sparse that newer kernels accept."""
    root = buildroot.make()
    return cache.make("sparse", cache.key(root.key, SPARSE, SPARSE_SUITE),
                      lambda folder: lines.fetch(root, SPARSE, [], SPARSE_SUITE, folder, cache.log_path("sparse"), "sparse"),
                      cache.MIB, "sparse")


def configure(variant, folder):
    """Make a folder ready for the build of a variant; Kconfig has taken each line."""
    log = cache.log_path("upstream")
    (folder / "fragment").write_text(variant.fragment())
    variant.root().run(["sh", "-c", CONFIGURE, "sh", *variant.arguments], log, f"configuration {variant.name}",
                       f"see {FRAGMENT}", {"tree": tree(), "build": folder}, "/mnt/tree")
    debug_kernel.check(folder / ".config", [folder / "fragment"], f"configuration {variant.name}", log)


def build(variant, folder):
    """Build the drivers as a variant in its folder: (what was said besides the steps, the sources that sparse has read)."""
    done = variant.root().output([*BUILD, *variant.arguments, *(f"{name}/" for name in FOLDERS)],
                                 {"tree": tree(), "build": folder, "sparse": sparse()}, "/mnt/tree")
    text = done.stdout + done.stderr
    with open(cache.log_path("upstream"), "a", encoding="utf-8") as file:
        file.write(text)
    said = [line for line in text.splitlines() if line and not STEP.match(line)]
    if done.returncode and not said:
        said = [f"make ended with status {done.returncode}"]
    return said, set(CHECKED.findall(text))


def maintainers(files):
    """{file: what get_maintainer.pl says of it}."""
    return {file: subprocess.run(["perl", "scripts/get_maintainer.pl", "--no-git", "--no-git-fallback", "--no-keywords",
                                  "-f", file], cwd=tree(), capture_output=True, text=True).stdout for file in files}
