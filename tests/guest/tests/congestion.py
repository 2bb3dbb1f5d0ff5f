# SPDX-License-Identifier: GPL-2.0-or-later
"""Congestion control and pause frames, turned on as an administrator does it.

The link impairment of the client's HCA marks packets in the place of a switch; the buffers that fill are those of HCAs
which take packets no faster than their property says.
"""

import contextlib
import dataclasses
import json

from hghca_lib.tiers import ALL

from framework import PAUSES, expect, test
from impairment import impairment
from perftest import perftest

NEEDS = {"subjects": ("hghca",)}
# What the device has after a reset; hardware-interface.rst, 4.26.
DEFAULTS = {"react": 0, "notify": 0, "cnp_interval": 50, "cnp_dscp": 48, "cnp_priority": 6, "threshold": 5, "gain": 256,
            "alpha_period": 55, "decrease_period": 50, "increase_period": 55, "increase_bytes": 10000000, "additive": 40,
            "hyper": 400, "min_rate": 10}
REFUSED = {"react": ("2", "yes", ""), "cnp_interval": ("0", "1000001"), "cnp_dscp": ("64", "256"),
           "cnp_priority": ("8",), "threshold": ("0", "32"), "gain": ("0", "65537"), "increase_bytes": ("16383",),
           "additive": ("0", "401"), "hyper": ("39",), "min_rate": ("0", "100001", "4294967296")}

# The device refuses a value, or devlink(8) one that its type cannot have.
SAID = ("kernel answers: Invalid argument", "is not a number or not within range")

# Of RoCE packets in PFC; 4.27.
ROCE_PRIORITY = 3


def in_init(side):
    """The side as the guest's first namespace has it, where the device's devlink instance stays."""
    return dataclasses.replace(side, netns=None)


def parameter(side, verb, name):
    return f"devlink -j dev param {verb} pci/{side.pci} name congestion_{name}"


def writing(side, name, value):
    return f"{parameter(side, 'set', name)} value '{value}' cmode runtime"


def write(testbed, side, **values):
    testbed.run(" && ".join(writing(side, name, value) for name, value in values.items()), in_init(side))


def read(testbed, side, name):
    shown = json.loads(testbed.run(parameter(side, "show", name), in_init(side)))["param"][f"pci/{side.pci}"]
    expect(len(shown) == 1 and [value["cmode"] for value in shown[0]["values"]] == ["runtime"], f"{name}: {shown}")
    return int(shown[0]["values"][0]["value"])


@contextlib.contextmanager
def controlled(testbed, **parameters):
    """Both ends control congestion as long as the block, and the client's sender by these parameters."""
    try:
        for side in testbed.sides:
            write(testbed, side, notify=1, react=1)
        if parameters:
            write(testbed, testbed.client, **parameters)
        yield
    finally:
        for side in testbed.sides:
            write(testbed, side, **DEFAULTS)


def bandwidth(testbed, count=200):
    """Of WRITEs of 64 KiB by one QP, MiB/s."""
    (row,) = perftest(testbed, "ib_write_bw", "-m 4096", count)
    return row[3]


@test("congestion: marked packets slow their QP down", limit_s=120, **NEEDS)
def marked(testbed):
    """With increases that are next to none the first notifications leave the QP at the least rate, 1 Gbit/s."""
    free = bandwidth(testbed)
    with controlled(testbed, min_rate=1000, increase_period=1000000, increase_bytes=1 << 31, alpha_period=1000000):
        with impairment(testbed, "mark,rate=50%,dir=tx") as done:
            slow = bandwidth(testbed)
        marks = testbed.counter(testbed.server, "np_ecn_marked_roce_packets")
        sent, heeded = testbed.counter(testbed.server, "np_cnp_sent"), testbed.counter(testbed.client, "rp_cnp_handled")
    testbed.note(f"{free} MiB/s, marked {slow} MiB/s; {done.get('marked', 0)} marks, {sent} notifications")
    expect(done.get("marked", 0) > 100, f"nothing was marked: {done}")
    expect(marks >= done["marked"] and 0 < sent <= marks and heeded > 0,
           f"{done['marked']} marks made, {marks} seen, {sent} notifications sent, {heeded} heeded")
    # 1 Gbit/s are 119 MiB/s, and what goes before the first notification comes is not held back.
    expect(slow < 200, f"{slow} MiB/s at the least rate of 1 Gbit/s")


@test("congestion: neither end heeds what is turned off", **NEEDS)
def turned_off(testbed):
    before = {side.device: testbed.counter(side, "np_cnp_sent") for side in testbed.sides}
    with impairment(testbed, "mark,rate=50%") as done:
        bandwidth(testbed, 20)
    expect("marked" not in done, f"a packet said that it heeds marks: {done}")
    write(testbed, testbed.client, react=1)
    try:
        with impairment(testbed, "mark,rate=50%,dir=tx") as done:
            bandwidth(testbed, 20)
    finally:
        write(testbed, testbed.client, react=0)
    expect(done.get("marked", 0) > 0, "nothing was marked")
    expect(all(testbed.counter(side, "np_cnp_sent") == before[side.device] for side in testbed.sides),
           "a notification was sent")


@test("congestion: parameters that make no sense", **NEEDS)
def refused(testbed):
    for name, value in DEFAULTS.items():
        found = read(testbed, testbed.client, name)
        expect(found == value, f"{name} is {found}, not {value}")
    root = in_init(testbed.client)
    for name, values in REFUSED.items():
        for value in values:
            done = testbed.try_run(writing(root, name, value), root)
            expect(done.status and any(text in done.stderr for text in SAID), f"{name} = '{value}': {done.output}")
        expect(read(testbed, testbed.client, name) == DEFAULTS[name], f"{name} has changed")
    done = testbed.try_run(f"setpriv --reuid=65534 --clear-groups {writing(root, 'react', 1)}", root)
    expect(done.status and "not permitted" in done.output, f"anybody may: {done.output}")
    expect(read(testbed, testbed.client, "react") == 0, "anybody may")


@test("congestion: shown and set while the driver comes and goes", limit_s=120, lines=True, **NEEDS)
def comes_and_goes(testbed):
    """Each call has an effect or fails; a device that was started again has the settings of a reset."""
    side, root = testbed.client, in_init(testbed.client)
    both = f"{parameter(side, 'show', 'gain')} >&2; {writing(side, 'gain', 300)} && {writing(side, 'gain', 301)}"
    busy = [testbed.start(f"while :; do {both}; echo $?; done", root) for _ in range(2)]
    folder = "/sys/bus/pci/drivers/hghca"
    for _ in range(5):
        seen = [run.text(1).count("\n") for run in busy]
        testbed.wait_until(lambda seen=seen: all(run.text(1).count("\n") > count + 2 for run, count in zip(busy, seen)),
                           "calls")
        testbed.run(f"echo {side.pci} > {folder}/unbind && echo {side.pci} > {folder}/bind", root)
    for run in busy:
        run.kill()
        run.wait(10)
    ends = set("".join(run.text(1) for run in busy).split())
    expect("0" in ends, f"nothing was set: {ends}")
    testbed.run(f"echo {side.pci} > {folder}/unbind && echo {side.pci} > {folder}/bind", root)
    testbed.configure(side)
    expect(read(testbed, side, "gain") == DEFAULTS["gain"], "the setting has outlived the driver")


def overrun(testbed):
    """Bandwidth to the receiver that is slower than the sender, and what its counters have risen by."""
    before = {name: testbed.counter(testbed.server, name) for name in ("rx_buffer_overflow", "tx_pause")}
    figure = bandwidth(testbed)
    return figure, {name: testbed.counter(testbed.server, name) - count for name, count in before.items()}


def expect_no_loss(testbed, counted, stopped):
    """By what the receiver has counted; `stopped`: how often the sender had been stopped before."""
    expect(counted["rx_buffer_overflow"] == 0 and counted["tx_pause"] > 0, f"with flow control: {counted}")
    expect(testbed.counter(testbed.client, "rx_pause") > stopped, "no pause frame was obeyed")


@test("congestion: pause frames, a receiver that is slower than the sender", machine=PAUSES, limit_s=120, tier=ALL, **NEEDS)
def pauses(testbed):
    """Without them what the buffer has no room for is lost and sent again; with them nothing is."""
    lossy, without = overrun(testbed)
    for side in testbed.sides:
        testbed.run(f"ethtool -A {side.netdev} autoneg off rx on tx on", side)
        said = testbed.run(f"ethtool -a {side.netdev}", side)
        expect(said.count("on\n") == 2, said)
    stopped = testbed.counter(testbed.client, "rx_pause")
    calm, with_pauses = overrun(testbed)
    testbed.note(f"without {lossy} MiB/s, {without}; with pause frames {calm} MiB/s, {with_pauses}")
    expect(without["rx_buffer_overflow"] > 0 and without["tx_pause"] == 0, f"without pause frames: {without}")
    expect_no_loss(testbed, with_pauses, stopped)
    done = testbed.try_run(f"ethtool -A {testbed.client.netdev} autoneg on")
    expect(done.status != 0, "pauses were negotiated with nobody")


def pfc_priorities(testbed, side):
    """Those that DCB shows PFC for."""
    shown = json.loads(testbed.run(f"dcb -j pfc show dev {side.netdev}", side))
    return [priority for priority, on in enumerate(shown["prio_pfc"]) if on]


def pauses_of_all(testbed, side):
    said = testbed.run(f"ethtool -a {side.netdev}", side)
    return said.count("on\n")


@test("congestion: PFC for RoCE alone", machine=PAUSES, limit_s=120, tier=ALL, **NEEDS)
def priorities(testbed):
    """As DCB sets it."""
    try:
        for side in testbed.sides:
            testbed.run(f"dcb pfc set dev {side.netdev} prio-pfc 3:on", side)
            expect(pfc_priorities(testbed, side) == [ROCE_PRIORITY], f"{side.device}: {pfc_priorities(testbed, side)}")
            expect(pauses_of_all(testbed, side) == 0, "pauses of all are left")
        stopped = testbed.counter(testbed.client, "rx_pause")
        figure, counted = overrun(testbed)
        testbed.note(f"{figure} MiB/s, {counted}")
        expect_no_loss(testbed, counted, stopped)
    finally:
        for side in testbed.sides:
            testbed.run(f"dcb pfc set dev {side.netdev} prio-pfc all:off", side)


@test("congestion: PFC or pause frames, and PFC that makes no sense", machine=PAUSES, tier=ALL, **NEEDS)
def one_or_the_other(testbed):
    """A port has what was turned on last."""
    side = testbed.client

    def set_pfc(words):
        return testbed.try_run(f"dcb pfc set dev {side.netdev} {words}")

    try:
        testbed.run(f"ethtool -A {side.netdev} autoneg off rx on tx on")
        expect(set_pfc("prio-pfc 0:on 3:on").status == 0, "PFC for both classes")
        expect(pfc_priorities(testbed, side) == [0, ROCE_PRIORITY] and pauses_of_all(testbed, side) == 0,
               "PFC came last")
        for words in ("prio-pfc 5:on", "prio-pfc all:on", "macsec-bypass on", "delay 100"):
            done = set_pfc(words)
            expect(done.status and "Attribute write: " in done.output, f"{words}: {done.output}")
            expect(pfc_priorities(testbed, side) == [0, ROCE_PRIORITY], f"{words} has changed something")
        testbed.run(f"ethtool -A {side.netdev} rx off tx off")
        expect(pfc_priorities(testbed, side) == [0, ROCE_PRIORITY], "to have no pauses of all has turned PFC off")
        testbed.run(f"ethtool -A {side.netdev} rx on tx off")
        expect(pfc_priorities(testbed, side) == [] and pauses_of_all(testbed, side) == 1, "pause frames came last")
        expect(set_pfc("prio-pfc all:off").status == 0 and pauses_of_all(testbed, side) == 1,
               "no PFC leaves pause frames")
        denied = testbed.try_run(f"setpriv --reuid=65534 --clear-groups dcb pfc set dev {side.netdev} prio-pfc 3:on")
        expect(denied.status and pfc_priorities(testbed, side) == [], f"anybody may: {denied.output}")
    finally:
        testbed.run(f"dcb pfc set dev {side.netdev} prio-pfc all:off; ethtool -A {side.netdev} rx off tx off")
