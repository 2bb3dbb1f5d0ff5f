# SPDX-License-Identifier: GPL-2.0-or-later
"""Wrong arguments: status 2, a sentence that says what is wrong, nothing started."""

import re
import sys
import tempfile
import warnings
from pathlib import Path
from unittest import mock

from tool import fails, hghca, holds, same

from hghca_lib import bench, cli, machine, repo


def test_no_command():
    """No command: usage"""
    fails(hghca(), 2, "usage:")


def test_version():
    """--version says the version, which is three numbers"""
    ended = hghca("--version")
    same((ended.status, ended.stdout), (0, f"hghca {repo.path('VERSION').read_text()}"))
    assert re.fullmatch(r"hghca \d+\.\d+\.\d+\n", ended.stdout), ended.stdout


def test_unknown_command():
    """An unknown command is refused"""
    fails(hghca("fly"), 2, "fly")


def test_exec_without_command():
    """exec without a command is refused"""
    fails(hghca("exec"), 2, "exec needs a command", "cure:")
    fails(hghca("exec", "--"), 2, "exec needs a command")
    fails(hghca("exec", "--vms", 2, "--on", 1, "--", "true", "--on", 2, "--"), 2, "exec needs a command")


def test_wrong_numbers():
    """Numbers out of range are refused"""
    for option, value in [("--vms", "0"), ("--vms", "nine"), ("--hcas", "-1"), ("--memory", "lots"),
                          ("--memory", "0"), ("--timeout", "0"), ("--timeout", "soon"), ("--timeout", "nan")]:
        fails(hghca("exec", f"{option}={value}", "--", "true"), 2, option)


def test_devices():
    """An unknown kind of device is refused with the kinds there are; --device and --hcas together are refused"""
    fails(hghca("exec", "--device", "connectx", "--", "true"), 2, "--device", "connectx", *machine.KINDS)
    same(machine.KINDS, ("hghca", "hghca-base", "rsnic", "ernic", "etrnic", "loopback"), "kinds")
    fails(hghca("exec", "--device", "rsnic", "--hcas", 1, "--", "true"), 2, "--device and --hcas", "give one of them")


def qemu_devices(*options):
    """The devices of the first guest by the options of exec, as (driver, properties): HCAs and other devices."""
    config = cli.guest_config(cli.parser().parse_args(["exec", *options]))
    words = machine.network_arguments(config, 1, [])
    loops = config.loopback_count(1)
    found = [words[at + 1].split(",") for at, word in enumerate(words) if word == "-device"]
    return config, [(driver, {*properties}) for driver, *properties in found] + [("rdma-loopback", set())] * loops


def test_device_order():
    """--device: the order gives the numbers of the HCAs, a base HCA has a network adapter with its address, all on one link"""
    config, devices = qemu_devices("--device", "rsnic", "--device", "loopback", "--device", "hghca-base", "--device", "hghca")
    same([(driver, sorted(properties)) for driver, properties in devices],
         [("hghca", ["id=hca1", "mac=52:54:00:12:34:01", "netdev=h1", "profile=rsnic"]),
          ("hghca", ["id=hca2", "mac=52:54:00:12:34:02", "netdev=h2", "profile=base"]),
          ("hghca", ["id=hca3", "mac=52:54:00:12:34:03", "netdev=h3"]),
          ("virtio-net-pci", ["id=virtio4", "mac=52:54:00:12:34:02", "netdev=h4"]),
          ("rdma-loopback", [])], "devices")
    ports = machine.network_arguments(config, 1, [])
    same([word for word in ports if word.startswith("hubport")], [f"hubport,hubid=1,id=h{n}" for n in range(1, 5)], "ports")
    # The guest's init gives number N the address 10.10.0.N, and the namespace that is the Nth letter.
    holds(machine.kernel_arguments(config, 1), "hghca.guest=1 hghca.guests=1 hghca.hcas=3 ", " hghca.paired=1", " hghca.loopback=1")


def test_behind_an_ernic():
    """--device ernic: its network adapter is behind it, on a hub of its own, and not on the link"""
    config, devices = qemu_devices("--device", "hghca", "--device", "ernic", "--device", "hghca-base", "--device", "etrnic")
    same([(driver, sorted(properties)) for driver, properties in devices],
         [("hghca", ["id=hca1", "mac=52:54:00:12:34:01", "netdev=h1"]),
          ("ernic", ["ethernet=e2", "id=hca2", "mac=52:54:00:12:34:02", "netdev=h2", "personality=ernic"]),
          ("hghca", ["id=hca3", "mac=52:54:00:12:34:03", "netdev=h3", "profile=base"]),
          ("ernic", ["ethernet=e4", "id=hca4", "mac=52:54:00:12:34:04", "netdev=h4", "personality=etrnic"]),
          ("virtio-net-pci", ["id=virtio5", "mac=52:54:00:12:34:02", "netdev=h5"]),
          ("virtio-net-pci", ["id=virtio6", "mac=52:54:00:12:34:03", "netdev=h6"]),
          ("virtio-net-pci", ["id=virtio7", "mac=52:54:00:12:34:04", "netdev=h7"])], "devices")
    ports = [word for word in machine.network_arguments(config, 1, []) if word.startswith("hubport")]
    same(sorted(ports), [*(f"hubport,hubid=1,id=h{n}" for n in (1, 2, 3, 4, 6)),
                         "hubport,hubid=3,id=e2", "hubport,hubid=3,id=h5",
                         "hubport,hubid=5,id=e4", "hubport,hubid=5,id=h7"], "ports")


def test_link_without_partner():
    """One HCA has a second port on its hub, which takes its frames; two need none, nor two machines that are connected directly"""
    for arguments, ports in ((["--hcas", "1"], ["hubport,hubid=1,id=h1", "hubport,hubid=1,id=u1"]),
                             (["--hcas", "2"], ["hubport,hubid=1,id=h1", "hubport,hubid=1,id=h2"])):
        config, _ = qemu_devices(*arguments)
        same([word for word in machine.network_arguments(config, 1, []) if word.startswith("hubport")], ports, "ports")
    config, _ = qemu_devices("--vms", "2")
    for number, sockets in enumerate(machine.link_guests(2), 1):
        same([word for word in machine.network_arguments(config, number, sockets) if word.startswith("hubport")], [], "ports")


def test_shared_link():
    """--link shm: an HCA in each of two guests, both with the same path and without a netdev; all else is refused"""
    config = cli.guest_config(cli.parser().parse_args(["exec", "--vms", "2", "--link", "shm", "--device", "rsnic"]))
    for number in (1, 2):
        same(machine.network_arguments(config, number, [], "/a,b/link"),
             ["-device", f"hghca,id=hca1,link=shm:/a,,b/link,mac=52:54:00:12:{0x33 + number:02x}:01,profile=rsnic"], "arguments")
    for options in ([], ["--vms", 3], ["--vms", 2, "--hcas", 2], ["--vms", 2, "--device", "ernic"], ["--vms", 2, "--hcas", 0]):
        fails(hghca("exec", *options, "--link", "shm", "--", "true"), 2, "--link shm", "--vms 2")


def test_loopback_alone():
    """--device loopback: no HCA and no link"""
    config, devices = qemu_devices("--device", "loopback", "--device", "loopback")
    same((devices, machine.network_arguments(config, 1, [])), ([("rdma-loopback", set())] * 2, []), "devices and link")
    holds(machine.kernel_arguments(config, 1), "hghca.hcas=0 ", " hghca.loopback=1")


def test_arguments_of_kernel():
    """A kernel that needs words on its command line has them, before those of the configuration"""
    setup = mock.Mock(kernel=mock.Mock(arguments="slab_debug=F"))
    setup.qemu.argv.return_value = ["qemu"]
    line = machine.arguments(machine.Config(hcas=0, arguments="quiet"), 1, setup, [], mock.Mock(), mock.Mock(), "serial", "monitor")
    holds(line[line.index("-append") + 1], " slab_debug=F quiet")


def test_devices_of_guests():
    """--device with --vms: each guest has these devices"""
    config, _ = qemu_devices("--vms", "2", "--device", "rsnic", "--device", "hghca-base")
    same([config.hca_kinds(number) for number in (1, 2)], [["rsnic", "hghca-base"]] * 2, "HCAs")
    same([config.paired_hcas(number) for number in (1, 2)], [[2], [2]], "HCAs with an adapter beside them")


def test_unknown_guest():
    """--on a guest that is not there is refused"""
    fails(hghca("exec", "--on", 2, "--", "true"), 2, "there is no such guest", "--vms 2")
    fails(hghca("exec", "--on", "x", "--", "true"), 2, "number of a guest")


def test_missing_kernel():
    """A kernel image that does not exist is refused"""
    fails(hghca("exec", "--kernel", "/nonexistent/bzImage", "--", "true"), 2, "no kernel image", "cure:")


def test_kernel_without_tree():
    """A kernel image outside its build tree is refused, since no driver can be built for it"""
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "bzImage"
        image.write_bytes(b"")
        fails(hghca("exec", "--kernel", image, "--", "true"), 125, "does not lie in the tree", "cure:")


def test_missing_share():
    """A shared folder that does not exist is refused"""
    fails(hghca("exec", "--share", "/nonexistent", "--", "true"), 2, "no folder", "cure:")


def test_log_not_writable():
    """A kernel log that cannot be written is refused"""
    fails(hghca("exec", "--dmesg", "/nonexistent/log", "--", "true"), 2, "cannot write the kernel log", "cure:")


def test_unknown_suite():
    """An unknown test suite is refused with the list of suites"""
    fails(hghca("test", "nothing"), 2, "no test suite nothing", "tools")


def test_unknown_figure():
    """A figure that the bench does not measure, or not at that size, is refused with the list of those it does"""
    fails(hghca("bench", "nothing"), 2, "there is no figure nothing", "registrations")
    fails(hghca("bench", "ib_write_bw:65"), 2, "not measured at 65 bytes", "65536")
    fails(hghca("bench", "--rounds", 2), 2, "at least 3 rounds")


def test_chosen_figures():
    """Figures are measured in their own order, once, each at the sizes asked for"""
    def taken(*names):
        return [(figure.name, list(sizes)) for figure, sizes in bench.chosen(names)]

    same(taken("registrations:65536", "ib_write_lat", "registrations:4096"),
         [("ib_write_lat", [8, 4096]), ("registrations", [4096, 65536])])
    same(taken("queue-pairs"), [("queue-pairs", [0])])
    same([name for name, _ in taken()], [figure.name for figure in bench.FIGURES])


def test_shell_without_terminal():
    """shell without a terminal is refused"""
    fails(hghca("shell"), 2, "needs a terminal", "exec")


def test_command_where_none_belongs():
    """A command after -- is refused where none belongs"""
    fails(hghca("setup", "--", "true"), 2, "takes no command")


def test_groups():
    """Commands are split into groups only at --on N --"""
    for line, wanted in [
        ("exec -- a b", (["exec"], [(1, ["a", "b"])])),
        ("exec --vms 2 --on 2 -- a", (["exec", "--vms", "2"], [(2, ["a"])])),
        ("exec --on 1 -- a --on 2 -- b -- c", (["exec"], [(1, ["a"]), (2, ["b", "--", "c"])])),
        ("exec -- a --on b", (["exec"], [(1, ["a", "--on", "b"])])),
        ("test abi", (["test", "abi"], [])),
    ]:
        same(cli.split_groups(line.split()), wanted, line)


def test_python_warnings():
    """No Python file makes the interpreter warn"""
    programs = [path for path in repo.path("tests").glob("*/run") if "python3" in path.read_text().splitlines()[0]]
    files = [repo.path("tools/hghca"), *programs, *repo.path("tools").rglob("*.py"), *repo.path("tests").rglob("*.py")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for file in files:
            compile(file.read_text(), str(file), "exec")


def test_python_version():
    """The tool runs on the Python that runs this test"""
    assert sys.version_info >= (3, 11), sys.version
