# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures of `tools/hghca bench`, and how each is measured.

Subjects:
  hghca       from the first HCA of the guest to the second, over the link; figures of one device, on the first
  hghca-unverified
              as hghca, with verify=remote: the peer does not verify ICRCs. With `bench --unverified` only
  hghca-self  the first HCA to itself
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
RUN_TIMEOUT_S = 60
LATENCY_COUNT = 1000
# The amount of data of a bandwidth run: enough for a measurement, within the time limit.
RUN_BYTES = {"hghca": 256 * MIB, UNVERIFIED: 256 * MIB, "hghca-self": 256 * MIB, "rxe": 8 * MIB}
COUNT_LEAST = {"hghca": 50, UNVERIFIED: 50, "hghca-self": 50, "rxe": 5}
COUNT_MOST = {"hghca": 10000, UNVERIFIED: 10000, "hghca-self": 10000, "rxe": 2000}
SRQ_QPS = 4
SRQ_COUNT = {"hghca": 5000, "hghca-self": 5000, "rxe": 500}
CONNECTIONS = 100
LESS_IS_BETTER = ("us", "%", "times")
CLIENT_QPN = 8000000  # far from the server's, which start at 1000


class RunFailed(Exception):
    """One run gave no figure."""


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


def perftest(bench, program, options, subject):
    """Run both ends, each on its own CPU; the only row of the client."""
    (device, gid, space, address), (own_device, own_gid, own_space, _) = bench.ends[subject]
    port = bench.next_port()
    options = f"-F -p {port} {options}"
    server = bench.guest.start(f"exec taskset 2 {program} -d {device} -x {gid} {options}", netns=space)
    bench.listening(port, space)
    client = bench.guest.run(f"exec taskset 1 {program} -d {own_device} -x {own_gid} {options} {address}",
                             netns=own_space, timeout=RUN_TIMEOUT_S)
    if client.status:
        server.kill()
    said = server.wait(10)
    rows = pair.perftest_rows(client.stdout)
    if client.status or said.status or len(rows) != 1:
        raise RunFailed(f"status {client.status} and {said.status}: {last_words(client)} / {last_words(said)}")
    if not rows[0][3]:
        raise RunFailed(f"perftest had no clock: {client.stderr.strip()[-200:]}")
    return rows[0]


def bandwidth(bench, figure, size, subject):
    count = max(COUNT_LEAST[subject], min(COUNT_MOST[subject], RUN_BYTES[subject] // size))
    return perftest(bench, figure.name, f"-s {size} -n {count}", subject)[3]


def latency(bench, figure, size, subject):
    """The typical latency."""
    return perftest(bench, figure.name, f"-s {size} -n {LATENCY_COUNT}", subject)[4]


def srq_rate(bench, _, size, subject):
    """Messages a second to QPs that share a receive queue."""
    options = f"--use-srq -q {SRQ_QPS} -s {size} -n {SRQ_COUNT[subject]} --noPeak"
    return perftest(bench, "ib_send_bw", options, subject)[4] * 1e6


def objects(bench, what, subject):
    _, (device, _, space, _) = bench.ends[subject]
    result = bench.guest.run(f"taskset 1 /share/objects {device} {what}", netns=space, timeout=RUN_TIMEOUT_S)
    if result.status:
        raise RunFailed(f"status {result.status}: {last_words(result)}")
    return float(result.stdout)


def registrations(bench, _, size, subject):
    return objects(bench, f"mr {size}", subject)


def queue_pairs(bench, _, size, subject):
    return objects(bench, "qp", subject)


def contend(bench, what, subject):
    """The numbers that contend.c prints."""
    (peer, peer_gid, space, _), (device, gid, own_space, _) = bench.ends[subject]
    result = bench.guest.run(f"/share/contend {what} {device} {gid} {peer} {peer_gid} {space or ''}", netns=own_space,
                             timeout=RUN_TIMEOUT_S)
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
    (_, _, space, address), (_, _, own_space, _) = bench.ends[subject]
    port = bench.next_port()
    server = bench.guest.start(f"exec taskset 2 cmtime -b {address} -p {port} -c {CONNECTIONS}", netns=space)
    bench.listening(port, space)
    client = bench.guest.run(f"exec taskset 1 cmtime -s {address} -p {port} -c {CONNECTIONS} -q {CLIENT_QPN}",
                             netns=own_space, timeout=RUN_TIMEOUT_S)
    if client.status:
        server.kill()
    said = server.wait(10)
    # The first table is the one with QPs.
    row = re.search(r"^qp_conn(?:.*\n)+?full connect +\d+ +(\d+) ", client.stdout, re.MULTILINE)
    if client.status or said.status or not row:
        raise RunFailed(f"status {client.status} and {said.status}: {last_words(client)} / {last_words(said)}")
    return CONNECTIONS * 1e6 / int(row.group(1))


def nvme(bench, size, subject):
    """fio's report on random reads of a disk that NVMe over Fabrics exports to the same machine."""
    if not bench.exported:
        addresses = [bench.ends[name][0][3] for name in TO_ITSELF]
        said = bench.guest.run(f"/share/nvme.sh export {' '.join(addresses)}", timeout=RUN_TIMEOUT_S)
        if said.status:
            raise RunFailed(f"the disk cannot be exported: {said.output.strip()[-300:]}")
        bench.exported = True
    said = bench.guest.run(f"/share/nvme.sh measure {bench.ends[subject][0][3]} {size}", timeout=RUN_TIMEOUT_S)
    if said.status:
        raise RunFailed(f"status {said.status}: {last_words(said)}")
    return json.loads(said.stdout[said.stdout.index("{"):])["jobs"][0]["read"]


def nvme_iops(bench, _, size, subject):
    return nvme(bench, size, subject)["iops"]


def nvme_bandwidth(bench, _, size, subject):
    return nvme(bench, size, subject)["bw_bytes"] / MIB


SIZES = tuple(64 << shift for shift in range(0, 17, 2))
BESIDE_MEMORY = ("hghca", UNVERIFIED, "hghca-self", "rxe", "memcpy")
BESIDE_COPIES = (*BESIDE_MEMORY, "copy-crc")
# The NVMe host and target use the first network namespace only.
TO_ITSELF = ("hghca-self", "rxe", LOOP)
ALONE = ("hghca", "rxe")
FIGURES = [
    *(Figure(name, "MiB/s", bandwidth, SIZES, BESIDE_COPIES) for name in ("ib_write_bw", "ib_read_bw", "ib_send_bw")),
    *(Figure(name, "us", latency, (8, 4096), BESIDE_MEMORY) for name in ("ib_write_lat", "ib_read_lat", "ib_send_lat")),
    Figure("registrations", "a second", registrations, tuple(4 * KIB << shift for shift in range(0, 15, 2)), ALONE),
    Figure("queue-pairs", "a second", queue_pairs, subjects=ALONE),
    Figure("fairness", "%", fairness, subjects=ALONE),
    Figure("latency-under-load", "times", latency_under_load, (8,), ALONE),
    Figure("connections", "a second", connections),
    Figure("srq-messages", "a second", srq_rate, (64,)),
    Figure("nvme-iops", "a second", nvme_iops, (4 * KIB,), TO_ITSELF),
    Figure("nvme-bandwidth", "MiB/s", nvme_bandwidth, (256 * KIB,), TO_ITSELF),
]
