# SPDX-License-Identifier: GPL-2.0-or-later
"""SMB Direct: the kernel's SMB server and client. Debian builds neither with it."""

import contextlib

from hghca_lib.tiers import ALL

from framework import TREE, VMS, expect, killed_at_end, test
from nfs import SIZES, read, write
from users import carried, heard, leaving_nothing

OURS = {"suite": "users", "subjects": ("hghca",), "kernels": (TREE,), "limit_s": 180, "machine": VMS, "tier": ALL,
        # Both ends tell of themselves at this level.
        "expected_log": (r"^ksmbd: ", r"^CIFS: ", r"^Key type (cifs|dns)", r"^smbdirect: ")}
FOLDER = "/srv/smb"
SHARE = "hghca"
USER, PASSWORD = "user", "password"
CONFIG = f"""
[global]
    server multi channel support = yes
    bind interfaces only = no
[{SHARE}]
    path = {FOLDER}
    read only = no
"""
PREPARE = f"""
set -e
modprobe ksmbd
mkdir -p {FOLDER} /etc/ksmbd /run
mount -t tmpfs -o size=256M smb {FOLDER}
chmod 777 {FOLDER}
cat > /etc/ksmbd/ksmbd.conf
ksmbd.adduser --add --password={PASSWORD} {USER}
"""
# The server ends with its daemon, some time after it.
CLEAN = f"""
ksmbd.control --shutdown > /dev/null
for i in $(seq 50); do
    umount {FOLDER} 2>/dev/null && break
    sleep 0.1
done
rm -rf /etc/ksmbd
"""
# Without the helper of cifs-utils, the kernel is told the address too.
MOUNT = (f"modprobe cifs; mount -i -t cifs -o ip={{address}},rdma,vers=3.1.1,username={USER},password={PASSWORD},cache=none "
         f"//{{address}}/{SHARE} /mnt")


@contextlib.contextmanager
def served(testbed, side):
    """A server with a folder in memory."""
    with leaving_nothing(side, CLEAN, "ksmbd", "the server"):
        prepared = side.guest.run(PREPARE, input=CONFIG, timeout=60)
        expect(not prepared.status, f"the server cannot be prepared: {prepared.output}")
        with killed_at_end(testbed.start("exec ksmbd.mountd --nodetach", side)) as daemon, heard({"ksmbd.mountd": daemon}):
            testbed.wait_until(lambda: not daemon.running() or "running" in testbed.ask(
                side, "cat /sys/class/ksmbd-control/*stats 2>/dev/null"), "the server", timeout=40)
            yield


@test("kernel users: SMB Direct, two machines, files", **OURS)
def files(testbed):
    """Files of many sizes out and in again, by the checksums of both ends."""
    host, server = testbed.sides
    payload = sum(SIZES)
    with served(testbed, server), leaving_nothing(host, "umount /mnt", "cifs", "the mount"):
        testbed.run(MOUNT.format(address=server.address), host)
        with carried(testbed, host, sent=payload, received=payload):
            written = write(testbed, host, "/mnt")
            expect(read(testbed, host, "/mnt") == written, "the host read back other data than it wrote")
        expect(read(testbed, server, FOLDER) == written, "the server has other data than the host wrote")
