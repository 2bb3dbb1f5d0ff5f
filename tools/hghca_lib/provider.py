# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs provider, built inside the source tree of rdma-core 56.1."""

import shutil

from . import cache, repo

STEP = "verbs provider"
CURE = "the error is in providers/hghca or include/ of this checkout; correct it there"
TREE_CURE = "remove the folder `provider-tree` of the cache and run `tools/hghca setup` again"
ANCHOR = "add_subdirectory(providers/mthca)\n"
UNPACK = "mkdir rdma-core && tar -xzf /usr/src/hghca/rdma-core_*.orig.tar.gz -C rdma-core --strip-components=1"
BUILT = "build/providers/hghca"
OBJECTS = "objects"
CONFIGURE = r"""
    cmake -G Ninja -S rdma-core -B build -DNO_PYVERBS=1 -DNO_MAN_PAGES=1 -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_C_FLAGS=-g\ -I/mnt/tree/include\ -I/mnt/tree/include/uapi
""".strip().replace("\n", " ")


def source_paths():
    return [repo.path("providers/hghca"), repo.path("include")]


def sources():
    """The names of the files that are compiled; the object of cq.c is cq.c.o."""
    return sorted(path.name for path in repo.path("providers/hghca").glob("*.c"))


def provider_key(buildroot):
    return cache.key(tree_key(buildroot), OBJECTS, cache.tree_key(repo.ROOT, *source_paths()))


def tree_key(buildroot):
    return cache.key(buildroot.key, ANCHOR, UNPACK, CONFIGURE)


def is_made(buildroot):
    return cache.entry("provider", provider_key(buildroot)).is_dir()


def make(buildroot):
    """The folder with libhghca-rdmav34.so, hghca.driver and the folder `objects`, built first if it is missing."""
    log = cache.log_path("provider")

    def build_tree(folder):
        buildroot.run(["sh", "-c", UNPACK], log, STEP, TREE_CURE, {"tree": folder}, "/mnt/tree")
        lists = folder / "rdma-core/CMakeLists.txt"
        lists.write_text(lists.read_text().replace(ANCHOR, f"{ANCHOR}add_subdirectory(providers/hghca)\n", 1))

    def build(folder):
        log.unlink(missing_ok=True)
        tree = cache.make("provider-tree", tree_key(buildroot), build_tree, cache.GIB, STEP)
        source = repo.path("providers/hghca")
        cache.sync_tree(source, [source], tree / "rdma-core/providers/hghca")
        cache.sync_tree(repo.ROOT / "include", [repo.ROOT / "include"], tree / "include")
        buildroot.run(["sh", "-c", f"{CONFIGURE} && ninja -C build hghca-rdmav34"], log, STEP, CURE,
                      {"tree": tree}, "/mnt/tree")
        shutil.copy(tree / "build/lib/libhghca-rdmav34.so", folder)
        shutil.copy(tree / BUILT / "hghca.driver", folder)
        (folder / OBJECTS).mkdir()
        for file in sources():
            shutil.copy(tree / BUILT / "CMakeFiles/hghca-rdmav34.dir" / f"{file}.o", folder / OBJECTS)

    return cache.make("provider", provider_key(buildroot), build, cache.GIB, STEP)
