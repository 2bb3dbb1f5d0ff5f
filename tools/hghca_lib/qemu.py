# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU with the device: Debian's source, our folder added as hw/hghca, one binary a source state.

One source and build tree is kept for a QEMU version and its options; our files
are synced into it and ninja rebuilds what they touch. Each finished binary is
an entry of its own, keyed by the content it was made from.
"""

import shutil

from . import cache, repo

SIZE_BYTES = 3 * cache.GIB
CONFIGURE = """
    --target-list=x86_64-softmmu --without-default-features --disable-docs --disable-install-blobs
    --disable-debug-info --disable-plugins --disable-werror
    --enable-tcg --enable-kvm --enable-slirp --enable-virtfs --enable-attr --enable-cap-ng
    --enable-trace-backends=log
""".split()
# What makes QEMU's build descend into our folder: file -> (line to find, line to put after it).
HOOKS = {
    "hw/meson.build": ("subdir('hyperv')", "subdir('hghca')"),
    "hw/Kconfig": ("source hyperv/Kconfig", "source hghca/Kconfig"),
    "meson.build": ("    'hw/9pfs',", "    'hw/hghca',"),
}
FIRMWARE = ["usr/share/seabios", "usr/share/qemu", "usr/lib/ipxe/qemu"]
SOURCE_CURE = "the error is in qemu-device/ or include/ of this checkout; correct it there"
TREE_CURE = "remove the folder `qemu-tree` of the cache and run `tools/hghca setup` again"


class Qemu:
    """A built emulator; runs on any x86_64 Linux through the build root's own loader and libraries."""

    def __init__(self, binary, buildroot, key):
        self.binary = binary
        self.buildroot = buildroot
        self.key = key

    def argv(self):
        """The start of a command line: loader, libraries, binary, firmware folders."""
        root = self.buildroot.path
        libraries = ":".join(str(root / p) for p in ["usr/lib/x86_64-linux-gnu", "usr/lib"])
        argv = [str(root / "usr/lib64/ld-linux-x86-64.so.2"), "--library-path", libraries, str(self.binary)]
        for folder in FIRMWARE:
            argv += ["-L", str(root / folder)]
        return argv


def tree_key(buildroot):
    return cache.key(buildroot.key, *CONFIGURE, str(HOOKS))


def source_paths():
    return [repo.path("CMakeLists.txt"), repo.path("include"), repo.path("qemu-device")]


def binary_key(buildroot):
    repo.path("qemu-device/shim/hghca.c")
    return cache.key(tree_key(buildroot), cache.tree_key(repo.ROOT, *source_paths()))


def is_made(buildroot):
    return cache.entry("qemu", binary_key(buildroot)).is_dir()


def make(buildroot):
    """The emulator for the checkout's device sources, built first when it is missing."""
    key = binary_key(buildroot)

    def build(folder):
        tree = _make_tree(buildroot)
        log = cache.log_path("qemu")
        log.unlink(missing_ok=True)
        _build_core(buildroot, tree, log)
        _sync_shim(tree)
        _build_qemu(buildroot, tree, log)
        binary = tree / "build/qemu-system-x86_64"
        shutil.copy2(binary, folder / "qemu-system-x86_64")

    folder = cache.make("qemu", key, build, cache.GIB, "QEMU with the device")
    return Qemu(folder / "qemu-system-x86_64", buildroot, key)


def _make_tree(buildroot):
    """The unpacked QEMU source with our hooks in its build files; kept for incremental builds."""
    def build(folder):
        log = cache.log_path("qemu-source")
        log.unlink(missing_ok=True)
        buildroot.run(["sh", "-c", "dpkg-source -x /usr/src/hghca/qemu_*.dsc qemu"], log,
                      "QEMU source", TREE_CURE, {"tree": folder}, "/mnt/tree")
        for name, (anchor, line) in HOOKS.items():
            file = folder / "qemu" / name
            text = file.read_text()
            file.write_text(text.replace(f"{anchor}\n", f"{anchor}\n{line}\n", 1))
        for name in ["build", "core-source", "core-build"]:
            (folder / name).mkdir()

    return cache.make("qemu-tree", tree_key(buildroot), build, SIZE_BYTES, "QEMU source")


def _build_core(buildroot, tree, log):
    """Build the static library libhghca-core.a and put it and its headers beside the shim."""
    cache.sync_tree(repo.ROOT, [*source_paths(), repo.path("tests")], tree / "core-source")
    script = ("cmake -G Ninja -S core-source -B core-build -DCMAKE_BUILD_TYPE=RelWithDebInfo "
              "-DCMAKE_POSITION_INDEPENDENT_CODE=ON && ninja -C core-build hghca-core")
    buildroot.run(["sh", "-c", script], log, "device core", SOURCE_CURE, {"tree": tree}, "/mnt/tree")
    library = next((tree / "core-build").rglob("libhghca-core.a"))
    target = tree / "qemu/hw/hghca/lib/libhghca-core.a"
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() or target.read_bytes() != library.read_bytes():
        shutil.copyfile(library, target)


def _sync_shim(tree):
    """Put the shim's files, the shared headers and the core's C header into hw/hghca."""
    target = tree / "qemu/hw/hghca"
    shim = repo.path("qemu-device/shim")
    for file in cache.tree_files(shim):
        _update(file.read_bytes(), target / file.name)
    cache.sync_tree(repo.ROOT / "include", [repo.ROOT / "include"], target / "include")
    _update(repo.path("qemu-device/core/hghca_core.h").read_bytes(), target / "hghca_core.h")


def _update(data, file):
    """Write the file unless it holds the data already, so that ninja sees only real changes."""
    if not file.exists() or file.read_bytes() != data:
        file.write_bytes(data)


def _build_qemu(buildroot, tree, log):
    if not (tree / "build/build.ninja").exists():
        buildroot.run(["../qemu/configure", *CONFIGURE], log, "QEMU configure", TREE_CURE,
                      {"tree": tree}, "/mnt/tree/build")
    buildroot.run(["ninja", "qemu-system-x86_64"], log, "QEMU with the device", SOURCE_CURE,
                  {"tree": tree}, "/mnt/tree/build")
