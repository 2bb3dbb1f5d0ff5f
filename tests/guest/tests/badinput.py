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
def verbs_to_itself(testbed):
    run_program(testbed, "badverbs", to_itself(testbed))


@test("bad input: work requests that must fail, over the link", limit_s=120, expected_log=OVERRUN, **OURS)
def verbs_over_link(testbed):
    run_program(testbed, "badverbs", over_link(testbed))


@test("bad input: calls that must be refused", tier=QUICK, **OURS)
def calls(testbed):
    run_program(testbed, "badcalls", over_link(testbed))


@test("bad input: descriptors, doorbells and driver calls that no provider makes", limit_s=120, expected_log=OVERRUN,
      tier=ALL, debug_tier=GATE,
      **OURS)
def descriptors(testbed):
    side = testbed.client
    testbed.run(f"echo 0 > {side.counters}/lifespan")
    run_program(testbed, "badwqe", f"{to_itself(testbed)} {side.counters}")


@test("bad input: frames that no sound peer sends", limit_s=120, checked=SENT, **OURS)
def packets(testbed):
    """From the interface of the second HCA to the first, with sound traffic around them; its answers are checked."""
    target, sender = testbed.client, testbed.server
    mac = testbed.run(f"cat /sys/class/net/{target.netdev}/address", target).strip()
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", 10000, 20)
    result = testbed.try_run(f"python3 /share/badpackets.py {sender.netdev} {target.device} - {sender.address} "
                             f"{target.address} {mac}", sender, timeout=100)
    lines = [line for line in result.stdout.splitlines() if not line.startswith("ok ")]
    expect(result.status == 0, "\n".join(lines) + result.stderr[-1000:])
    testbed.note(f"{result.stdout.count('ok ')} cases")
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", 10000, 20)


def packets_sent(testbed):
    """Of both HCAs, as they count them themselves: a guest cannot ask an HCA without extensions."""
    return sum(testbed.guest.qmp("qom-get", path=f"/machine/peripheral/hca{number}", property="stats")["tx_packets"]
               for number, _ in enumerate(testbed.sides, 1))


def traffic(testbed, program, server_side, client_side):
    """Start endless traffic; (server, client) once packets flow."""
    port = testbed.next_port()

    def command(side):
        return f"exec {program} -d {side.device} -x {side.gid('ipv4')} -F -D 600 -p {port}"

    server = testbed.start(command(server_side), server_side)
    testbed.wait_listening(port, server_side, server, "tcp")
    before = packets_sent(testbed)
    client = testbed.start(f"{command(client_side)} {server_side.address}", client_side)
    testbed.wait_until(lambda: packets_sent(testbed) > before + 5000, f"traffic of {program}")
    if not (server.running() and client.running()):
        raise Failure(f"{program} ended early: {server.output[-400:]}{client.output[-400:]}")
    return server, client


def killed(testbed, program, victim):
    """Kill one end in full traffic: the other ends by itself, with an error, and all works again."""
    server, client = traffic(testbed, program, testbed.server, testbed.client)
    first, second = (client, server) if victim == "client" else (server, client)
    first.kill()
    first.wait(10)
    if (program, victim) == ("ib_send_bw", "client"):
        second.kill()  # a receiver that is sent nothing is told nothing, and waits for ever
        second.wait(10)
    else:
        survivor = second.wait(testbed.left(30))
        expect(not survivor.timed_out, f"the other end did not notice: {survivor.output[-400:]}")
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)


for tool in ("ib_write_bw", "ib_send_bw", "ib_read_bw"):
    for end in ("client", "server"):
        test(f"bad input: {tool}, {end} killed in full traffic",
             lambda testbed, tool=tool, end=end: killed(testbed, tool, end),
             tier=gate_if(tool == "ib_write_bw"), debug_tier=gate_if((tool, end) == ("ib_write_bw", "client")), **OURS)


@test("bad input: both ends killed at once, twice", **OURS)
def killed_together(testbed):
    for _ in range(2):
        server, client = traffic(testbed, "ib_write_bw", testbed.server, testbed.client)
        server.kill()
        client.kill()
        server.wait(10)
        client.wait(10)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)


@test("bad input: rping killed on both sides", **OURS)
def rping_killed(testbed):
    for victim in ("client", "server"):
        port = testbed.next_port()
        server = testbed.start(f"exec rping -s -a {testbed.server.address} -p {port} -S 1000", testbed.server)
        testbed.wait_listening(port, testbed.server, server, "cm")
        client = testbed.start(f"exec rping -c -v -a {testbed.server.address} -p {port} -S 1000")
        client.wait_for("ping data")
        first, second = (client, server) if victim == "client" else (server, client)
        first.kill()
        first.wait(10)
        survivor = second.wait(testbed.left(30))
        expect(not survivor.timed_out, f"the other end did not notice: {survivor.output[-400:]}")
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", 10000, 20)


def taken_away(testbed, command):
    """Take the device away under traffic: that is clean, and programs that still hold it can be ended."""
    server, client = traffic(testbed, "ib_write_bw", testbed.server, testbed.client)
    # A kernel that waits for the programs to let go would be right too.
    taking = testbed.start(command)
    testbed.wait_until(lambda: not taking.running() or
                       testbed.try_run(f"test -e /sys/class/infiniband/{testbed.client.device}").status, "the device going")
    for program in (client, server):
        program.kill()
        program.wait(10)
    succeeded(command, taking.wait(testbed.left(30)))


def carries_data_again(testbed):
    """Lockdep's report takes a slow CPU seconds to print, in which the kernel may have failed to find the peer's address."""
    peer = testbed.server.address
    testbed.wait_until(lambda: not testbed.try_run(f"ping -c 1 -W 1 {peer}").status, f"a response of {peer} to ping")
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)


# The programs' mappings are taken away, of which lockdep reports an inversion of the core's locks (framework.KNOWN).
@test("bad input: rmmod under traffic", limit_s=120, expected_log=RELOADED, debug_tier=GATE, ends_lockdep=True, **OURS)
def rmmod_under_traffic(testbed):
    """The driver lets itself be taken away from under its users."""
    taken_away(testbed, "rmmod hghca")
    testbed.run("insmod /opt/hghca/hghca.ko")
    for side in testbed.sides:
        testbed.configure(side)
    carries_data_again(testbed)


@test("bad input: driver unbound under traffic", limit_s=120, ends_lockdep=True, **OURS)
def unbind_under_traffic(testbed):
    """As when one of the devices is unplugged; the other stays."""
    taken_away(testbed, f"echo {testbed.client.pci} > /sys/bus/pci/drivers/hghca/unbind")
    expect(not testbed.try_run(f"ibv_devinfo -d {testbed.server.device}", testbed.server).status,
           "the other device is gone too")
    testbed.run(f"echo {testbed.client.pci} > /sys/bus/pci/drivers/hghca/bind")
    testbed.configure(testbed.client)
    carries_data_again(testbed)


@test("bad input: commands the device must refuse", limit_s=120, **OURS)
def commands(testbed):
    """With no driver bound, a program of ours writes the HCR of the second HCA."""
    side = testbed.server
    testbed.run(f"echo {side.pci} > /sys/bus/pci/drivers/hghca/unbind")
    try:
        result = testbed.try_run(f"python3 /share/badcmd.py {side.pci}", testbed.client, timeout=90)
    finally:
        testbed.run(f"echo {side.pci} > /sys/bus/pci/drivers/hghca/bind")
        testbed.configure(side)
    take_cases(testbed, "badcmd.py", result)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)
