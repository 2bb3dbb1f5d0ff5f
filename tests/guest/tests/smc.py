# SPDX-License-Identifier: GPL-2.0-or-later
"""SMC-R: the kernel carries the bytes of TCP sockets by RDMA when both ends agree to, and by TCP when they do not.

The HCA speaks RoCE v2 alone, so it is SMC-Rv2, which wants an EID that both ends have. Programs get SMC sockets by a
library that is loaded before them (programs/smc_preload.c), as smc_run of smc-tools does, which Debian does not have.
"""

import contextlib
import dataclasses
import json

from hghca_lib.tiers import ALL, GATE

from framework import VMS, Failure, expect, succeeded, tail, test
from users import carried, heard, leaving_nothing

# The kernel calls everything that it tells of its devices, networks, link groups and links a warning.
OURS = {"suite": "users", "subjects": ("hghca",), "kernels": ("stock",), "limit_s": 180,
        "unable": {"7.3": "Debian's kernel is built without CONFIG_SMC"},
        "expected_log": (r"^smc: (adding|removing) ib device ", r"^smc:    ib device \S+ port \d+ has pnetid ",
                         r"^smc: (net|ib) device \S+ (ibport \d+ )?(applied|erased) user defined pnetid ",
                         r"^smc: removing (net|ib) device \S+ (ibport \d+ )?with user defined pnetid ",
                         r"^smc: SMC-R lg [0-9a-f]+ net \d+ (state changed|link added|link removed): ")}
# The kernel's server takes the client's MAC address from a field of the proposal that is filled for SMC-Rv1 alone, so
# without RoCE v1 it would send to 00:00:00:00:00:00. To a client behind a router it sends to the router, whose MAC
# address it looks up, as the client does then. So each end reaches the other by a router: an address that nobody has,
# with the MAC address of the other end itself.
ROUTER = "10.10.0.254"
ROUTE = """
set -e
ip neigh replace {router} lladdr {mac} nud permanent dev {netdev}
ip route add {address} via {router} dev {netdev}
"""
UNROUTE = """
ip route del {address}
ip neigh del {router} dev {netdev}
"""
# The way to the own address leads there too, but for TCP, to which it stays local.
ROUTE_TO_ITSELF = """
set -e
ip neigh replace {router} lladdr {mac} nud permanent dev {netdev}
ip route add {address} via {router} dev {netdev} table 77
ip rule add pref 1 to {address} ipproto tcp lookup local
ip rule add pref 2 iif lo to {address} lookup 77
ip rule add pref 3 lookup local
ip rule del pref 0
"""
UNROUTE_TO_ITSELF = """
ip rule add pref 0 lookup local
for pref in 1 2 3; do ip rule del pref $pref; done
ip route del {address} table 77
ip neigh del {router} dev {netdev}
"""
# Linux 6.12's client sends its Confirm by TCP and only then gets ready for the server's CONFIRM LINK, which it drops
# without a word if it comes before; both ends then wait 5 s, and the connection falls back to TCP. What the client sends
# by TCP therefore leaves late. RDMA knows nothing of queueing disciplines.
LATE = """
set -e
modprobe sch_netem
tc qdisc add dev {netdev} root netem delay 20ms limit 10000
"""
PROMPT = """
tc qdisc del dev {netdev} root
"""
PRELOAD = "LD_PRELOAD=/share/smc_preload.so"
IPPROTO_SMC = 256
MESSAGES_BYTES = 4 * 2 * (1 + 100 + 4088 + 4096 + 65535 + 65536 + 65537 + 1000003)  # what agents/smc.py sends each way


@contextlib.contextmanager
def configured(testbed, client, server):
    """SMC-R between the two, or at the one that is both: its TCP goes over the loopback interface."""
    own = client is server
    there, away = (ROUTE_TO_ITSELF, UNROUTE_TO_ITSELF) if own else (ROUTE, UNROUTE)
    with contextlib.ExitStack() as stack:
        for side, peer in [(client, client)] if own else [(client, server), (server, client)]:
            names = {"router": ROUTER, "netdev": side.netdev, "address": peer.address,
                     "mac": testbed.run(f"cat /sys/class/net/{peer.netdev}/address", peer).strip()}
            stack.enter_context(leaving_nothing(side, away.format(**names), "smc_diag smc", "SMC"))
            testbed.run(there.format(**names), side)
            testbed.run("modprobe -a smc smc_diag", side)
            testbed.run(f"python3 /share/smc.py configure {f'lo {side.device}' if own else ''}", side)
        slow = {"netdev": "lo" if own else client.netdev}
        stack.enter_context(leaving_nothing(client, PROMPT.format(**slow), "sch_netem", "the delay"))
        testbed.run(LATE.format(**slow), client)
        yield


def counts(side):
    """What the kernel has counted, asked also where a test's time is over."""
    said = side.guest.run("python3 /share/smc.py stats", netns=side.netns, timeout=20)
    return json.loads(succeeded("smc.py stats", said).stdout)


@dataclasses.dataclass
class Connections:
    """How many connections a block makes, and how many bytes go from the client to the server and back."""
    number: int
    there: int
    back: int


@contextlib.contextmanager
def by_rdma(testbed, client, server, expected):
    """The block's connections are all SMC-R, none falls back to TCP, and the bytes are RDMA's."""
    before = [counts(side) for side in (client, server)]
    own = client is server
    sent, received = (expected.there + expected.back,) * 2 if own else (expected.there, expected.back)

    def told():
        """By what the kernel's numbers rose at each end, and that as text, with the reasons of all fallbacks."""
        after = [counts(side) for side in (client, server)]
        rise = [{name: value - old[name] for name, value in new.items() if name != "reasons"}
                for old, new in zip(before, after)]
        return rise, "; ".join(f"{name} {one}, reasons of fallbacks ({new['reasons']})"
                               for name, one, new in zip(("client", "server"), rise, after))

    try:
        with carried(testbed, client, sent, received):
            yield
    except Failure as error:
        raise Failure(f"{error}\nSMC: {told()[1]}") from error
    rise, text = told()
    testbed.note(f"client {rise[0]}, server {rise[1]}")
    expect(not any(one["fallbacks"] or one["errors"] for one in rise), f"not every connection is SMC-R: {text}")
    expect(rise[0]["client_v2"] >= expected.number and rise[1]["server_v2"] >= expected.number,
           f"fewer than {expected.number} connections by SMC-Rv2: {text}")
    expect(rise[0]["tx_bytes"] >= expected.there and rise[1]["tx_bytes"] >= expected.back,
           f"fewer than {expected.there} and {expected.back} bytes by SMC-R: {text}")


def messages(testbed, client, server, protocol, environment):
    """Four connections at once, messages of many sizes both ways; the kernel says of each socket what carries it."""
    port = testbed.next_port()
    with configured(testbed, client, server), \
            by_rdma(testbed, client, server, Connections(4, MESSAGES_BYTES, MESSAGES_BYTES)):
        arguments = f"{protocol} {server.address} {port}"
        serving = testbed.start(f"{environment} exec python3 /share/smc.py serve {arguments}", server)
        testbed.wait_listening(port, server, serving, "tcp")
        said = testbed.try_run(f"{environment} exec python3 /share/smc.py ask {arguments}", client, timeout=120)
        expect(said.status == 0 and said.stdout.count("ok ") == 4 and "not ok" not in said.stdout,
               f"status {said.status}: {tail(said.output)}\nserver: {tail(serving.output)}")
        told = succeeded("smc.py serve", serving.wait(testbed.left(20)))
        expect(told.stdout.count(f"accepted: SMC-R on {server.device}") == 4, f"the server said: {told.output}")


def stream(testbed, client, server):
    """16 MiB each way by nc, compared."""
    length = 16 << 20
    with configured(testbed, client, server), by_rdma(testbed, client, server, Connections(1, length, 0)):
        send(testbed, client, server, length)
    if client is not server:
        with configured(testbed, server, client), by_rdma(testbed, server, client, Connections(1, length, 0)):
            send(testbed, server, client, length)


def send(testbed, sender, receiver, length):
    """A stream of random bytes, and the same checksum at both ends."""
    port = testbed.next_port()
    want = testbed.run(f"head -c {length} /dev/urandom > /tmp/smc; sha256sum < /tmp/smc", sender)
    listening = testbed.start(f"{PRELOAD} nc -4 -l {port} | sha256sum", receiver)
    with heard({"nc -l": listening}):
        testbed.wait_listening(port, receiver, listening, "tcp")
        testbed.run(f"{PRELOAD} nc -4 -N {receiver.address} {port} < /tmp/smc; status=$?; rm /tmp/smc; exit $status",
                    sender)
    got = succeeded("nc -l", listening.wait(testbed.left(30))).stdout
    expect(got == want, f"sent {want}, received {got}")


def load(testbed, client, server):
    """iperf3's connections both ways at once."""
    port = testbed.next_port()
    with configured(testbed, client, server), by_rdma(testbed, client, server, Connections(9, 1 << 20, 1 << 20)):
        serving = testbed.start(f"{PRELOAD} iperf3 -4 -s -1 -p {port}", server)
        with heard({"iperf3 -s": serving}):
            testbed.wait_listening(port, server, serving, "tcp")
            said = testbed.run(f"{PRELOAD} iperf3 -4 -c {server.address} -p {port} -t 3 -P 4 --bidir -J", client)
        end = json.loads(said)["end"]
        rates = [end[name]["bits_per_second"] / 1e6 for name in ("sum_received", "sum_received_bidir_reverse")]
        expect(all(rates), f"iperf3 received nothing: {tail(said)}")
        testbed.note(" and ".join(f"{rate:.0f} Mbit/s" for rate in rates))


def to_itself(name, run, tier=GATE):
    test(f"kernel users: SMC-R, an HCA to itself, {name}", lambda testbed: run(testbed, testbed.client, testbed.client),
         tier=tier, **OURS)


def two_machines(name, run, tier=GATE):
    test(f"kernel users: SMC-R, two machines, {name}", lambda testbed: run(testbed, testbed.client, testbed.server),
         machine=VMS, tier=tier, **OURS)


def of_programs(testbed, client, server):
    messages(testbed, client, server, 0, PRELOAD)


def of_a_protocol(testbed, client, server):
    messages(testbed, client, server, IPPROTO_SMC, "")


to_itself("messages, AF_SMC", of_programs, ALL)
to_itself("a stream, nc", stream, ALL)
# The streams are of AF_SMC too.
two_machines("messages, AF_SMC", of_programs, ALL)
two_machines("messages, IPPROTO_SMC", of_a_protocol)
two_machines("messages, AF_SMC, the other way", lambda testbed, client, server: of_programs(testbed, server, client),
             ALL)
two_machines("streams, nc", stream, ALL)
two_machines("connections both ways at once, iperf3", load, ALL)
