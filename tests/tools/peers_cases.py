# SPDX-License-Identifier: GPL-2.0-or-later
"""The matrix of the suite `peers`: README.md has it, and each pair and direction has its tests."""

import collections
import subprocess
import sys

from readme_cases import GUEST
from tool import same

from hghca_lib import machine, peers, repo

sys.path.append(str(GUEST / "lib"))
import relay  # noqa: E402


def test_peers_matrix():
    """README.md has the matrix of the devices that talk to each other"""
    same(peers.markdown() in repo.path("README.md").read_text(), True, f"the matrix is not\n{peers.markdown()}")


def test_peers_kinds():
    """Each kind of device with a link is in the matrix, beside rxe"""
    same([*peers.KINDS], [*machine.DEVICES, peers.RXE], "kinds")


def listed(tier):
    argv = [sys.executable, GUEST / "run", "--list", "--suite", "peers", "--tier", tier]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()


def test_peers_tests():
    """Each two kinds have a test in the gate, and each direction of them its tests with a good and with a bad link"""
    kinds = ["hghca", "hghca-base", "rsnic", "ernic", "etrnic", "rxe"]
    pairs = [f"peers: {one} and {other}: pingpong with data"
             for number, one in enumerate(kinds) for other in kinds[number:]]
    same(len(pairs), 21, "pairs")
    same(sorted(listed("gate")), sorted(pairs), "tests of the gate")
    ways = [f"peers: {one} asks {other}" for one in kinds for other in kinds]
    bad = [f"{way}, packets lost and overtaken" for way in ways]
    same(sorted(listed("all")), sorted([*pairs, *ways, *bad]), "all tests")


def test_peers_operations():
    """An ETRNIC receives SENDs alone, and sends WRITEs and READs"""
    same(peers.operations("hghca", "etrnic"), ["SEND"], "to an ETRNIC")
    same(peers.operations("etrnic", "hghca"), ["SEND", "WRITE", "READ"], "of an ETRNIC")
    same([peers.manager("ernic", "rxe"), peers.manager("etrnic", "rxe"), peers.manager("rxe", "etrnic")],
         ["rping", "ucmatose", "ucmatose"], "programs of the CM")


def test_peers_halves():
    """A link that is divided has the HCAs behind a number, and rxe's adapter, on the second hub"""
    config = machine.Config(devices=["hghca", "ernic", "hghca", "ernic"], divided=2, virtio=1)
    hubs = collections.defaultdict(list)
    for word in machine.network_arguments(config, 1, []):
        if word.startswith("hubport,"):
            hub, name = (part.partition("=")[2] for part in word.split(",")[1:])
            hubs[hub].append(name)
    # 6 and 7 are the adapters behind the ERNICs.
    same(dict(hubs), {"1": ["h1", "h2"], "100": ["h3", "h4", "h5"], "3": ["e2", "h6"], "5": ["e4", "h7"]}, "hubs")


def packet(qpn, number, ethertype=0x0800, port=4791):
    """A frame whose last byte is the number: IPv4 with UDP to the port, and a BTH to the QP."""
    ip = bytes([0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, *bytes(10)])
    udp = bytes(2) + port.to_bytes(2) + bytes(4)
    return bytes(12) + ethertype.to_bytes(2) + ip + udp + bytes(5) + qpn.to_bytes(3) + bytes(3) + bytes([number])


def forwarded(frames, loss, reordering):
    """The last bytes of what a way of the relay forwards, and its counts."""
    way, counts = relay.Way(None, None, 1), collections.Counter()
    for frame in frames:
        way.take(frame, loss, reordering, counts)
    return [way.waiting[at] for at in range(4 + len(frames[0]) - 1, len(way.waiting), 4 + len(frames[0]))], counts


def test_peers_relay():
    """The relay of the suite loses and holds back packets to the QPs of programs, and nothing else"""
    same(forwarded([packet(2, 1), packet(3, 2)], 1, 0), ([], {"packets": 2, "lost": 2}), "all lost")
    others = [packet(1, 1), packet(2, 2, ethertype=0x0806), packet(2, 3, port=4790)]
    passed, counts = forwarded(others, 1, 0)
    same((passed, +counts), ([1, 2, 3], {}), "QP 1, ARP and another port")
    mixed = [packet(2, 1), *(packet(1, number) for number in (2, 3, 4, 5))]
    passed, counts = forwarded(mixed, 0, 1)
    same(passed, [2, 3, 4, 1, 5], "three overtake one")
    same((counts["held"], counts["overtaken"]), (1, 1), "counts")
