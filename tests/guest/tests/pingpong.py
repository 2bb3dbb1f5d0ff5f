# SPDX-License-Identifier: GPL-2.0-or-later
"""libibverbs' own ping-pong programs, with the data checked (-c): one byte of each page, and always for a 0.

What compares every byte is data.py.
"""

import re

from hghca_lib.tiers import QUICK

from framework import expect, gate_if, test

# name, program, GID, options, message bytes, messages
CASES = [
    ("rc 1000003 bytes", "ibv_rc_pingpong", "ipv4", "-m 4096", 1000003, 300),
    ("rc 1000003 bytes, IPv6", "ibv_rc_pingpong", "link-local", "-m 4096", 1000003, 300),
    ("rc 1000003 bytes, events", "ibv_rc_pingpong", "ipv4", "-e -m 4096", 1000003, 300),
    ("rc MTU 256", "ibv_rc_pingpong", "ipv4", "-m 256", 1000003, 50),
    ("rc MTU 512", "ibv_rc_pingpong", "ipv4", "-m 512", 1000003, 50),
    ("rc MTU 1024", "ibv_rc_pingpong", "ipv4", "-m 1024", 1000003, 50),
    ("rc MTU 2048", "ibv_rc_pingpong", "ipv4", "-m 2048", 1000003, 50),
    ("rc 1 byte", "ibv_rc_pingpong", "ipv4", "-m 1024", 1, 1000),
    ("rc 1 byte, events, IPv6", "ibv_rc_pingpong", "link-local", "-e -m 1024", 1, 500),
    ("rc struct ibv_qp_ex", "ibv_rc_pingpong", "ipv4", "-N -m 1024", 1000003, 100),
    ("rc struct ibv_qp_ex, events, IPv6", "ibv_rc_pingpong", "link-local", "-N -e -m 4096", 65536, 300),
    ("rc one receive posted", "ibv_rc_pingpong", "ipv4", "-r 1 -m 4096", 65536, 500),
    ("uc 1000003 bytes", "ibv_uc_pingpong", "ipv4", "-m 4096", 1000003, 300),
    ("uc 1000003 bytes, IPv6, events", "ibv_uc_pingpong", "link-local", "-e -m 1024", 1000003, 100),
    ("uc 1 byte", "ibv_uc_pingpong", "ipv4", "-m 1024", 1, 1000),
    ("ud 2048 bytes", "ibv_ud_pingpong", "ipv4", "", 2048, 2000),
    ("ud 2048 bytes, IPv6", "ibv_ud_pingpong", "link-local", "", 2048, 2000),
    ("ud 2048 bytes, events", "ibv_ud_pingpong", "ipv4", "-e", 2048, 1000),
    ("ud 4096 bytes", "ibv_ud_pingpong", "ipv4", "", 4096, 1000),
]


def command(program, side, gid, options, size, count, port):
    return f"{program} -d {side.device} -g {side.gid(gid)} -c -s {size} -n {count} -p {port} {options}"


def pingpong(testbed, program, gid, options, size, count, server=None, client=None):
    """One run; both ends must have moved all bytes and found the data right."""
    server, client = server or testbed.server, client or testbed.client
    port = testbed.next_port()
    arguments = (program, gid, options, size, count)
    ends = testbed.pair(command(program, server, *arguments[1:], port),
                        command(program, client, *arguments[1:], port) + f" {server.address}", port, server, client)
    for end in ends:
        check(end, size, count)


def check(end, size, count):
    """An end, as a Result, must have moved all bytes and found the data right."""
    expect("invalid data" not in end.output, f"wrong data: {end.output[-500:]}")
    # After some failures, such as that of prefetching, it goes on.
    expect("Couldn't" not in end.output, f"not all went well: {end.output[-500:]}")
    expect(re.search(rf"^{2 * size * count} bytes in ", end.stdout, re.MULTILINE),
           f"not all bytes moved: {end.output[-500:]}")
    expect(re.search(rf"^{count} iters in ", end.stdout, re.MULTILINE), f"not all messages: {end.output[-500:]}")


# These stand for the others under the debug kernel.
UNDER_DEBUG = ("uc 1000003 bytes, IPv6, events", "ud 2048 bytes, IPv6")
# The suite perftest has each path MTU.
BEYOND_THE_GATE = ("rc MTU 512", "rc MTU 1024", "rc MTU 2048", "rc 1000003 bytes, IPv6", "uc 1000003 bytes",
                   "ud 2048 bytes, IPv6", "ud 4096 bytes")
UNDER_EACH_LINE = ("rc 1000003 bytes, events", "uc 1 byte", "ud 2048 bytes, events")
IN_MINUTES = ("rc 1000003 bytes", "uc 1 byte", "ud 2048 bytes, events")

for case_name, *case in CASES:
    test(f"pingpong: {case_name}", lambda testbed, case=case: pingpong(testbed, *case),
         tier=QUICK if case_name in IN_MINUTES else gate_if(case_name not in BEYOND_THE_GATE),
         debug_tier=gate_if(case_name in UNDER_DEBUG), lines=case_name in UNDER_EACH_LINE)


@test("pingpong: rc, an HCA to itself")
def to_itself(testbed):
    for side in testbed.sides:
        pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 1000003, 100, side, side)


@test("pingpong: uc, an HCA to itself")
def uc_to_itself(testbed):
    for side in testbed.sides:
        pingpong(testbed, "ibv_uc_pingpong", "ipv4", "-m 4096", 1000003, 100, side, side)


@test("pingpong: ud, an HCA to itself")
def ud_to_itself(testbed):
    for side in testbed.sides:
        pingpong(testbed, "ibv_ud_pingpong", "ipv4", "", 2048, 500, side, side)
