# SPDX-License-Identifier: GPL-2.0-or-later
"""The base of the groups of guest tests: the list of tests, the testbed they run on, the checks after each test.

A test is a function that takes a Testbed and raises Failure (or any exception)
when it finds an error. @test adds it to the list; each entry is one line of
output. After each test, passed or failed, the testbed checks that no process of
the test still runs, that the kernel's list of RDMA resources is the same as
before, and that the kernel log has no new warning.
"""

import contextlib
import dataclasses
import json
import re
import time

from hghca_lib import debug_kernel, lines, userland
from hghca_lib.guest import USUAL_PATTERN, GuestDied, GuestError
from hghca_lib.tiers import ALL, GATE, QUICK
from recorder import EVERY

LINK = "link"          # one guest, hghca0 here and hghca1 in the namespace b, one link
FOUR = "four"          # one guest, four HCAs on one link
VMS = "vms"            # two guests with one HCA each
SHARED = "shared"      # as VMS; the two HCAs share memory
DUAL = "dual"          # two guests with two HCAs each, all in the first namespaces, as two links: 10.10.0.N and 10.11.0.N
INTEROP = "interop"    # two guests: an HCA in one, rxe in the other
BESIDE = "beside"      # one guest: rxe here and hghca0 in the namespace b, one link
IOMMU = "iommu"        # as LINK, behind an IOMMU, with three RDMA loopback controllers
FAULTS = "faults"      # as LINK; failed allocations make a kernel disable some of its checks
CACHE = "cache"        # as LINK, with a cache of four contexts of each kind on chip
PAUSES = "pauses"      # as LINK; the HCAs receive RoCE packets at 500 Mbit/s and buffer the rest in 1 MiB
BASE = "base"          # as LINK, with HCAs that have no extension; virtio adapters are the Ethernet half of their ports
PAIRED = "paired"      # as LINK, with virtio adapters that become so when an HCA lacks an extension
MIXED = "mixed"        # two guests: an HCA without extensions and one of the RSNIC document in one, an HCA in the other
BASE_RXE = "base rxe"  # two guests: an HCA without extensions and one of the RSNIC document in one, rxe in the other
RSNIC = "rsnic"        # as LINK, with HCAs of the RSNIC document: the second is slow to start, and has 16 QPs on chip
RSNIC_PAIRED = "rsnic paired"  # as PAIRED, with HCAs of the RSNIC document
RSNIC_FULL = "rsnic full"  # as LINK; the first HCA is one of the RSNIC document
ERNIC = "ernic"        # as LINK; the second device is an ERNIC, with a virtio adapter
ERNIC_BASE = "ernic base"  # as ERNIC, with one that has no extension, behind an IOMMU
ERNIC_PAUSES = "ernic pauses"  # as ERNIC; both devices receive RoCE packets at 500 Mbit/s, and registers can be mapped
ETRNIC = "etrnic"      # as ERNIC, with an ETRNIC
ERNIC_VMS = "ernic vms"  # as VMS, with an ERNIC in the second
ETRNIC_VMS = "etrnic vms"  # the same with an ETRNIC
ERNIC_RXE = "ernic rxe"  # two guests: rxe in one, an ERNIC in the other
RSNIC_BESIDE = "rsnic beside"  # as BESIDE, with an HCA of the RSNIC document
RXES = "rxes"          # two guests with rxe in each
PEERS = "peers"        # one guest: two devices of each kind and rxe; a relay connects the halves of the link
IMPAIRMENT = "impairment"  # as LINK, with an impaired link from the start
LEAK_AGE_S = 6         # kmemleak ignores objects younger than 5 s
DMA_ERRORS = 300       # limit of DMA debugging reports in one test; the log holds twice as many
SETTLE_S = 3           # time for the kernel to free the resources of a killed process
COMMAND_S = 60
LOCKDEP_OFF = "lockdep is off"   # as agents/witness.py says it
LOG_LINES = 60         # of each guest's kernel log, at the end of a test that failed

# As the name of a kernel: one of a tree, which has modules as the stock kernel does, and may have checkers too.
TREE = "tree"

# Taints that come with a line in the kernel log: that of a bad page, set by KASAN, and that of a warning.
TAINTS_EXPECTED = 1 << 5 | 1 << 9

REGISTER = []


def gate_if(condition):
    """The tier of a test that represents others of its kind only if `condition` is true."""
    return GATE if condition else ALL


def quick_if(condition):
    """The tier of a test: quick if it represents the others of its kind (`condition`), else the gate."""
    return QUICK if condition else GATE


class Failure(Exception):
    """A check failed, or the device violated a rule."""


@dataclasses.dataclass
class Test:
    """One line of output.

    machine:  LINK, FOUR, VMS, SHARED, DUAL, INTEROP, BESIDE, IOMMU, CACHE, PAUSES, BASE, PAIRED, MIXED, BASE_RXE, RSNIC,
              RSNIC_PAIRED, RSNIC_FULL, RSNIC_BESIDE, ERNIC, ERNIC_BASE, ERNIC_PAUSES, ETRNIC, ERNIC_VMS, ETRNIC_VMS,
              ERNIC_RXE, RXES, PEERS, IMPAIRMENT or FAULTS.
    limit_s:  the time limit of the whole test.
    subjects: names of the subjects that it applies to.
    kernels:  the kernels that it applies to; (TREE,): needs a module that Debian does not build.
    unable:   of each line of Debian's kernels that cannot pass it, by a fault or a choice of that kernel's own: the reason.
    userlands: those of hghca_lib.userland.NAMES that it applies to.
    expected_log: regular expressions of kernel log lines it may cause.
    aliases:  it registers the same memory repeatedly. The debugging of DMA reports this as errors, more than its limit.
    checked:  which frames on the link are checked: EVERY one, those SENT or RECEIVED by the first HCA, or NONE. Frames
              that the test creates or damages are left out.
    captures: the test captures and checks its frames itself.
    suite:    the folder below tests/ that runs it.
    tier:     of hghca_lib.tiers, the first that runs it under the stock kernel.
    debug_tier: the first that runs it under the debug kernel.
    lines:    the gate runs it under Debian's kernels of other lines too, where the tier ALL runs all of the stock kernel;
              and so does the plan `smoke` of `tools/hghca ci` under that of a tree.
    ends_lockdep: a report of lockdep is a part of it, after which lockdep is off until the next boot. It runs after the
                  tests of its machine without this.
    without_lockdep: it can run in a guest whose lockdep is off, so it runs after those too.
    """
    name: str
    run: object
    machine: str = LINK
    limit_s: float = 60
    subjects: tuple = ("hghca", "rxe")
    kernels: tuple = ("stock", "debug", "kcsan")
    unable: dict = dataclasses.field(default_factory=dict)
    userlands: tuple = userland.NAMES
    expected_log: tuple = ()
    aliases: bool = False
    checked: tuple = EVERY
    captures: bool = False
    suite: str = "guest"
    tier: str = GATE
    debug_tier: str = ALL
    lines: bool = False
    ends_lockdep: bool = False
    without_lockdep: bool = False

    @property
    def turn(self):
        """Its place among the tests of its machine: the guest of one that ends lockdep has no use for most others."""
        return 2 if self.without_lockdep else int(self.ends_lockdep)

    def tier_under(self, kernel):
        if kernel in (*lines.choices(), TREE):
            return GATE if self.lines else ALL
        return self.tier if kernel == "stock" else self.debug_tier

    def applies_to(self, kernel):
        return (kernel in self.kernels or kind_of_kernel(kernel) in self.kernels) and not self.barred(kernel)

    def barred(self, kernel):
        """Why one of Debian's kernels cannot pass it, or None."""
        return None if kernel in debug_kernel.RECIPES else self.unable.get(line_of(kernel))


def kind_of_kernel(kernel):
    """A kernel of another line is a stock kernel too, and so is one of a tree; one with checkers has a kind of its own."""
    return debug_kernel.RECIPES[kernel].kind if kernel in debug_kernel.RECIPES else "stock"


def line_of(kernel):
    """The line of Linux that a kernel of this name is of; None for one of a tree."""
    if kernel in debug_kernel.RECIPES:
        return debug_kernel.RECIPES[kernel].line
    return {"stock": lines.STOCK, TREE: None}.get(kernel, kernel)


def test(name, run=None, **options):
    """Add a test to the list; a decorator if `run` is not given."""
    if run is not None:
        REGISTER.append(Test(name, run, **options))
        return run
    return lambda function: test(name, function, **options)


@dataclasses.dataclass
class Side:
    """One end of the link: a device, and the guest and namespace in which it can be used.

    yields: programs here run only on an otherwise idle processor. A device that works in threads of the kernel needs
    this: a program that polls would delay it for longer than the timeout of its peer.
    iwarp: it has no GIDs of RoCE.
    """
    device: str
    address: str
    guest: object
    netns: str | None = None
    yields: bool = False
    iwarp: bool = False
    netdev: str = ""
    pci: str = ""
    gids: dict = dataclasses.field(default_factory=dict)

    def gid(self, kind):
        """The index of a RoCE v2 GID: `ipv4`, or `link-local` for the IPv6 one."""
        if kind not in self.gids:
            raise Failure(f"{self.device} has no RoCE v2 GID of kind {kind}")
        return self.gids[kind]

    @property
    def counters(self):
        """Folder of the device's counters in sysfs, "" for a device without."""
        return f"/sys/class/infiniband/{self.device}/ports/1/hw_counters" if self.pci else ""


class Agent:
    """A script of agents/ in a guest, as long as the guest runs: frequent queries start no processes."""

    def __init__(self, guest, line, netns=""):
        """line: the shell's, which starts it."""
        self.guest = guest
        self.line = line
        self.netns = netns
        self.command = None

    def ask(self, question, limit_s):
        """The response to a query; GuestError without one."""
        if self.command is None or not self.command.running():
            self.command = self.guest.start(f"exec {self.line}", netns=self.netns)
        self.command.send(f"{question}\n")
        self.guest.wait_for_state(lambda: "\n" in self.command.text(1) or not self.command.running(), limit_s)
        answer, ended, _ = self.command.text(1).partition("\n")
        if not ended:
            # A late response would be taken for the next one.
            silent, self.command = self.command, None
            silent.kill()
            raise GuestError(f"guest {self.guest.number}: no response to `{question}`: {tail(silent.text(2))}")
        self.command.forget()
        return json.loads(answer)


class Testbed:
    """Booted guests and the two sides tests run between.

    client: the first HCA, or rxe; server: the second, in its own namespace or guest, or rxe.
    """

    def __init__(self, guests, subject, programs, machine=LINK, kernel="stock", journal=None, checkers=False,
                 userland_name=userland.STOCK):
        """journal: the recorder.Journal of the frames on the link; None: they are not checked.

        checkers: the kernel of a tree has those of the debug kernel.
        """
        self.machine = machine
        self.kernel_name = kernel
        self.kernel = kind_of_kernel(kernel)
        self.userland = userland_name
        self.journal = journal
        self.slowness = debug_kernel.SLOWNESS["debug" if checkers else self.kernel]
        self.guests = guests
        self.guest = guests[0]
        self.subject = subject
        self.programs = programs
        self.port = 20000
        self.deadline = time.monotonic() + COMMAND_S * self.slowness
        self.running = []
        self.notes = []
        # The cases of the programs that the test ran; the part of the name that chooses some of them.
        self.cases = []
        self.case = None
        self.sides = list(subject.sides(self))
        self.client, self.server = self.sides[:2]
        self.agents = {}
        for side in self.sides:
            self.await_gids(side)
        self.log_seen = [len(guest.kmsg()) for guest in guests]
        # Whether lockdep is off in a guest that is sound otherwise; the report of a scan for leaks after the last test.
        self.spent = False
        self.scanned = None
        self.checkers()

    # Running commands.

    def left(self, limit_s=None):
        """Seconds this test still has, at most limit_s."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Failure("the time limit of the test has passed")
        return min(left, limit_s * self.slowness if limit_s else left)

    def start(self, command, side=None, **more):
        """Start a command on a side (the first guest when None); it is killed at the end of the test."""
        side = side or self.client
        if side.yields:
            command = ["chrt", "--idle", "0", *(["sh", "-c", command] if isinstance(command, str) else command)]
        started = side.guest.start(command, netns=side.netns, **more)
        started.send(b"")
        self.running.append(started)
        return started

    def try_run(self, command, side=None, timeout=COMMAND_S):
        """Run a command to its end; its Result, with any status."""
        started = self.start(command, side)
        result = started.wait(self.left(timeout))
        self.running.remove(started)
        return result

    def run(self, command, side=None, timeout=COMMAND_S):
        """Run a command that must succeed; its standard output."""
        return succeeded(command, self.try_run(command, side, timeout)).stdout

    def next_port(self):
        """A TCP port no test has used."""
        self.port += 1
        return self.port

    def wait_until(self, condition, what, timeout=20):
        """Poll a condition inside the guests; Failure if it does not become true in time."""
        limit = time.monotonic() + self.left(timeout)
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > limit:
                raise Failure(f"{what}: not within {timeout} s")
            time.sleep(0.02)

    def wait_listening(self, port, side, server, kind="either"):
        """Wait until `server` listens on the port: a `tcp` socket, a connection manager's identifier (`cm`)."""
        kinds = [kind] if kind != "either" else ["tcp", "cm"]

        def listens():
            ports = self.question(side, "listening", self.left())
            return not server.running() or any(port in ports[kind] for kind in kinds)

        self.wait_until(listens, f"listening on port {port}")
        if not server.running():
            raise Failure(f"the server ended early with status {server.status}: {tail(server.output)}")

    def pair(self, server_command, client_command, port, server=None, client=None, timeout=COMMAND_S):
        """Run a server and a client that both must succeed; their Results (server, client)."""
        server, client = server or self.server, client or self.client
        serving = self.start(server_command, server)
        self.wait_listening(port, server, serving)
        done = self.start(client_command, client)
        client_result = done.wait(self.left(timeout))
        if client_result.status:
            serving.kill()
            said = serving.wait(10)
            raise Failure(f"client `{client_command}` ended with status {client_result.status}: "
                          f"{tail(client_result.output)}\nserver: {tail(said.output)}")
        return succeeded(server_command, serving.wait(self.left(20))), client_result

    def note(self, text):
        """A line of the report that is not a result."""
        self.notes.append(text)

    def configure(self, side):
        """Set the namespace, address and MTU of a device that has been probed again, as the guest's init does."""
        space = f"-n {side.netns}" if side.netns else ""
        moves = f"ip link set $interface netns {side.netns}" if side.netns else ""
        joins = f"rdma dev set {side.device} netns {side.netns}" if side.netns else ""
        # The net device of another adapter has stayed where it was, and `rdma` does not show it there.
        script = f"""
            set -e
            interface=$(ls /sys/bus/pci/devices/{side.pci}/net 2>/dev/null ||
                        rdma link show {side.device}/1 | sed -n 's/.* netdev \\([^ ]*\\).*/\\1/p')
            {joins}
            [ "$interface" ] || exit 0
            ! ip -4 address show $interface | grep -q inet || exit 0
            {moves}
            ip {space} link set $interface mtu 4200
            ip {space} address add {side.address}/24 dev $interface
            ip {space} link set $interface up
        """
        succeeded("configure", side.guest.run(script, timeout=20 * self.slowness))
        self.await_gids(side)

    def await_gids(self, side):
        """Wait for the GIDs of both addresses, and until the addresses may be used.

        The kernel lists the GID of a link-local address even before the address is there, which waits for the link. It
        routes nothing from the address during duplicate detection, which takes a second or two.
        """
        if side.iwarp:
            return
        self.wait_until(lambda: self.look_up(side) or {"ipv4", "link-local"} <= set(side.gids),
                        f"GIDs of {side.device}")
        # The guest looks by itself. The flags of an address stand before its interface; 0x40 of them is tentative.
        addresses = "/proc/net/if_inet6"
        settled = (f"until grep -q '^fe80.* {side.netdev}$' {addresses} && "
                   f"! grep -qE ' [4-7c-f][0-9a-f] +{side.netdev}$' {addresses}; do sleep 0.05; done")
        self.wait_until(lambda: side.guest.run(settled, netns=side.netns, timeout=20 * self.slowness).status == 0,
                        f"addresses of {side.netdev}")

    def counter(self, side, name):
        """A counter of the device, as it is now."""
        return int(self.run(f"echo 0 > {side.counters}/lifespan; cat {side.counters}/{name}", side))

    # What the kernel knows.

    def look_up(self, side):
        """Fill in the names and numbers that the kernel has assigned to a side's device."""
        # A device without hardware has no link to it.
        said = self.ask(side, f"""
            cd /sys/class/infiniband/{side.device}/ports/1 && read -r netdev < gid_attrs/ndevs/0 || exit
            echo "$netdev"
            (cd -P ../../device && echo "${{PWD##*/}}") 2>/dev/null
            {GIDS}""")
        names = [line for line in said.splitlines() if not line.startswith(("gids/", "gid_attrs/"))]
        if not names:
            raise Failure(f"{side.device} is not there")
        side.netdev = names[0]
        side.pci = names[1] if len(names) > 1 else ""
        side.gids = {}
        gids = version2(said)
        local = [index for index, gid in sorted(gids.items()) if gid.startswith("fe80")]
        if local:
            side.gids["link-local"] = local[0]
        for index, gid in gids.items():
            if gid == mapped(side.address):
                side.gids["ipv4"] = index

    def roce_gids(self, side):
        """The device's RoCE v2 GIDs: {index: GID as 32 digits}."""
        return version2(self.ask(side, f"cd /sys/class/infiniband/{side.device}/ports/1; {GIDS}"))

    def ask(self, side, script):
        """Run a script that queries the kernel, ignore its status; its standard output."""
        return side.guest.run(script, netns=side.netns, timeout=20 * self.slowness).stdout

    def agent(self, side, script):
        """A script of agents/ in a side's namespace."""
        return self.agents.setdefault((side.guest, side.netns, script),
                                      Agent(side.guest, f"python3 /share/{script}", side.netns))

    def question(self, side, question, limit_s):
        """The answer to a question of the guest's agents/witness.py, which knows all namespaces."""
        witness = self.agents.setdefault(side.guest, Agent(side.guest, "python3 -S -E /share/witness.py"))
        return witness.ask(f"{side.netns or '-'} {question}", limit_s)

    def look(self):
        """The state of the kernel on every side."""
        return [self.question(side, "look", COMMAND_S * self.slowness) for side in self.sides]

    @staticmethod
    def resources(looks):
        """The kernel's RDMA resources in all guests and namespaces, and its taint, as text.

        Taints that the log reports, and CQs in the pool of the kernel's RDMA core, are left out.
        """
        return "".join(f"{device}: {' '.join(f'{kind} {number}' for kind, number in kinds.items())}\n"
                       for look in looks for device, kinds in sorted(look["resources"].items())) + \
            "".join(f"taint {look['taint'] & ~TAINTS_EXPECTED}\n" for look in looks)

    def counters(self, looks=None):
        """All counters of both sides' devices, by side and name."""
        return {f"{name} {counter}": value
                for name, side, look in zip(("client", "server"), self.sides, looks or self.look())
                for counter, value in look["counters"].get(side.device, {}).items()}

    def resource_details(self):
        script = "for kind in ctx pd mr srq cq qp cm_id; do rdma resource show $kind; done"
        return "".join(self.ask(side, script) for side in self.sides)

    def new_log(self):
        """Kernel log records since the last call."""
        records = []
        for number, guest in enumerate(self.guests):
            log = guest.kmsg()
            records += log[self.log_seen[number]:]
            self.log_seen[number] = len(log)
        return records

    def last_words(self, seen):
        """The last records of each guest's kernel log, of any level, after the given number of records."""
        return [f"guest {guest.number}'s kernel: <{record.level}> {record.text}"
                for guest, start in zip(self.guests, seen) for record in guest.kmsg()[start:][-LOG_LINES:]]

    def leaks(self):
        """The leaks that kmemleak has found in the guests, as text, or the error of the scan.

        A scan takes tens of seconds, so it is not repeated unless a test came between.
        """
        if self.scanned is None:
            self.scanned = self.scan()
        return self.scanned

    def scan(self):
        # kmemleak reports an object only if it is some seconds old and unreferenced in two scans.
        script = f"cd /sys/kernel/debug; sleep {LEAK_AGE_S}; echo scan > kmemleak; echo scan > kmemleak; cat kmemleak"
        try:
            return "".join(guest.run(script, timeout=60 * self.slowness).output for guest in self.guests)
        except GuestError as error:
            return str(error)

    # One test.

    def perform(self, entry):
        """Run one test and the checks after it; the list of errors, and whether the testbed can be used further."""
        if not self.journal:
            return self.perform_unseen(entry)
        wrong = []
        try:
            self.journal.begin(entry)
            wrong, sound = self.perform_unseen(entry)
            self.journal.end(entry, len(self.cases))
        except GuestError as error:
            return [*wrong, str(error)], False
        return wrong, sound

    def perform_unseen(self, entry):
        """perform(), with or without a check of the frames."""
        self.notes = []
        self.cases = []
        self.scanned = None
        wrong = []
        before = self.look()
        self.new_log()
        seen = list(self.log_seen)
        self.deadline = time.monotonic() + entry.limit_s * self.slowness
        try:
            entry.run(self)
        except GuestDied as error:
            return [str(error)], False
        except Exception as error:  # any exception of a test is a failure of that test
            wrong.append(describe(error))
        try:
            self.kill_leftovers(wrong)
            sound = self.check_resources(before, wrong)
            wrong += complaints(self.new_log(), entry.expected_log)
            sound = self.check_checkers(entry, wrong) and sound
            if wrong:
                wrong.append(f"counters: {rises(self.counters(before), self.counters())}")
                wrong += self.last_words(seen)
        except GuestError as error:
            return [*wrong, str(error)], False
        return wrong, sound

    def check_checkers(self, entry, wrong):
        """Whether the kernel's checkers are still enabled; some stop after their first report."""
        said = self.checkers()
        # The log has the reason if lockdep or the debugging of DMA has disabled itself.
        wrong += [text for text in said if "more DMA-API errors" in text and not entry.aliases]
        self.spent = self.spent or LOCKDEP_OFF in said
        return not [text for text in said if text != LOCKDEP_OFF or not (entry.ends_lockdep or entry.without_lockdep)]

    def checkers(self):
        """The kernel's checkers that are disabled.

        The debugging of DMA reports errors up to a limit and then only counts them. This sets the limit to DMA_ERRORS
        again.
        """
        # Debugfs is visible in the first namespace only.
        return [text for side in self.sides if not side.netns
                for text in self.question(side, f"check {DMA_ERRORS}", COMMAND_S * self.slowness)["said"]]

    def kill_leftovers(self, wrong):
        for command in self.running:
            if command.running():
                command.kill()
                if command.wait(5).status is None:
                    wrong.append("a process could not be killed")
        self.running = []

    def check_resources(self, before, wrong):
        before = self.resources(before)
        limit = time.monotonic() + SETTLE_S * self.slowness
        while True:
            after = self.resources(self.look())
            if after == before:
                return True
            if time.monotonic() > limit:
                break
            time.sleep(0.05)
        wrong.append(f"RDMA resources before the test:\n{before}after it:\n{after}{self.resource_details()}")
        return False


# Prints all GIDs of a port and their types, in its folder of sysfs; for version2().
GIDS = "grep -sH . gids/* gid_attrs/types/*"


def version2(said):
    """The GIDs of RoCE v2 in the output of GIDS: {index: GID as 32 digits}."""
    indices = set(re.findall(r"^gid_attrs/types/(\d+):RoCE v2$", said, re.MULTILINE))
    return {int(index): gid.replace(":", "")
            for index, gid in re.findall(r"^gids/(\d+):(.*)$", said, re.MULTILINE) if index in indices}


def rises(before, after):
    """The increase of each counter that changed, as text."""
    return ", ".join(f"{name} {value - before.get(name, 0):+d}" for name, value in after.items()
                     if value != before.get(name, 0))


# Effects of the host's load on the clock of an emulated machine; they say nothing about the driver. The scheduler
# reports once if an emulated CPU got no time of the host for more than a second.
PLATFORM = re.compile(r"^hrtimer: interrupt took \d+ ns$|^clocksource: |^sched: DL replenish lagged too much$")
# The kernel prints the number of rate-limited messages of the driver with the next message of that function, in any
# later test. The messages before the limit have been checked in their own test.
RATE_LIMITED = re.compile(r"^hghca_\w+: \d+ callbacks suppressed$")
WARNING = re.compile(r"WARNING:|BUG:|\bOops\b|Call Trace|cut here|general protection|blocked for more than|"
                     r"stall|soft lockup|hard LOCKUP|refcount_t|UBSAN|KASAN|list_(add|del) corruption|"
                     r"unregister_netdevice: waiting|hghca.*(error|fail|timed out|timeout)", re.IGNORECASE)


def is_warning(record):
    """Whether a kernel log record indicates an error."""
    if PLATFORM.search(record.text) or RATE_LIMITED.search(record.text) or USUAL_PATTERN.match(record.text):
        return False
    return record.level <= 4 or WARNING.search(record.text) is not None


def complaints(records, expected=()):
    """The errors in the kernel log, except the expected ones, as lines of the report."""
    return [f"kernel log: <{record.level}> {record.text}" for record in without_known(records)
            if is_warning(record) and not any(re.search(pattern, record.text) for pattern in expected)]


def warned(file, functions):
    """The line of a warning, as Linux 6.12 prints it and as 7.3 does, which names the file first."""
    return re.compile(rf"WARNING: (.* at )?{re.escape(file)}:\d+ (at )?({functions})\+")


# The begin and the end of a splat of the kernel: of a warning, and of a report of lockdep.
SPLATS = [("cut here ]---", "---[ end trace "), ("=====================", " </TASK>")]
# Reports of the kernel's checkers on the kernel's own RDMA core, by the text of the splat.
#   A program may register memory that is registered already, and pages that it has only read are all the same page of
#   zeros. The debugging of DMA reports that as an error of the driver. A separate backtrace follows the splat.
#   The NVMe host maps completions of 16 bytes separately, several in a cache line. This overlap is harmless where
#   caches are coherent.
#   The core of 6.12 takes the lock that guards disassociation inside mmap_lock when a process forks, and in the
#   opposite order when a device is removed: rdma_umap_open() and uverbs_user_mmap_disassociate(). The report comes
#   with the second of them.
#   The NVMe target of 6.12 takes its configuration's lock while the CM handles an event, where a command came before
#   the connection was established, and destroys a CM ID inside that lock when its last subsystem leaves a port. The
#   report comes with the second of them.
#   Dynamic debugging warns if it gets no memory for a module.
#   If /proc/irq/N gets no memory when an interrupt is requested, it warns when that interrupt is freed.
#   If tracing gets no memory when a module is loaded, it warns when that module is unloaded.
KNOWN = [
    (re.compile(r"DMA-API: .*(overlapping mappings aren't supported|exceeded \d+ overlapping mappings)"),
     "ib_umem_get+"),
    (re.compile(r"DMA-API: .*(overlapping mappings aren't supported|exceeded \d+ overlapping mappings)"),
     "ib_umem_odp_map_dma_and_lock+"),
    (re.compile(r"DMA-API: .*overlapping mappings aren't supported"), "nvme_rdma_alloc_qe+"),
    (re.compile(r"possible circular locking dependency detected"), "at: uverbs_user_mmap_disassociate+"),
    (re.compile(r"possible circular locking dependency detected(.|\n)* uverbs_user_mmap_disassociate\+"),
     "at: rdma_umap_open+"),
    (re.compile(r"possible circular locking dependency detected(.|\n)* nvmet_execute_io_connect\+"),
     "nvmet_rdma_disable_port+"),
    (warned("fs/proc/generic.c", "remove_proc_entry"), "unregister_irq_proc+"),
    (warned("lib/dynamic_debug.c", "ddebug_module_notify"), "Failed to allocate memory"),
    (warned("kernel/trace/trace_events.c", "event_define_fields|event_file_put"), "trace_module_notify+"),
]
AFTER_KNOWN = re.compile(r"DMA-API: Mapped at:| \S+\+0x")


def without_known(records):
    """The records without empty ones and without known splats that do not concern the driver.

    The lines of threads that report at the same time are mixed, so each thread's lines are checked separately.
    """
    threads = {}
    for numbered in enumerate(records):
        threads.setdefault(numbered[1].caller, []).append(numbered)
    kept = [numbered for said in threads.values() for numbered in of_one_thread(said)]
    return [record for _, record in sorted(kept, key=lambda numbered: numbered[0])]


def of_one_thread(numbered):
    """The (number, record) pairs of one thread that without_known() keeps."""
    kept, splat, end, after = [], [], None, False
    for item in numbered:
        _, record = item
        begins = next((last for first, last in SPLATS if first in record.text), None)
        if end is None and begins:
            splat, end = [item], begins
        elif end is not None:
            splat.append(item)
            if end in record.text:
                after = is_known(record for _, record in splat)
                kept += [] if after else splat
                splat, end = [], None
        elif not (after and AFTER_KNOWN.match(record.text)) and record.text.strip():
            after = False
            kept.append(item)
    return kept + splat


def is_known(splat):
    """Whether the records of a splat show one of KNOWN."""
    text = "\n".join(record.text for record in splat)
    return any(words.search(text) and place in text for words, place in KNOWN)


# Leaks of the core of 6.12 and 7.3 after a failed allocation. UVERBS_METHOD_GET_CONTEXT loses a reference to the task (it
# frees the context without rdma_restrack_put()), and with it the task, its signals, its credentials and its exec_state.
# uverbs_destroy_api() frees the entries of its radix tree, but not the nodes of an empty tree; uapi_merge_def() may be
# their allocator.
LEAKED_BY_CORE = re.compile(r" (copy_process|prepare_creds|alloc_task_exec_state)[+.]|"
                            r" radix_tree_insert\+.*\n +uapi_(add_elm|merge_def)[+.]")


def leaks_of_ours(leaks):
    """The report of kmemleak, as text, without the known leaks of the kernel's own core."""
    blocks = re.split(r"^(?=unreferenced object )", leaks, flags=re.MULTILINE)
    return "".join(block for block in blocks if not LEAKED_BY_CORE.search(block))


def succeeded(command, result):
    """The result if it is a success, else a Failure."""
    if result.timed_out:
        raise Failure(f"`{command}` did not end in time; so far: {tail(result.output)}")
    if result.status:
        raise Failure(f"`{command}` ended with status {result.status}: {tail(result.output)}")
    return result


def mapped(address):
    """The GID of an IPv4 address, as 32 digits."""
    return "0" * 20 + "ffff" + "".join(f"{int(byte):02x}" for byte in address.split("."))


def expect(condition, what):
    """An assertion with a message."""
    if not condition:
        raise Failure(what)


def tail(text, limit=1200):
    text = text.strip()
    return text if len(text) <= limit else "..." + text[-limit:]


def describe(error):
    if isinstance(error, (Failure, GuestError)):
        return str(error)
    import traceback
    return "".join(traceback.format_exception(error)[-4:])


@contextlib.contextmanager
def killed_at_end(command):
    """A command that runs for the duration of the block."""
    try:
        yield command
    finally:
        if command.running():
            command.kill()
            command.wait(10)
