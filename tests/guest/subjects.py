# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests are run on: our HCA, or the kernel's rxe to try the tests themselves.

rxe is only ever used when it is asked for by name. It shows whether a judge
passes on a known implementation; a failure there is not ours.
"""

from hghca_lib import accel, guest, machine

from framework import CACHE, FAULTS, FOUR, IOMMU, LINK, VMS, WEATHER, Failure, Side
from recorder import MAX_BYTES

CONFIGS = {
    LINK: {"hcas": 2},
    FOUR: {"hcas": 4},
    VMS: {"guests": 2},
    IOMMU: {"hcas": 2, "iommu": True},
    # The MAD layer allocates each of its receives by itself: all alike, and a probe may fail at each.
    FAULTS: {"hcas": 2, "arguments": "ib_core.recv_queue_size=64"},
    CACHE: {"hcas": 2, "hca_options": "cache-entries=4"},
    WEATHER: {"hcas": 2, "hca_options": "fault-seed=7,faults=drop rate=1% count=30 frames=roce; delay rate=1% us=200"},
}


class Hghca:
    """Two HCAs of one guest on one link, or one in each of two guests."""
    name = "hghca"
    machines = tuple(CONFIGS)

    def boot(self, setup, kind, share):
        config = machine.Config(share=str(share), accel=accel.choose(setup), **CONFIGS[kind])
        config.hca_options = ",".join(filter(None, [f"pcap-size={MAX_BYTES}", config.hca_options]))
        return guest.boot(setup, config)

    def sides(self, rig):
        first = Side("hghca0", "10.10.0.1", rig.guests[0])
        if len(rig.guests) == 2:
            return first, Side("hghca0", "10.10.0.2", rig.guests[1])
        return first, Side("hghca1", "10.10.0.2", rig.guests[0], netns="b")


RXE_SETUP = """
set -e
modprobe rdma_rxe
ip link add veth0 type veth peer name veth1
ip link set veth0 mtu 4200 up
ip link set veth1 mtu 4200 up
ip address add 10.10.0.1/24 dev veth0
rdma link add rxe0 type rxe netdev veth0
"""


class Rxe:
    """rxe talking to itself: it knows no network namespaces in this kernel."""
    name = "rxe"
    machines = (LINK,)

    def boot(self, setup, kind, share):
        return guest.boot(setup, machine.Config(hcas=0, share=str(share), accel=accel.choose(setup)))

    def sides(self, rig):
        result = rig.guest.run(RXE_SETUP)
        if result.status:
            raise Failure(f"rxe cannot be set up: {result.output}")
        side = Side("rxe0", "10.10.0.1", rig.guest)
        return side, side


SUBJECTS = {subject.name: subject for subject in (Hghca(), Rxe())}
