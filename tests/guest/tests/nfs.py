# SPDX-License-Identifier: GPL-2.0-or-later
"""NFS over RDMA: the kernel's server and client, with the daemons that come with them."""

import contextlib

from hghca_lib.tiers import ALL

from framework import VMS, expect, gate_if, killed_at_end, test
from storage import MIB, run_fio
from users import carried, check_fast, fast, heard, leaving_nothing

OURS = {"suite": "users", "subjects": ("hghca",), "kernels": ("stock",), "limit_s": 180}
PORT = 20049
MOUNTD_PORT = 20048
EXPORTED = "/srv/nfs"
VERSIONS = {"NFSv3": f"vers=3,nolock,mountport={MOUNTD_PORT},mountproto=tcp", "NFSv4.2": "vers=4.2"}

# A file system in memory, the folder where daemons and kernel meet, and what the daemons write. The clients of
# earlier servers are forgotten: none is to be waited for.
PREPARE = f"""
set -e
modprobe -a nfsd rpcrdma
mkdir -p {EXPORTED} /run/rpc_pipefs /run/rpcbind /run/nfsdcld
chown _rpc /run/rpcbind
mount -t tmpfs -o size=256M nfs {EXPORTED}
mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs
mount -t nfsd nfsd /proc/fs/nfsd
rm -f /run/nfsdcld/*
exportfs -o rw,no_root_squash,no_subtree_check,insecure,fsid=0 10.10.0.0/24:{EXPORTED}
"""
# Each daemon, and what succeeds when it is ready.
DAEMONS = {
    "rpcbind -f": "rpcinfo -T tcp 127.0.0.1 100000 2",
    "nfsdcld -F -s /run/nfsdcld": "[ -e /run/nfsdcld/main.sqlite ]",
    f"rpc.mountd -F -p {MOUNTD_PORT}": "rpcinfo -T tcp 127.0.0.1 100005 3",
}
# Should the server wait for clients of its earlier life all the same, then not for 90 s.
SERVE = f"""
set -e
echo 10 > /proc/fs/nfsd/nfsv4gracetime
rpc.nfsd --no-udp 4
echo rdma {PORT} > /proc/fs/nfsd/portlist
cat /proc/fs/nfsd/threads /proc/fs/nfsd/portlist
"""
STOP = "rpc.nfsd 0"
# The server's cache of exports holds the file system, until exportfs has it emptied and a moment has passed.
CLEAN = f"""
exportfs -ua
exportfs -f
umount /proc/fs/nfsd
umount /run/rpc_pipefs
for i in $(seq 50); do
    umount {EXPORTED} 2>/dev/null && break
    sleep 0.1
done
! mountpoint -q {EXPORTED} || umount {EXPORTED}
rm -rf /run/nfsdcld
"""
CLIENT_MODULES = "nfsv4 nfsv3 nfs"
SERVER_MODULES = "rpcrdma nfsd"
SIZES = (0, 1, 511, 512, 4095, 4096, 4097, 65536, 262145, 1000003, 8 * MIB + 5)


@contextlib.contextmanager
def daemons(testbed, side):
    """What the server asks who may mount, and whom it has known before."""
    started = {}
    with contextlib.ExitStack() as stack, heard(started):
        for command, ready in DAEMONS.items():
            daemon = stack.enter_context(killed_at_end(testbed.start(f"exec {command}", side)))
            started[command] = daemon
            testbed.wait_until(lambda: not daemon.running() or not testbed.try_run(ready, side).status,
                               f"`{command}` ready", timeout=40)
            expect(daemon.running(), f"`{command}` has ended")
        yield


@contextlib.contextmanager
def served(testbed, side):
    """A server whose clients come by RDMA."""
    with leaving_nothing(side, CLEAN, SERVER_MODULES, "the server's file systems"):
        testbed.run(PREPARE, side)
        with daemons(testbed, side):
            try:
                said = testbed.run(SERVE, side)
                expect(f"rdma {PORT}" in said, f"the server does not listen for RDMA: {said}")
                yield
            finally:
                stopped = side.guest.run(STOP, timeout=60)
            expect(not stopped.status, f"the server could not be stopped: {stopped.output}")


@contextlib.contextmanager
def mounted(testbed, host, server, version):
    """The export mounted on /mnt."""
    source = f"{server.address}:{'/' if version == 'NFSv4.2' else EXPORTED}"
    modules = CLIENT_MODULES if host is server else f"{CLIENT_MODULES} rpcrdma"
    with leaving_nothing(host, "umount /mnt", modules, "the mount"):
        testbed.run(f"modprobe rpcrdma; mount -v -t nfs -o proto=rdma,port={PORT},{VERSIONS[version]} {source} /mnt",
                    host)
        found = testbed.run("grep ' /mnt nfs' /proc/mounts; grep -A20 ' mounted on /mnt ' /proc/self/mountstats", host)
        expect("proto=rdma" in found and "xprt:\trdma" in found, f"it is not mounted by RDMA: {found}")
        yield


def names():
    return " ".join(str(size) for size in SIZES)


def write(testbed, side, folder):
    """Files of random bytes, named by their sizes; their checksums, taken before they went to the folder."""
    return testbed.run(f"set -e; mkdir -p /tmp/files; cd /tmp/files; for size in {names()}; do "
                       f"head -c $size /dev/urandom > $size; done; cp {names()} {folder}; sha256sum {names()}; "
                       "rm -r /tmp/files", side)


def read(testbed, side, folder):
    """The checksums of the files, not by memory that has them still."""
    testbed.run("sync; echo 3 > /proc/sys/vm/drop_caches", side)
    return testbed.run(f"cd {folder}; sha256sum {names()}", side)


def copy_and_compare(testbed, host, server, version):
    """Files of many sizes out and in again, and files of the server's, by the checksums of both ends."""
    payload = sum(SIZES)
    with served(testbed, server), mounted(testbed, host, server, version):
        before = fast(testbed, host)
        with carried(testbed, host, sent=payload, received=payload):
            written = write(testbed, host, "/mnt")
            expect(read(testbed, host, "/mnt") == written, "the host read back other data than it wrote")
        expect(read(testbed, server, EXPORTED) == written, "the server has other data than the host wrote")
        with carried(testbed, host, received=payload):
            testbed.run(f"mkdir {EXPORTED}/ours", server)
            written = write(testbed, server, f"{EXPORTED}/ours")
            expect(read(testbed, host, "/mnt/ours") == written, "the host reads other data than the server wrote")
        # What does not fit with a message is registered, at most 1 MiB at a time.
        check_fast(testbed, host, before, 2 * payload // MIB)
        direct(testbed, host)


def direct(testbed, host):
    """Past the client's memory, in requests of sizes that end nowhere in particular; and fio."""
    for block in (4096, 100003, MIB):
        testbed.run(f"set -e; head -c 2000012 /dev/urandom > /tmp/direct; "
                    f"dd if=/tmp/direct of=/mnt/direct bs={block} oflag=direct status=none; "
                    f"dd if=/mnt/direct of=/tmp/direct.back bs={block} iflag=direct status=none; "
                    "cmp /tmp/direct /tmp/direct.back; rm /tmp/direct /tmp/direct.back /mnt/direct", host)
    with carried(testbed, host, sent=15 * MIB, received=15 * MIB):
        run_fio(testbed, host, "--filename=/mnt/fio --size=16M --rw=randwrite --bsrange=4k-1M --iodepth=16")


for nfs_version in VERSIONS:
    test(f"kernel users: NFS over RDMA, an HCA to itself, {nfs_version}",
         lambda testbed, version=nfs_version: copy_and_compare(testbed, testbed.client, testbed.client, version),
         tier=ALL, **OURS)
    test(f"kernel users: NFS over RDMA, two machines, {nfs_version}",
         lambda testbed, version=nfs_version: copy_and_compare(testbed, testbed.client, testbed.server, version),
         machine=VMS, tier=gate_if(nfs_version == "NFSv4.2"), **OURS)
    test(f"kernel users: NFS over RDMA, two machines, {nfs_version}, the other way",
         lambda testbed, version=nfs_version: copy_and_compare(testbed, testbed.server, testbed.client, version),
         machine=VMS, tier=ALL, **OURS)
