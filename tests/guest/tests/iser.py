# SPDX-License-Identifier: GPL-2.0-or-later
"""iSER: the kernel's iSCSI target, and open-iscsi with the kernel's initiator."""

import contextlib

import lio
from framework import expect, killed_at_end
from users import heard, leaving_nothing

IQN = "iqn.2004-10.org.hghca:disk"
# A fresh Debian gives the host its name when it first starts the daemon, or when it is installed.
INITIATOR = "iqn.2004-10.org.hghca:host"
PORT = 3260
NODE = f"{lio.TARGET}/iscsi/{IQN}"
PORTAL_GROUP = f"{NODE}/tpgt_1"

# A portal is made for TCP, and for iSER too when told so. Who logs in needs no name and no password, and may write.
EXPORT = lio.EXPORT + """
modprobe ib_isert
mkdir -p {group}
cd {group}
echo 0 > attrib/authentication
echo 1 > attrib/generate_node_acls
echo 0 > attrib/demo_mode_write_protect
mkdir lun/lun_0
ln -s {backstore} lun/lun_0/disk
mkdir np/{address}:{port}
echo 1 > np/{address}:{port}/iser
echo 1 > enable
"""
WITHDRAW = """
cd {group}
echo 0 > enable
rmdir np/*
rm lun/lun_0/disk
rmdir lun/lun_0
cd /
rmdir {group} {node} {target}/iscsi
"""
# No pings between initiator and target, which a slow machine may answer too late.
LOGIN = """
set -e
iscsiadm -m node -o new -T {iqn} -p {address}:{port},1 -I iser
for setting in noop_out_interval noop_out_timeout; do
    iscsiadm -m node -o update -T {iqn} -n "node.conn[0].timeo.$setting" -v 0
done
iscsiadm -m node -T {iqn} -p {address}:{port} --login
iscsiadm -m session
"""
LOGOUT = """
iscsiadm -m node -T {iqn} --logout
iscsiadm -m node -T {iqn} -o delete
"""


@contextlib.contextmanager
def target(testbed, side):
    """RAM exported at the side's address."""
    with lio.exported(side, WITHDRAW.format(group=PORTAL_GROUP, node=NODE, target=lio.TARGET),
                      "ib_isert iscsi_target_mod"):
        testbed.run(EXPORT.format(group=PORTAL_GROUP, backstore=lio.BACKSTORE, address=side.address, port=PORT), side)
        yield


@contextlib.contextmanager
def daemon(testbed, host):
    """open-iscsi's daemon, without which iscsiadm does nothing."""
    command = f"echo InitiatorName={INITIATOR} > /tmp/initiatorname; exec iscsid -f -i /tmp/initiatorname"
    with killed_at_end(testbed.start(command, host)) as iscsid, heard({"iscsid": iscsid}):
        script = "grep -q ISCSIADM_ABSTRACT_NAMESPACE /proc/net/unix"
        testbed.wait_until(lambda: not iscsid.running() or not testbed.try_run(script, host).status, "iscsid listening")
        expect(iscsid.running(), "iscsid has ended")
        yield


@contextlib.contextmanager
def connected(testbed, host, server):
    """The path of the target's disk on the host, as long as it is logged in."""
    with leaving_nothing(host, "", "ib_iser sd_mod", "the initiator"):
        testbed.run("modprobe -a sd_mod ib_iser", host)
        always = testbed.run("cat /sys/module/ib_iser/parameters/always_register", host).strip()
        expect(always == "Y", f"always_register is {always}: not every transfer is registered")
        with daemon(testbed, host):
            try:
                said = testbed.run(LOGIN.format(iqn=IQN, address=server.address, port=PORT), host)
                expect("iser: [" in said, f"the session is not of iSER: {said}")
                yield lio.disk_at(testbed, host)
            finally:
                out = host.guest.run(LOGOUT.format(iqn=IQN), timeout=60)
            expect("successful" in out.stdout and not out.status, f"the logout failed: {out.output}")


PROTOCOL = lio.Protocol("iSER", target, connected)
lio.enter(PROTOCOL)
