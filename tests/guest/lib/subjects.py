# SPDX-License-Identifier: GPL-2.0-or-later
"""The subjects of the tests: the HCA, or the kernel's rxe or siw to check the tests themselves.

rxe and siw run alone only on request, by their names. They show whether a test passes on a
known implementation; a failure there is not a failure of the HCA. The machines
INTEROP, BESIDE and their like have rxe as the HCA's peer.
"""

import contextlib

from hghca_lib import accel, guest, machine, pair

from framework import (BASE, BASE_RXE, BESIDE, CACHE, DUAL, ERNIC, ERNIC_BASE, ERNIC_PAUSES, ERNIC_RXE, ERNIC_VMS, ETRNIC,
                       ETRNIC_VMS, FAULTS, FOUR, IMPAIRMENT, INTEROP, IOMMU, LINK, MIXED, PAIRED, PAUSES, PEERS, RSNIC,
                       RSNIC_BESIDE, RSNIC_FULL, RSNIC_PAIRED, RXES, SHARED, VMS, Failure, Side)
from recorder import SMALL_BYTES
from relay import Relay

CONFIGS = {
    # A BAR can be mapped while its driver uses it.
    LINK: {"hcas": 2, "arguments": "iomem=relaxed", "qemu_args": ("-device", "rdma-loopback,id=loop1")},
    FOUR: {"hcas": 4},
    VMS: {"guests": 2},
    SHARED: {"guests": 2, "link": "shm"},
    DUAL: {"guests": 2, "hcas": 2},
    INTEROP: {"guests": 2, "hcas": (1, 0), "virtio": (0, 1)},
    BESIDE: {"hcas": 1, "virtio": 1},
    # Loopback controllers: one with all extensions, one without interrupts, one without any.
    IOMMU: {"hcas": 2, "iommu": True,
            "qemu_args": ("-device", "rdma-loopback,id=loop1", "-device", "rdma-loopback,id=loop2,extensions=0x37",
                          "-device", "rdma-loopback,id=loop3,extensions=0")},
    # The MAD layer allocates each of its receives separately: all are equal, and a probe may fail at each.
    FAULTS: {"hcas": 2, "arguments": "ib_core.recv_queue_size=64"},
    CACHE: {"hcas": 2, "hca_options": "cache-entries=4"},
    # A sender's turn ends with its slice. The data of one turn must fit into the other half of the buffer.
    PAUSES: {"hcas": 2, "hca_options": "roce-drain=500,roce-buffer=1M,slice=64"},
    BASE: {"devices": ["hghca-base", "hghca-base"]},
    PAIRED: {"hcas": 2, "paired": True},
    MIXED: {"guests": 2, "devices": (["hghca-base", "rsnic"], ["hghca"])},
    BASE_RXE: {"guests": 2, "devices": (["hghca-base", "rsnic"], []), "virtio": (0, 1)},
    RSNIC: {"devices": ["rsnic", "rsnic"],
            "qemu_args": ("-set", "device.hca2.cache-entries=16", "-set", "device.hca2.init-delay=200")},
    RSNIC_PAIRED: {"devices": ["rsnic", "rsnic"], "paired": True},
    RSNIC_FULL: {"devices": ["rsnic", "hghca"]},
    RSNIC_BESIDE: {"devices": ["rsnic"], "virtio": 1},
    ERNIC: {"devices": ["hghca", "ernic"]},
    ERNIC_BASE: {"devices": ["hghca", "ernic"], "iommu": True, "qemu_args": ("-global", "ernic.extensions=0")},
    # As with PAUSES, one turn of a sender fits into what is left of the buffer. An ERNIC sends what the kernel of a
    # checked build posts for it, which is slow.
    ERNIC_PAUSES: {"devices": ["hghca", "ernic"], "arguments": "iomem=relaxed",
                   "hca_options": "roce-drain=200,roce-buffer=1M,slice=16",
                   "qemu_args": ("-global", "ernic.roce-drain=500")},
    ETRNIC: {"devices": ["hghca", "etrnic"]},
    PEERS: {"devices": [*machine.DEVICES] * 2, "divided": len(machine.DEVICES), "virtio": 1},
    ERNIC_VMS: {"guests": 2, "devices": (["hghca"], ["ernic"])},
    ETRNIC_VMS: {"guests": 2, "devices": (["hghca"], ["etrnic"])},
    # In these two the HCA captures the frames.
    ERNIC_RXE: {"guests": 2, "devices": (["hghca"], ["ernic"]), "virtio": (1, 0)},
    RXES: {"guests": 2, "hcas": (1, 0), "virtio": (1, 1)},
    IMPAIRMENT: {"hcas": 2,
                 "hca_options": "fault-seed=7,faults=drop rate=1% count=30 frames=roce; delay rate=1% us=200"},
}


# rxe does not support network namespaces in this kernel, so it uses the first one.
RXE_ON_VIRTIO = """
set -e
modprobe -a virtio_net rdma_rxe
for i in $(seq 100); do
    # The adapters in other namespaces are not shown.
    interface=$(ls -d /sys/bus/virtio/drivers/virtio_net/virtio*/net/* 2>/dev/null) && break
    sleep 0.05
done
interface=${{interface##*/}}
ip link set $interface mtu 4200 up
ip address add {address}/24 dev $interface
rdma link add rxe0 type rxe netdev $interface
"""
# Both HCAs are on one link: each answers for its own address alone.
SECOND_HERE = """
set -e
echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore
echo 2 > /proc/sys/net/ipv4/conf/all/arp_announce
interface=$(ip netns exec b ls /sys/class/infiniband/hghca1/device/net)
ip netns attach first 1
ip netns exec b rdma dev set hghca1 netns first
ip -n b link set $interface netns first
ip link set $interface mtu 4200 up
ip address add 10.11.0.{number}/24 dev $interface
ip netns del b
"""
HCA_AWAY = """
set -e
interface=$(ls /sys/class/infiniband/hghca0/device/net)
ip netns add {space}
ip netns attach first 1
ip -n {space} link set lo up
ip link set $interface netns {space}
rdma dev set hghca0 netns {space}
ip -n {space} link set $interface mtu 4200 up
ip -n {space} address add 10.10.0.1/24 dev $interface
"""


def prepare_rxe(guest, address):
    prepare(guest, RXE_ON_VIRTIO.format(address=address), "rxe")
    return Side("rxe0", address, guest, yields=True)


def prepare(guest, script, what):
    result = guest.run(script)
    if result.status:
        raise Failure(f"{what} cannot be set up: {result.output}")


class Hghca:
    """Two HCAs of one guest on one link, or one in each of two guests, or one and rxe as its peer."""
    name = "hghca"
    machines = tuple(CONFIGS)

    relay = None

    @contextlib.contextmanager
    def boot(self, setup, kind, share, journal=None, **more):
        """more: of machine.Config."""
        config = machine.Config(share=str(share), accel=accel.choose(setup), **CONFIGS[kind], **more)
        config.first_options = journal.options() if journal else ""
        config.hca_options = ",".join(filter(None, [f"pcap-size={SMALL_BYTES}", config.hca_options]))
        with Relay() if config.divided else contextlib.nullcontext() as self.relay:
            config.qemu_args += self.relay.qemu_args() if self.relay else ()
            with guest.boot(setup, config) as guests:
                yield guests

    def sides(self, testbed):
        if testbed.machine == PEERS:
            return of_each_kind(testbed.guest)
        if testbed.machine == RXES:
            prepare(testbed.guest, HCA_AWAY.format(space="b"), "the HCA's namespace")
            return tuple(prepare_rxe(each, f"10.10.0.{number}") for number, each in enumerate(testbed.guests, 1))
        if testbed.machine == DUAL:
            for number, each in enumerate(testbed.guests, 1):
                prepare(each, SECOND_HERE.format(number=number), "the second HCA")
            return [Side(f"hghca{hca}", f"10.1{hca}.0.{number}", each)
                    for hca in (0, 1) for number, each in enumerate(testbed.guests, 1)]
        first = Side("hghca0", "10.10.0.1", testbed.guests[0])
        if testbed.machine in (INTEROP, BASE_RXE, BESIDE, RSNIC_BESIDE):
            second = prepare_rxe(testbed.guests[-1], "10.10.0.2")
            if testbed.machine in (BESIDE, RSNIC_BESIDE):
                prepare(testbed.guests[0], HCA_AWAY.format(space="b"), "the HCA's namespace")
                first.netns, first.yields = "b", True
            return first, second
        if testbed.machine == ERNIC_RXE:
            prepare(testbed.guest, HCA_AWAY.format(space="b"), "the HCA's namespace")
            first = prepare_rxe(testbed.guest, "10.10.0.3")
        ernic = testbed.machine in (ERNIC, ERNIC_BASE, ERNIC_PAUSES, ETRNIC, ERNIC_VMS, ETRNIC_VMS, ERNIC_RXE)
        if len(testbed.guests) == 2:
            return first, Side("ernic0" if ernic else "hghca0", "10.10.0.2", testbed.guests[1])
        return first, Side("ernic0" if ernic else "hghca1", "10.10.0.2", testbed.guests[0], netns="b")


def of_each_kind(guest_):
    """The sides of the machine PEERS: each kind on the first half of the link, each on the second one, rxe there too."""
    kinds = CONFIGS[PEERS]["devices"]
    prepare(guest_, HCA_AWAY.format(space="a"), "the first HCA's namespace")
    rxe = prepare_rxe(guest_, f"10.10.0.{len(kinds) + 1}")
    sides = [Side(name, f"10.10.0.{number}", guest_, netns=pair.SPACES[number - 1])
             for number, name in enumerate(machine.device_names(kinds), 1)]
    return [*sides, rxe]


ON_VETH = """
set -e
modprobe {module}
ip link add veth0 type veth peer name veth1
ip link set veth0 mtu 4200 up
ip link set veth1 mtu 4200 up
ip address add 10.10.0.1/24 dev veth0
rdma link add {device} type {kind} netdev veth0
"""


class Software:
    """A software device of the kernel as both ends: it does not support network namespaces in this kernel."""
    machines = (LINK,)

    def __init__(self, name, module):
        self.name = name
        self.module = module

    def boot(self, setup, kind, share, journal=None, **more):
        return guest.boot(setup, machine.Config(hcas=0, share=str(share), accel=accel.choose(setup), **more))

    def sides(self, testbed):
        device = f"{self.name}0"
        prepare(testbed.guest, ON_VETH.format(module=self.module, device=device, kind=self.name), self.name)
        side = Side(device, "10.10.0.1", testbed.guest, iwarp=self.name == SIW)
        return side, side


SIW = "siw"
SUBJECTS = {subject.name: subject for subject in (Hghca(), Software("rxe", "rdma_rxe"), Software(SIW, "siw"))}
