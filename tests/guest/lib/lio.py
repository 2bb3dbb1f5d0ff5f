# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's SCSI target, LIO: the common part of iSER's and SRP's targets, and the disk at the host's end.

The debug kernels have neither of them, nor SCSI.
"""

import contextlib
import dataclasses
import functools

from hghca_lib.tiers import ALL

from framework import VMS, gate_if, test
from storage import FIO, LOAD_RAM, MIXED, RAM, files_on, fio, write_and_compare
from users import check_fast, fast, leaving_nothing

# sd queries every disk for its stream hints, and LIO reports that it does not support them.
SCSI = {"suite": "users", "subjects": ("hghca",), "kernels": ("stock",), "limit_s": 180,
        "expected_log": (r"^MODE SENSE: unimplemented page/subpage: 0x0a/0x05$",)}
TARGET = "/sys/kernel/config/target"
BACKSTORE = f"{TARGET}/core/iblock_0/disk"
# LIO stores its state in this folder, and reports an error if it is missing.
EXPORT = f"""
set -e
mkdir -p /etc/target
modprobe -a configfs target_core_mod target_core_iblock
{LOAD_RAM}
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
mkdir -p {BACKSTORE}
echo udev_path={RAM.path} > {BACKSTORE}/control
echo 1 > {BACKSTORE}/enable
"""
WITHDRAW = f"""
rmdir {BACKSTORE} {TARGET}/core/iblock_0
cd /
umount /sys/kernel/config
"""
# LIO always loads the first two.
MODULES = "target_core_user target_core_pscsi target_core_file target_core_iblock target_core_mod brd"
# There is no other SCSI disk. sd probes disks in a separate thread.
DISK = f"""
for i in $(seq 200); do
    for disk in /sys/block/sd*; do
        [ "$(cat $disk/size 2>/dev/null)" = {RAM.mib * 2048} ] && [ -b /dev/${{disk##*/}} ] || continue
        grep -q LIO-ORG $disk/device/vendor && echo /dev/${{disk##*/}} && exit
    done
    sleep 0.05
done
echo "no disk of {RAM.mib} MiB in 10 s:" >&2
head -n 20 /sys/block/sd*/size /sys/class/scsi_device/*/device/state /sys/class/scsi_host/*/state >&2
exit 1
"""


def exported(side, withdraw, modules):
    """Export RAM with LIO during a block, and remove the export afterwards.

    withdraw: shell commands that undo what the block does; modules: those of the transport.
    """
    return leaving_nothing(side, withdraw + WITHDRAW, f"{modules} {MODULES}", "the target")


def disk_at(testbed, host):
    """The path of the disk that a login has given the host."""
    return testbed.run(DISK, host).strip()


@dataclasses.dataclass
class Protocol:
    """How a host connects to the target's disk.

    target(testbed, side): a context with RAM exported; connected(testbed, host, server): one with the path of the
    host's disk.
    expected_log: the messages of its modules.
    """
    name: str
    target: object
    connected: object
    expected_log: tuple = ()

    @contextlib.contextmanager
    def disk(self, testbed, host, server):
        with self.target(testbed, server), self.connected(testbed, host, server) as disk:
            yield disk


def compare(protocol, testbed, host, server):
    with protocol.disk(testbed, host, server) as disk:
        write_and_compare(testbed, host, server, disk)


def verify(protocol, testbed, host, server, options):
    with protocol.disk(testbed, host, server) as disk:
        before = fast(testbed, host)
        fio(testbed, host, disk, options)
        # Written data may be in the command; memory for read data is registered.
        check_fast(testbed, host, before, 32)


def files(protocol, testbed, host, server):
    with protocol.disk(testbed, host, server) as disk:
        files_on(testbed, host, disk)


def sessions(protocol, testbed, host, server):
    """Five sessions one after another; each reads the data that the one before has written."""
    with protocol.target(testbed, server):
        for turn in range(5):
            new, old = f"/tmp/session{turn % 2}", f"/tmp/session{1 - turn % 2}"
            with protocol.connected(testbed, host, server) as disk:
                if turn:
                    testbed.run(f"cmp -n 4194304 {old} {disk}", host)
                testbed.run(f"set -e; head -c 4M /dev/urandom > {new}; "
                            f"dd if={new} of={disk} bs=256k oflag=direct status=none", host)
    testbed.run("rm /tmp/session0 /tmp/session1", host)


def enter(protocol):
    """The tests of a protocol."""
    options = {**SCSI, "expected_log": (*SCSI["expected_log"], *protocol.expected_log)}

    def to_itself(name, run, tier=ALL):
        test(f"kernel users: {protocol.name}, an HCA to itself, {name}",
             lambda testbed: run(protocol, testbed, testbed.client, testbed.client), tier=tier, **options)

    def two_machines(name, run, tier=ALL):
        test(f"kernel users: {protocol.name}, two machines, {name}",
             lambda testbed: run(protocol, testbed, testbed.client, testbed.server), machine=VMS, tier=tier, **options)

    to_itself("data written, read and compared", compare, gate_if(protocol.name == "SRP"))
    to_itself("fio", functools.partial(verify, options=next(iter(FIO.values()))))
    two_machines("data written, read and compared", compare)
    two_machines("data written, read and compared, the other way",
                 lambda protocol, testbed, client, server: compare(protocol, testbed, server, client))
    for name, chosen in FIO.items():
        two_machines(f"fio, {name}", functools.partial(verify, options=chosen),
                     gate_if((protocol.name, name) == ("iSER", MIXED)))
    two_machines("five sessions", sessions)
    two_machines("files", files)
