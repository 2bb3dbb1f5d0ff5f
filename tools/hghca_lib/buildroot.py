# SPDX-License-Identifier: GPL-2.0-or-later
"""Roots: each is a Debian 13 with the packages for one purpose, to build everything or to read captured frames.

A root is made once, with mmdebstrap, at its first use, and never changed after.
A command inside it sees the root read-only, a private /tmp, and the folders
passed to it below /mnt.
"""

import dataclasses
import os
import shlex
import shutil
import subprocess

from . import cache, host
from .errors import ToolError

SUITE = "trixie"
# The limit of a command that hangs. On an idle machine, none takes a tenth of it, but those beside guests may wait.
LIMIT_S = 3600
PACKAGES = """
    build-essential ninja-build meson cmake pkg-config flex bison bc xz-utils cpio kmod perl git
    python3 python3-venv ca-certificates dpkg-dev e2fsprogs busybox-static
    libglib2.0-dev libpixman-1-dev libslirp-dev libattr1-dev libcap-ng-dev zlib1g-dev libfdt-dev
    seabios qemu-system-data ipxe-qemu
    libnl-3-dev libnl-route-3-dev libudev-dev libibverbs-dev librdmacm-dev
    linux-image-amd64 linux-headers-amd64 linux-source-6.12 libelf-dev libssl-dev
    libgtest-dev libgmock-dev libbenchmark-dev sparse pahole clang libclang-rt-19-dev clang-format
    coccinelle libpython3.13 clang-tidy cppcheck gcovr
    gnuplot-nox fonts-dejavu-core
""".split()
# Not unpacked: what nobody reads in a root, and the hook that packs an initial RAM disk for the kernel.
DOCUMENTS = "/usr/share/doc/* /usr/share/info/* /usr/share/locale/* /usr/share/man/*".split()
EXCLUDED = (*DOCUMENTS, "/etc/kernel/postinst.d/initramfs-tools")
SOURCES = "/usr/src/hghca"
# --tar-only is for a package whose archive lacks the small file that describes it.
FETCH = f"""
set -e
sed -n 's/^deb /deb-src /p' /etc/apt/sources.list > /etc/apt/sources.list.d/hghca-src.list
apt-get update
mkdir -p {SOURCES}
cd {SOURCES}
apt-get source --download-only qemu
apt-get source --download-only --tar-only rdma-core
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
"""
NETWORK_CURE = ("check the network and the Debian mirror (HGHCA_MIRROR names another, "
                "apt's proxy settings are taken over), then run the same command again")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The contents of a root.

    kind:       of its entries in the cache, and the name of its log.
    step:       its name in messages.
    packages:   of Debian, on top of a minimal one.
    size_bytes: free space that the build needs.
    fetch:      a script that runs in it at the end, with network access; "" for none.
    """
    kind: str
    step: str
    packages: tuple
    size_bytes: int
    fetch: str = ""

    def key(self):
        return cache.key(SUITE, *self.packages, *EXCLUDED, self.fetch)


# All compilers, headers and sources.
BUILD = Recipe("buildroot", "build root", tuple(PACKAGES), 4 * cache.GIB, FETCH)
# Programs that read captured frames and share no code with the project.
FRAME_CHECKERS = Recipe("frame-checkers", "root of the frame checkers", ("tshark", "python3-scapy"), cache.GIB)


class BuildRoot:
    """A finished root at `path`, known by `key`."""

    def __init__(self, path, key):
        self.path = path
        self.key = key

    def kernel_version(self):
        """The version of the stock kernel, whose headers and modules are in the root."""
        versions = sorted(p.name for p in (self.path / "usr/lib/modules").iterdir() if (p / "build").is_symlink())
        if not versions:
            raise ToolError("the build root holds no kernel headers",
                            f"remove {self.path} and run `tools/hghca setup` again")
        return versions[-1]

    def command(self, argv, binds=None, cwd="/", env=None):
        """The host command that runs argv inside the root.

        binds: name -> host folder, seen as /mnt/<name>, writable.
        """
        root = shlex.quote(str(self.path))
        lines = [
            "set -e",
            f"mount --bind {root} {root}",
            f"mount -o remount,ro,bind {root}",
            f"mount -t tmpfs tmpfs {root}/mnt",
            f"mount -t tmpfs tmpfs {root}/tmp",
            f"mount -t proc proc {root}/proc",
            f"mount --rbind /dev {root}/dev",
        ]
        for name, folder in (binds or {}).items():
            lines += [f"mkdir -p {root}/mnt/{name}",
                      f"mount --bind {shlex.quote(str(folder))} {root}/mnt/{name}"]
        settings = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    "HOME": "/tmp", "LC_ALL": "C.UTF-8", "TERM": "dumb", **(env or {})}
        inner = ["env", "-i", *(f"{k}={v}" for k, v in settings.items()),
                 "sh", "-c", 'cd "$0" && "$@"', cwd, *map(str, argv)]
        lines.append(f"exec chroot {root} {shlex.join(inner)}")
        # A build ends with its caller: all its processes are below this one, which ends with the tool.
        return ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private",
                "--pid", "--fork", "--kill-child=KILL", "sh", "-c", "\n".join(lines)]

    def run(self, argv, log, step, cure, binds=None, cwd="/", env=None):
        """Run argv inside the root, its output in the log; fail as host.run_logged does."""
        host.run_logged(self.command(argv, binds, cwd, env), log, step, cure, shown=argv)

    def output(self, argv, binds=None, cwd="/", env=None):
        """Run argv inside the root; a CompletedProcess with text stdout and stderr."""
        return subprocess.run(self.command(argv, binds, cwd, env), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace",
                              env=host.environment(), timeout=LIMIT_S)


def apt_options():
    """The host's own ways to reach its mirror (proxy, time checks, pauses between retries), with retries on top."""
    options = ['Acquire::Retries "3"', 'Acquire::http::Timeout "60"']
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, env=host.environment())
    for line in dump.stdout.splitlines():
        if line.startswith(("Acquire::http::Proxy", "Acquire::https::Proxy", "Acquire::Check-",
                            "Acquire::Retries::Delay")) and '""' not in line:
            options.append(line.rstrip(";"))
    return options


def debootstrap(target, packages, excluded, log, step):
    """Fill `target` with a minimal Debian 13 plus packages, without the paths that match `excluded`; tried three times."""
    argv = ["mmdebstrap", "--variant=minbase", "--mode=root", f"--include={','.join(packages)}",
            *(f"--aptopt={option}" for option in apt_options()),
            # A root that is not whole is made again, so no file of it need be synced.
            "--dpkgopt=force-unsafe-io",
            *(f"--dpkgopt=path-exclude={path}" for path in excluded), SUITE, str(target)]
    if os.environ.get("HGHCA_MIRROR"):
        argv.append(os.environ["HGHCA_MIRROR"])
    for attempt in range(3):
        cache.remove(target)
        try:
            host.run_logged(argv, log, step, NETWORK_CURE)
            return
        except ToolError:
            if attempt == 2:
                raise


def is_made(recipe=BUILD):
    return cache.entry(recipe.kind, recipe.key()).is_dir()


def make(recipe=BUILD):
    """The root of that recipe, made first when it is missing."""
    log = cache.log_path(recipe.kind)

    def build(folder):
        log.unlink(missing_ok=True)
        root = folder / "root"
        debootstrap(root, recipe.packages, EXCLUDED, log, recipe.step)
        if recipe.fetch:
            shutil.copyfile("/etc/resolv.conf", root / "etc/resolv.conf")
            host.run_logged(["chroot", str(root), "sh", "-c", recipe.fetch], log, recipe.step, NETWORK_CURE, tries=3)

    folder = cache.make(recipe.kind, recipe.key(), build, recipe.size_bytes, recipe.step)
    return BuildRoot(folder / "root", recipe.key())
