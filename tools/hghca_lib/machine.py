# SPDX-License-Identifier: GPL-2.0-or-later
"""The QEMU command line of the guests, and the wiring between them."""

import dataclasses
import socket

from . import userland

BASE = """
    -nodefaults -no-user-config -display none -nographic -no-reboot -machine q35 -smp 2
    -device virtio-rng-pci
""".split()
# With these features, kernel and C library copy and clear memory by REP MOVSB and REP STOSB, which TCG emulates byte by
# byte.
SLOW_IN_TCG = ("erms", "fsrm", "fzrm", "fsrs", "fsrc")
# Without LA57, page tables have a level less. KASAN and five levels do not go together (tools/kernel/debug.config), and
# Linux 7.3 always uses all levels that the CPU has.
WITHOUT = "la57=off"
ACCELERATORS = {
    "tcg": ["-accel", "tcg,thread=multi", "-cpu", ",".join(["max", *(f"{feature}=off" for feature in SLOW_IN_TCG), WITHOUT])],
    "kvm": ["-accel", "kvm", "-cpu", f"host,{WITHOUT}"],
}
# panic and oops end the machine immediately; KASAN, if enabled, reports more than the first error; the rest saves boot
# time in an emulated machine. The debug kernel takes seconds for 256 pairs of terminals of the old kind, which nobody
# uses.
KERNEL_ARGUMENTS = ("console=ttyS0 panic=-1 oops=panic kasan_multi_shot mitigations=off nokaslr no_timer_check "
                    "tsc=reliable nmi_watchdog=0 random.trust_cpu=on cryptomgr.notests log_buf_len=4M "
                    "rcupdate.rcu_expedited=1 net.ifnames=0 pty.legacy_count=0")
LINK_BUFFER_BYTES = 4 << 20
# The hub of the link, and that of the second half of a link that is divided; those between have an ERNIC's adapter.
HALVES = (1, 100)
# Kinds of HCA, with the properties that make them.
DEVICES = {"hghca": "", "hghca-base": "profile=base", "rsnic": "profile=rsnic", "ernic": "personality=ernic",
           "etrnic": "personality=etrnic"}
# The kinds that are QEMU's device `ernic`, which is not the HCA of the other ones and lacks their properties.
ERNICS = ("ernic", "etrnic")
# Two HCAs of these kinds can share memory as their link.
SHARING = ("hghca", "rsnic")
# An HCA of these kinds is no Ethernet adapter.
WITHOUT_ETHERNET = ("hghca-base", *ERNICS)
# A device of this kind is no HCA, and has no link.
LOOPBACK = "loopback"
KINDS = (*DEVICES, LOOPBACK)
# What connects the guests: a socket between netdevs, or memory that two HCAs share.
SOCKET, SHARED = "socket", "shm"
LINKS = (SOCKET, SHARED)
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33


@dataclasses.dataclass
class Config:
    """What to boot.

    guests:    machines on one link.
    hcas:      HCAs in each; None means 2 in a single guest and 1 in each of several. A tuple: in each by its number.
    devices:   a list of the kinds of device in each (KINDS), in place of hcas. A tuple of lists: in each by its number.
    virtio:    virtio network adapters of each on the link beside its HCAs, in the same form as hcas.
    divided:   the HCAs behind this number, and the virtio network adapters, are on a second hub; 0: there is one hub. What
               connects the two is among qemu_args.
    link:      what connects the guests (LINKS). SHARED is for two guests with one HCA each, and nothing else on the link.
    paired:    each HCA has a virtio network adapter beside it, on the same link and with the same MAC address, which can
               be the Ethernet half of its port. An HCA that is no Ethernet adapter has one in any case.
    kernel:    the same value as for setup.make: None for the stock kernel.
    userland:  as for setup.make.
    modules:   disk image with the modules of a bzImage, or None.
    memory:    in QEMU's syntax.
    share:     host folder seen as /share, or None.
    serial:    file for the serial console, which is the kernel log; None for a temporary one.
    qemu_args: further arguments for QEMU.
    hca_options: further properties of each HCA, as `name=value,...`.
    first_options: further properties of the first HCA of the first guest, which go before those.
    iommu:     put an IOMMU between the devices and memory, and have the kernel use it.
    accel:     "tcg" or "kvm".
    arguments: further words of the kernel's command line.
    """
    guests: int = 1
    hcas: int | tuple | None = None
    devices: list | tuple = ()
    virtio: int | tuple = 0
    divided: int = 0
    link: str = SOCKET
    paired: bool = False
    kernel: str | None = None
    userland: str = userland.STOCK
    modules: str | None = None
    memory: str = "2G"
    share: str | None = None
    serial: str | None = None
    qemu_args: tuple = ()
    hca_options: str = ""
    first_options: str = ""
    iommu: bool = False
    accel: str = "tcg"
    arguments: str = ""

    def hca_kinds(self, number):
        """The kinds of the HCAs of guest `number` (from 1), in their order."""
        if self.devices:
            return [kind for kind in of_guest(self.devices, number) if kind != LOOPBACK]
        if self.hcas is not None:
            return ["hghca"] * of_guest(self.hcas, number)
        return ["hghca"] * (2 if self.guests == 1 else 1)

    def hca_count(self, number):
        return len(self.hca_kinds(number))

    def loopback_count(self, number):
        """RDMA loopback controllers of guest `number` (from 1)."""
        return of_guest(self.devices, number).count(LOOPBACK) if self.devices else 0

    def paired_hcas(self, number):
        """The numbers (from 1) of the HCAs that have a network adapter beside them."""
        return [index for index, kind in enumerate(self.hca_kinds(number), 1)
                if self.paired or kind in WITHOUT_ETHERNET]

    def can_share(self):
        """Can the link be SHARED?"""
        return (self.guests == 2 and not self.virtio and not self.divided and not self.paired and
                all(len(self.hca_kinds(number)) == 1 and self.hca_kinds(number)[0] in SHARING for number in (1, 2)))

    def virtio_count(self, number):
        return of_guest(self.virtio, number)


def of_guest(setting, number):
    """The value of a setting for guest `number`; the setting is one value for all, or one for each."""
    return setting[number - 1] if isinstance(setting, tuple) else setting


def shared_arguments(config, number, memory):
    """The HCA of guest `number` (from 1), whose link is SHARED; the processes meet at the path `memory`."""
    kind, = config.hca_kinds(number)
    options = [f"mac={mac(number, 1)}", DEVICES[kind], config.hca_options, config.first_options if number == 1 else ""]
    return ["-device", ",".join(filter(None, ["hghca,id=hca1", f"link=shm:{escape(memory)}", *options]))]


def mac(number, address):
    """The MAC address of an adapter of guest `number`."""
    return f"52:54:00:12:{0x33 + number:02x}:{address:02x}"


def link_guests(count):
    """Sockets of the Ethernet link between the guests, as one list of sockets a guest.

    The first guest is the middle of a star; the others have one socket each.
    """
    sockets = [[] for _ in range(count)]
    for other in range(1, count):
        for end, owner in zip(socket.socketpair(), (0, other)):
            end.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, LINK_BUFFER_BYTES)
            end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, LINK_BUFFER_BYTES)
            sockets[owner].append(end)
    return sockets


def network_arguments(config, number, sockets, memory=None):
    """The adapters of guest `number` (from 1), HCAs first, and the backends of their ports.

    The adapter beside an ERNIC is not on the link, but behind that. What is on the link is connected by a hub, but for one
    adapter and one socket, which are connected directly.
    """
    if config.link == SHARED:
        return shared_arguments(config, number, memory)
    hcas = config.hca_kinds(number)
    paired = config.paired_hcas(number)
    kinds = hcas + ["virtio-net-pci"] * (config.virtio_count(number) + len(paired))
    # Adapters beside HCAs come last, with the addresses of these.
    addresses = [*range(1, len(kinds) + 1 - len(paired)), *paired]
    # The adapter behind each ERNIC: the number of the HCA, and its own.
    behind = {hca: len(kinds) - len(paired) + at for at, hca in enumerate(paired, 1) if hcas[hca - 1] in ERNICS}
    arguments = []
    for index, (kind, address) in enumerate(zip(kinds, addresses), 1):
        options = [f"mac={mac(number, address)}"]
        if kind in DEVICES:
            options += [DEVICES[kind], "" if kind in ERNICS else config.hca_options]
            # If a property is given twice, QEMU uses the last value.
            options += [config.first_options] if (number, index) == (1, 1) else []
            options += [f"ethernet=e{index}"] if index in behind else []
        driver, name = ("ernic" if kind in ERNICS else "hghca", "hca") if kind in DEVICES else (kind, "virtio")
        options = ",".join(filter(None, options))
        arguments += ["-device", f"{driver},id={name}{index},netdev=h{index},{options}"]
    ports = []
    for hca, adapter in behind.items():
        hub = 1 + hca
        ports += ["-netdev", f"hubport,hubid={hub},id=e{hca}", "-netdev", f"hubport,hubid={hub},id=h{adapter}"]
    on_link = [index for index in range(1, len(kinds) + 1) if index not in behind.values()]
    if len(on_link) == 1 and len(sockets) == 1:
        return [*ports, "-netdev", _stream(f"h{on_link[0]}", sockets[0]), *arguments]
    hubs = [HALVES[bool(config.divided) and addresses[index - 1] > config.divided] for index in on_link]
    for index, hub in zip(on_link, hubs):
        ports += ["-netdev", f"hubport,hubid={hub},id=h{index}"]
    for index, link in enumerate(sockets, 1):
        ports += ["-netdev", _stream(f"s{index}", link), "-netdev", f"hubport,hubid=1,id=p{index},netdev=s{index}"]
    # A hub with one port takes no frame: the adapter would wait with the first one, and with all behind it, for ever. A
    # further port, to which nothing is connected, drops them, as a link without a partner does.
    ends = hubs + [HALVES[False]] * len(sockets)
    for hub in HALVES:
        if ends.count(hub) == 1:
            ports += ["-netdev", f"hubport,hubid={hub},id=u{hub}"]
    return ports + arguments


def _stream(name, link):
    return f"stream,id={name},server=off,addr.type=fd,addr.str={link.fileno()}"


def device_names(kinds):
    """The names that the kernel gives to the RDMA devices of HCAs of these kinds."""
    drivers = ["ernic" if kind in ERNICS else "hghca" for kind in kinds]
    return [f"{driver}{drivers[:index].count(driver)}" for index, driver in enumerate(drivers)]


def kernel_arguments(config, number):
    text = f"{KERNEL_ARGUMENTS} hghca.guest={number} hghca.guests={config.guests} "
    text += f"hghca.hcas={config.hca_count(number)}"
    if any(kind in ERNICS for kind in config.hca_kinds(number)):
        text += f" hghca.devices={','.join(device_names(config.hca_kinds(number)))}"
    text += " intel_iommu=on iommu.passthrough=0" if config.iommu else ""
    text += " hghca.modules=1" if config.modules else ""
    text += " hghca.share=1" if config.share else ""
    text += " hghca.paired=1" if config.paired_hcas(number) else ""
    text += " hghca.loopback=1" if config.loopback_count(number) else ""
    return f"{text} {config.arguments}".rstrip()


def arguments(config, number, setup, sockets, port, qmp, serial, monitor, memory=None):
    """The whole command line of guest `number`.

    setup: what setup.make returned. port, qmp: this machine's ends of two
    socket pairs, inherited by QEMU. serial: file of the serial console. monitor:
    socket where QEMU listens for a QMP client. memory: where the processes meet if the link is SHARED.
    """
    config = dataclasses.replace(config, modules=config.modules or setup.kernel.modules,
                                 arguments=f"{setup.kernel.arguments} {config.arguments}".strip())
    # An IOMMU must precede the devices behind it.
    iommu = ["-device", "intel-iommu,intremap=off"] if config.iommu else []
    line = [*setup.qemu.argv(), *BASE, *ACCELERATORS[config.accel], *iommu, "-m", config.memory,
            "-kernel", str(setup.kernel.image), "-initrd", str(setup.kernel.initrd),
            "-append", kernel_arguments(config, number),
            "-drive", f"file={escape(setup.image)},format=raw,if=none,id=disk,snapshot=on,cache=unsafe",
            "-device", "virtio-blk-pci,drive=disk,addr=0x1b",
            "-drive", f"file={escape(setup.payload)},format=raw,if=none,id=payload,readonly=on",
            "-device", "virtio-blk-pci,drive=payload,addr=0x1c",
            "-device", "virtio-serial-pci,id=serial",
            "-chardev", f"socket,id=commands,fd={port.fileno()}",
            "-device", "virtserialport,chardev=commands,name=org.hghca.commands",
            "-chardev", f"socket,id=qmp,fd={qmp.fileno()}", "-mon", "chardev=qmp,mode=control",
            "-chardev", f"socket,id=monitor,path={escape(monitor)},server=on,wait=off",
            "-mon", "chardev=monitor,mode=control",
            "-chardev", f"file,id=console,path={escape(serial)}", "-serial", "chardev:console"]
    if config.modules:
        line += ["-drive", f"file={escape(config.modules)},format=raw,if=none,id=modules,readonly=on",
                 "-device", "virtio-blk-pci,drive=modules,addr=0x1d"]
    if config.share:
        line += ["-virtfs", f"local,path={escape(config.share)},mount_tag=share,security_model=none,multidevs=remap"]
    loopbacks = [word for index in range(1, config.loopback_count(number) + 1)
                 for word in ("-device", f"rdma-loopback,id=loop{index}")]
    return [*line, *network_arguments(config, number, sockets, memory), *loopbacks, *config.qemu_args]


def escape(path):
    """A path in QEMU's option syntax."""
    return str(path).replace(",", ",,")
