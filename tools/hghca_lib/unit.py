# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds of the device core's unit tests and of the simulated network: a tree for each, kept, so that the next build is a small one."""

import dataclasses
import re

from . import cache, repo

MOUNT = "/mnt/job"
PROGRESS = re.compile(r"^\[\d+/\d+\] ")


@dataclasses.dataclass(frozen=True)
class Build:
    """How the tests are built: the target of CMakeLists.txt, CMake's build type, flags for the compiler."""
    target: str
    kind: str
    flags: str

    def configure(self):
        return ["cmake", "-G", "Ninja", "-S", "source", "-B", "build", f"-DCMAKE_BUILD_TYPE={self.kind}",
                f"-DCMAKE_CXX_FLAGS={self.flags}"]

    def tree(self, root):
        """The folder with `source` and `build`."""
        return cache.root() / "unit-tree" / cache.key(root.key, MOUNT, *self.configure())


ADDRESS = Build("hghca-unit", "RelWithDebInfo",
                "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer")
# GCC warns of fences, which the sanitizer does not see; those of the core stand where DMA is by copy.
THREAD = Build("hghca-threads", "RelWithDebInfo", "-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan")
SIMULATION = Build("hghca-sim", "Release", "")
ADDRESS_SIMULATION = dataclasses.replace(ADDRESS, target="hghca-sim")
COVERAGE = Build("hghca-unit", "Debug", "--coverage -fprofile-update=atomic")


def make(root, build):
    """Compile; the program's path in the build root, or None, and what the compiler said.

    Whoever calls this and uses what it made holds the lock `unit-tree`.
    """
    tree = build.tree(root)
    tree.mkdir(parents=True, exist_ok=True)
    cache.sync_tree(repo.ROOT, [repo.path(name) for name in ("CMakeLists.txt", "include", "qemu-device", "tests")],
                    tree / "source")
    for argv in (build.configure(), ["ninja", "-C", "build", build.target]):
        done = root.output(argv, {"job": tree}, MOUNT)
        if done.returncode:
            said = [line for line in (done.stdout + done.stderr).splitlines() if not PROGRESS.match(line)]
            return None, "\n".join(said[-60:])
    program = next(path for path in (tree / "build").rglob(build.target) if path.is_file())
    return f"{MOUNT}/{program.relative_to(tree)}", ""
