# SPDX-License-Identifier: GPL-2.0-or-later
"""The device as a PCI device: configuration space, resets, several of it, interrupts, and its driver coming and going."""

import re
import time

from hghca_lib.guest import GuestError
from hghca_lib.tiers import ALL, QUICK

from data import run_program, to_itself
from framework import FOUR, Side, expect, test
from pingpong import pingpong

OURS = {"subjects": ("hghca",)}
# Of a kernel that has no modules but the driver's.
NO_MODULES = "lspci: Unable to load libkmod resources: error -2\n"
# What the log has of a device that fails. The interrupt of a command that completes meanwhile may find the device silent
# before the event of the failure is there.
FAILED = r"fatal error: (catastrophic error|registers read as all ones)$"


@test("hardware: lspci is clean", tier=QUICK, **OURS)
def lspci(testbed):
    for side in testbed.sides:
        result = testbed.try_run(f"lspci -s {side.pci} -vvv -nn", side)
        text = result.stdout
        said = result.stderr.replace(NO_MODULES, "")
        expect(result.status == 0 and not said, f"lspci complained: {said}")
        for wanted in (r"Infini[Bb]and controller \[0207\].*\[1af4:10f1\]", r"Kernel driver in use: hghca",
                       r"Region 0: Memory at \w+ \(64-bit, (non-)?prefetchable\) \[size=1M\]",
                       r"Region 2: Memory at \w+ \(64-bit, (non-)?prefetchable\) \[size=16M\]",
                       r"Region 4: Memory at \w+ \(64-bit, (non-)?prefetchable\)",
                       r"MSI-X: Enable\+ Count=64 Masked-", r"Express \(v2\) (Root Complex Integrated )?Endpoint", r"FLReset\+",
                       r"DevSta:\s+CorrErr- NonFatalErr- FatalErr- UnsupReq-", r"Power Management version \d",
                       r"Control:.*BusMaster\+", r"(?!.*<unassigned>)"):
            expect(re.search(wanted, text), f"lspci shows no `{wanted}`:\n{text}")
        for unwanted in ("!!!", "<access denied>", "unassigned", "<chain broken>", "<chain looped>",
                         "Unknown header", "<TAbort+", ">TAbort+", "<MAbort+", ">SERR+"):
            expect(unwanted not in text, f"lspci shows `{unwanted}`:\n{text}")
        dump = testbed.run(f"lspci -s {side.pci} -xxxx | wc -l", side)
        expect(int(dump) > 250, "the extended configuration space is missing")


@test("hardware: statistics over QMP are those the guest sees", **OURS)
def statistics(testbed):
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 20)
    seen = testbed.counters()
    for index, end in enumerate(("client", "server"), 1):
        stats = testbed.guest.qmp("qom-get", path=f"/machine/peripheral/hca{index}", property="stats")
        # The RDMA engine is idle; the net device may speak at any time.
        for name in ("tx_packets", "rx_packets", "tx_bytes", "rx_bytes", "rx_bad_icrc", "cqe_error"):
            expect(stats[name] == seen[f"{end} {name}"], f"{end} {name}: {stats[name]} by QMP, {seen}")
        expect(stats["tx_packets"] > 20, f"{end}: {stats}")


def interrupts(testbed, side):
    """Counts of the device's vectors: {vector line: [count on each CPU]}."""
    irqs = set(testbed.run(f"ls /sys/bus/pci/devices/{side.pci}/msi_irqs").split())
    found = {}
    for line in testbed.run("cat /proc/interrupts").splitlines()[1:]:
        number, _, rest = line.partition(":")
        if number.strip() in irqs:
            words = rest.split()
            found[number.strip()] = [int(word) for word in words[:2]]
    return found


@test("hardware: event queues on several vectors, spread over the CPUs", **OURS)
def vectors(testbed):
    side = testbed.client
    before = interrupts(testbed, side)
    expect(len(before) >= 3, f"vectors: {before}")
    said = run_program(testbed, "datacheck", to_itself(testbed), "-- 'completion vectors'")
    count = int(re.search(r"# (\d+) vectors", said).group(1))
    after = interrupts(testbed, side)
    rose = [irq for irq in after if sum(after[irq]) - sum(before[irq]) >= 20]
    expect(count >= 2, f"{count} completion vectors on 2 CPUs")
    expect(len(rose) >= count, f"{count} completion vectors, but interrupts rose on {rose}: {before} -> {after}")
    cpus = {cpu for irq in rose for cpu in (0, 1) if after[irq][cpu] - before[irq][cpu] >= 10}
    expect(cpus == {0, 1}, f"interrupts came on the CPUs {cpus} alone: {before} -> {after}")


def reload_driver(testbed):
    testbed.run("rmmod hghca")
    expect(testbed.run("ls /sys/class/infiniband | wc -l").strip() == "0", "a device is left without its driver")
    testbed.run("insmod /opt/hghca/hghca.ko")
    for side in testbed.sides:
        testbed.configure(side)


@test("hardware: driver unloaded and loaded five times", limit_s=120, tier=ALL, lines=True, **OURS,
      expected_log=(r"hghca: (loading out-of-tree|module verification)",))
def reload(testbed):
    for _ in range(5):
        reload_driver(testbed)
        pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 20)


@test("hardware: driver unbound and bound, one device at a time", limit_s=120, **OURS)
def rebind(testbed):
    for side in testbed.sides:
        testbed.run(f"echo {side.pci} > /sys/bus/pci/drivers/hghca/unbind")
        testbed.run(f"echo {side.pci} > /sys/bus/pci/drivers/hghca/bind")
        testbed.configure(side)
        pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 20)


@test("hardware: function-level reset", limit_s=120, **OURS)
def function_level_reset(testbed):
    """Without a driver; what the device had been told before is forgotten, and the driver starts it again."""
    side = testbed.server
    folder = f"/sys/bus/pci/devices/{side.pci}"
    testbed.run(f"echo {side.pci} > /sys/bus/pci/drivers/hghca/unbind")
    try:
        methods = testbed.run(f"cat {folder}/reset_method", testbed.client)
        expect("flr" in methods.split(), f"reset methods: {methods}")
        testbed.run(f"echo flr > {folder}/reset_method && python3 /share/flr.py {side.pci}", testbed.client)
    finally:
        testbed.run(f"echo {side.pci} > /sys/bus/pci/drivers/hghca/bind")
        testbed.configure(side)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 50)


@test("hardware: one CPU changes the memory map, another keeps its timer", tier=ALL, limit_s=90, **OURS)
def memory_map(testbed):
    """The emulator's own defect, which tools/hghca_lib/qemu.py corrects; a loaded host shows it within seconds."""
    side = testbed.server
    testbed.run(f"echo {side.pci} > /sys/bus/pci/drivers/hghca/unbind")
    try:
        done = testbed.run(f"python3 /share/decode.py {side.pci} 30", testbed.client, timeout=80)
        counts = [int(word) for word in done.split()[1::2]]
        expect(counts[0] > 500 and counts[1] > 500, done)
        testbed.note(done.strip())
    finally:
        testbed.run(f"echo {side.pci} > /sys/bus/pci/drivers/hghca/bind")
        testbed.configure(side)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 20)


def watch_events(testbed, side):
    """A program that prints the asynchronous events of a device."""
    watch = testbed.start(f"stdbuf -oL ibv_asyncwatch -d {side.device}", side)
    watch.wait_for("async event FD")
    return watch


def expect_no_qp(testbed, side):
    """A program that wants a QP is refused one, whatever it asks the device for first."""
    failed = testbed.try_run(f"ibv_rc_pingpong -d {side.device} -g {side.gid('ipv4')} -p {testbed.next_port()}", side)
    expect(failed.status not in (0, 124), f"a QP was made on a device that has failed: {failed.output[-300:]}")


def bring_back(testbed, side):
    """Start the driver of a device that was given up again, and use it."""
    folder = "/sys/bus/pci/drivers/hghca"
    testbed.run(f"echo {side.pci} > {folder}/unbind && echo {side.pci} > {folder}/bind")
    testbed.configure(side)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 20)


@test("hardware: FLR while the driver is bound", limit_s=120, **OURS, expected_log=(r"fatal error: reset from outside",))
def reset_under_driver(testbed):
    """The driver gives the device up before the reset: programs are told, and nothing is used afterwards."""
    side = testbed.server
    folder = f"/sys/bus/pci/devices/{side.pci}"
    watch = watch_events(testbed, side)
    testbed.run(f"echo flr > {folder}/reset_method && echo 1 > {folder}/reset", testbed.client)
    testbed.wait_until(lambda: "DEVICE_FATAL" in watch.output, f"the event; seen: {watch.output!r}")
    watch.kill()
    watch.wait(10)
    control = testbed.run(f"lspci -s {side.pci} -vvv | grep Control:", testbed.client)
    expect("BusMaster-" in control and "Mem+" in control, f"behind the reset: {control}")
    expect_no_qp(testbed, side)
    said = [record.text for record in testbed.guest.kmsg() if "fatal error: reset from outside" in record.text]
    expect(len(said) == 1, f"the log: {said}")
    bring_back(testbed, side)
    control = testbed.run(f"lspci -s {side.pci} -vvv | grep Control:", testbed.client)
    expect("BusMaster+" in control, f"behind the driver's start: {control}")


@test("hardware: a reset that the driver is not told of", limit_s=120, **OURS,
      expected_log=(r"hghca .*: command \w+ \(0x\w+\), .* no response: -6$", r"fatal error: the device has lost its state"))
def reset_behind_driver(testbed):
    """The first command after it ends within a second or two, though its event never comes."""
    side = testbed.client
    seen = len(testbed.guest.kmsg())
    testbed.run(f"python3 /share/resetbar.py {side.pci}")
    # A program reaches the device sooner or later; all of it together must not take as long as one lost command.
    start = time.monotonic()
    expect_no_qp(testbed, side)
    took = time.monotonic() - start
    expect(took < 5 * testbed.slowness, f"the command ended after {took:.1f} s")
    said = [record.text for record in testbed.guest.kmsg()[seen:]]
    for wanted in ("no response: -6", "fatal error: the device has lost its state"):
        expect(sum(wanted in text for text in said) == 1, f"the log has no `{wanted}`, or several: {said}")
    bring_back(testbed, side)
    testbed.note(f"{took:.1f} s")


@test("hardware: a device that fails is reported, and comes back with its driver", limit_s=120, **OURS,
      expected_log=(FAILED,))
def catastrophic(testbed):
    side = testbed.client
    hca = "/machine/peripheral/hca1"
    expect(testbed.guest.qmp("qom-get", path=hca, property="fail") == "ok", "the device has failed before")
    try:
        testbed.guest.qmp("qom-set", path=hca, property="fail", value="later")
        expect(False, "`later` was taken")
    except GuestError as error:
        expect("must be 'now' or the name of a health syndrome, not 'later'" in str(error), f"{error}")
    watch = watch_events(testbed, side)
    port = testbed.next_port()
    options = f"-s 100003 -n 100000000 -m 4096 -p {port}"
    serving = testbed.start(f"ibv_rc_pingpong -d {testbed.server.device} -g {testbed.server.gid('ipv4')} {options}",
                            testbed.server)
    testbed.wait_listening(port, testbed.server, serving, "tcp")
    before = testbed.counter(side, "tx_packets")
    busy = testbed.start(f"ibv_rc_pingpong -d {side.device} -g {side.gid('ipv4')} {options} {testbed.server.address}",
                         side)
    testbed.wait_until(lambda: testbed.counter(side, "tx_packets") > before + 100, "traffic")
    testbed.guest.qmp("qom-set", path=hca, property="fail", value="now")
    testbed.wait_until(lambda: "DEVICE_FATAL" in watch.output, f"the event; seen: {watch.output!r}")
    for command in (busy, serving, watch):
        command.kill()
        command.wait(10)
    expect_no_qp(testbed, side)
    said = [record.text for record in testbed.guest.kmsg() if re.search(FAILED, record.text)]
    expect(len(said) == 1, f"the log: {said}")
    # The driver has reset it; its next start brings it back.
    bring_back(testbed, side)
    expect(testbed.guest.qmp("qom-get", path=hca, property="fail") == "ok", "the device is still silent")


@test("hardware: four HCAs in one machine", machine=FOUR, tier=ALL, **OURS)
def four(testbed):
    """Traffic between all neighbours at the same time."""
    sides = [*testbed.sides, Side("hghca2", "10.10.0.3", testbed.guest, netns="c"),
             Side("hghca3", "10.10.0.4", testbed.guest, netns="d")]
    running = []
    for side in sides[2:]:
        testbed.look_up(side)
    for number, server in enumerate(sides):
        client = sides[(number + 1) % 4]
        port = testbed.next_port()
        options = f"-c -s 100003 -n 300 -m 4096 -p {port}"
        serving = testbed.start(f"ibv_rc_pingpong -d {server.device} -g {server.gid('ipv4')} {options}", server)
        testbed.wait_listening(port, server, serving, "tcp")
        running += [serving, testbed.start(f"ibv_rc_pingpong -d {client.device} -g {client.gid('ipv4')} {options} "
                                           f"{server.address}", client)]
    for command in running:
        result = command.wait(testbed.left(50))
        expect(result.status == 0 and "300 iters" in result.stdout and "invalid" not in result.output,
               f"status {result.status}: {result.output[-400:]}")
    macs = {testbed.run(f"cat /sys/class/net/{side.netdev}/address", side) for side in sides}
    guids = {testbed.run(f"cat /sys/class/infiniband/{side.device}/node_guid", side) for side in sides}
    expect(len(macs) == 4 and len(guids) == 4, f"MACs {macs}, GUIDs {guids}")
