# SPDX-License-Identifier: GPL-2.0-or-later
"""Source trees of rdma-core, in which the providers are built: which versions there are, and where each comes from.

The version of the guest is in the build root. The newest one, for which the providers are written, is fetched when it
is first asked for, from a suite that moves on: a mirror need not have it.
"""

import re
from pathlib import Path

from . import buildroot, cache, lines, repo
from .errors import ToolError

STOCK, NEWEST = "56.1", "65"
# The suite of Debian that has one of the other versions.
SUITES = {NEWEST: "unstable"}
KIND = "rdma-core"
CURE = "set HGHCA_MIRROR to a mirror that has its source package"
# The index of the suite may be of last month, and a mirror may lack all files of the package but its archive. Nothing
# is fetched if it has another version.
FETCH = lines.UNDATED + lines.UPDATE + r"""
version=$(apt-cache showsrc --only-source rdma-core | sed -n "s/^Version: \($1[.-].*\)/\1/p" | sort -V | tail -n 1)
[ -n "$version" ] || exit 0
cd /mnt/out
apt-get source --download-only --tar-only "rdma-core=$version"
"""
UNPACK = "mkdir rdma-core && tar -xzf {}/rdma-core_*.orig.tar.gz -C rdma-core --strip-components=1"
PROVIDERS = ("ernic", "hghca")
MANUAL = "hghca/man"
COMPAT = "compat"
FOLDER = "providers"
HEADERS = "include/uapi/rdma"
# The lists that the providers are added to, behind their neighbour in the alphabet.
NEIGHBOUR = "erdma"
LIST_OF_FOLDERS = ("CMakeLists.txt", f"add_subdirectory({FOLDER}/%s)\n")
LIST_OF_HEADERS = ("kernel-headers/CMakeLists.txt", "  rdma/%s-abi.h\n")
# Of what a program may be linked with if it is linked statically.
LIST_OF_STATIC = ("libibverbs/verbs.h", "extern const struct verbs_device_ops verbs_provider_%s;\n")
UNKNOWN = "RDMA_DRIVER_UNKNOWN"
# What debian/control names, and what reads the results: to build all of it, not the providers alone.
PACKAGES = buildroot.Recipe("rdma-core-root", "root with what the packages of rdma-core need", tuple("""
    build-essential clang cmake cython3 debhelper dh-python libnl-3-dev libnl-route-3-dev libpython3-dev libsystemd-dev
    libudev-dev lintian ninja-build pandoc patch pkgconf python3-dev python3-docutils python3-pkg-resources rpm sparse
    valgrind
""".split()), 2 * cache.GIB)
PRIVATE_ABI = re.compile(r'^set\(IBVERBS_PABI_VERSION "(\d+)"\)$', re.MULTILINE)


def folders(version):
    """The names of our folders that its tree has: with `compat`, which builds the others, if it is not the newest."""
    return PROVIDERS if version == NEWEST else (*PROVIDERS, COMPAT)


def archive_key(root, version):
    if version == STOCK:
        return root.key
    return cache.key(root.key, FETCH, lines.APT, version, SUITES[version])


def archive(root, version):
    """The version's archive, fetched first if it is missing: its folder as a build sees it, and the binds for that."""
    if version == STOCK:
        return buildroot.SOURCES, {}
    step = f"source of rdma-core {version}"

    def build(folder):
        log = cache.log_path(f"{KIND}-{version}")
        log.unlink(missing_ok=True)
        lines.fetch_source(root, FETCH, version, SUITES[version], folder, log, step)
        if not list(folder.glob("*.orig.tar.gz")):
            raise ToolError(f"the suite {SUITES[version]} of the mirror has no rdma-core {version}", CURE, log)

    return "/mnt/source", {"source": cache.make(KIND, archive_key(root, version), build, 64 * cache.MIB, step)}


def tree_key(root, version):
    return cache.key(archive_key(root, version), UNPACK, NEIGHBOUR, HEADERS, *LIST_OF_FOLDERS, *LIST_OF_HEADERS,
                     *LIST_OF_STATIC, MANUAL, *folders(version))


def unpack(root, version, folder, log, step, cure):
    """Unpack rdma-core below a folder; where it is."""
    place, binds = archive(root, version)
    root.run(["sh", "-c", UNPACK.format(place)], log, step, cure, {"tree": folder, **binds}, "/mnt/tree")
    return folder / "rdma-core"


def make_tree(root, version, folder, log, step, cure):
    """Unpack rdma-core in the folder, and add the providers to its lists; sync_tree() adds the sources."""
    core = unpack(root, version, folder, log, step, cure)
    _insert(core, LIST_OF_FOLDERS, [COMPAT] if COMPAT in folders(version) else [*PROVIDERS, MANUAL])
    _insert(core, LIST_OF_HEADERS, PROVIDERS)
    _insert(core, LIST_OF_STATIC, PROVIDERS)
    for name in PROVIDERS:
        header = f"{name}-abi.h"
        (core / "kernel-headers/rdma" / header).symlink_to(Path("../../..", HEADERS, header))


def _insert(core, place, names):
    file, line = core / place[0], place[1]
    text = file.read_text()
    anchor = line % NEIGHBOUR
    if anchor not in text:
        raise ToolError(f"rdma-core's {place[0]} has no line `{anchor.strip()}`", "add the providers somewhere else")
    file.write_text(text.replace(anchor, anchor + "".join(line % name for name in names)))


def sync_tree(version, folder, ids=None):
    """Make the sources of the providers in a folder of make_tree() those of this checkout.

    ids: the number of each provider's driver, if the kernel's tree has them; without, they have none of their own.
    """
    for name in folders(version):
        source = repo.path(f"{FOLDER}/{name}")
        cache.sync_tree(source, [source], folder / "rdma-core" / FOLDER / name)
    for name, number in (ids or {}).items():
        file = folder / "rdma-core" / FOLDER / name / f"{name}.c"
        file.write_text(file.read_text().replace(UNKNOWN, f"(enum rdma_driver_id){number}"))
    cache.sync_tree(repo.ROOT / "include", [repo.ROOT / "include"], folder / "include")


def private_abi(folder):
    """The number of the ABI between libibverbs and its plugins, which their names have, of a folder of make_tree()."""
    return PRIVATE_ABI.search((folder / "rdma-core/CMakeLists.txt").read_text()).group(1)
