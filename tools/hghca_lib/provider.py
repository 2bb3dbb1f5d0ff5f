# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs providers, built inside the source tree of rdma-core: of the guest's version, or of another."""

import shutil

from . import cache, rdma_core, repo

STEP = "verbs provider"
CURE = "the error is in providers/ or include/ of this checkout; correct it there"
TREE_CURE = "remove the folder `provider-tree` of the cache and run `tools/hghca setup` again"
TARGET = "hghca"
BUILT = "build/providers/hghca"
# A library for programs and, by a link, the plugin that libibverbs loads: as one file, it is loaded once.
LIBRARY = "libhghca.so.1"
# That of the ERNIC is a plugin alone. Its name has the private ABI of the rdma-core that it is built for.
ERNIC_TARGET = "ernic-rdmav{}"
# In the provider's folder: what programs with hghcadv.h are compiled with, and the objects.
HEADERS = "include"
OBJECTS = "objects"
# What rdma-core's own developers compile with: a warning is an error.
CONFIGURE = r"""
    cmake -G Ninja -S rdma-core -B build -DNO_PYVERBS=1 -DNO_MAN_PAGES=1 -DCMAKE_BUILD_TYPE=Release -DENABLE_WERROR=1
    -DCMAKE_C_FLAGS=-g\ -I/mnt/tree/include
""".strip().replace("\n", " ")


def source_paths():
    return [repo.path(rdma_core.FOLDER), repo.path("include")]


def sources():
    """The names of the files that are compiled; the object of cq.c is cq.c.o."""
    return sorted(path.name for path in repo.path("providers/hghca").glob("*.c"))


def interface_key():
    """A hash of what a program with hghcadv.h depends on; it need not be built again for another provider."""
    folder = repo.path("providers/hghca")
    return cache.key(LIBRARY, HEADERS, folder / "hghcadv.h", folder / "libhghca.map")


def provider_key(buildroot, version, ids=None):
    return cache.key(tree_key(buildroot, version), LIBRARY, HEADERS, OBJECTS,
                     cache.tree_key(repo.ROOT, *source_paths()), *([str(ids)] if ids else []))


def tree_key(buildroot, version):
    """Of the target too: with another one, ninja would take files of the same name for its own."""
    return cache.key(buildroot.key, rdma_core.tree_key(buildroot, version), CONFIGURE, TARGET, ERNIC_TARGET)


def is_made(buildroot, version=rdma_core.STOCK, ids=None):
    return cache.entry("provider", provider_key(buildroot, version, ids)).is_dir()


def make(buildroot, version=rdma_core.STOCK, ids=None):
    """The folder with both providers, their .driver files, headers and objects, built first if it is missing.

    ids: as for rdma_core.sync_tree().
    """
    log = cache.log_path("provider")
    step = STEP if version == rdma_core.STOCK else f"{STEP} for rdma-core {version}"

    def build_tree(folder):
        rdma_core.make_tree(buildroot, version, folder, log, step, TREE_CURE)

    def build(folder):
        log.unlink(missing_ok=True)
        tree = cache.make("provider-tree", tree_key(buildroot, version), build_tree, cache.GIB, step)
        rdma_core.sync_tree(version, tree, ids)
        ernic = ERNIC_TARGET.format(rdma_core.private_abi(tree))
        buildroot.run(["sh", "-c", f"{CONFIGURE} && ninja -C build {TARGET} {ernic}"], log, step, CURE,
                      {"tree": tree}, "/mnt/tree")
        shutil.copy(tree / "build/lib" / LIBRARY, folder)
        shutil.copy(tree / "build/lib" / f"lib{ernic}.so", folder)
        for name in rdma_core.PROVIDERS:
            shutil.copy(tree / f"build/{rdma_core.FOLDER}/{name}/{name}.driver", folder)
        (folder / HEADERS / "infiniband").mkdir(parents=True)
        shutil.copy(repo.path("providers/hghca/hghcadv.h"), folder / HEADERS / "infiniband")
        (folder / OBJECTS).mkdir()
        for file in sources():
            shutil.copy(tree / BUILT / f"CMakeFiles/{TARGET}.dir" / f"{file}.o", folder / OBJECTS)

    return cache.make("provider", provider_key(buildroot, version, ids), build, cache.GIB, step)
