# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU with the device: Debian's source with qemu-device/ as hw/hghca, one binary for each state of the sources.

One source and build tree is kept for a QEMU version and its options. The
project's files are synced into it, and ninja rebuilds what they affect. Each
finished binary is a separate entry, keyed by the content of its sources.

The source of one version is in the build root. Another one is fetched when it
is first asked for, or it is a file of the user's. The suites find the choice in
the environment.
"""

import dataclasses
import os
import shutil
from pathlib import Path

from . import buildroot as buildroot_module
from . import cache, lines, repo
from .errors import ToolError, UsageError

STOCK, NEWEST = "10.0", "11.1"
# The suite of Debian that has one of the other versions.
SUITES = {NEWEST: "trixie-backports"}
VARIABLE = "HGHCA_QEMU"
# What --qemu takes.
CHOICES = "|".join([STOCK, *SUITES, "FILE"])
FILES = (".dsc", ".tar", ".tar.bz2", ".tar.gz", ".tar.xz")
# The newest package of the version, or no file at all. The index of a suite can name files that the mirror lacks.
FETCH = lines.UPDATE + r"""
version=$(apt-cache showsrc --only-source qemu | sed -n "s/^Version: \(\([0-9]*:\)\?$1[.+~-].*\)/\1/p" | sort -V | tail -n 1)
[ -n "$version" ] || exit 0
cd /mnt/out
echo "$version" > version
apt-get source --download-only "qemu=$version" || rm -f *.dsc
"""
UNPACK = """
[ -e "$1" ] || set -- $1
case $1 in
*.dsc) dpkg-source -x "$1" qemu ;;
*) mkdir qemu && tar -xf "$1" -C qemu --strip-components=1 ;;
esac
"""
MIRROR_CURE = ("set HGHCA_MIRROR to a mirror that has its source package, or give the source as a file: "
               f"--qemu FILE ({', '.join(FILES)})")
SIZE_BYTES = 3 * cache.GIB
COMMON = """
    --target-list=x86_64-softmmu --without-default-features --disable-docs --disable-install-blobs
    --disable-debug-info --disable-plugins --disable-werror
""".split()


@dataclasses.dataclass(frozen=True)
class Variant:
    """A build of the same sources: the kind of its cache entries, QEMU's and the core's options, the program."""
    kind: str
    configure: tuple
    core: tuple
    target: str
    devices: tuple = ()   # the lines of a file that lists the devices, in place of QEMU's own file
    newer: tuple = ()   # further lines for other versions than STOCK: devices that those do not link without
    only_ours: bool = False   # of the C sources, only those of the device are built with sanitizers
    corrections: tuple = ()   # of CORRECTIONS, the files that are corrected


# A packet passes many small functions of many files of the core.
OPTIMIZED = ("-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS=-flto=auto")
# The devices of a guest, and those that people put beside an HCA. All that QEMU has would take a quarter of its build.
EMULATOR = Variant("qemu", tuple("""
    --enable-tcg --enable-kvm --enable-slirp --enable-virtfs --enable-attr --enable-cap-ng --enable-trace-backends=log
    --without-default-devices --with-devices-x86_64=hghca
    """.split()), OPTIMIZED, "qemu-system-x86_64", tuple(f"CONFIG_{name}=y" for name in """
    Q35 VTD AMD_IOMMU HPET ISA_DEBUG PVPANIC_ISA PCIE_PORT PCI_BRIDGE XIO3130 IOH3420
    VIRTIO_PCI VIRTIO_BLK VIRTIO_SERIAL VIRTIO_NET VIRTIO_9P VIRTIO_RNG VIRTIO_BALLOON VIRTIO_IOMMU VIRTIO_MEM
    VIRTIO_SCSI WDT_IB6300ESB E1000E_PCI_EXPRESS IGB_PCI_EXPRESS NVME_PCI EDU VFIO_PCI HGHCA RDMA_LOOPBACK ERNIC
    """.split()), newer=tuple(f"CONFIG_{name}=y" for name in "PXB CXL CXL_MEM_DEVICE SPDM_SOCKET".split()),
    corrections=("system/physmem.c",))
# QEMU's generic fuzzer. It runs no guest code, so there is no TCG, and few devices besides the HCA. Sanitizers in
# all of QEMU would take two and a half times as long to compile.
FUZZER = Variant("qemu-fuzz", tuple("""
    --enable-kvm --disable-tcg --cc=clang --cxx=clang++ --enable-fuzzing --enable-asan --enable-ubsan
    --enable-trace-backends=log --with-devices-x86_64=hghca
    """.split()) + ("--extra-cflags=-O1 -fsanitize-ignorelist=/mnt/tree/without-sanitizers",),
    ("-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_COMPILER=clang++",
     "-DCMAKE_CXX_FLAGS=-fsanitize=fuzzer-no-link,address,undefined "
     "-fno-sanitize-recover=all -fno-omit-frame-pointer"),
    "qemu-fuzz-x86_64", ("CONFIG_PCI_DEVICES=n", "CONFIG_TEST_DEVICES=n", "CONFIG_MICROVM=n", "CONFIG_PXB=n",
                         "CONFIG_CXL=n", "CONFIG_HGHCA=y", "CONFIG_RDMA_LOOPBACK=y", "CONFIG_ERNIC=y"),
    only_ours=True)
# The machine of an arm64 guest, with the loopback controller.
ARM64 = Variant("qemu-arm64", tuple("""
    --target-list=aarch64-softmmu --enable-tcg --enable-fdt=system --enable-trace-backends=log
    --without-default-devices --with-devices-aarch64=hghca
    """.split()), OPTIMIZED, "qemu-system-aarch64", ("CONFIG_ARM_VIRT=y", "CONFIG_RDMA_LOOPBACK=y"))
DEVICES = "configs/devices/{}-softmmu/hghca.mak"
# The lines that add hw/hghca to QEMU's build: file -> (line to find, line to put after it).
HOOKS = {
    "hw/meson.build": ("subdir('hyperv')", "subdir('hghca')"),
    "hw/Kconfig": ("source hyperv/Kconfig", "source hghca/Kconfig"),
    "meson.build": ("    'hw/9pfs',", "    'hw/hghca',"),
}
# A defect of the core of QEMU 10.0 to 10.2, corrected in the emulator: file -> [(line to find, lines in its place)]. A TLB
# entry for MMIO holds the number of a section of the memory map. QEMU looks the number up in the newest map, but an
# emulated CPU flushes its TLB only some time after another CPU has changed the map, as the enabling of a PCI function
# does. Until then its accesses go to other devices: a write to its local APIC is lost and with it its timer, or an
# assertion ends QEMU. Corrected, each CPU keeps the map of its TLB until it has flushed the TLB. In a newer QEMU, a TLB
# entry holds the section itself, and there is nothing to correct.
CORRECTIONS = {
    "system/physmem.c": [
        ("    MemoryListener tcg_as_listener;",
         "    MemoryListener tcg_as_listener;\n    FlatView *tlb_view;"),
        ("static void tcg_commit_cpu(CPUState *cpu, run_on_cpu_data data)\n{",
         "static void tcg_commit_cpu(CPUState *cpu, run_on_cpu_data data)\n{\n"
         "    CPUAddressSpace *cpuas = data.host_ptr;\n"
         "    FlatView *old = cpuas->tlb_view;\n\n"
         "    cpuas->tlb_view = address_space_get_flatview(cpuas->as);\n"
         "    if (old) {\n        flatview_unref(old);\n    }"),
        ("    AddressSpaceDispatch *d = address_space_to_dispatch(cpuas->as);",
         "    AddressSpaceDispatch *d = flatview_to_dispatch(cpuas->tlb_view);"),
        ("    AddressSpaceDispatch *d = address_space_to_dispatch(cpu->cpu_ases[asidx].as);",
         "    AddressSpaceDispatch *d = flatview_to_dispatch(cpu->cpu_ases[asidx].tlb_view);"),
    ],
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


def choose(name):
    """Make a version of SUITES, STOCK, or the file of a source what this process and its children build; None: no change."""
    if name:
        os.environ[VARIABLE] = name if name in (STOCK, *SUITES) else str(Path(name).absolute())
        chosen()


def chosen():
    """The version, or the path of the file; UsageError if there is no such one."""
    name = os.environ.get(VARIABLE) or STOCK
    if name not in (STOCK, *SUITES) and not (name.endswith(FILES) and Path(name).is_file()):
        raise UsageError(f"there is no QEMU {name}", f"give --qemu {', '.join([STOCK, *SUITES])}, or the file of its source "
                                                     f"({', '.join(FILES)})")
    return name


def source_key(buildroot, name):
    if name == STOCK:
        return buildroot.key
    if name in SUITES:
        return cache.key(buildroot.key, FETCH, lines.APT, name, SUITES[name])
    return cache.key(buildroot.key, UNPACK, Path(name))


def source(buildroot, name):
    """The file of the source as a build sees it, fetched first if it is missing, and the binds for that."""
    if name == STOCK:
        return f"{buildroot_module.SOURCES}/qemu_*.dsc", {}
    if name not in SUITES:
        return f"/mnt/source/{Path(name).name}", {"source": Path(name).parent}
    step = f"source of QEMU {name}"

    def build(folder):
        log = cache.log_path(f"qemu-source-{name}")
        log.unlink(missing_ok=True)
        lines.fetch_source(buildroot, FETCH, name, SUITES[name], folder, log, step)
        version = folder / "version"
        if not version.is_file():
            raise ToolError(f"the suite {SUITES[name]} of the mirror has no QEMU {name}", MIRROR_CURE, log)
        if not list(folder.glob("*.dsc")):
            raise ToolError(f"the mirror lacks files of QEMU {version.read_text().strip()}, which its suite {SUITES[name]} "
                            "names", MIRROR_CURE, log)

    return "/mnt/source/qemu_*.dsc", {"source": cache.make("qemu-source", source_key(buildroot, name), build,
                                                           128 * cache.MIB, step)}


def tree_key(buildroot, variant):
    corrections = [str(CORRECTIONS[name]) for name in variant.corrections]
    return cache.key(source_key(buildroot, chosen()), *COMMON, *variant.configure, *variant.core, *_devices(variant),
                     str(HOOKS), *corrections)


def _devices(variant):
    return variant.devices if chosen() == STOCK else (*variant.devices, *variant.newer)


def source_paths():
    return [repo.path("CMakeLists.txt"), repo.path("include"), repo.path("qemu-device")]


def binary_key(buildroot, variant):
    repo.path("qemu-device/shim/hghca.c")
    return cache.key(tree_key(buildroot, variant), cache.tree_key(repo.ROOT, *source_paths()))


def is_made(buildroot, variant=EMULATOR):
    return cache.entry(variant.kind, binary_key(buildroot, variant)).is_dir()


def make(buildroot, variant=EMULATOR):
    """The emulator for the checkout's device sources, built first if it is missing."""
    key = binary_key(buildroot, variant)

    def build(folder):
        tree = _make_tree(buildroot, variant)
        log = cache.log_path(variant.kind)
        log.unlink(missing_ok=True)
        _build_core(buildroot, variant, tree, log)
        _sync_shim(tree)
        _build_qemu(buildroot, variant, tree, log)
        shutil.copy2(tree / "build" / variant.target, folder / variant.target)

    folder = cache.make(variant.kind, key, build, cache.GIB, "QEMU with the device")
    return Qemu(folder / variant.target, buildroot, key)


def _make_tree(buildroot, variant):
    """The unpacked QEMU source with the added lines in its build files; kept for incremental builds."""
    def build(folder):
        log = cache.log_path("qemu-source")
        log.unlink(missing_ok=True)
        place, binds = source(buildroot, chosen())
        buildroot.run(["sh", "-c", UNPACK, "sh", place], log, "QEMU source", TREE_CURE, {"tree": folder, **binds},
                      "/mnt/tree")
        for name, (anchor, line) in HOOKS.items():
            _hook(folder / "qemu", name, anchor, line)
        for name in variant.corrections:
            _correct(folder / "qemu" / name, CORRECTIONS[name])
        if variant.devices:
            architecture = variant.target.rpartition("-")[2]
            text = "".join(f"{line}\n" for line in _devices(variant))
            (folder / "qemu" / DEVICES.format(architecture)).write_text(text)
        if variant.only_ours:
            (folder / "without-sanitizers").write_text(_all_but_ours(folder / "qemu"))
        for name in ["build", "core-source", "core-build"]:
            (folder / name).mkdir()

    return cache.make("qemu-tree", tree_key(buildroot, variant), build, SIZE_BYTES, "QEMU source")


def _hook(tree, name, anchor, line):
    """Put the line after the anchor in a file of QEMU's build."""
    file = tree / name
    text = file.read_text() if file.is_file() else ""
    if f"{anchor}\n" not in text:
        raise ToolError(f"QEMU's {name} has no line `{anchor.strip()}`", "this version of QEMU, or another program, is not "
                        "known to the tool: correct HOOKS in tools/hghca_lib/qemu.py")
    file.write_text(text.replace(f"{anchor}\n", f"{anchor}\n{line}\n", 1))


def _correct(file, pairs):
    """Replace the lines in the file. A version of QEMU without one of them has other code there: it stays as it is."""
    text = file.read_text()
    if all(text.count(f"{old}\n") == 1 for old, _ in pairs):
        for old, new in pairs:
            text = text.replace(f"{old}\n", f"{new}\n")
        file.write_text(text)


def _all_but_ours(source):
    """Clang's list of sources without sanitizers: those of QEMU's folders, and those that its build generates."""
    folders = [path for path in (*source.iterdir(), *(source / "hw").iterdir()) if path.is_dir() and path.name != "hw"]
    names = sorted(f"../qemu/{path.relative_to(source)}" for path in folders)
    return "".join(f"src:{name}/*\n" for name in (*names, "qapi", "trace"))


def _build_core(buildroot, variant, tree, log):
    """Build the static library libhghca-core.a and put it and its headers beside the shim."""
    cache.sync_tree(repo.ROOT, [*source_paths(), repo.path("tests")], tree / "core-source")
    for argv in (["cmake", "-G", "Ninja", "-S", "core-source", "-B", "core-build",
                  "-DCMAKE_POSITION_INDEPENDENT_CODE=ON", *variant.core],
                 ["ninja", "-C", "core-build", "hghca-core"]):
        buildroot.run(argv, log, "device core", SOURCE_CURE, {"tree": tree}, "/mnt/tree")
    library = next((tree / "core-build").rglob("libhghca-core.a"))
    target = tree / "qemu/hw/hghca/lib/libhghca-core.a"
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() or target.read_bytes() != library.read_bytes():
        shutil.copyfile(library, target)


def _sync_shim(tree):
    """Put the shim's files, the shared headers and the cores' C headers into hw/hghca."""
    target = tree / "qemu/hw/hghca"
    shim = repo.path("qemu-device/shim")
    for file in cache.tree_files(shim):
        _update(file.read_bytes(), target / file.name)
    cache.sync_tree(repo.ROOT / "include", [repo.ROOT / "include"], target / "include")
    for header in sorted(repo.path("qemu-device/core").glob("*_core.h")):
        _update(header.read_bytes(), target / header.name)


def _update(data, file):
    """Write the file unless it has the same data already, so that ninja sees only real changes."""
    if not file.exists() or file.read_bytes() != data:
        file.write_bytes(data)


def _build_qemu(buildroot, variant, tree, log):
    if not (tree / "build/build.ninja").exists():
        buildroot.run(["../qemu/configure", *COMMON, *variant.configure], log, "QEMU configure", TREE_CURE,
                      {"tree": tree}, "/mnt/tree/build")
    buildroot.run(["ninja", variant.target], log, "QEMU with the device", SOURCE_CURE,
                  {"tree": tree}, "/mnt/tree/build")
