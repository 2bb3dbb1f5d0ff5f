# SPDX-License-Identifier: GPL-2.0-or-later
"""What high-performance computing uses RDMA by: UCX, Open MPI over it, libfabric.

They find the HCA as any other that they do not know by name, by rdma-core alone.
"""

import contextlib
import functools
import re

from hghca_lib.tiers import ALL

import framework
from framework import VMS, expect, gate_if, killed_at_end, tail
from users import carried, heard

MIB = 1 << 20
UCX = {"rc": "rc_v,self", "ud": "ud_v,self"}


def test(name, **options):
    return framework.test(f"hpc: {name}", suite="users", subjects=("hghca",), kernels=("stock",), limit_s=180, **options)


def ucx(side, transport):
    """What tells UCX to use nothing but that transport of that device, and to say what it uses."""
    return f"UCX_TLS={UCX[transport]} UCX_NET_DEVICES={side.device}:1 UCX_LOG_LEVEL=info"


def check_lanes(said, side, transport):
    """UCX says that its messages go by that transport of that device."""
    expect(f"{transport}_verbs/{side.device}:1" in said,
           f"UCX does not say that it uses {transport}_verbs of {side.device}: {tail(said, 3000)}")


# ucx_perftest's tests: their sizes, how many operations, and whether the client's bytes go or come.
PERFTEST = [
    ("tag_lat", 8, 200, "out"), ("tag_bw", 65536, 200, "out"), ("tag_bw", MIB, 20, "out"),
    ("stream_bw", 4096, 500, "out"), ("ucp_am_bw", 100003, 100, "out"), ("ucp_put_bw", 65536, 200, "out"),
    ("ucp_get", 65536, 100, "in"), ("ucp_fadd", 8, 200, "in"), ("ucp_cswap", 8, 200, "in"),
]


def moved(direction):
    return sum(size * count for _, size, count, way in PERFTEST if way == direction)


def perftest(testbed, server, transport):
    """Every kind of operation; it measures and compares nothing."""
    own = server is testbed.client
    total = moved("out") + moved("in")
    with carried(testbed, testbed.client, total if own else moved("out"), total if own else moved("in")):
        for name, size, count, _ in PERFTEST:
            port = testbed.next_port()
            # By itself it takes MPI's ways, since it is linked with MPI.
            program = f"ucx_perftest -P 0 -p {port}"
            _, client = testbed.pair(f"{ucx(server, transport)} {program}",
                                     f"{ucx(testbed.client, transport)} {program} {server.address} -t {name} -s {size} "
                                     f"-n {count} -w 10 -f", port, server)
            check_lanes(client.output, testbed.client, transport)
            last = re.findall(rf"^ +{count} +[\d.]+ +([\d.]+) .* (\d+)$", client.stdout, re.MULTILINE)
            expect(len(last) == 1, f"{name}: no result: {client.output}")
            testbed.note(f"{name}, {size} bytes: {last[0][0]} us, {last[0][1]} a second")


# More pieces of a short message than UCX takes in any list of its own.
TOO_MANY_PIECES = 9
PIECE_BYTES = 8


def send_in_pieces(testbed, server, pieces):
    """Short messages of UCX's datagram transport, each gathered from so many pieces; all that both ends said, status."""
    port = testbed.next_port()
    # The server makes space for as many sizes as it is given itself.
    program = f"ucx_perftest -P 0 -p {port} -x ud_verbs -s {','.join([str(PIECE_BYTES)] * pieces)}"
    with killed_at_end(testbed.start(f"exec {program} -d {server.device}:1", server)) as serving:
        testbed.wait_listening(port, server, serving, "tcp")
        said = testbed.try_run(f"{program} -d {testbed.client.device}:1 {server.address} -t am_lat -D shortiov "
                               "-n 100 -w 10 -f", timeout=20)
    return said.output + serving.output, said.status


def short_pieces(testbed, server):
    """As many pieces as UCX says that it takes.

    It believes that its list of eight is as long as the one that its QP is granted, less one: were that longer than
    what it asked for, it would write beyond the end.
    """
    said, status = send_in_pieces(testbed, server, TOO_MANY_PIECES)
    refused = re.search(rf"Requested is {TOO_MANY_PIECES}, should be in the range 1\.\.\.(\d+)", said)
    expect(status and refused, f"{TOO_MANY_PIECES} pieces: status {status}: {tail(said, 3000)}")
    most = int(refused[1])
    said, status = send_in_pieces(testbed, server, most)
    expect("Caught signal" not in said and status == 0 and re.search(r"^ +100 ", said, re.MULTILINE),
           f"{most} pieces: status {status}: {tail(said, 4000)}")
    expect(most > 1, "UCX takes one piece alone")
    testbed.note(f"{most} pieces")


def io_demo(testbed, server):
    """UCX's model of a storage client: reads and writes at random, connected by RDMA CM, each checked by both ends."""
    port = testbed.next_port()
    options = f"-q -p {port} -d 100000:1000000"
    server_command = f"{ucx(server, 'rc')} exec io_demo {options}"
    with killed_at_end(testbed.start(server_command, server)) as serving:
        testbed.wait_listening(port, server, serving)
        # Of a hundred, at least twenty are reads and twenty writes: the seed is given.
        with carried(testbed, testbed.client, 20 * 100000, 20 * 100000):
            said = testbed.try_run(f"{ucx(testbed.client, 'rc')} io_demo {options} -o read,write -i 100 -w 8 -c 1 "
                                   f"-l 100 -s 1 {server.address}:{port}", timeout=120)
            expect(said.status == 0 and "Client exit with status 'OK'" in said.output,
                   f"status {said.status}: {tail(said.output, 30000)}\nserver: {tail(serving.output, 3000)}")
        expect(serving.running(), f"the server ended: {tail(serving.output, 3000)}")
        check_lanes(said.output, testbed.client, "rc")
        counts = re.findall(r"\| (read|write) .*? total:(\d+)", said.output)
        expect({kind for kind, count in counts if int(count)} == {"read", "write"}, f"no result: {tail(said.output)}")
        testbed.note(", ".join(f"{count} {kind}s" for kind, count in counts))


MPIRUN = ("mpirun --allow-run-as-root --bind-to none --mca pml ucx --mca osc ucx --mca opal_common_ucx_tls any "
          "--mca opal_common_ucx_devices any -x UCX_TLS -x UCX_NET_DEVICES -x UCX_LOG_LEVEL -x UCX_LOG_FILE")
# What UCX says does not go between the lines of the test.
UCX_LOGS = "/tmp/ucx-*.log"
# What agents/mpi.py sends from each rank to the other one by messages alone.
MPI_BYTES = 3 * (1 + 8 + 1000 + 4096 + 8191 + 65536 + 1000003 + 4 * MIB)
MPI_CASES = 6


def mpi(testbed, transport, hosts, names, payload):
    """Messages, one-sided operations and collectives of two ranks, each byte compared by agents/mpi.py."""
    environment = f"{ucx(testbed.client, transport)} UCX_LOG_FILE={UCX_LOGS.replace('*', '%p')}"
    with carried(testbed, testbed.client, payload, payload):
        said = testbed.try_run(f"{environment} {MPIRUN} {hosts} python3 /share/mpi.py", timeout=150)
        logs = "".join(side.guest.run(f"cat {UCX_LOGS}; rm -f {UCX_LOGS}", timeout=20).stdout for side in testbed.sides)
        good = [line for line in said.stdout.splitlines() if line.startswith("ok ")]
        expect(said.status == 0 and len(good) == MPI_CASES and "not ok" not in said.stdout,
               f"status {said.status}, {len(good)} of {MPI_CASES} cases passed: {tail(said.output, 30000)}\n"
               f"UCX: {tail(logs, 3000)}")
    expect(f"# ranks on {names}" in said.stdout, f"the ranks ran elsewhere: {said.stdout}")
    check_lanes(logs, testbed.client, transport)


SSH_CONFIG = """Host {host}
IdentityFile /root/.ssh/id_mpi
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
"""


@contextlib.contextmanager
def reachable(testbed, host):
    """The server's guest lets the client's root in by ssh, under a name of /etc/hosts."""
    config = SSH_CONFIG.format(host=host)
    key = testbed.run("mkdir -p -m 700 /root/.ssh; rm -f /root/.ssh/id_mpi*; ssh-keygen -q -t ed25519 -N '' "
                      f"-f /root/.ssh/id_mpi; cat > /root/.ssh/config <<'END'\n{config}END\ncat /root/.ssh/id_mpi.pub")
    testbed.run(f"ssh-keygen -A; mkdir -p /run/sshd; mkdir -p -m 700 /root/.ssh; echo '{key.strip()}' "
                "> /root/.ssh/authorized_keys", testbed.server)
    daemon = "exec /usr/sbin/sshd -D -e -p 22 -o UsePAM=no -o PermitRootLogin=yes -o PidFile=none"
    try:
        with killed_at_end(testbed.start(daemon, testbed.server)) as sshd, heard({"sshd": sshd}):
            testbed.wait_listening(22, testbed.server, sshd, "tcp")
            testbed.run(f"ssh {host} true")
            yield
    finally:
        testbed.client.guest.run("rm -f /root/.ssh/config /root/.ssh/id_mpi*", timeout=20)
        testbed.server.guest.run("rm -f /root/.ssh/authorized_keys", timeout=20)


def pingpong(testbed, server, provider, kind):
    """libfabric's pingpong, all its sizes up to 6 MiB, each byte compared at both ends."""
    port = testbed.next_port()

    def command(side):
        return (f"FI_LOG_LEVEL=warn fi_pingpong -p '{provider}' -e {kind} -d {side.device} -s {side.address} "
                "-I 3 -S all -c")

    # The sizes from 1 MiB on alone are 17.5 MiB.
    payload = 3 * 17 * MIB * (2 if server is testbed.client else 1)
    with carried(testbed, testbed.client, payload, payload):
        ends = testbed.pair(f"{command(server)} -B {port}", f"{command(testbed.client)} -P {port} {server.address}",
                            port, server, timeout=120)
    for end in ends:
        lines = re.findall(r"^\S+ +3 +=3 ", end.stdout, re.MULTILINE)
        expect(len(lines) >= 40 and re.search(r"^6m ", end.stdout, re.MULTILINE), f"sizes are missing: {end.output}")


for ucx_transport in UCX:
    test(f"ucx_perftest, {ucx_transport}", tier=gate_if(ucx_transport == "rc"))(
        lambda testbed, chosen=ucx_transport: perftest(testbed, testbed.server, chosen))
    test(f"ucx_perftest, an HCA to itself, {ucx_transport}", tier=ALL)(
        lambda testbed, chosen=ucx_transport: perftest(testbed, testbed.client, chosen))
test("ucx_perftest, short messages in pieces, ud", tier=ALL)(lambda testbed: short_pieces(testbed, testbed.server))
test("io_demo -q", tier=ALL)(lambda testbed: io_demo(testbed, testbed.server))
test("io_demo -q, an HCA to itself")(lambda testbed: io_demo(testbed, testbed.client))
for ucx_transport in UCX:
    test(f"Open MPI, an HCA to itself, {ucx_transport}", tier=ALL)(
        functools.partial(mpi, transport=ucx_transport, hosts="-n 2", names="guest1, guest1", payload=2 * MPI_BYTES))
for fabric_provider, fabric_kind in (("verbs", "msg"), ("verbs;ofi_rxm", "rdm")):
    test(f"fi_pingpong -c, {fabric_provider}", tier=gate_if(fabric_provider == "verbs"))(
        lambda testbed, provider=fabric_provider, kind=fabric_kind: pingpong(testbed, testbed.server, provider, kind))
    test(f"fi_pingpong -c, an HCA to itself, {fabric_provider}", tier=ALL)(
        lambda testbed, provider=fabric_provider, kind=fabric_kind: pingpong(testbed, testbed.client, provider, kind))


@test("Open MPI, two machines, rc", machine=VMS)
def two_machines_rc(testbed):
    with reachable(testbed, "guest2"):
        mpi(testbed, "rc", "-n 2 --host guest1:1,guest2:1", "guest1, guest2", MPI_BYTES)


@test("Open MPI, two machines, ud", machine=VMS, tier=ALL)
def two_machines_ud(testbed):
    with reachable(testbed, "guest2"):
        mpi(testbed, "ud", "-n 2 --host guest1:1,guest2:1", "guest1, guest2", MPI_BYTES)
