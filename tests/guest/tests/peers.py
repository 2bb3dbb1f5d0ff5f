# SPDX-License-Identifier: GPL-2.0-or-later
"""Every pair of kinds of RDMA device on one link, in each direction: hghca_lib.peers says what the two have.

Each kind is on both halves of the link, and rxe on the second. A pair is a device of one half and one of the other, so
its packets pass the relay, which can lose and reorder them. rxe is one device, and a pair with itself uses no link.
"""

import contextlib

from hghca_lib import peers
from hghca_lib.tiers import ALL

import framework
from data import run_program
from framework import PEERS, expect
from interop import pingpong_through, rping_through
from pingpong import pingpong
from rdmacm import rping, ucmatose
from rsnic import ends

LOSS, REORDERING = 0.01, 0.02
# One packet, of the path MTU.
PACKET_BYTES = 1024


def test(name, run, **options):
    framework.test(f"peers: {name}", run, machine=PEERS, suite="peers", subjects=("hghca",), kernels=("stock",), **options)


def place(testbed, kind, half):
    """The side of a kind on a half of the link, 0 or 1."""
    if kind == peers.RXE:
        return testbed.sides[-1]
    return testbed.sides[half * (len(testbed.sides) // 2) + [*peers.KINDS].index(kind)]


@contextlib.contextmanager
def pair(testbed, asks, serves):
    """As long as the block, the client is a device of the first kind, and the server one of the second."""
    half = int(asks == peers.RXE)
    client, server = place(testbed, asks, half), place(testbed, serves, 1 - half)
    # rxe works in threads of the kernel, and a program that polls keeps them from working.
    client.yields = server.yields = peers.RXE in (asks, serves)
    try:
        with ends(testbed, client, server):
            yield
    finally:
        client.yields = server.yields = False


def run_cases(testbed, asks, serves, longest):
    """programs/datacheck.c: each byte of WRITEs and READs compared, as far as the two have these."""
    cases = [f"'={operation} of 1 byte to {longest}'" for operation in peers.operations(asks, serves)
             if operation != peers.SEND]
    if cases:
        here, there = (f"{side.device} {side.gid('ipv4')}" for side in (testbed.client, testbed.server))
        peer = f"{there} {testbed.server.netns or 'first'}" if testbed.server is not testbed.client else ""
        run_program(testbed, "datacheck", f"{here} {peer}", f"-- {' '.join(cases)}")


def exchange(testbed, asks, serves, count):
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-e -m 4096", peers.message_bytes(asks, serves), count)


def short(testbed, asks, serves):
    with pair(testbed, asks, serves):
        exchange(testbed, asks, serves, 50)


def whole(testbed, asks, serves):
    with pair(testbed, asks, serves):
        exchange(testbed, asks, serves, 100)
        pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-e -m 256", 1, 100)
        run_cases(testbed, asks, serves, "1 MiB")
        if peers.manager(asks, serves) == peers.RPING:
            rping(testbed, "-S 4000", 20)
        else:
            ucmatose(testbed, testbed.server.address)


def impaired(testbed, asks, serves):
    """rxe asks for nothing of several packets where packets get lost, and serves no rping; see README.md."""
    kinds = [peers.KINDS[kind] for kind in (asks, serves)]
    with pair(testbed, asks, serves), testbed.subject.relay.impaired(LOSS, REORDERING) as counts:
        pingpong_through(testbed, "ipv4", f"-e -m {PACKET_BYTES}", PACKET_BYTES, 300)
        if all(kind.whole_messages for kind in kinds):
            pingpong_through(testbed, "ipv4", f"-e -m {PACKET_BYTES}", peers.message_bytes(asks, serves), 50)
        run_cases(testbed, asks, serves, "1 MiB" if kinds[0].whole_messages else "a packet")
        if peers.manager(asks, serves) == peers.RPING and kinds[1].whole_messages:
            rping_through(testbed, 4000, 20)
        testbed.note(f"packets: {dict(counts)}")
        expect(counts["lost"] and counts["overtaken"], f"the link was not impaired: {dict(counts)}")


for one, other in peers.PAIRS:
    test(f"{one} and {other}: pingpong with data", lambda testbed, kinds=(one, other): short(testbed, *kinds))
for one, other in peers.DIRECTIONS:
    test(f"{one} asks {other}", lambda testbed, kinds=(one, other): whole(testbed, *kinds), limit_s=120, tier=ALL)
    if (one, other) != (peers.RXE, peers.RXE):
        test(f"{one} asks {other}, packets lost and overtaken",
             lambda testbed, kinds=(one, other): impaired(testbed, *kinds), limit_s=180, tier=ALL)
