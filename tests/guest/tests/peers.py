# SPDX-License-Identifier: GPL-2.0-or-later
"""Every pair of kinds of RDMA device on one link, in each direction: hghca_lib.peers says what the two have.

Each kind is on both halves of the link, and rxe on the second. A pair is a device of one half and one of the other, so
its packets pass the relay, which can lose and reorder them. rxe is one device there, and a pair with itself uses no
link: where packets get lost, it is in two guests.
"""

import contextlib

from hghca_lib import peers
from hghca_lib.tiers import ALL

import framework
from data import run_program
from framework import PEERS, RXES, expect
from interop import bad_link, pingpong_through, rping_through
from pingpong import pingpong
from rdmacm import rping, ucmatose
from rsnic import ends

LOSS, REORDERING = 0.01, 0.02
# The same for the kernel's netem: those that are not held back overtake the others.
NETEM = f"loss {LOSS:%} delay 200us reorder {REORDERING:%}"
# One packet, of the path MTU.
PACKET_BYTES = 1024


def test(name, run, machine=PEERS, **options):
    framework.test(f"peers: {name}", run, machine=machine, suite="peers", subjects=("hghca",), kernels=("stock",), **options)


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
    with pair(testbed, asks, serves), testbed.subject.relay.impaired(LOSS, REORDERING) as counts:
        pingpong_through(testbed, "ipv4", f"-e -m {PACKET_BYTES}", PACKET_BYTES, 300)
        pingpong_through(testbed, "ipv4", f"-e -m {PACKET_BYTES}", peers.message_bytes(asks, serves), 50)
        run_cases(testbed, asks, serves, "1 MiB")
        if peers.manager(asks, serves) == peers.RPING:
            rping_through(testbed, 4000, 20)
        testbed.note(f"packets: {dict(counts)}")
        expect(counts["lost"] and counts["overtaken"], f"the link was not impaired: {dict(counts)}")


def impaired_rxe(testbed):
    """SENDs, WRITEs and READs: rping's server reads the client's memory, and writes to it."""
    with bad_link(testbed, NETEM):
        pingpong_through(testbed, "ipv4", f"-e -m {PACKET_BYTES}", PACKET_BYTES, 300)
        pingpong_through(testbed, "ipv4", f"-e -m {PACKET_BYTES}", peers.LONG_BYTES, 50)
        rping_through(testbed, 4000, 20)


for one, other in peers.PAIRS:
    test(f"{one} and {other}: pingpong with data", lambda testbed, kinds=(one, other): short(testbed, *kinds))
for one, other in peers.DIRECTIONS:
    test(f"{one} asks {other}", lambda testbed, kinds=(one, other): whole(testbed, *kinds), limit_s=120, tier=ALL)
    impaired_pair = f"{one} asks {other}, packets lost and overtaken"
    if (one, other) == (peers.RXE, peers.RXE):
        test(impaired_pair, impaired_rxe, machine=RXES, limit_s=180, tier=ALL)
    else:
        test(impaired_pair, lambda testbed, kinds=(one, other): impaired(testbed, *kinds), limit_s=180, tier=ALL)
