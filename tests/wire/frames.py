# SPDX-License-Identifier: GPL-2.0-or-later
"""Captured frames before their checkers.

tshark decodes every one and recomputes its checksums, zlib and scapy the ICRC. What tshark does not know of RSNIC's
operations vendor.py checks.

    findings = decode(path, ...)
    findings.wrong                      # what the checkers say against the frames, a line each
    findings.opcodes[(OUT, 0x04)]       # how many packets of an opcode went that way (pcapng.IN, pcapng.OUT)

The checkers are in a root of their own (hghca_lib.buildroot.FRAME_CHECKERS), made when it is first asked for.
"""

import array
import bisect
import collections
import concurrent.futures
import dataclasses
import functools
import itertools
import json
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

from hghca_lib import buildroot, host
from hghca_lib.errors import ToolError

import extended
import vendor
from pcapng import IN, OUT

HERE = Path(__file__).resolve().parent
# For checkers beside tests. In the scheduler's group of the emulators they would take a processor for whole slices, and
# what two ends poll for on the other one would take a hundred times as long.
APART = ["setsid", "--wait", *host.at_priority(10)]

WARNING = 0x600000  # of severities in tshark; errors are higher
AGGREGATOR = "\x01"
FIELDS = ["frame.number", "frame.packet_flags_direction", "frame.protocols", "udp.dstport", "infiniband.bth.opcode",
          "infiniband.aeth.syndrome", "infiniband.mad.mgmtclass", "infiniband.mad.attributeid", "_ws.malformed",
          "_ws.expert.severity", "_ws.expert.message", "infiniband.invariant.crc"]
# tshark's checks that are off by default; and one that is on, of how TCP gets on and not of any frame.
CHECKS = ["ip.check_checksum:TRUE", "udp.check_checksum:TRUE", "tcp.check_checksum:TRUE",
          "tcp.analyze_sequence_numbers:FALSE"]
# What is above TCP, and above UDP but for RoCE v2, are any program's bytes; its port may be known as another's. One such
# port of the two decides with UDP, and RoCE v2 is sent from those behind them.
PROGRAMS = ["tcp.port==1-65535", "udp.port==1-4790", "udp.port==4792-49151"]
RDMA = re.compile(r"^eth:ethertype:(vlan:ethertype:)*ipv?6?:udp\b")
DECODED = re.compile(r":udp:infiniband\b")
ROCE_PORT = "4791"
CM_CLASS = 0x07

# What tshark warns of, and why that is no fault of the frame: (a frame's protocols and tshark's words, the reason).
EXPLAINED = [
    (r":ipv6:udp:infiniband\b.*: Illegal checksum value \(0\)$",
     "the device sends no UDP checksum over IPv6 either (interface document, section 9); the ICRC has more in it"),
    (r":tcp\b.*: TCP Checksum 0xffff instead of 0x0000 \(see RFC 1624\)$",
     "where the port computes no checksums Linux writes 0xffff for 0, TCP or UDP; the sum over both is the same"),
    (r":tcp\b.*: D-SACK Sequence$", "a guest's TCP tells of a segment that it has got twice"),
    (r":tcp\b.*: Connection reset \(RST\)$", "a guest's TCP ends a connection so"),
    (r":arp: Duplicate IP address configured \(\S+\)$", "one test after the other gives an address to an interface"),
]
# Of what tshark decodes the BTH alone.
CNP = 0x81
CNP_REASON = "tshark looks for the CNP at opcode 0x80, where A17.9.3 has it at 0x81"
# Class and attribute: ClassPortInfo, PortCounters, PortCountersExtended.
PERFORMANCE = [(0x04, attribute) for attribute in (0x01, 0x12, 0x1d)]
PERFORMANCE_REASON = "of a packet with such an attribute of performance management tshark shows all but the ICRC"
XRC_REASON = "tshark knows XRC by its opcodes alone; the packet is decoded again as the one of RC that it extends"
VENDOR_REASON = "of a manufacturer's packet tshark shows the BTH alone; vendor.py has the rules of RSNIC's"


@dataclasses.dataclass
class Findings:
    """What the checkers say of captures.

    frames:    how many there are.
    rdma:      those to the UDP port of RoCE v2.
    scapy:     those of them that scapy has seen too.
    opcodes:   (way, BTH opcode) -> packets.
    syndromes: AETH syndrome -> packets.
    cm:        attribute of a connection manager's MAD -> packets.
    protocols: name of a protocol in tshark -> frames that have it.
    wrong:     what is wrong, a line each.
    explained: why something is not counted as wrong -> how often.
    """
    frames: int = 0
    rdma: int = 0
    scapy: int = 0
    opcodes: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    syndromes: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    cm: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    protocols: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    wrong: list = dataclasses.field(default_factory=list)
    explained: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def add(self, other):
        """Take the findings of further captures to these."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class Checkers:
    """tshark, zlib and scapy, for files of one folder; apart: beside tests that go on."""

    def __init__(self, folder, apart=False):
        self.prefix = APART if apart else []
        self.root = buildroot.make(buildroot.FRAME_CHECKERS)
        self.binds = {"captures": folder, "wire": HERE}

    def command(self, argv):
        return [*self.prefix, *self.root.command(argv, self.binds)]

    def run(self, *argv):
        """What the program prints; ToolError when it fails."""
        done = subprocess.run(self.command(argv), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", env=host.environment(), timeout=buildroot.LIMIT_S)
        return printed(argv, done.stdout, done.returncode, done.stderr)

    def lines(self, *argv):
        """Each line that the program prints, as it comes; ToolError when it fails."""
        with tempfile.TemporaryFile("w+", errors="replace") as errors:
            with subprocess.Popen(self.command(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=errors, text=True, errors="replace", env=host.environment()) as program:
                yield from program.stdout
            errors.seek(0)
            printed(argv, "", program.returncode, errors.read())

    @functools.cached_property
    def guesses(self):
        """The dissectors that guess from a payload whose it may be; here it is any program's bytes."""
        rows = (line.split("\t") for line in self.run("tshark", "-G", "heuristic-decodes").splitlines())
        return [row[4] for row in rows if row[0] == "infiniband.payload"]

    def opcode_names(self):
        """BTH opcode -> tshark's words for it."""
        rows = (line.split("\t") for line in self.run("tshark", "-G", "values").splitlines())
        return {int(row[2], 0): row[3] for row in rows if row[:2] == ["V", "infiniband.bth.opcode"]}

    def tshark(self, names):
        """How it decodes the frames of files, one behind the other: {FIELDS as text: numbers of the frames, from 1}.

        The number is no field of these, and of the ICRC only whether there is one: so many frames are alike.
        """
        argv = ["tshark", "-n", "-r", "-", "-T", "fields", "-E", "occurrence=a", "-E", f"aggregator={AGGREGATOR}"]
        for check in CHECKS:
            argv += ["-o", check]
        for ports in PROGRAMS:
            argv += ["-d", f"{ports},data"]
        for guess in self.guesses:
            argv += ["--disable-heuristic", guess]
        for field in FIELDS:
            argv += ["-e", field]
        alike = collections.defaultdict(lambda: array.array("L"))
        for line in self.lines("sh", "-c", f'cat "$@" | {shlex.join(argv)}', "sh", *in_root(names)):
            number, _, fields = line.rstrip("\n").partition("\t")
            fields, _, icrc = fields.rpartition("\t")
            alike[f"{fields}\t{'carried' if icrc else ''}"].append(int(number))
        return alike

    def icrcs(self, names):
        return json.loads(self.run("python3", "-B", "/mnt/wire/icrc.py", *in_root(names)))


def in_root(names):
    return [f"/mnt/captures/{name}" for name in names]


def printed(argv, text, status, errors):
    if status:
        raise ToolError(f"{argv[0]} ended with status {status}: {errors.strip()[-1000:]}")
    return text


def decode(*paths, apart=False, alone=False):
    """The Findings of captures that the device made, files of one folder; apart: as Checkers has it, alone: as vendor.

    Where there are several their names stand before what is wrong; frames are numbered in each from 1.
    """
    paths = [Path(path).resolve() for path in paths]
    checkers = Checkers(paths[0].parent, apart)
    names = [path.name for path in paths]
    findings = Findings()
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(checkers.icrcs, names)
        alike = checkers.tshark(names)
        icrcs = waiting.result()
    where = Where(names, icrcs["frames"])
    for fields, numbers in alike.items():
        take(findings, fields, numbers, where)
    if XRC_REASON in findings.explained:
        decode_xrc(findings, paths, where, apart)
    if VENDOR_REASON in findings.explained:
        check_vendors(findings, paths, where, alone)
    findings.wrong += [f"{where(number)}: {why}" for number, why in icrcs["wrong"]]
    findings.scapy = icrcs["scapy"]
    # Each reads the files by itself.
    for what, mine, theirs in (("frames", findings.frames, sum(icrcs["frames"])),
                               ("packets of RoCE v2", findings.rdma, icrcs["rdma"])):
        if mine != theirs:
            findings.wrong.append(f"{what}: {mine} by tshark, {theirs} by ours")
    return findings


class Where:
    """What a frame is called that has a number through several files."""

    def __init__(self, names, counts):
        self.names = names
        self.before = [0, *itertools.accumulate(counts)][:-1]

    def __call__(self, number):
        file = bisect.bisect_left(self.before, number) - 1
        name = f"{Path(self.names[file]).stem}: " if len(self.names) > 1 else ""
        return f"{name}frame {number - self.before[file]}"


def decode_xrc(findings, paths, where, apart):
    """Book what tshark says of the XRC packets of captures, taken for those of RC."""
    again = Findings()
    with tempfile.TemporaryDirectory() as folder:
        checkers = Checkers(folder, apart)
        for path, before in zip(paths, where.before, strict=True):
            was = extended.extract(path, Path(folder) / "xrc.pcapng")
            for fields, numbers in checkers.tshark(["xrc.pcapng"]).items() if was else ():
                take(again, fields, [before + was[number - 1] for number in numbers], where)
    findings.wrong += [f"XRC: {line}" for line in again.wrong]
    if again.frames != findings.explained[XRC_REASON]:
        findings.wrong.append(f"XRC: {findings.explained[XRC_REASON]} packets, {again.frames} of them as RC")


def check_vendors(findings, paths, where, alone):
    """Book what is wrong with the packets of RSNIC's operations in captures, and with the responses to them."""
    total = 0
    for path, before in zip(paths, where.before, strict=True):
        count, wrong = vendor.check(path, alone)
        total += count
        findings.wrong += [f"{where(before + number)}: {why}" for number, why in wrong]
    if total != findings.explained[VENDOR_REASON]:
        findings.wrong.append(f"packets of RSNIC's operations: {findings.explained[VENDOR_REASON]} by tshark, "
                              f"{total} by ours")


def take(findings, text, numbers, where):
    """Book the frames of these numbers, all alike as tshark sees them; `text` as Checkers.tshark() has it."""
    fields = dict(zip(FIELDS[1:], text.split("\t"), strict=True))
    count = len(numbers)
    findings.frames += count
    for protocol in set(fields["frame.protocols"].split(":")):
        findings.protocols[protocol] += count
    if fields["infiniband.aeth.syndrome"]:
        findings.syndromes[int(fields["infiniband.aeth.syndrome"], 0)] += count
    management_class, attribute = management(fields)
    if management_class == CM_CLASS:
        findings.cm[attribute] += count
    wrong = ["malformed"] if fields["_ws.malformed"] else []
    wrong += take_warnings(findings, fields, count)
    if RDMA.match(fields["frame.protocols"]) and fields["udp.dstport"] == ROCE_PORT:
        wrong += take_packets(findings, fields, count)
    for what in wrong:
        findings.wrong += [f"{where(number)} ({fields['frame.protocols']}): {what}" for number in numbers]


def management(fields):
    """Class and attribute of the MAD in frames; 0 without a MAD."""
    return tuple(int(fields[f"infiniband.mad.{field}"] or "0", 0) for field in ("mgmtclass", "attributeid"))


def take_warnings(findings, fields, count):
    """Book what tshark's experts say of frames that are alike; what of it is wrong."""
    severities = [int(word, 0) for word in fields["_ws.expert.severity"].split(AGGREGATOR) if word]
    messages = fields["_ws.expert.message"].split(AGGREGATOR) if severities else []
    wrong = []
    for severity, message in zip(severities, messages, strict=True):
        if severity < WARNING:
            continue
        line = f"{fields['frame.protocols']}: {message}"
        reason = next((reason for words, reason in EXPLAINED if re.search(words, line)), None)
        if reason:
            findings.explained[reason] += count
        else:
            wrong.append(message)
    return wrong


def take_packets(findings, fields, count):
    """Book frames of RoCE v2 that are alike; what is wrong with them."""
    findings.rdma += count
    if not fields["infiniband.bth.opcode"] or not DECODED.search(fields["frame.protocols"]):
        return ["for the port of RoCE v2, and not decoded as such"]
    opcode = int(fields["infiniband.bth.opcode"], 0)
    findings.opcodes[(int(fields["frame.packet_flags_direction"] or "0", 0), opcode)] += count
    if opcode == CNP:
        findings.explained[CNP_REASON] += count
    elif extended.is_xrc(opcode):
        findings.explained[XRC_REASON] += count
    elif opcode in vendor.OPCODES:
        findings.explained[VENDOR_REASON] += count
    elif management(fields) in PERFORMANCE:
        findings.explained[PERFORMANCE_REASON] += count
    elif not fields["infiniband.invariant.crc"]:
        return [f"opcode {opcode:#04x}, not decoded up to its ICRC"]
    return []


def table(opcodes, names):
    """How many packets of each opcode there were, as lines of text."""
    rows = []
    for code in sorted({code for _, code in opcodes}):
        every = sum(opcodes[(way, code)] for way in (0, IN, OUT))
        rows.append(f"{code:#04x}  {opcodes[(OUT, code)]:>8}  {opcodes[(IN, code)]:>8}  {every:>8}  "
                    f"{names.get(code, '(unknown to tshark)')}")
    return ["BTH       sent  received       all", *rows]
