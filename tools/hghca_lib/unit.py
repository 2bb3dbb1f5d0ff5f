# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds of the device core's tests: unit tests, fuzzers and the simulated network.

Each has a tree, which is kept, so that the next build is incremental.
"""

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
    compiler: str = "c++"

    def configure(self):
        argv = ["cmake", "-G", "Ninja", "-S", "source", "-B", "build", f"-DCMAKE_BUILD_TYPE={self.kind}",
                f"-DCMAKE_CXX_FLAGS={self.flags}"]
        return argv if self.compiler == "c++" else [*argv, f"-DCMAKE_CXX_COMPILER={self.compiler}"]

    def tree(self, root):
        """The folder with `source` and `build`."""
        return cache.root() / "unit-tree" / cache.key(root.key, MOUNT, *self.configure())


# With -O2 and -g, a compilation takes up to half as long again. Sanitizers report lines, which -g1 has. Clang compiles the
# tests in half of GCC's time.
ADDRESS = Build("hghca-unit", "Plain",
                "-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer", "clang++")
# Else Clang's sanitizers look for LLVM's own program, which the build root lacks.
SYMBOLIZER = "external_symbolizer_path=/usr/bin/addr2line"
ADDRESS_ENV = {"ASAN_OPTIONS": SYMBOLIZER, "UBSAN_OPTIONS": f"{SYMBOLIZER}:print_stacktrace=1"}
# In the tree of the unit tests, whose core it shares.
REPLAY = dataclasses.replace(ADDRESS, target="hghca-replay")
# GCC warns of fences, which the sanitizer does not see; the core has them only for DMA by copy.
THREAD = Build("hghca-threads", "Plain", "-O1 -g1 -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan")
# A packet passes many small functions of many files.
SIMULATION = Build("hghca-sim", "Release", "-flto=auto")
# The same core as that of the simulation, and as fast as that of QEMU.
BENCHMARK = dataclasses.replace(SIMULATION, target="hghca-bench")
# Comparisons are not traced: the fuzzers' scripts have the relevant values, and tracing takes a quarter of the time.
FUZZ = Build("hghca-fuzz", "Plain",
             "-O1 -g1 -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-coverage=trace-cmp "
             "-fno-sanitize-recover=all -fno-omit-frame-pointer", "clang++")
# Fresh memory of the stack and the heap has different bytes in each of these. They use Clang, because GCC's pattern
# does not fill the padding of an object with an initializer.
IMAGES = [Build("hghca-image", "Plain", f"-O0 -ftrivial-auto-var-init={stack} -DHGHCA_IMAGE_FILL={heap}", "clang++")
          for stack, heap in (("zero", "0x00"), ("pattern", "0xa5"))]
COVERAGE = Build("hghca-unit", "Debug", "--coverage -fprofile-update=atomic")


def make(root, build):
    """Compile; the program's path in the build root, or None, and the compiler's output.

    If the target has several programs, it is the start of their paths. The caller holds the lock `unit-tree` while it
    uses the result.
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
    return f"{MOUNT}/build/{build.target}", ""
