# SPDX-License-Identifier: GPL-2.0-or-later
"""The Ethernet side of the port: plain networking, the link's state, and what RDMA makes of both."""

import contextlib
import re

from hghca_lib.tiers import GATE, QUICK

from framework import expect, mapped, succeeded, test
from pingpong import pingpong

OURS = {"subjects": ("hghca",)}
MTU = 4200


def netdev_test(name, **options):
    return test(f"netdev: {name}", **OURS, **options)


@netdev_test("ping", tier=QUICK)
def ping(testbed):
    said = testbed.run(f"ping -n -c 50 -i 0.02 -W 5 {testbed.server.address}")
    expect("50 received, 0% packet loss" in said, said[-400:])


@netdev_test("ping, jumbo frames")
def ping_jumbo(testbed):
    largest = MTU - 28
    for size in (4000, largest):
        said = testbed.run(f"ping -n -c 10 -i 0.02 -s {size} -M do {testbed.server.address}")
        expect("10 received, 0% packet loss" in said, said[-400:])
    result = testbed.try_run(f"ping -n -c 1 -W 2 -s {largest + 1} -M do {testbed.server.address}")
    expect(result.status != 0 and "message too long" in result.output.lower(),
           f"a frame longer than the MTU was sent: {result.output}")


@netdev_test("ping, fragments and odd sizes")
def ping_sizes(testbed):
    for size in (0, 1, 17, 18, 19, 20000, 60000):
        said = testbed.run(f"ping -n -c 3 -i 0.02 -s {size} {testbed.server.address}")
        expect("3 received" in said, said[-400:])


@netdev_test("ping, IPv6 link-local")
def ping_ipv6(testbed):
    said = testbed.run(f"ip -6 -o address show dev {testbed.server.netdev} scope link", testbed.server)
    address = re.search(r"inet6 ([0-9a-f:]+)/", said).group(1)
    said = testbed.run(f"ping -n -c 10 -i 0.02 {address}%{testbed.client.netdev}")
    expect("10 received, 0% packet loss" in said, said[-400:])


@netdev_test("TCP, 16 MiB each way, compared")
def tcp(testbed):
    testbed.run("head -c 16777216 /dev/urandom > /tmp/tcp.bin")
    want = testbed.run("sha256sum < /tmp/tcp.bin")
    for receiver, sender in ((testbed.server, testbed.client), (testbed.client, testbed.server)):
        port = testbed.next_port()
        server = testbed.start(f"nc -l {port} | sha256sum", receiver)
        testbed.wait_listening(port, receiver, server, "tcp")
        testbed.run(f"nc -N {receiver.address} {port} < /tmp/tcp.bin", sender)
        got = succeeded("nc", server.wait(testbed.left(30))).stdout
        expect(got == want, f"sent {want}, received {got}")
    testbed.run("rm /tmp/tcp.bin")


@netdev_test("TCP, many connections both ways (iperf3)")
def iperf(testbed):
    port = testbed.next_port()
    server = testbed.start(f"iperf3 -s -1 -p {port}", testbed.server)
    testbed.wait_listening(port, testbed.server, server, "tcp")
    said = testbed.run(f"iperf3 -c {testbed.server.address} -p {port} -t 3 -P 4 --bidir -f m")
    sums = re.findall(r"^\[SUM\].*?([\d.]+) Mbits/sec.*receiver", said, re.MULTILINE)
    expect(len(sums) == 2 and all(float(rate) > 0 for rate in sums), said[-800:])
    testbed.note(f"{' and '.join(sums)} Mbit/s")


@netdev_test("ssh")
def ssh(testbed):
    testbed.run("ssh-keygen -A && mkdir -p /run/sshd /root/.ssh && chmod 700 /root/.ssh && "
                "rm -f /root/.ssh/id_test* && "
                "ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_test && "
                "cp /root/.ssh/id_test.pub /root/.ssh/authorized_keys")
    testbed.start(f"/usr/sbin/sshd -D -e -p 22 -o ListenAddress={testbed.server.address} -o UsePAM=no "
                  "-o PermitRootLogin=yes -o PidFile=none", testbed.server)
    testbed.run("until grep -q ':0016 .*:0000 0A' /proc/net/tcp; do sleep 0.03; done", testbed.server, timeout=20)
    said = testbed.run("ssh -i /root/.ssh/id_test -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
                       f"-o LogLevel=ERROR root@{testbed.server.address} "
                       "'echo $SSH_CONNECTION; head -c 3000000 /dev/zero | wc -c'")
    expect(said.split()[0] == testbed.client.address and said.split()[2] == testbed.server.address, said)
    expect(said.split()[4] == "3000000", said)


UDHCPD = """
start 10.10.0.100
end 10.10.0.110
interface {netdev}
lease_file /tmp/udhcpd.leases
pidfile /tmp/udhcpd.pid
option subnet 255.255.255.0
option router 10.10.0.2
option lease 600
"""


@netdev_test("DHCP")
def dhcp(testbed):
    """The lease is printed, not applied: the address stays what the other tests expect."""
    testbed.run("touch /tmp/udhcpd.leases && "
                f"cat > /tmp/udhcpd.conf <<'END'\n{UDHCPD.format(netdev=testbed.server.netdev)}END")
    testbed.run("printf '#!/bin/sh\\necho \"$1 $ip $subnet $router\"\\n' > /tmp/lease && chmod +x /tmp/lease")
    testbed.start("udhcpd -f -S /tmp/udhcpd.conf || udhcpd -f /tmp/udhcpd.conf", testbed.server)
    testbed.run("until grep -q ':0043 ' /proc/net/udp; do sleep 0.03; done", testbed.server, timeout=20)
    said = testbed.run(f"udhcpc -f -n -q -t 5 -i {testbed.client.netdev} -s /tmp/lease")
    expect(re.search(r"^bound 10\.10\.0\.1\d\d 255\.255\.255\.0 10\.10\.0\.2$", said, re.MULTILINE), said)


@netdev_test("ethtool")
def ethtool(testbed):
    for side in testbed.sides:
        driver = testbed.run(f"ethtool -i {side.netdev}", side)
        expect("driver: hghca" in driver and f"bus-info: {side.pci}" in driver, driver)
        state = testbed.run(f"ethtool {side.netdev}", side)
        expect("Link detected: yes" in state and re.search(r"Speed: \d+Mb/s", state), state)
        expect("Duplex: Full" in state, state)
        statistics = testbed.run(f"ethtool -S {side.netdev}", side)
        expect(re.search(r"tx_packets: \d+", statistics) and "rx_bad_icrc: " in statistics, statistics[:400])


@netdev_test("statistics count")
def statistics(testbed):
    """Ping is the only traffic: no IPv6 router solicitations or the like may be mistaken for it, so at least, not exactly."""
    def read(side):
        folder = f"/sys/class/net/{side.netdev}/statistics"
        values = testbed.run(f"cd {folder}; cat tx_packets tx_bytes rx_packets rx_bytes", side)
        return [int(value) for value in values.split()]

    def roce(side):
        return [testbed.counter(side, name) for name in ("tx_packets", "rx_packets", "tx_bytes", "rx_bytes")]

    before = [read(side) for side in testbed.sides]
    testbed.run(f"ping -n -q -c 100 -i 0.005 -s 1000 {testbed.server.address}")
    after = [read(side) for side in testbed.sides]
    for old, new in zip(before, after):
        packets, octets = new[0] - old[0], new[1] - old[1]
        expect(100 <= packets <= 120 and 104200 <= octets <= 110000, f"sent: {packets} packets, {octets} bytes")
        packets, octets = new[2] - old[2], new[3] - old[3]
        expect(100 <= packets <= 120 and 104200 <= octets <= 110000, f"received: {packets} packets, {octets} bytes")
    sent, received = roce(testbed.client), roce(testbed.server)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", 10240, 100)
    sent = [new - old for new, old in zip(roce(testbed.client), sent)]
    received = [new - old for new, old in zip(roce(testbed.server), received)]
    # 100 messages of 10 packets each way, and the acknowledgements.
    expect(1000 <= sent[0] <= 3000 and sent[2] >= 1024000, f"RoCE sent: {sent}")
    expect(1000 <= received[1] <= 3000 and received[3] >= 1024000, f"RoCE received: {received}")


def port_state(testbed, side):
    return testbed.run(f"rdma link show {side.device}/1", side)


def set_link(testbed, number, up):
    """Plug the cable of HCA `number` in or out."""
    testbed.guest.qmp("set_link", name=f"h{number}", up=up)


@netdev_test("cable pulled and plugged in again", expected_log=(r"link (becomes ready|is (down|up))",),
             debug_tier=GATE)
def cable(testbed):
    side = testbed.client
    watch = testbed.start(f"stdbuf -oL ibv_asyncwatch -d {side.device}", side)
    watch.wait_for("async event FD")
    try:
        set_link(testbed, 1, False)
        testbed.wait_until(lambda: "state DOWN" in port_state(testbed, side), "the port down")
        expect(testbed.run(f"cat /sys/class/net/{side.netdev}/carrier", side).strip() == "0", "the carrier is on")
        expect("PORT_DOWN" in testbed.run(f"ibv_devinfo -d {side.device}", side), "ibv_devinfo does not tell")
        expect("state ACTIVE" in port_state(testbed, testbed.server), "the other port is down too")
        lost = testbed.try_run(f"ping -n -c 1 -W 1 {testbed.server.address}")
        expect(lost.status != 0, "a ping was answered over a pulled cable")
    finally:
        set_link(testbed, 1, True)
    testbed.wait_until(lambda: "state ACTIVE" in port_state(testbed, side), "the port up")
    expect(testbed.run(f"cat /sys/class/net/{side.netdev}/carrier", side).strip() == "1", "the carrier is off")
    testbed.wait_until(lambda: "PORT_ACTIVE" in watch.output, f"the event of the port up; seen: {watch.output!r}")
    expect("PORT_ERR" in watch.output, f"no event of the port down: {watch.output!r}")
    watch.kill()
    watch.wait(10)
    testbed.run(f"ping -n -c 2 -i 0.05 -W 10 {testbed.server.address}")
    testbed.await_gids(side)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", 100000, 20)


@netdev_test("cable pulled under traffic", expected_log=(r"link (becomes ready|is (down|up))",))
def cable_under_traffic(testbed):
    """A short cut is bridged by retransmission; the data is right."""
    port = testbed.next_port()
    options = f"-c -s 1000003 -n 1500 -m 4096 -p {port}"
    server = testbed.start(f"ibv_rc_pingpong -d {testbed.server.device} -g {testbed.server.gid('ipv4')} {options}",
                           testbed.server)
    testbed.wait_listening(port, testbed.server, server, "tcp")
    before = testbed.counter(testbed.client, "tx_packets")
    client = testbed.start(f"ibv_rc_pingpong -d {testbed.client.device} -g {testbed.client.gid('ipv4')} {options} "
                           f"{testbed.server.address}")
    testbed.wait_until(lambda: testbed.counter(testbed.client, "tx_packets") > before + 1000, "traffic")
    set_link(testbed, 1, False)
    set_link(testbed, 1, True)
    for end in (client, server):
        result = succeeded("ibv_rc_pingpong", end.wait(testbed.left(60)))
        expect("invalid data" not in result.output and "1500 iters" in result.stdout, result.output[-400:])
    testbed.wait_until(lambda: "state ACTIVE" in port_state(testbed, testbed.client), "the port up")
    testbed.await_gids(testbed.client)


@netdev_test("interface set down and up")
def interface_down(testbed):
    side = testbed.client
    testbed.run(f"ip link set {side.netdev} down", side)
    try:
        testbed.wait_until(lambda: "state DOWN" in port_state(testbed, side), "the port down")
    finally:
        testbed.run(f"ip link set {side.netdev} up", side)
    testbed.wait_until(lambda: "state ACTIVE" in port_state(testbed, side), "the port up")
    testbed.run(f"ping -n -c 2 -i 0.05 -W 10 {testbed.server.address}")
    testbed.await_gids(side)
    pingpong(testbed, "ibv_rc_pingpong", "link-local", "-m 1024", 100000, 20)


@netdev_test("MTU changed")
def mtu(testbed):
    @contextlib.contextmanager
    def set_to(value):
        for side in testbed.sides:
            testbed.run(f"ip link set {side.netdev} mtu {value}", side)
        try:
            yield
        finally:
            for side in testbed.sides:
                testbed.run(f"ip link set {side.netdev} mtu {MTU}", side)

    for value, active in ((1500, 1024), (576, 256), (2200, 2048)):
        with set_to(value):
            said = testbed.run(f"ibv_devinfo -d {testbed.client.device}")
            expect(re.search(rf"active_mtu:\s+{active} ", said), said)
            testbed.run(f"ping -n -c 3 -i 0.02 -s {value - 28} -M do {testbed.server.address}")
            pingpong(testbed, "ibv_rc_pingpong", "ipv4", f"-m {active}", 100000, 20)
    for value in (67, 65536):
        result = testbed.try_run(f"ip link set {testbed.client.netdev} mtu {value}")
        expect(result.status != 0, f"an MTU of {value} was taken")
    said = testbed.run(f"ibv_devinfo -d {testbed.client.device}")
    expect(re.search(r"active_mtu:\s+4096 ", said), said)


@netdev_test("VLAN: ping and RDMA")
def vlan(testbed, more=""):
    """more: options of the pingpong."""
    client, server = sides = [testbed.client, testbed.server]
    addresses = ("10.10.5.1", "10.10.5.2")
    for side, address in zip(sides, addresses):
        testbed.run(f"ip link add link {side.netdev} name v5 type vlan id 5 && ip address add {address}/24 dev v5 && "
                    "ip link set v5 up", side)
    try:
        testbed.run(f"ping -n -c 5 -i 0.02 -W 5 {addresses[1]}")
        gids = [gid_of(testbed, side, address) for side, address in zip(sides, addresses)]
        port = testbed.next_port()
        options = f"-c -m 4096 -s 100003 -n 200 -p {port} {more}"
        ends = testbed.pair(f"ibv_rc_pingpong -d {server.device} -g {gids[1]} {options}",
                            f"ibv_rc_pingpong -d {client.device} -g {gids[0]} {options} {addresses[1]}", port)
        expect(all("200 iters" in end.stdout and "invalid" not in end.output for end in ends), ends[1].output)
        port = testbed.next_port()
        testbed.pair(f"rping -s -a {addresses[1]} -p {port} -C 20 -V", f"rping -c -a {addresses[1]} -p {port} -C 20 -V",
                     port)
    finally:
        for side in sides:
            testbed.run("ip link del v5", side)


def gid_of(testbed, side, address):
    """Wait for the one GID of an address; its index."""
    def find():
        return [index for index, gid in testbed.roce_gids(side).items() if gid == mapped(address)]

    found = testbed.wait_until(find, f"a GID of {address}")
    expect(len(found) == 1, f"GIDs of {address}: {found}")
    return found[0]


@netdev_test("address added and removed")
def address_changes(testbed):
    """The GID table follows the interface's addresses, and the first address keeps working."""
    side = testbed.client
    testbed.run(f"ip address add 10.10.0.77/24 dev {side.netdev}", side)
    try:
        index = gid_of(testbed, side, "10.10.0.77")
        port = testbed.next_port()
        testbed.pair(f"ibv_rc_pingpong -d {testbed.server.device} -g {testbed.server.gid('ipv4')} "
                     f"-c -s 50000 -n 50 -p {port}",
                     f"ibv_rc_pingpong -d {side.device} -g {index} -c -s 50000 -n 50 -p {port} "
                     f"{testbed.server.address}", port)
    finally:
        testbed.run(f"ip address del 10.10.0.77/24 dev {side.netdev}", side)
    testbed.wait_until(lambda: mapped("10.10.0.77") not in testbed.roce_gids(side).values(), "the GID gone")
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", 50000, 20)


@netdev_test("tcpdump sees frames of others only when promiscuous")
def promiscuous(testbed):
    """A frame to a MAC that is nobody's reaches the interface with promiscuous mode, and only with it."""
    side, other = testbed.client, testbed.server
    send = ("python3 -c \"import socket; s=socket.socket(socket.AF_PACKET, socket.SOCK_RAW); "
            f"s.bind(('{other.netdev}', 0)); "
            "[s.send(bytes.fromhex('020000000099020000000001') + b'\\x88\\xb5' + b'x' * 50) for _ in range(3)]\"")
    for option, count in (("-p", 0), ("", 3)):
        dump = testbed.start(f"tcpdump {option} -n -U -w /tmp/dump.pcap -i {side.netdev} ether proto 0x88b5 or arp",
                             side)
        dump.wait_for("listening on")
        testbed.run(send, other)
        # What comes later has arrived: so has, or never will, what was sent before.
        testbed.run(f"ip neighbour flush dev {other.netdev}; ping -n -c 1 -W 5 {side.address}", other)
        testbed.wait_until(lambda: "ARP" in testbed.run("tcpdump -n -r /tmp/dump.pcap arp 2>/dev/null"), "an ARP frame")
        dump.kill()
        dump.wait(10)
        seen = testbed.run("tcpdump -n -r /tmp/dump.pcap ether proto 0x88b5 2>/dev/null").count("0x88b5")
        expect(seen == count, f"tcpdump {option} saw {seen} frames, expected {count}")
