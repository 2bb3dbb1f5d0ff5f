# SPDX-License-Identifier: GPL-2.0-or-later
"""RDMA users inside the stock kernel that need fast registration: NVMe over Fabrics, and RDS.

They speak from the first network namespace alone, so the target is either in
the second guest, or the HCA's own: then everything goes from the HCA to itself.
"""

import contextlib
import json
import re

from hghca_lib.tiers import ALL

from framework import DUAL, VMS, expect, gate_if, tail, test
from storage import BLOCKS, FILE, FIO, LOAD_RAM, MIB, MIXED, checksum, disk_of, files_on, fio, write_and_compare, write_random
from users import carried, check_fast, fast

NQN = "nqn.2014-08.org.nvmexpress:hghca"
HOST = "--hostnqn nqn.2014-08.org.nvmexpress:hghca-host --hostid 3a0f2f0e-7a3c-4f6e-9f6b-4f1a6c1f7b10"
PORT = 4420
OURS = {"suite": "users", "subjects": ("hghca",), "limit_s": 180}

EXPORT = """
set -e
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
cd /sys/kernel/config/nvmet
mkdir subsystems/{nqn}
echo 1 > subsystems/{nqn}/attr_allow_any_host
mkdir subsystems/{nqn}/namespaces/1
echo -n {path} > subsystems/{nqn}/namespaces/1/device_path
echo {buffered} > subsystems/{nqn}/namespaces/1/buffered_io
echo 1 > subsystems/{nqn}/namespaces/1/enable
mkdir ports/1
cd ports/1
echo rdma > addr_trtype
echo ipv4 > addr_adrfam
echo {address} > addr_traddr
echo {port} > addr_trsvcid
echo {inline} > param_inline_data_size
ln -s /sys/kernel/config/nvmet/subsystems/{nqn} subsystems/{nqn}
"""
WITHDRAW = """
cd /sys/kernel/config/nvmet
rm -f ports/1/subsystems/{nqn}
rmdir ports/1
echo 0 > subsystems/{nqn}/namespaces/1/enable
rmdir subsystems/{nqn}/namespaces/1 subsystems/{nqn}
cd /
umount /sys/kernel/config
"""
# The disk of our subsystem's controller, whatever its number, once it can be read. A pattern without a match stays one
# through the test of the device, and is not expanded there: /dev has another match for it than /sys.
DISK = """
for i in $(seq 100); do
    for controller in /sys/class/nvme/nvme*; do
        [ "$(cat $controller/subsysnqn 2>/dev/null)" = {nqn} ] || continue
        for disk in /sys/class/nvme-subsystem/nvme-subsys*/nvme*n1 $controller/nvme*n1; do
            disk=/dev/${{disk##*/}}
            [ -b "$disk" ] && dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct status=none && echo "$disk" && exit
        done
    done
    sleep 0.05
done
exit 1
"""


def prepare(testbed, side, parameters):
    """What the target exports, and the modules, which the debug kernels have built in."""
    disk = disk_of(testbed)
    if testbed.kernel == "stock":
        testbed.run(f"modprobe -a configfs nvmet && modprobe nvmet-rdma {parameters} && {LOAD_RAM}", side)
    else:
        testbed.run(f"head -c {disk.mib}M /dev/zero > {disk.path}", side)


@contextlib.contextmanager
def target(testbed, side, inline=4096, parameters=""):
    """An NVMe subsystem with one disk that listens at the side's address.

    inline:     bytes of a command's data that the target takes with the command itself.
    parameters: of the target's module, on the stock kernel.
    """
    away = "modprobe -r nvmet-rdma nvmet brd" if testbed.kernel == "stock" else f"rm -f {FILE.path}"
    try:
        prepare(testbed, side, parameters)
        disk = disk_of(testbed)
        testbed.run(EXPORT.format(nqn=NQN, address=side.address, port=PORT, path=disk.path, buffered=int(disk is FILE),
                                  inline=inline), side)
        yield
    finally:
        # Run to its end whatever fails: a later test must not find it.
        said = side.guest.run(WITHDRAW.format(nqn=NQN) + away, timeout=60)
    expect(not said.status, f"the target could not be withdrawn: {said.output}")


@contextlib.contextmanager
def connected(testbed, host, address, options=""):
    """The path of the target's disk on the host, as long as it is connected."""
    if testbed.kernel == "stock":
        testbed.run("modprobe nvme-rdma", host)
    always = testbed.run("cat /sys/module/nvme_rdma/parameters/register_always", host).strip()
    expect(always == "Y", f"register_always is {always}: not every transfer is registered")
    try:
        # Under the debug kernels with a short queue: the debugging of DMA has a word on many an entry.
        options = options if testbed.kernel == "stock" else "-i 1 -Q 16"
        testbed.run(f"nvme connect -t rdma -a {address} -s {PORT} -n {NQN} {HOST} {options}", host)
        try:
            yield testbed.run(DISK.format(nqn=NQN), host).strip()
        finally:
            said = host.guest.run(f"nvme disconnect -n {NQN}", timeout=60)
        expect(not said.status and "disconnected 1 controller" in said.output, f"nvme disconnect: {said.output}")
    finally:
        if testbed.kernel == "stock":
            host.guest.run("modprobe -r nvme-rdma nvme-fabrics", timeout=30)


def copy_and_compare(testbed, host, server, blocks=BLOCKS):
    with target(testbed, server), connected(testbed, host, server.address, "-i 2") as disk:
        write_and_compare(testbed, host, server, disk, blocks)


def verify(testbed, host, server, options, inline=4096):
    with target(testbed, server, inline), connected(testbed, host, server.address, "-i 2 -Q 64") as disk:
        before = fast(testbed, host)
        fio(testbed, host, disk, options)
        check_fast(testbed, host, before, 32)


def reconnect(testbed, host, server, inline=4096):
    """Ten connections after one another; what the first wrote, the last reads."""
    with target(testbed, server, inline):
        with connected(testbed, host, server.address, "-i 2") as disk:
            written = write_random(testbed, host, disk, "1M")
        for _ in range(8):
            with connected(testbed, host, server.address, "-i 1") as disk:
                testbed.run(f"dd if={disk} of=/dev/null bs=64k count=16 iflag=direct status=none", host)
        with connected(testbed, host, server.address, "-i 2") as disk:
            expect(checksum(testbed, host, disk) == written, "the last connection read other data than the first wrote")


def without_inline(testbed, host, server):
    """A target that takes no data with the command: it reads each byte that is written from the host's memory."""
    verify(testbed, host, server, "--rw=randwrite --bsrange={sector}-16k --iodepth=32 --io_size=8M", inline=0)


def shared_queues(testbed, server):
    """The target's SRQs, and how many QPs take their receives from them, as the rdma tool has it."""
    shown = json.loads(testbed.run(f"rdma -j resource show srq dev {server.device}", server).strip() or "[]")
    srqs = [srq for srq in shown if srq.get("comm") == "nvmet_rdma"]
    ranges = [str(qpns).partition("-") for srq in srqs for qpns in srq.get("lqpn", [])]
    return srqs, sum(int(last or first) - int(first) + 1 for first, _, last in ranges)


def shared_receives(testbed, host, server):
    """The target's queues receive into SRQs; of 256 receives each, so that each is posted many times.

    A queue that goes waits for the event that its QP takes no further receive, for a minute: longer than the target
    is given to go.
    """
    shared = "use_srq=1 srq_size=256"
    with target(testbed, server, parameters=shared), connected(testbed, host, server.address, "-i 2 -Q 64") as disk:
        queues = int(testbed.run("cat /sys/class/nvme/nvme*/queue_count", host))
        before = srqs, qps = shared_queues(testbed, server)
        expect(srqs and all(srq["type"] == "BASIC" for srq in srqs) and qps == queues > 1,
               f"{queues} queues, {qps} QPs with SRQs: {srqs}")
        write_and_compare(testbed, host, server, disk)
        fio(testbed, host, disk, FIO["4 KiB, 64 under way"])
        expect(shared_queues(testbed, server) == before, "the SRQs or their QPs are others than before")
        testbed.note(f"{len(srqs)} SRQs, {qps} QPs")


def files(testbed, host, server):
    with target(testbed, server), connected(testbed, host, server.address, "-i 2") as disk:
        files_on(testbed, host, disk)


# What the NVMe host says where the kernel has no multipathing; and of a keep-alive that becomes due while it disconnects,
# and so is never sent: its round trip is computed from a time that is 0.
NVME = {**OURS, "kernels": ("stock", "debug"),
        "expected_log": (r"^nvme nvme\d+: Please enable CONFIG_NVME_MULTIPATH ",
                         r"^nvme nvme\d+: long keepalive RTT \(4294\d{6} ms\)$",
                         r"^nvme nvme\d+: failed nvme_keep_alive_end_io error=4$")}
# What it says of a device that cannot register memory by work requests, and when it is unloaded.
NO_HOST = r"Memory registrations not supported"
WITHOUT_HOST = {**NVME, "expected_log": (NO_HOST, r" no client data found!$")}


def no_host(testbed, side, address):
    """A device that cannot register memory by work requests is no host: this is found before it connects."""
    if testbed.kernel == "stock":
        testbed.run("modprobe nvme-rdma", side)
    try:
        said = testbed.try_run(f"nvme connect -t rdma -a {address} -s {PORT} -n {NQN} {HOST}", side)
        expect(said.status, f"the device is a host: {said.output}")
    finally:
        if testbed.kernel == "stock":
            side.guest.run("modprobe -r nvme-rdma nvme-fabrics", timeout=30)
    log = [record.text for record in side.guest.kmsg()[testbed.log_seen[testbed.guests.index(side.guest)]:]]
    expect(any(re.search(NO_HOST, text) for text in log), f"the kernel says: {log}")


def to_itself(name, run, **options):
    test(f"kernel users: NVMe over Fabrics, an HCA to itself, {name}",
         lambda testbed: run(testbed, testbed.client, testbed.client), **{**NVME, **options})


def two_machines(name, run, **options):
    test(f"kernel users: NVMe over Fabrics, two machines, {name}",
         lambda testbed: run(testbed, testbed.client, testbed.server), machine=VMS, **{**NVME, **options})


# Between two machines it is the same; iSER and SRP have it within one.
to_itself("data written, read and compared", copy_and_compare, tier=ALL, subjects=("hghca", "rxe", "siw"))
# With rxe as the other machine, the suite interop has it.
two_machines("data written, read and compared", copy_and_compare, tier=ALL)
two_machines("data written, read and compared, the other way",
             lambda testbed, client, server: copy_and_compare(testbed, server, client), tier=ALL)
for fio_name, fio_options in FIO.items():
    two_machines(f"fio, {fio_name}",
                 lambda testbed, host, server, options=fio_options: verify(testbed, host, server, options),
                 tier=gate_if(fio_name == MIXED))
two_machines("fio, nothing with the command", without_inline, tier=ALL)
two_machines("ten connections", reconnect, tier=ALL)
# The debug kernels have the target built in, and so without the parameter.
two_machines("shared receive queues", shared_receives, kernels=("stock",), tier=ALL)
# The copied file system has blocks that are smaller than those of the debug kernels' disk.
two_machines("files", files, kernels=("stock",), tier=ALL, lines=True)
to_itself("fio", lambda testbed, host, server: verify(testbed, host, server, next(iter(FIO.values()))), tier=ALL,
          subjects=("hghca", "rxe", "siw"))


# net/rds/ib.c of 7.3.4, line 518: before the module frees the connections, it flushes rds_wq. The work that shuts a
# connection down is in the queue of the connection, so a connection can be alive when the module goes. With rxe in
# place of the HCA, the kernel panics.
UNLOADING = "net/rds/ib.c does not wait for the end of its connections when rds_rdma is unloaded; rxe has it too"


@test("kernel users: RDS, two machines, messages and RDMA", machine=VMS, expected_log=(r"^RDS/",), kernels=("stock",),
      unable={"7.3": UNLOADING}, **OURS)
def rds(testbed):
    """RDS registers the memory that a program lends its peer by a work request, and invalidates its key after use."""
    before = fast(testbed, testbed.client)
    try:
        for side in testbed.sides:
            testbed.run("modprobe rds_rdma", side)
        server = testbed.start(f"exec python3 /share/rds.py serve {testbed.server.address}", testbed.server)
        expect(server.wait_for("ready"), f"the server ended early: {server.output}")
        said = testbed.try_run(f"python3 /share/rds.py ask {testbed.client.address} {testbed.server.address}",
                               timeout=120)
        expect(said.status == 0 and "not ok" not in said.stdout, tail(said.output + server.output, 3000))
        expect(server.wait(testbed.left(20)).status == 0, f"the server said: {tail(server.output)}")
        count = said.stdout.count("ok ")
        expect(count == 21, f"{count} cases")
        testbed.wait_until(lambda: fast(testbed, testbed.client)[1] > before[1], "a key invalidated")
        registered = fast(testbed, testbed.client)[0] - before[0]
        # Two kinds of RDMA, seven lengths, five times each.
        expect(registered >= 70, f"{registered} regions were registered, expected at least 70")
        testbed.note(f"{count} cases, {registered} regions registered")
    finally:
        for side in testbed.sides:
            side.guest.run("modprobe -r rds_rdma rds", timeout=60)


# The loss of a path is found by the end of its retries or of the keep-alive; the host then tries again each second.
PATH = "-i 1 -k 2 -c 1"
# Of a path that is lost, and of one that comes back, both ends tell at this level.
LOST = (r"^nvme nvme\d+: ", r"^nvmet: ", r"^nvmet_rdma: ", r"^block nvme\d+n\d+: no usable path - requeuing I/O$",
        r"^I/O error, dev nvme\d+c\d+n\d+, ")
SECOND_PORT = """
set -e
cd /sys/kernel/config/nvmet
mkdir ports/2
echo rdma > ports/2/addr_trtype
echo ipv4 > ports/2/addr_adrfam
echo {address} > ports/2/addr_traddr
echo {port} > ports/2/addr_trsvcid
ln -s /sys/kernel/config/nvmet/subsystems/{nqn} ports/2/subsystems/{nqn}
"""
NO_SECOND_PORT = """
cd /sys/kernel/config/nvmet
rm -f ports/2/subsystems/{nqn}
rmdir ports/2
"""
STATES = "cat /sys/class/nvme/nvme*/state"
LIVE = ["live", "live"]


@contextlib.contextmanager
def second_path(testbed, host, server):
    """Another way to the disk that is connected already: to another address of the target."""
    testbed.run(SECOND_PORT.format(nqn=NQN, address=server.address, port=PORT), server)
    try:
        testbed.run(f"nvme connect -t rdma -a {server.address} -s {PORT} -n {NQN} {HOST} {PATH}", host)
        try:
            yield
        finally:
            path = f"$(dirname $(grep -l 'traddr={server.address},' /sys/class/nvme/nvme*/address))"
            host.guest.run(f"nvme disconnect -d $(basename {path})", timeout=60)
    finally:
        server.guest.run(NO_SECOND_PORT.format(nqn=NQN))


@test("kernel users: NVMe over Fabrics, two machines with two HCAs each, multipath", machine=DUAL, tier=ALL,
      **{**NVME, "kernels": ("stock",), "limit_s": 240, "expected_log": (*NVME["expected_log"], *LOST)})
def multipath(testbed):
    """A disk by two ways; while one of them has no link, the other carries on, and then both do again."""
    host, server, host2, server2 = testbed.sides

    def states():
        return sorted(testbed.ask(host, STATES).split())

    def written(options=FIO["4 KiB, 64 under way"]):
        fio(testbed, host, disk, options)

    def both():
        testbed.wait_until(lambda: states() == LIVE, "two ways to the disk", timeout=60)
        with carried(testbed, host, 4 * MIB, 4 * MIB), carried(testbed, host2, 4 * MIB, 4 * MIB):
            written()

    with target(testbed, server), connected(testbed, host, server.address, PATH) as disk, \
            second_path(testbed, host2, server2):
        testbed.run("echo round-robin | tee /sys/class/nvme-subsystem/nvme-subsys*/iopolicy", host)
        both()
        host2.guest.qmp("set_link", name="hca2", up=False)
        try:
            # What was under way on the lost way goes the other way.
            written()
            testbed.wait_until(lambda: states() != LIVE, "the loss of a way", timeout=60)
            with carried(testbed, host, 15 * MIB, 15 * MIB):
                written()
        finally:
            host2.guest.qmp("set_link", name="hca2", up=True)
        both()
