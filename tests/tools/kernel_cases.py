# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests with another kernel: the debug kernel, one of the user's own, and all that can be wrong with them."""

import contextlib
import dataclasses
import lzma
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tool import fails, hghca, holds, same, tier

from hghca_lib import accel, cache, debug_kernel, guest, machine, module, payload, provider, repo, setup
from hghca_lib.errors import ToolError
from hghca_lib.tiers import ALL

sys.path[:0] = [str(repo.path(f"tests/guest/{folder}")) for folder in ("lib", "tests")]
import checkers  # noqa: E402

IMAGE = "arch/x86/boot/bzImage"


@contextlib.contextmanager
def stock_tree(image):
    """A tree that is taken for the stock kernel's, with a boot image of the test's choice in it; the image's path.

    Its driver is the stock kernel's, which has been built, so there is no more in it than what a kernel is known by.
    """
    made = setup.make()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        for file in (*module.TREE_FILES, IMAGE):
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
        for file in module.TREE_FILES:
            shutil.copy(made.buildroot.path / f"usr/src/linux-headers-{made.kernel.version}" / file, tree / file)
        (tree / IMAGE).write_bytes(image(made))
        yield tree / IMAGE


def stock_image(made):
    return made.kernel.image.read_bytes()


def test_modules_of_another_kernel():
    """--modules: those of another kernel are refused, and both releases are named"""
    with stock_tree(lambda made: b"") as image:
        release = setup.make().kernel.version
        other = image.parents[3].with_name("6.0.0")
        other.mkdir()
        (other / "modules.dep").write_text("")
        fails(hghca("exec", "--kernel", image, "--modules", other, "--", "true"), 125, "modules of another kernel",
              "6.0.0", release)


@tier(ALL)   # the suites debug and kunit boot it, and the group `checkers` tries each checker
def test_debug_kernel():
    """--kernel debug boots with the checkers and the driver built for it"""
    ended = hghca("exec", "--kernel", "debug", "--",
                  "lsmod | grep -c ^hghca; cat /proc/self/fail-nth; head -c 0 /sys/kernel/debug/kmemleak && "
                  "grep -o 'debug_locks: *1' /proc/lockdep_stats && cat /sys/kernel/debug/dma-api/disabled", timeout=3000)
    same((ended.status, ended.stdout.split()), (0, ["1", "0", "debug_locks:", "1", "N"]), "status and output")


@tier(ALL)   # test_own_modules boots another kernel too
def test_own_kernel():
    """A kernel image in its build tree is booted, with the driver built for it"""
    with stock_tree(stock_image) as image:
        ended = hghca("exec", "--kernel", image, "--", "uname -r; lsmod | grep -c ^hghca")
        same((ended.status, ended.stdout), (0, f"{setup.make().kernel.version}\n1\n"))


def own_modules(image, tree, files, name):
    """Boot a kernel with a folder of these modules, which has a link to its build tree; load the one of the name."""
    made = setup.make()
    release = (tree / "include/config/kernel.release").read_text().strip()
    with tempfile.TemporaryDirectory() as folder:
        modules, alone = Path(folder) / "lib/modules" / release, Path(folder) / "bzImage"
        shutil.copy(image, alone)
        modules.mkdir(parents=True)
        for file in files:
            # Packed ones take the guest longer.
            data = file.read_bytes()
            data = lzma.decompress(data) if file.suffix == ".xz" else data
            (modules / file.name.removesuffix(".xz")).write_bytes(data)
        (modules / "build").symlink_to(tree)
        made.buildroot.run(["depmod", "--basedir", "/mnt/root", release], cache.log_path("test-depmod"), "depmod",
                           "see the log", {"root": folder})
        ended = hghca("exec", "--kernel", alone, "--modules", modules, "--",
                      f"lsmod | grep -c ^hghca; modprobe {name} && lsmod | grep -c -e ^hghca -e ^{name}; "
                      "ls /lib/modules/$(uname -r); modprobe no_such_module", timeout=3000)
        same((ended.status, ended.stdout.split()[:2]), (1, ["1", "2"]), "status and modules")
        holds(ended.stdout, f"{name}.ko\n", "modules.dep\n")
        # The guest's disk has modules of the stock kernel too, in the folder `kernel`.
        for missing in ("build", "kernel\n"):
            assert missing not in ended.stdout, ended.stdout


def test_own_modules():
    """--modules: they are the guest's, and their link to the build tree is what the driver is built with"""
    made = setup.make()
    root, version = made.buildroot.path, made.kernel.version
    modules = root / "usr/lib/modules" / version
    needs = dict(line.split(":") for line in (modules / "modules.dep").read_text().splitlines())
    files = {name: modules / name for module, others in needs.items()
             if Path(module).name.split(".")[0] in ("ib_uverbs", "rdma_ucm", "ib_umad", "dummy")
             for name in (module, *others.split())}
    own_modules(made.kernel.image, root / f"usr/src/linux-headers-{version}", files.values(), "dummy")


@tier(ALL)   # a minute; the suites debug and kunit boot it too
def test_modules_of_another_release():
    """--modules of a kernel of which the guest's disk has no modules"""
    kernel = debug_kernel.make(setup.make().buildroot)
    own_modules(kernel.image, kernel.tree, [checkers.module("debug")], "hghca_provoke")


def test_wrong_modules():
    """--modules without a kernel, or a folder without modules, is refused"""
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "bzImage"
        image.write_bytes(b"")
        fails(hghca("exec", "--modules", folder, "--", "true"), 2, "--modules without --kernel", "cure:")
        fails(hghca("exec", "--modules", folder, "--kernel", "debug", "--", "true"), 2, "needs no modules", "cure:")
        fails(hghca("exec", "--modules", folder, "--kernel", image, "--", "true"), 2, "no modules.dep", "cure:")


def test_no_kernel_image():
    """A file that is no kernel image is QEMU's error: status 125"""
    with stock_tree(lambda made: b"no kernel\n" * 1000) as image:
        ended = hghca("exec", "--kernel", image, "--", "true")
        fails(ended, 125, "QEMU", "kernel")
        assert ended.seconds < 60, f"{ended.seconds:.0f} s"


def test_broken_kernel_image():
    """A kernel image that does not boot is given up after the time limit, with the kernel log's place"""
    def broken(made):
        """The stock image, with its packed kernel overwritten in the middle."""
        image = bytearray(stock_image(made))
        middle = len(image) // 2
        image[middle:middle + 4096] = bytes(4096)
        return bytes(image)

    with stock_tree(broken) as image:
        made = setup.make(kernel=str(image))
        config = machine.Config(hcas=0, kernel=str(image), accel=accel.choose(made))
        try:
            with guest.boot(made, config, timeout=5):
                raise AssertionError("it booted")
        except guest.GuestError as error:
            # What the decompressor says is heard in the first 5 s, and nothing after that.
            holds(str(error), "did not boot within", "log:")
            assert re.search(r"within (5|10) s", str(error)), error
            assert Path(error.log).is_file(), error.log


def test_module_of_another_kernel():
    """A driver that does not match the kernel is told, with the kernel log that says why"""
    made = setup.make()
    driver = module.make(made.buildroot).read_bytes()
    # As for a kernel that is configured otherwise. With versions of symbols the kernel does not look at the release.
    driver, found = re.subn(rb"(\0vermagic=\S+ SMP )preempt ", rb"\1another ", driver)
    same(found, 1, "version magics in the driver")
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "hghca.ko"
        other.write_bytes(driver)
        made = dataclasses.replace(made, payload=payload.make(other, provider.make(made.buildroot)))
        try:
            with guest.boot(made, machine.Config(accel=accel.choose(made))):
                raise AssertionError("the driver was loaded")
        except guest.GuestError as error:
            holds(str(error), "insmod hghca.ko failed", "version magic", "log:")
            holds(Path(error.log).read_text(errors="replace"), "SMP another mod_unload")


def test_dropped_option():
    """An option that Kconfig drops fails the build of a debug kernel, by name"""
    with tempfile.TemporaryDirectory() as folder:
        config, first, second = (Path(folder) / name for name in ("config", "first", "second"))
        first.write_text("CONFIG_KASAN=y\n# CONFIG_SLUB_TINY is not set\nCONFIG_NR_CPUS=8\n# a remark\n")
        second.write_text("# CONFIG_KASAN is not set\nCONFIG_KCSAN=y\n")
        config.write_text("CONFIG_KASAN=y\nCONFIG_NR_CPUS=8\n")
        debug_kernel.check(config, [first], "debug kernel")
        config.write_text("# CONFIG_KASAN is not set\nCONFIG_NR_CPUS=64\nCONFIG_SLUB_TINY=y\n")
        try:
            debug_kernel.check(config, [first], "debug kernel")
            raise AssertionError("dropped options were not noticed")
        except ToolError as error:
            holds(str(error), "CONFIG_KASAN=y", "CONFIG_SLUB_TINY is not set", "CONFIG_NR_CPUS=8", "cure:")
        config.write_text("CONFIG_NR_CPUS=8\nCONFIG_KCSAN=y\n")
        debug_kernel.check(config, [first, second], "kcsan kernel")


def test_debug_kernel_without_space():
    """A debug kernel that the disk has no room for is refused before it is built"""
    setup.make()
    with tempfile.TemporaryDirectory() as folder:
        # A small disk with all there is in the cache, but no debug kernel.
        script = f"""
            mount -t tmpfs -o size=16m tmpfs {folder}
            for kind in {cache.root()}/*/; do
                name=$(basename $kind)
                [ $name != debug-kernel ] || continue
                mkdir {folder}/$name
                mount --bind $kind {folder}/$name
            done
            exec "$@"
        """
        ended = hghca("exec", "--kernel", "debug", "--", "true", env={"HGHCA_CACHE": folder},
                      wrap=["unshare", "--mount", "sh", "-e", "-c", script, "sh"])
        fails(ended, 125, "debug kernel: no disk space", "GiB free", "cure:")
        assert ended.seconds < 30, f"{ended.seconds:.0f} s"


@tier(ALL)   # it unpacks the kernel's source
def test_debug_kernel_that_does_not_build():
    """A debug kernel whose build fails is an error that names its log, and leaves nothing"""
    setup.make()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(repo.path("tools"), copy / "tools")
        with open(copy / "tools/kernel/debug.config", "a", encoding="utf-8") as file:
            file.write("CONFIG_NO_SUCH_OPTION=y\n")
        program = ("import sys; sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True\n"
                   "from hghca_lib import buildroot, debug_kernel\n"
                   "debug_kernel.make(buildroot.make())\n")
        before = sorted((cache.root() / "debug-kernel").glob("*"))
        done = subprocess.run(["python3", "-c", program, copy / "tools"], capture_output=True, text=True, timeout=300)
        assert done.returncode, "it was built"
        holds(done.stderr, "Kconfig did not take CONFIG_NO_SUCH_OPTION=y", "debug-kernel.log", "cure:")
        same(sorted((cache.root() / "debug-kernel").glob("*")), before, "entries of the cache")
