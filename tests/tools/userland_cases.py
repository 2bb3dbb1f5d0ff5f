# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests with another rdma-core than Debian's: --userland."""

import os
import subprocess
import tempfile
from pathlib import Path
from unittest import mock

from tool import fails, hghca, holds, same, tier

from hghca_lib import payload, tiers

LIBRARIES = "usr/lib/x86_64-linux-gnu"


def test_unknown():
    """--userland of a version that is not known is refused with those that are"""
    fails(hghca("exec", "--userland", "64", "--", "true"), 2, "--userland", "64", "56.1", "65")


def on_disk(disk, path):
    """What debugfs says of a file of the disk."""
    return subprocess.run(["debugfs", "-R", f"stat /{path}", str(disk)], capture_output=True, text=True, check=True).stdout


def test_payload():
    """A user space is on the payload disk as it is installed, links too, and the disk without it is another one"""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, HGHCA_CACHE=f"{folder}/cache"):
        files = Path(folder) / "root"
        (files / LIBRARIES).mkdir(parents=True)
        (files / LIBRARIES / "libfirst.so.1.0").write_bytes(bytes(1 << 20))
        (files / LIBRARIES / "libfirst.so.1").symlink_to("libfirst.so.1.0")
        for name in ("driver/hghca.ko", "provider/libhghca.so.1"):
            (Path(folder) / name).parent.mkdir()
            (Path(folder) / name).write_bytes(b"")
        driver, provider = Path(folder) / "driver/hghca.ko", Path(folder) / "provider"
        disk, plain = payload.make(driver, provider, files), payload.make(driver, provider)
        same(disk == plain, False, "the same disk")
        holds(on_disk(disk, f"userland/{LIBRARIES}/libfirst.so.1"), "Type: symlink", '"libfirst.so.1.0"')
        holds(on_disk(disk, f"userland/{LIBRARIES}/libfirst.so.1.0"), "Type: regular", "Size: 1048576")
        same(on_disk(plain, "userland"), "", "a user space on the other disk")


@tier(tiers.ALL)   # the suite userland runs programs of it
def test_replaced():
    """--userland 65: libraries, programs and pyverbs are those of rdma-core 65, and so is the provider's ABI"""
    ended = hghca("exec", "--userland", "65", "--", f"""
        set -e
        readlink /{LIBRARIES}/libibverbs.so.1 /{LIBRARIES}/librdmacm.so.1 | sed 's/.*[.]so[.]1[.][0-9]*[.]//'
        ls /{LIBRARIES}/libibverbs | grep hghca
        ibv_devices | grep -o hghca0
        python3 -c 'import pyverbs.comp_cntr, pyverbs.device; print(pyverbs.device.get_device_list()[0].name.decode())'
    """, timeout=1800)
    same((ended.status, ended.stdout.split()), (0, ["65.0", "65.0", "libhghca-rdmav65.so", "hghca0", "hghca0"]), ended.stderr)
