# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared receive queues: ibv_srq_pingpong, perftest with --use-srq, and programs/srq.c, which compares every byte."""

import badinput
from hghca_lib.tiers import ALL, QUICK

from data import over_link, run_program, to_itself
from framework import CACHE, IOMMU, expect, gate_if, test
from perftest import ALL_SIZES, COUNT, COUNT_QPS, UD_SIZES, perftest
from pingpong import pingpong

OURS = {"subjects": ("hghca",)}

# name, GID, options, message bytes, messages. What it compares with -c is all zeroes: it proves little of the data.
CASES = [
    ("one QP", "ipv4", "-q 1", 4096, 1000),
    ("defaults", "ipv4", "", 4096, 3000),
    ("defaults, IPv6", "link-local", "", 4096, 3000),
    ("16 QPs, events", "ipv4", "-q 16 -e", 4096, 3000),
    ("16 QPs, MTU 1024, 65536 bytes", "ipv4", "-q 16 -m 1024", 65536, 500),
    ("16 QPs, MTU 4096, 1000003 bytes", "ipv4", "-q 16 -m 4096", 1000003, 100),
    ("16 QPs, 1 byte, 20000 messages", "ipv4", "-q 16", 1, 20000),
    ("16 QPs, 31 receives", "ipv4", "-q 16 -r 31", 4096, 3000),
    ("128 QPs, events", "ipv4", "-q 128 -r 1000 -e", 2048, 5000),
]

OF_THE_GATE = ("16 QPs, events", "16 QPs, MTU 4096, 1000003 bytes", "16 QPs, 31 receives")

for case_name, *case in CASES:
    test(f"srq: ibv_srq_pingpong, {case_name}", lambda testbed, case=case: pingpong(testbed, "ibv_srq_pingpong", *case),
         tier=QUICK if case_name == "one QP" else gate_if(case_name in OF_THE_GATE),
         debug_tier=gate_if(case_name == "16 QPs, 31 receives"))


@test("srq: ibv_srq_pingpong, an HCA to itself")
def pingpong_to_itself(testbed):
    for side in testbed.sides:
        pingpong(testbed, "ibv_srq_pingpong", "ipv4", "-q 16", 4096, 2000, side, side)


# What perftest can do with an SRQ.
RUNS = [(program, connection, options)
        for program in ("ib_send_bw", "ib_send_lat")
        for connection in ("RC", "UD")
        for options in ("", "-a", "-e")]
RUNS += [(program, "UC", options) for program in ("ib_send_bw", "ib_send_lat") for options in ("", "-a", "-e")]
RUNS += [("ib_send_bw", "RC", "-q 16"), ("ib_send_bw", "RC", "-q 128 -s 4096")]
RUNS += [("ib_send_bw", connection, option) for connection in ("UC", "UD") for option in ("-q 16", "-b")]
# Not ib_send_lat with UD: to learn the address of its peer it posts a receive to the QP, which has an SRQ.
RUNS += [("ib_send_bw", "RC", "-b"), ("ib_send_bw", "RC", "-R"), ("ib_send_lat", "RC", "-R"),
         ("ib_send_bw", "UD", "-R")]
# What finds no receive is lost with UC and UD. perftest gives an SRQ of theirs a receive for each iteration of one QP,
# or 100 when these are less: so many are enough for 16 QPs of six iterations each.
COUNT_LOSSY = 6


def iterations(connection, options):
    """The iterations of each QP."""
    if options == "-a":
        return 100
    if "-q 128" in options:
        return COUNT_QPS[128]
    return COUNT_LOSSY if "-q" in options and connection != "RC" else COUNT


def with_srq(testbed, program, connection, options, gid="ipv4"):
    count, sizes = iterations(connection, options), None
    qps = int(options.split()[1]) if options.startswith("-q") else 1
    how = {"cm": options == "-R", "gid": gid}
    if options == "-a":
        sizes = UD_SIZES if connection == "UD" else ALL_SIZES
    elif connection == "UD":
        options += " -s 2048"
    found = perftest(testbed, program, f"-c {connection} --use-srq {options}", count, **how)
    expect(len(found) == (len(sizes) if sizes else 1), f"{len(found)} result rows")
    if sizes:
        expect([row[0] for row in found] == sizes, f"sizes {[int(row[0]) for row in found]}, expected {sizes}")
    for row in found:
        expect(row[1] == count * qps, f"{row[1]:.0f} iterations at {row[0]:.0f} bytes, expected {count * qps}")
    column = 3 if program.endswith("_bw") else 4
    testbed.note(", ".join(f"{row[0]:.0f} B: {row[column]:g}" for row in found))


for run_program_, run_connection, run_options in RUNS:
    test(f"srq: {run_program_} {run_connection} --use-srq {run_options}".rstrip(),
         lambda testbed, run=(run_program_, run_connection, run_options): with_srq(testbed, *run),
         # The suite perftest has --use-srq with each transport and MTU, and -a without it.
         tier=gate_if(run_program_ == "ib_send_bw" and (run_connection == "RC" and run_options in ("-e", "-R")
                                                        or run_options == "-q 16")))

for run_program_, run_connection in (("ib_send_bw", "UC"), ("ib_send_lat", "UD")):
    test(f"srq: {run_program_} {run_connection} --use-srq, IPv6",
         lambda testbed, run=(run_program_, run_connection, ""): with_srq(testbed, *run, gid="link-local"))


# rxe tells of a limit only when a receive is taken, keeps no slot until its CQE is polled, makes a queue smaller when
# it is asked to, has other words for receives that fail and logs them, and knows neither SRQs in other PDs than their
# QPs nor parent domains.
ON_RXE = ("-- 'a CQ each' 'one CQ' 'extended CQ' 'fewer receives' immediate 'one event' 'last WQE' refilled "
          "'under traffic' 'too many' datagrams")


@test("srq: all an SRQ can do, an HCA to itself", limit_s=120)
def program_to_itself(testbed):
    run_program(testbed, "srq", to_itself(testbed), ON_RXE if testbed.subject.name == "rxe" else "")


@test("srq: all an SRQ can do, over the link", limit_s=120, tier=ALL, **OURS)
def program_over_link(testbed):
    run_program(testbed, "srq", over_link(testbed))


@test("srq: all an SRQ can do, behind an IOMMU", machine=IOMMU, limit_s=150, tier=ALL, **OURS)
def program_behind_an_iommu(testbed):
    run_program(testbed, "srq", over_link(testbed))


@test("srq: all an SRQ can do, four contexts on chip", machine=CACHE, limit_s=150, tier=ALL, **OURS)
def program_with_few_contexts(testbed):
    run_program(testbed, "srq", over_link(testbed))


@test("srq: ib_send_bw --use-srq, both ends killed in full traffic, twice", limit_s=90, **OURS)
def killed(testbed):
    for _ in range(2):
        server, client = badinput.traffic(testbed, "ib_send_bw --use-srq", testbed.server, testbed.client)
        server.kill()
        client.kill()
        server.wait(10)
        client.wait(10)
    pingpong(testbed, "ibv_srq_pingpong", "ipv4", "-q 16", 4096, 500)
