# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: subcommands, their options, exit statuses."""

import argparse
import importlib.util
import re
import signal
import sys

from . import coverage, debug_kernel, demo, export, generated, lines, machine, qemu, repo, run, setup, suites, tiers, top as top_, userland
from .ci import command as ci
from .errors import ToolError, UsageError

STATUS_FAILED, STATUS_USAGE, STATUS_INTERRUPTED = 1, 2, 130
# What --kernel takes.
KERNELS = "|".join(["stock", *debug_kernel.RECIPES, "LINE", "BZIMAGE"])
EXEC_EPILOG = """\
CMD runs as root in the first guest; its output is passed through and its status is the exit
status. A single argument is given to the shell of the guest. Other statuses: 124 the time limit
passed, 125 the guest could not be set up or died, 2 wrong arguments.

One guest (the default): hghca0 has 10.10.0.1, hghca1 has 10.10.0.2 in the network namespace b:
  tools/hghca exec -- ibv_devinfo
  tools/hghca exec -- 'ip netns exec b ibv_rc_pingpong -d hghca1 -g 1 & sleep 1; ibv_rc_pingpong -d hghca0 -g 1 10.10.0.2'

--kernel <tree>/arch/x86/boot/bzImage: the driver is built for that tree, too. The kernel needs what
it takes to boot and run without modules: virtio (PCI, block, console), ext4, the RDMA core and its
user access, the connection manager; 9p for --share.

Several guests, guest N at 10.10.0.N; commands run at the same time, the output lines carry the
number of their guest, the first status that is not 0 is the exit status:
  tools/hghca exec --vms 2 --on 2 -- ip address
  tools/hghca exec --vms 2 --on 1 -- ping -c 3 10.10.0.2 --on 2 -- sleep 5
"""
TOP_EPILOG = """\
Without a SOCKET, the guest that `tools/hghca shell`, `exec`, `demo` or `test` runs. Any other QEMU listens with:
  qemu-system-x86_64 -qmp unix:SOCKET,server=on,wait=off ...
"""
EXPORT_EPILOG = """\
The tree is only read. It must be of the version that the drivers or the providers are written for, or of a newer one:
  tools/hghca export linux ~/linux --output /tmp/series
  git -C ~/linux am --empty=drop /tmp/series/*.patch

  tools/hghca export rdma-core ~/rdma-core --output /tmp/providers
  git -C ~/rdma-core am --empty=drop /tmp/providers/*.patch
"""
CI_EPILOG = """\
The tree is only read; the build is kept in the cache, so that the next run compiles what has changed.
  tools/hghca ci ~/linux
  tools/hghca ci ~/linux --plan ulps --debug --baseline yesterday/results.json

In a tree of git, the first commit that breaks a test:
  git bisect start BAD GOOD
  git bisect run CHECKOUT/tools/hghca ci .

Exit status: 0 all is well, 1 a test fails (with --baseline: a test that did not fail there), 125 the tree cannot be
tested, 2 wrong arguments.
"""


def main(argv):
    """Run the tool; the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    try:
        return dispatch(argv)
    except UsageError as error:
        print(f"hghca: {error}", file=sys.stderr)
        return STATUS_USAGE
    except ToolError as error:
        print(f"hghca: {error}", file=sys.stderr)
        return run.STATUS_TOOL_FAILED if argv[0] in ("exec", "shell") else STATUS_FAILED
    except KeyboardInterrupt:
        print("hghca: interrupted", file=sys.stderr)
        return STATUS_INTERRUPTED


def dispatch(argv):
    options, groups = split_groups(argv)
    parsed = parser().parse_args(options)
    if groups and parsed.command != "exec":
        raise UsageError(f"{parsed.command} takes no command after --", "use `tools/hghca exec -- CMD...`")
    parsed.groups = groups
    qemu.choose(getattr(parsed, "qemu", None))
    return parsed.do(parsed)


def split_groups(argv):
    """Split the options from the commands: [(guest number, command)], each after `[--on N] --`."""
    if "--" not in argv:
        return argv, []
    first = argv.index("--")
    options, rest = argv[:first], argv[first + 1:]
    number = 1
    if len(options) >= 2 and options[-2] == "--on":
        number = guest_number(options[-1])
        options = options[:-2]
    groups, command = [], []
    while rest:
        if len(rest) >= 3 and rest[0] == "--on" and rest[1].isdigit() and rest[2] == "--":
            groups.append((number, command))
            number, command, rest = guest_number(rest[1]), [], rest[3:]
        else:
            command.append(rest.pop(0))
    return options, [*groups, (number, command)]


def guest_number(text):
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"--on takes the number of a guest, from 1; not {text!r}")
    return int(text)


class Version(argparse.Action):
    """Print the version and end; the file is read only then."""

    def __call__(self, parser, namespace, values, option_string=None):
        print(f"hghca {repo.path('VERSION').read_text().strip()}")
        parser.exit()


def parser():
    top = argparse.ArgumentParser(prog="hghca", description="JingZhao HCA for Linux: set up, run, test.")
    top.add_argument("--version", action=Version, nargs=0, help="print the version")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name, do, text, **more):
        command = commands.add_parser(name, help=text, description=text, **more)
        command.set_defaults(do=do)
        return command

    prepare = add("setup", do_setup, "build everything that is missing: QEMU, driver, provider, guest")
    prepare.add_argument("--kernel", choices=[*debug_kernel.RECIPES, *lines.names(), lines.NEWEST],
                         help="also this kernel, and its driver")
    add_userland(prepare)
    add_qemu_option(prepare)
    shown = add("demo", demo.main, "boot a guest with two HCAs and show RDMA between them")
    shown.add_argument("--kernel", default="stock", metavar=KERNELS,
                       help="the guest's kernel, as for exec")
    add_userland(shown)
    add_qemu_option(shown)
    execute = add("exec", run.execute, "boot a guest and run a command in it", epilog=EXEC_EPILOG,
                  formatter_class=argparse.RawDescriptionHelpFormatter,
                  usage="hghca exec [options] [--on N] -- CMD... [--on N -- CMD...]...")
    add_guest_options(execute)
    execute.add_argument("--timeout", type=positive_number, default=600, metavar="S",
                         help="kill CMD after S seconds (default 600)")
    shell = add("shell", run.shell, "boot a guest and open a shell in it")
    add_guest_options(shell)
    shell.add_argument("--on", type=int, default=1, metavar="N", help="the guest to open it in (default 1)")
    top_.add_options(add("top", top_.main, "show what the devices of a running guest do, again and again",
                         epilog=TOP_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter))
    test = add("test", suites.main, "run the tests of the gate, or all tests of the named suites")
    test.add_argument("suites", nargs="*", metavar="SUITE", help="folders below tests/ (default: all of the tier)")
    tier = test.add_mutually_exclusive_group()
    for name, text in ((tiers.QUICK, "only tests that take minutes, for use after an edit"),
                       (tiers.GATE, "the tests that a change must pass (default without SUITE)"),
                       (tiers.ALL, "every test: hours (default with SUITE)")):
        tier.add_argument(f"--{name}", dest="tier", action="store_const", const=name, help=text)
    add_qemu_option(test)
    test.add_argument("--junit", metavar="FILE", help="also write the results to this file, as JUnit XML")
    add("pages", generated.main, "write the documents that are made from the tables of include/")
    export.add_options(add("export", export.main, "write a series of patches: drivers for Linux, or providers for rdma-core",
                           epilog=EXPORT_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter))
    tested = add("ci", ci.main, "build a kernel's tree, boot it on RDMA devices, run a plan of tests",
                 epilog=CI_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    ci.add_options(tested)
    add_qemu_option(tested)
    coverage.add_options(add("coverage", coverage.main, "report which lines of core and driver the tests reach"))
    if importlib.util.find_spec("hghca_lib.bench"):
        from . import bench
        bench.add_options(add("bench", bench.main, "measure the HCA, rxe and memcpy side by side"))
    return top


def add_guest_options(command):
    command.add_argument("--vms", type=count, default=1, metavar="N", help="guests on one link (default 1)")
    command.add_argument("--link", choices=machine.LINKS, default=machine.SOCKET,
                         help="what connects the guests: a socket of the host (default), or memory that two guests with one HCA "
                              "each share")
    command.add_argument("--hcas", type=count_or_none, metavar="N",
                         help="HCAs in each guest (default 2 in a single guest, else 1)")
    command.add_argument("--device", action="append", choices=machine.KINDS, metavar="KIND", default=[],
                         help=f"one more device of each guest, in place of --hcas: {', '.join(machine.KINDS)}; hghca-base "
                              "has nothing beyond the JingZhao document, and a network adapter beside it; rsnic is the device of the "
                              "RSNIC document; ernic and etrnic have a network adapter beside them; loopback is no "
                              "HCA")
    command.add_argument("--kernel", default="stock", metavar=KERNELS,
                         help="the guest's kernel: Debian's, one with the kernel's own checkers (built when first "
                              f"asked for; of Linux {lines.STOCK} if its name has no line), Debian's of a line "
                              f"({', '.join(lines.names())}; fetched when first asked for), the {lines.NEWEST} "
                              "that Debian has, or <tree>/arch/x86/boot/bzImage")
    add_userland(command)
    command.add_argument("--modules", metavar="DIR", help="modules of the BZIMAGE: its folder lib/modules/<release>")
    add_qemu_option(command)
    command.add_argument("--memory", type=memory, default="2G", metavar="M", help="of each guest (default 2G)")
    command.add_argument("--share", metavar="DIR", help="folder to appear as /share, read-write")
    command.add_argument("--dmesg", metavar="FILE", help="where the kernel log goes (guest N > 1: FILE.N)")
    command.add_argument("--qemu-arg", action="append", default=[], metavar="ARG",
                         help="one more argument for QEMU; may be repeated; write --qemu-arg=-device")


def add_userland(command):
    command.add_argument("--userland", choices=userland.NAMES, default=userland.STOCK,
                         help=f"the guest's rdma-core: Debian's, or {userland.NEWEST} with its programs and pyverbs (built when "
                              "first asked for)")


def add_qemu_option(command):
    command.add_argument("--qemu", metavar=qemu.CHOICES,
                         help=f"build the device in this version of QEMU (default {qemu.STOCK}; {', '.join(qemu.SUITES)}: "
                              "fetched when first asked for), or in that of a source package or archive")


def count(text):
    if not text.isdigit() or not 1 <= int(text) <= 8:
        raise argparse.ArgumentTypeError("expected a number from 1 to 8")
    return int(text)


def count_or_none(text):
    if not text.isdigit() or int(text) > 8:
        raise argparse.ArgumentTypeError("expected a number from 0 to 8")
    return int(text)


def positive_number(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError("expected a number of seconds")
    return value


def memory(text):
    if not re.fullmatch(r"[1-9]\d*[MG]?", text):
        raise argparse.ArgumentTypeError("expected a size such as 2G or 512M")
    return text


def guest_config(options):
    """The machine.Config of the guest options."""
    if options.device and options.hcas is not None:
        raise UsageError("--device and --hcas both say how many HCAs there are", "give one of them")
    config = machine.Config(guests=options.vms, hcas=options.hcas, devices=options.device, link=options.link,
                            memory=options.memory, share=options.share, serial=options.dmesg,
                            qemu_args=tuple(options.qemu_arg), kernel=chosen_kernel(options), userland=options.userland,
                            modules=options.modules)
    if config.link == machine.SHARED and not config.can_share():
        raise UsageError("--link shm connects two guests with one HCA each, of the kind "
                         f"{' or '.join(machine.SHARING)}", "give --vms 2, and one --device or none")
    return config


def chosen_kernel(options):
    """The kernel of the options as setup.make takes it: None for the stock kernel."""
    return None if options.kernel in ("stock", lines.STOCK) else options.kernel


def do_setup(options):
    setup.make(verbose=True, kernel=chosen_kernel(options), userland=options.userland)
    return 0
