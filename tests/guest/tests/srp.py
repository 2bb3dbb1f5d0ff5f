# SPDX-License-Identifier: GPL-2.0-or-later
"""SRP: the kernel's target and initiator, which find each other by the connection manager."""

import contextlib

import lio
from framework import expect
from users import leaving_nothing

PORT = 5555
FABRIC = f"{lio.TARGET}/srpt"

# The target's port and its group have the name of its first GID; the initiator's, what it logs in with, comes from
# its own. LIO lets nobody write whom it does not know.
EXPORT = lio.EXPORT + """
modprobe ib_srpt
mkdir {fabric}
echo {port} > {fabric}/discovery_auth/rdma_cm_port
mkdir -p {group}
cd {group}
mkdir lun/lun_0
ln -s {backstore} lun/lun_0/disk
mkdir acls/{initiator} acls/{initiator}/lun_0
ln -s {group}/lun/lun_0 acls/{initiator}/lun_0/disk
echo 1 > enable
"""
WITHDRAW = """
cd {group}
echo 0 > enable
rm acls/{initiator}/lun_0/disk
rmdir acls/{initiator}/lun_0 acls/{initiator}
rm lun/lun_0/disk
rmdir lun/lun_0
cd /
rmdir {group} {wwn}
echo 0 > {fabric}/discovery_auth/rdma_cm_port
rmdir {fabric}
"""
LEAVE = """
for port in /sys/class/srp_remote_ports/port-*; do
    [ ! -e $port ] || echo 1 > $port/delete
done
for i in $(seq 200); do
    ls /sys/class/srp_remote_ports | grep -q . || exit 0
    sleep 0.05
done
echo "still connected after 10 s:"
ls /sys/class/srp_remote_ports
"""


def first_gid(testbed, side):
    """The GID that SRP makes its names of, as 32 digits."""
    return testbed.run(f"tr -d ':\\n' < /sys/class/infiniband/{side.device}/ports/1/gids/0", side)


def host_of(testbed, side):
    """Who logs in at this side: the other machine, or itself where there is but one."""
    others = [other for other in testbed.sides if other is not side and other.guest is not side.guest]
    return others[0] if others else side


@contextlib.contextmanager
def target(testbed, side):
    """RAM exported at the side's address."""
    gid = first_gid(testbed, side)
    wwn = f"{FABRIC}/0x{gid}"
    names = {"fabric": FABRIC, "wwn": wwn, "group": f"{wwn}/0x{gid}",
             "initiator": f"0x{'0' * 16}{first_gid(testbed, host_of(testbed, side))[16:]}"}
    with lio.exported(side, WITHDRAW.format(**names), "ib_srpt"):
        testbed.run(EXPORT.format(**names, backstore=lio.BACKSTORE, port=PORT), side)
        yield


@contextlib.contextmanager
def connected(testbed, host, server):
    """The path of the target's disk on the host, as long as it is logged in."""
    guid = testbed.run("cat /sys/module/ib_srpt/parameters/srpt_service_guid", server).strip().removeprefix("0x")
    # By default a request has so few segments that hardly one is longer than 48 KiB.
    with leaving_nothing(host, LEAVE, "ib_srp sd_mod", "the initiator"):
        testbed.run("modprobe -a sd_mod ib_srp", host)
        always = testbed.run("cat /sys/module/ib_srp/parameters/register_always", host).strip()
        expect(always == "Y", f"register_always is {always}: not every transfer is registered")
        testbed.run(f"echo id_ext={guid},ioc_guid={guid},dest={server.address}:{PORT},cmd_sg_entries=128 "
                    f"> /sys/class/infiniband_srp/srp-{host.device}-1/add_target", host)
        yield lio.disk_at(testbed, host)


# The initiator takes the end of a connection that it has closed itself for an error. The target tells of each receive
# that is flushed then, and warns when there were too many to tell.
lio.enter(lio.Protocol("SRP", target, connected, (r"^scsi host\d+: ib_srp: connection closed$",
                                                  r"^srpt_recv_done: \d+ callbacks suppressed$")))
