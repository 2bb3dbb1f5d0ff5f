# SPDX-License-Identifier: GPL-2.0-or-later
"""RNBD over RTRS: a block device of another machine. Debian builds neither of them."""

import contextlib

from hghca_lib.tiers import ALL

import lio
from framework import TREE, VMS, test
from storage import FIO, LOAD_RAM, MIXED, RAM
from users import leaving_nothing

SESSION = "hghca"
OURS = {"suite": "users", "subjects": ("hghca",), "kernels": (TREE,), "limit_s": 180, "machine": VMS, "tier": ALL,
        # Each end tells of its sessions and devices at this level.
        "expected_log": (r"^rnbd_(client|server): ", r"^rtrs_(client|server|core): ", r"^rtrs-(clt|srv)")}
MAP = f"""
set -e
modprobe rnbd_client
echo "sessname={SESSION} path=ip:{{address}} device_path={RAM.path}" > /sys/class/rnbd-client/ctl/map_device
for i in $(seq 100); do
    for disk in /sys/block/rnbd*; do
        disk=/dev/${{{{disk##*/}}}}
        [ -b "$disk" ] && dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct status=none && echo "$disk" && exit
    done
    sleep 0.05
done
exit 1
"""
UNMAP = """
for disk in /sys/block/rnbd*/rnbd/unmap_device; do
    echo normal > $disk
done
"""


@contextlib.contextmanager
def target(testbed, side):
    """RAM that clients may map."""
    with leaving_nothing(side, "", "rnbd_server rtrs_server brd", "the server"):
        testbed.run(f"set -e; {LOAD_RAM}; modprobe rnbd_server", side)
        yield


@contextlib.contextmanager
def connected(testbed, host, server):
    """The path of the mapped disk."""
    with leaving_nothing(host, UNMAP, "rnbd_client rtrs_client rtrs_core", "the client"):
        yield testbed.run(MAP.format(address=server.address), host).strip()


PROTOCOL = lio.Protocol("RNBD", target, connected)


@test("kernel users: RNBD, two machines, data written, read and compared", **OURS)
def compared(testbed):
    lio.compare(PROTOCOL, testbed, testbed.client, testbed.server)


@test("kernel users: RNBD, two machines, fio, a sector to 1 MiB, 64 under way", **OURS)
def mixed(testbed):
    lio.verify(PROTOCOL, testbed, testbed.client, testbed.server, FIO[MIXED])
