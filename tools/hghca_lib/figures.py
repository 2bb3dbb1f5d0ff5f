# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures of `tools/hghca bench`, and how each is measured.

Subjects:
  hghca       from the first HCA of the guest to the second, over the link; figures of one device, on the first
  hghca-unverified
              as hghca, with verify=remote: the peer does not verify ICRCs. With `bench --unverified` only
  hghca-self  the first HCA to itself
  hghca-vms   between two other guests, two QEMU processes with one HCA each, whose link is shared memory
  rxe         the kernel's software RDMA on an interface with the same MTU, to itself: it does not support network
              namespaces in this kernel. It bypasses the interface this way, so this is its fastest path
  loop        NVMe over Fabrics without a network: the host's commands are handed to the target of the same kernel
  memcpy      this machine's memcpy at the same size, outside the guest
  copy-crc    a copy on this machine in packets of 4096 bytes, with their ICRCs, and a second one to the end; outside
              the guest. It is the limit of what copies messages and makes ICRCs, on one CPU
"""

import dataclasses
import json
import re

from . import pair

KIB, MIB = 1 << 10, 1 << 20
RXE_ADDRESS = "10.99.0.1"
LOOP = "loop"
UNVERIFIED = "hghca-unverified"
VMS = "hghca-vms"
RUN_TIMEOUT_S = 60
LATENCY_COUNT = 1000
# The bytes of a bandwidth run, and the least and the greatest number of messages: enough for a measurement, within the time
# limit.
RUN = (256 * MIB, 50, 10000)
RXE_RUN = (8 * MIB, 5, 2000)
SRQ_QPS = 4
SRQ_COUNT = {"hghca": 5000, "hghca-self": 5000, "rxe": 500}
CONNECTIONS = 100
LESS_IS_BETTER = ("us", "%", "times")
CLIENT_QPN = 8000000  # far from the server's, which start at 1000
# Wait until a socket listens on the port; the caller limits the time.
LISTENING = """
hex=$(printf ':%04X .*:0000 0A' $1)
until grep -q "$hex" /proc/net/tcp /proc/net/tcp6; do sleep 0.01; done
"""


class RunFailed(Exception):
    """One run gave no figure."""


@dataclasses.dataclass(frozen=True)
class End:
    """One end of a subject.

    guest:   in which its programs run.
    device:  its name; None for `loop`.
    gid:     the index of the device's GID for the address.
    space:   the network namespace; None: the first one.
    address: in IPv4; that of nvme.sh for `loop`.
    """
    guest: object
    device: str | None
    gid: int | None
    space: str | None
    address: str

    def start(self, command):
        return self.guest.start(command, netns=self.space)

    def run(self, command, timeout=RUN_TIMEOUT_S):
        return self.guest.run(command, netns=self.space, timeout=timeout)

    def listening(self, port):
        """Wait until a TCP socket listens on the port."""
        self.run(["sh", "-c", LISTENING, "sh", str(port)], timeout=10)


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure.

    name:     as in tables, files and on the command line.
    unit:     of the figure; more is better, but of those in LESS_IS_BETTER.
    take:     called with a Bench, the figure, a size and a subject; the figure, or RunFailed.
    sizes:    bytes, one row each; (0,) where size has no meaning.
    subjects: in the order of the columns.
    """
    name: str
    unit: str
    take: object
    sizes: tuple = (0,)
    subjects: tuple = ("hghca", "hghca-self", "rxe")


def last_words(result):
    lines = [line for line in result.output.splitlines() if line.strip(" -")]
    return " ".join(lines[-2:])[-200:] if lines else "no output"


def run_both(ends, port, serving, asking):
    """Start the server's command, and run the client's when the server listens on the port; the client's Result.

    Each has its own CPU of its guest.
    """
    server, client = ends
    started = server.start(f"exec taskset 2 {serving}")
    server.listening(port)
    done = client.run(f"exec taskset 1 {asking}")
    if done.status:
        started.kill()
    said = started.wait(10)
    if done.status or said.status:
        raise RunFailed(f"status {done.status} and {said.status}: {last_words(done)} / {last_words(said)}")
    return done


def perftest(bench, program, options, subject):
    """The only row that the client of a perftest program prints."""
    server, client = ends = bench.ends[subject]
    port = bench.next_port()
    options = f"-F -p {port} {options}"
    done = run_both(ends, port, f"{program} -d {server.device} -x {server.gid} {options}",
                    f"{program} -d {client.device} -x {client.gid} {options} {server.address}")
    rows = pair.perftest_rows(done.stdout)
    if len(rows) != 1:
        raise RunFailed(f"no row: {last_words(done)}")
    if not rows[0][3]:
        raise RunFailed(f"perftest had no clock: {done.stderr.strip()[-200:]}")
    return rows[0]


def bandwidth(bench, figure, size, subject):
    whole, least, most = RXE_RUN if subject == "rxe" else RUN
    count = max(least, min(most, whole // size))
    return perftest(bench, figure.name, f"-s {size} -n {count}", subject)[3]


def latency(bench, figure, size, subject):
    """The typical latency."""
    return perftest(bench, figure.name, f"-s {size} -n {LATENCY_COUNT}", subject)[4]


def event_latency(bench, _, size, subject):
    """Half of a turn between two ends that sleep until a completion raises an event."""
    server, client = ends = bench.ends[subject]
    port = bench.next_port()
    options = f"-e -s {size} -n {LATENCY_COUNT} -p {port}"
    done = run_both(ends, port, f"ibv_rc_pingpong -d {server.device} -g {server.gid} {options}",
                    f"ibv_rc_pingpong -d {client.device} -g {client.gid} {options} {server.address}")
    turn = re.search(rf"^{LATENCY_COUNT} iters in .* = ([\d.]+) usec/iter", done.stdout, re.MULTILINE)
    if not turn:
        raise RunFailed(f"no time: {last_words(done)}")
    return float(turn.group(1)) / 2


def srq_rate(bench, _, size, subject):
    """Messages a second to QPs that share a receive queue."""
    options = f"--use-srq -q {SRQ_QPS} -s {size} -n {SRQ_COUNT[subject]} --noPeak"
    return perftest(bench, "ib_send_bw", options, subject)[4] * 1e6


def objects(bench, what, subject):
    _, client = bench.ends[subject]
    result = client.run(f"taskset 1 /share/objects {client.device} {what}")
    if result.status:
        raise RunFailed(f"status {result.status}: {last_words(result)}")
    return float(result.stdout)


def registrations(bench, _, size, subject):
    return objects(bench, f"mr {size}", subject)


def queue_pairs(bench, _, size, subject):
    return objects(bench, "qp", subject)


def contend(bench, what, subject):
    """The numbers that contend.c prints."""
    server, client = bench.ends[subject]
    result = client.run(f"/share/contend {what} {client.device} {client.gid} {server.device} {server.gid} "
                        f"{server.space or ''}")
    if result.status:
        raise RunFailed(f"status {result.status}: {last_words(result)}")
    return [float(word) for word in result.stdout.split()]


def fairness(bench, _, size, subject):
    return contend(bench, "fairness", subject)[0]


def latency_under_load(bench, _, size, subject):
    return contend(bench, "latency", subject)[0]


def connections(bench, _, size, subject):
    """Connections a second from the first step of the first to the last of the last, as cmtime's client has it.

    cmtime then connects without QPs, with numbers that each end chooses. On one device these must differ, or the CM
    takes the second of a pair for a stale connection.
    """
    server, _ = ends = bench.ends[subject]
    port = bench.next_port()
    options = f"-p {port} -c {CONNECTIONS}"
    done = run_both(ends, port, f"cmtime -b {server.address} {options}",
                    f"cmtime -s {server.address} {options} -q {CLIENT_QPN}")
    # The first table is the one with QPs.
    row = re.search(r"^qp_conn(?:.*\n)+?full connect +\d+ +(\d+) ", done.stdout, re.MULTILINE)
    if not row:
        raise RunFailed(f"no table: {last_words(done)}")
    return CONNECTIONS * 1e6 / int(row.group(1))


def nvme(bench, size, subject):
    """fio's report on random reads of a disk that NVMe over Fabrics exports to the same machine."""
    target, host = bench.ends[subject]
    if not bench.exported:
        addresses = [bench.ends[name][0].address for name in TO_ITSELF]
        said = target.run(f"/share/nvme.sh export {' '.join(addresses)}")
        if said.status:
            raise RunFailed(f"the disk cannot be exported: {said.output.strip()[-300:]}")
        bench.exported = True
    said = host.run(f"/share/nvme.sh measure {target.address} {size}")
    if said.status:
        raise RunFailed(f"status {said.status}: {last_words(said)}")
    return json.loads(said.stdout[said.stdout.index("{"):])["jobs"][0]["read"]


def nvme_iops(bench, _, size, subject):
    return nvme(bench, size, subject)["iops"]


def nvme_bandwidth(bench, _, size, subject):
    return nvme(bench, size, subject)["bw_bytes"] / MIB


SIZES = tuple(64 << shift for shift in range(0, 17, 2))
BESIDE_MEMORY = ("hghca", UNVERIFIED, "hghca-self", VMS, "rxe", "memcpy")
BESIDE_COPIES = (*BESIDE_MEMORY, "copy-crc")
# The NVMe host and target use the first network namespace only.
TO_ITSELF = ("hghca-self", "rxe", LOOP)
ALONE = ("hghca", "rxe")
FIGURES = [
    *(Figure(name, "MiB/s", bandwidth, SIZES, BESIDE_COPIES) for name in ("ib_write_bw", "ib_read_bw", "ib_send_bw")),
    *(Figure(name, "us", latency, (8, 4096), BESIDE_MEMORY) for name in ("ib_write_lat", "ib_read_lat", "ib_send_lat")),
    Figure("event-latency", "us", event_latency, (8,), ("hghca", VMS, "rxe")),
    Figure("registrations", "a second", registrations, tuple(4 * KIB << shift for shift in range(0, 15, 2)), ALONE),
    Figure("queue-pairs", "a second", queue_pairs, subjects=ALONE),
    Figure("fairness", "%", fairness, subjects=ALONE),
    Figure("latency-under-load", "times", latency_under_load, (8,), ALONE),
    Figure("connections", "a second", connections),
    Figure("srq-messages", "a second", srq_rate, (64,)),
    Figure("nvme-iops", "a second", nvme_iops, (4 * KIB,), TO_ITSELF),
    Figure("nvme-bandwidth", "MiB/s", nvme_bandwidth, (256 * KIB,), TO_ITSELF),
]
