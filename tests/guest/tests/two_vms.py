# SPDX-License-Identifier: GPL-2.0-or-later
"""Two machines, one HCA each, a socket of the host or shared memory between them."""

from hghca_lib.tiers import ALL

import framework
from framework import expect
from netdev import MTU
from perftest import perftest
from pingpong import pingpong
from rdmacm import rping


def test(name, **options):
    return framework.test(f"two machines: {name}", machine=framework.VMS, subjects=("hghca",), **options)


@test("ping, jumbo frames")
def ping(testbed):
    said = testbed.run(f"ping -n -c 20 -i 0.05 -s {MTU - 28} -M do -W 5 {testbed.server.address}")
    expect("20 received, 0% packet loss" in said, said[-400:])


@test("ibv_rc_pingpong")
def rc_pingpong(testbed):
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 1000003, 200)
    pingpong(testbed, "ibv_rc_pingpong", "link-local", "-e -m 1024", 1000003, 50)


@test("ibv_rc_pingpong, the other way", tier=ALL)
def rc_pingpong_back(testbed):
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 1000003, 100, testbed.client, testbed.server)


@test("ibv_ud_pingpong")
def ud_pingpong(testbed):
    pingpong(testbed, "ibv_ud_pingpong", "ipv4", "", 2048, 500)


@test("rping -V")
def rping_v(testbed):
    rping(testbed, "-S 20000", 200)


@test("ib_write_bw, ib_read_bw, ib_send_bw", tier=ALL)
def bandwidth(testbed):
    for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
        rows = perftest(testbed, program, "", 500)
        expect(len(rows) == 1, f"{program}: {rows}")
        testbed.note(f"{program}: {rows[0][3]} MiB/s at 65536 bytes")


@test("ib_write_lat", tier=ALL)
def latency(testbed):
    rows = perftest(testbed, "ib_write_lat", "-s 8", 500)
    expect(len(rows) == 1, f"rows: {rows}")
    testbed.note(f"ib_write_lat: {rows[0][4]} us at 8 bytes")


def shared(name, **options):
    return framework.test(f"two machines, shared memory: {name}", machine=framework.SHARED, subjects=("hghca",), **options)


shared("ping, jumbo frames")(ping)
shared("ibv_rc_pingpong")(rc_pingpong)
shared("ibv_ud_pingpong")(ud_pingpong)
shared("rping -V")(rping_v)


@shared("ib_write_bw, ib_read_bw, ib_send_bw, 1 MiB")
def shared_bandwidth(testbed):
    for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
        rows = perftest(testbed, program, "-s 1048576", 20)
        expect(len(rows) == 1, f"{program}: {rows}")
        testbed.note(f"{program}: {rows[0][3]} MiB/s at 1 MiB")


shared("ib_write_lat", tier=ALL)(latency)
