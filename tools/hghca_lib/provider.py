# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs providers, built inside the source tree of rdma-core 56.1."""

import shutil
from pathlib import Path

from . import cache, repo

STEP = "verbs provider"
CURE = "the error is in providers/ or include/ of this checkout; correct it there"
TREE_CURE = "remove the folder `provider-tree` of the cache and run `tools/hghca setup` again"
ANCHOR = "add_subdirectory(providers/mthca)\n"
FOLDERS = ["providers/hghca", "providers/ernic"]
UNPACK = "mkdir rdma-core && tar -xzf /usr/src/hghca/rdma-core_*.orig.tar.gz -C rdma-core --strip-components=1"
TARGET = "hghca"
BUILT = "build/providers/hghca"
# A library for programs and, by a link, the plugin that libibverbs loads: as one file, it is loaded once.
LIBRARY = "libhghca.so.1"
# That of the ERNIC is a plugin alone.
ERNIC_TARGET = "ernic-rdmav34"
ERNIC_PLUGIN = f"lib{ERNIC_TARGET}.so"
# In the provider's folder: what programs with hghcadv.h are compiled with, and the objects.
HEADERS = "include"
OBJECTS = "objects"
CONFIGURE = r"""
    cmake -G Ninja -S rdma-core -B build -DNO_PYVERBS=1 -DNO_MAN_PAGES=1 -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_C_FLAGS=-g\ -I/mnt/tree/include\ -I/mnt/tree/include/uapi
""".strip().replace("\n", " ")


def source_paths():
    return [*map(repo.path, FOLDERS), repo.path("include")]


def sources():
    """The names of the files that are compiled; the object of cq.c is cq.c.o."""
    return sorted(path.name for path in repo.path("providers/hghca").glob("*.c"))


def interface_key():
    """A hash of what a program with hghcadv.h depends on; it need not be built again for another provider."""
    folder = repo.path("providers/hghca")
    return cache.key(LIBRARY, HEADERS, folder / "hghcadv.h", folder / "libhghca.map")


def provider_key(buildroot):
    return cache.key(tree_key(buildroot), LIBRARY, HEADERS, OBJECTS, cache.tree_key(repo.ROOT, *source_paths()))


def tree_key(buildroot):
    """Of the target too: with another one, ninja would take files of the same name for its own."""
    return cache.key(buildroot.key, ANCHOR, *FOLDERS, UNPACK, CONFIGURE, TARGET, ERNIC_TARGET)


def is_made(buildroot):
    return cache.entry("provider", provider_key(buildroot)).is_dir()


def make(buildroot):
    """The folder with both providers, their .driver files, headers and objects, built first if it is missing."""
    log = cache.log_path("provider")

    def build_tree(folder):
        buildroot.run(["sh", "-c", UNPACK], log, STEP, TREE_CURE, {"tree": folder}, "/mnt/tree")
        lists = folder / "rdma-core/CMakeLists.txt"
        added = "".join(f"add_subdirectory({folder})\n" for folder in FOLDERS)
        lists.write_text(lists.read_text().replace(ANCHOR, ANCHOR + added, 1))

    def build(folder):
        log.unlink(missing_ok=True)
        tree = cache.make("provider-tree", tree_key(buildroot), build_tree, cache.GIB, STEP)
        for name in FOLDERS:
            cache.sync_tree(repo.path(name), [repo.path(name)], tree / "rdma-core" / name)
        cache.sync_tree(repo.ROOT / "include", [repo.ROOT / "include"], tree / "include")
        buildroot.run(["sh", "-c", f"{CONFIGURE} && ninja -C build {TARGET} {ERNIC_TARGET}"], log, STEP, CURE,
                      {"tree": tree}, "/mnt/tree")
        shutil.copy(tree / "build/lib" / LIBRARY, folder)
        shutil.copy(tree / "build/lib" / ERNIC_PLUGIN, folder)
        for name in FOLDERS:
            shutil.copy(tree / "build" / name / f"{Path(name).name}.driver", folder)
        (folder / HEADERS / "infiniband").mkdir(parents=True)
        shutil.copy(repo.path("providers/hghca/hghcadv.h"), folder / HEADERS / "infiniband")
        (folder / OBJECTS).mkdir()
        for file in sources():
            shutil.copy(tree / BUILT / f"CMakeFiles/{TARGET}.dir" / f"{file}.o", folder / OBJECTS)

    return cache.make("provider", provider_key(buildroot), build, cache.GIB, STEP)
