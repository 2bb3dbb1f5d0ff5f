# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad input from programs, peers and administrators: a clear error, and nothing else is harmed."""


from hghca_lib.tiers import ALL, GATE, QUICK

from data import over_link, run_program, take_cases, to_itself
from framework import Failure, expect, gate_if, succeeded, test
from pingpong import pingpong
from recorder import SENT

# Traffic that goes on beside a test for long: of many small packets, for each is captured.
BACKGROUND = "ib_write_bw -s 256"

OURS = {"subjects": ("hghca",)}
RELOADED = (r"hghca: (loading out-of-tree|module verification)",)
# The driver tells of a CQ that a program let run over.
OVERRUN = (r"hghca\d: CQ 0x\w+ failed: overrun$",)


@test("bad input: work requests that must fail, an HCA to itself", limit_s=120, expected_log=OVERRUN,
      debug_tier=GATE)
def verbs_to_itself(rig):
    run_program(rig, "badverbs", to_itself(rig))


@test("bad input: work requests that must fail, over the link", limit_s=120, expected_log=OVERRUN, **OURS)
def verbs_over_link(rig):
    run_program(rig, "badverbs", over_link(rig))


@test("bad input: calls that must be refused", tier=QUICK, **OURS)
def calls(rig):
    run_program(rig, "badcalls", over_link(rig))


@test("bad input: descriptors, doorbells and driver calls that no provider makes", limit_s=120, expected_log=OVERRUN,
      tier=ALL, debug_tier=GATE,
      **OURS)
def descriptors(rig):
    side = rig.client
    rig.run(f"echo 0 > {side.counters}/lifespan")
    run_program(rig, "badwqe", f"{to_itself(rig)} {side.counters}")


@test("bad input: frames that no sound peer sends", limit_s=120, judged=SENT, **OURS)
def packets(rig):
    """From the interface of the second HCA to the first, with sound traffic around them; its answers are judged."""
    target, sender = rig.client, rig.server
    mac = rig.run(f"cat /sys/class/net/{target.netdev}/address", target).strip()
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-m 1024", 10000, 20)
    result = rig.try_run(f"python3 /share/badpackets.py {sender.netdev} {target.device} - {sender.address} "
                         f"{target.address} {mac}", sender, timeout=100)
    lines = [line for line in result.stdout.splitlines() if not line.startswith("ok ")]
    expect(result.status == 0, "\n".join(lines) + result.stderr[-1000:])
    rig.note(f"{result.stdout.count('ok ')} cases")
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-m 1024", 10000, 20)


def traffic(rig, program, server_side, client_side):
    """Start endless traffic; (server, client) once packets flow."""
    port = rig.next_port()

    def command(side):
        return f"exec {program} -d {side.device} -x {side.gid('ipv4')} -F -D 600 -p {port}"

    server = rig.start(command(server_side), server_side)
    rig.wait_listening(port, server_side, server, "tcp")
    before = rig.counter(client_side, "tx_packets") + rig.counter(server_side, "tx_packets")
    client = rig.start(f"{command(client_side)} {server_side.address}", client_side)
    rig.wait_until(lambda: rig.counter(client_side, "tx_packets") + rig.counter(server_side, "tx_packets")
                   > before + 5000, f"traffic of {program}")
    if not (server.running() and client.running()):
        raise Failure(f"{program} ended early: {server.output[-400:]}{client.output[-400:]}")
    return server, client


def killed(rig, program, victim):
    """Kill one end in full traffic: the other ends by itself, with an error, and all works again."""
    server, client = traffic(rig, program, rig.server, rig.client)
    first, second = (client, server) if victim == "client" else (server, client)
    first.kill()
    first.wait(10)
    if (program, victim) == ("ib_send_bw", "client"):
        second.kill()  # a receiver that is sent nothing is told nothing, and waits for ever
        second.wait(10)
    else:
        survivor = second.wait(rig.left(30))
        expect(not survivor.timed_out, f"the other end did not notice: {survivor.output[-400:]}")
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)


for judge in ("ib_write_bw", "ib_send_bw", "ib_read_bw"):
    for end in ("client", "server"):
        test(f"bad input: {judge}, {end} killed in full traffic",
             lambda rig, judge=judge, end=end: killed(rig, judge, end),
             debug_tier=gate_if((judge, end) == ("ib_write_bw", "client")), **OURS)


@test("bad input: both ends killed at once, five times", **OURS)
def killed_together(rig):
    for _ in range(5):
        server, client = traffic(rig, "ib_write_bw", rig.server, rig.client)
        server.kill()
        client.kill()
        server.wait(10)
        client.wait(10)
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)


@test("bad input: rping killed on both sides", **OURS)
def rping_killed(rig):
    for victim in ("client", "server"):
        port = rig.next_port()
        server = rig.start(f"exec rping -s -a {rig.server.address} -p {port} -S 1000", rig.server)
        rig.wait_listening(port, rig.server, server, "cm")
        client = rig.start(f"exec rping -c -v -a {rig.server.address} -p {port} -S 1000")
        client.wait_for("ping data")
        first, second = (client, server) if victim == "client" else (server, client)
        first.kill()
        first.wait(10)
        survivor = second.wait(rig.left(30))
        expect(not survivor.timed_out, f"the other end did not notice: {survivor.output[-400:]}")
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-m 1024", 10000, 20)


def taken_away(rig, command):
    """Take the device away under traffic: that is clean, and programs that still hold it can be ended."""
    server, client = traffic(rig, "ib_write_bw", rig.server, rig.client)
    # A kernel that waits for the programs to let go would be right too.
    taking = rig.start(command)
    rig.wait_until(lambda: not taking.running() or rig.try_run(f"ls {rig.client.counters}").status, "the device going")
    for program in (client, server):
        program.kill()
        program.wait(10)
    succeeded(command, taking.wait(rig.left(30)))


@test("bad input: rmmod under traffic", limit_s=120, expected_log=RELOADED, debug_tier=GATE, **OURS)
def rmmod_under_traffic(rig):
    """The driver lets itself be taken away from under its users."""
    taken_away(rig, "rmmod hghca")
    rig.run("insmod /opt/hghca/hghca.ko")
    for side in rig.sides:
        rig.configure(side)
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)


@test("bad input: driver unbound under traffic", limit_s=120, **OURS)
def unbind_under_traffic(rig):
    """As when one of the devices is unplugged; the other stays."""
    taken_away(rig, f"echo {rig.client.pci} > /sys/bus/pci/drivers/hghca/unbind")
    expect(not rig.try_run(f"ibv_devinfo -d {rig.server.device}", rig.server).status, "the other device is gone too")
    rig.run(f"echo {rig.client.pci} > /sys/bus/pci/drivers/hghca/bind")
    rig.configure(rig.client)
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)


@test("bad input: commands the device must refuse", limit_s=120, debug_tier=GATE, **OURS)
def commands(rig):
    """With no driver bound, a program of ours writes the HCR of the second HCA."""
    side = rig.server
    rig.run(f"echo {side.pci} > /sys/bus/pci/drivers/hghca/unbind")
    try:
        result = rig.try_run(f"python3 /share/badcmd.py {side.pci}", rig.client, timeout=90)
    finally:
        rig.run(f"echo {side.pci} > /sys/bus/pci/drivers/hghca/bind")
        rig.configure(side)
    take_cases(rig, "badcmd.py", result)
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)
