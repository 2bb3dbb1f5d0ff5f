# SPDX-License-Identifier: GPL-2.0-or-later
"""PART, READ_POINTER and READ_CONSISTENT of RSNIC: programs/vendorops.c, which uses them through hghcadv.h."""

import framework
from hghca_lib.tiers import ALL

from data import over_link, run_program, to_itself
from framework import RSNIC, RSNIC_BESIDE, RSNIC_FULL, expect
from impairment import impairment


def test(name, **options):
    """aliases: the programs register some memory more than once."""
    return framework.test(f"vendor operations: {name}", **{"machine": RSNIC, "subjects": ("hghca",), "limit_s": 90,
                                                           "aliases": True, **options})


@test("all, over the link")
def through_the_link(testbed):
    """The second HCA has few contexts on chip."""
    run_program(testbed, "vendorops", over_link(testbed))


@test("all, an HCA to itself", tier=ALL)
def by_itself(testbed):
    run_program(testbed, "vendorops", to_itself(testbed))


def lossy(testbed, kind, rules, case="many messages"):
    """Each operation takes effect once while packets are lost, duplicated or reordered; how many were sent again."""
    before = testbed.counter(testbed.client, "retransmitted")
    with impairment(testbed, rules) as done:
        run_program(testbed, "vendorops", over_link(testbed), f"-- '=lossy link: {case}'")
    expect(done.get(kind, 0) > 0, f"`{rules}` did nothing: {done}")
    return testbed.counter(testbed.client, "retransmitted") - before


@test("PART: lost packets", tier=ALL)
def losses(testbed):
    for rules in ("drop,rate=3%,frames=roce,dir=tx", "drop,rate=2%,frames=roce"):
        expect(lossy(testbed, "dropped", rules) > 0, f"`{rules}`: nothing was sent again")


@test("PART: lost acknowledgements", tier=ALL)
def lost_answers(testbed):
    """Only one message is under way, so that each acknowledgement that is lost makes a duplicate."""
    again = lossy(testbed, "dropped", "drop,opcode=ack,dir=rx,every=2", "one message at a time")
    expect(again >= 10, f"{again} packets were sent again")


@test("PART: packets that come twice, or late", tier=ALL)
def repeated(testbed):
    for kind, rules in (("duplicated", "duplicate,rate=10%,frames=roce"),
                        ("duplicated", "duplicate,rate=5%,us=2000,jitter=5000,frames=roce"),
                        ("reordered", "reorder,rate=5%,by=3,frames=roce")):
        lossy(testbed, kind, rules)


READS = ("many searches", "many objects")


@test("READ_POINTER and READ_CONSISTENT: lost requests and lost answers", tier=ALL)
def lost_reads(testbed):
    for case in READS:
        for rules in ("drop,rate=5%,frames=roce,dir=tx", "drop,rate=5%,frames=roce,dir=rx"):
            expect(lossy(testbed, "dropped", rules, case) > 0, f"{case}: `{rules}`: nothing was sent again")


@test("READ_POINTER and READ_CONSISTENT: packets that come twice, or late", tier=ALL)
def repeated_reads(testbed):
    for case in READS:
        lossy(testbed, "duplicated", "duplicate,rate=10%,us=2000,jitter=5000,frames=roce", case)
        lossy(testbed, "reordered", "reorder,rate=5%,by=3,frames=roce", case)


def peer_without(testbed, arguments):
    """The second device does not have the operations: it refuses their objects, and drops their packets."""
    for case in ("refused", "as the peer"):
        run_program(testbed, "vendorops", arguments, f"-- '=device without the operations: {case}'")


@test("with a full HCA, which does not have them", machine=RSNIC_FULL, tier=ALL)
def full_peer(testbed):
    peer_without(testbed, over_link(testbed))


@test("with rxe, which does not have them", machine=RSNIC_BESIDE, kernels=("stock",), tier=ALL)
def rxe_peer(testbed):
    """The program is in the namespace of the HCA, and the first one has a name."""
    peer_without(testbed, f"{to_itself(testbed)} {testbed.server.device} {testbed.server.gid('ipv4')} first")
