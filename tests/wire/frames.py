# SPDX-License-Identifier: GPL-2.0-or-later
"""Captured frames before their judges: tshark decodes every one, tshark and scapy recompute every checksum.

    findings = decode(path)
    findings.wrong                      # what the judges say against the frames, a line each
    findings.opcodes[(OUT, 0x04)]       # how many packets of an opcode went that way

The judges are in a root of their own (hghca_lib.buildroot.JUDGES), made when it is first asked for.
"""

import collections
import dataclasses
import json
import re
import struct
from pathlib import Path

from hghca_lib import buildroot
from hghca_lib.errors import ToolError

HERE = Path(__file__).resolve().parent
# As epb_flags and tshark have it.
IN, OUT = 1, 2
# Of pcapng.
ENHANCED_PACKET = 6
EPB_FLAGS = 2
WARNING = 0x600000  # of severities in tshark; errors are higher
AGGREGATOR = "\x01"
FIELDS = ["frame.number", "frame.packet_flags_direction", "frame.protocols", "udp.dstport", "infiniband.bth.opcode",
          "infiniband.aeth.syndrome", "infiniband.mad.mgmtclass", "infiniband.mad.attributeid", "_ws.malformed",
          "_ws.expert.severity", "_ws.expert.message"]
# tshark's checks that are off by default; and one that is on, of how TCP gets on and not of any frame.
CHECKS = ["ip.check_checksum:TRUE", "udp.check_checksum:TRUE", "tcp.check_checksum:TRUE",
          "tcp.analyze_sequence_numbers:FALSE"]
RDMA = re.compile(r"^eth:ethertype:(vlan:ethertype:)*ipv?6?:udp\b")
DECODED = re.compile(r":udp:infiniband\b")
ROCE_PORT = "4791"
CM_CLASS = 0x07

# What tshark warns of, and why that is no fault of the frame: (a frame's protocols and tshark's words, the reason).
EXPLAINED = [
    (r":ipv6:udp:infiniband\b.*: Illegal checksum value \(0\)$",
     "the device sends no UDP checksum over IPv6 either (interface document, section 9); the ICRC has more in it"),
    (r":tcp\b.*: D-SACK Sequence$", "a guest's TCP tells of a segment that it has got twice"),
]


@dataclasses.dataclass
class Findings:
    """What the judges say of one capture.

    frames:    how many there are.
    rdma:      those to the UDP port of RoCE v2.
    opcodes:   (way, BTH opcode) -> packets.
    syndromes: AETH syndrome -> packets.
    cm:        attribute of a connection manager's MAD -> packets.
    protocols: name of a protocol in tshark -> frames that have it.
    wrong:     what is wrong, a line each.
    explained: reasons of EXPLAINED -> how often they were needed.
    """
    frames: int = 0
    rdma: int = 0
    opcodes: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    syndromes: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    cm: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    protocols: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    wrong: list = dataclasses.field(default_factory=list)
    explained: collections.Counter = dataclasses.field(default_factory=collections.Counter)


class Judges:
    """tshark and scapy, for files of one folder."""

    def __init__(self, folder):
        self.root = buildroot.make(buildroot.JUDGES)
        self.binds = {"captures": folder, "wire": HERE}

    def run(self, *argv):
        """What the program prints; ToolError when it fails."""
        done = self.root.output(argv, self.binds)
        if done.returncode:
            raise ToolError(f"{argv[0]} ended with status {done.returncode}: {done.stderr.strip()[-1000:]}")
        return done.stdout

    def guesses(self):
        """The dissectors that guess from a payload whose it may be; here it is any program's bytes."""
        rows = (line.split("\t") for line in self.run("tshark", "-G", "heuristic-decodes").splitlines())
        return [row[4] for row in rows if row[0] == "infiniband.payload"]

    def opcode_names(self):
        """BTH opcode -> tshark's words for it."""
        rows = (line.split("\t") for line in self.run("tshark", "-G", "values").splitlines())
        return {int(row[2], 0): row[3] for row in rows if row[:2] == ["V", "infiniband.bth.opcode"]}

    def tshark(self, name):
        """Lists of FIELDS, a frame each."""
        argv = ["tshark", "-n", "-r", f"/mnt/captures/{name}", "-T", "fields", "-E", "occurrence=a",
                "-E", f"aggregator={AGGREGATOR}"]
        for check in CHECKS:
            argv += ["-o", check]
        for guess in self.guesses():
            argv += ["--disable-heuristic", guess]
        for field in FIELDS:
            argv += ["-e", field]
        return [line.split("\t") for line in self.run(*argv).splitlines()]

    def icrcs(self, name):
        return json.loads(self.run("python3", "/mnt/wire/icrc.py", f"/mnt/captures/{name}"))


def decode(path):
    """The Findings of a capture that the device made."""
    path = Path(path).resolve()
    judges = Judges(path.parent)
    findings = Findings()
    for row in judges.tshark(path.name):
        take(findings, dict(zip(FIELDS, row, strict=True)))
    icrcs = judges.icrcs(path.name)
    findings.wrong += [f"frame {number}: {why}" for number, why in icrcs["wrong"]]
    # Each reads the file by itself.
    for what, mine in (("frames", findings.frames), ("rdma", findings.rdma)):
        if icrcs[what] != mine:
            findings.wrong.append(f"{what}: {mine} by tshark, {icrcs[what]} by scapy")
    return findings


def take(findings, fields):
    """Book one frame as tshark sees it."""
    findings.frames += 1
    findings.protocols.update(set(fields["frame.protocols"].split(":")))
    if fields["infiniband.aeth.syndrome"]:
        findings.syndromes[int(fields["infiniband.aeth.syndrome"], 0)] += 1
    if fields["infiniband.mad.mgmtclass"] and int(fields["infiniband.mad.mgmtclass"], 0) == CM_CLASS:
        findings.cm[int(fields["infiniband.mad.attributeid"], 0)] += 1
    where = f"frame {fields['frame.number']} ({fields['frame.protocols']})"
    if fields["_ws.malformed"]:
        findings.wrong.append(f"{where}: malformed")
    severities = [int(word, 0) for word in fields["_ws.expert.severity"].split(AGGREGATOR) if word]
    messages = fields["_ws.expert.message"].split(AGGREGATOR) if severities else []
    for severity, message in zip(severities, messages, strict=True):
        if severity >= WARNING:
            reason = next((reason for words, reason in EXPLAINED if re.search(words, f"{fields['frame.protocols']}: {message}")), None)
            if reason:
                findings.explained[reason] += 1
            else:
                findings.wrong.append(f"{where}: {message}")
    if RDMA.match(fields["frame.protocols"]) and fields["udp.dstport"] == ROCE_PORT:
        findings.rdma += 1
        opcode = fields["infiniband.bth.opcode"]
        if opcode and DECODED.search(fields["frame.protocols"]):
            findings.opcodes[(int(fields["frame.packet_flags_direction"], 0), int(opcode, 0))] += 1
        else:
            findings.wrong.append(f"{where}: for the port of RoCE v2, and not decoded as such")


Record = collections.namedtuple("Record", "way time_ns length data at")


def records(path):
    """What is in a capture of the device: a Record a frame; `data` is what was kept of `length` bytes, `at` its offset.

    ValueError: the file is not what the device writes.
    """
    whole = Path(path).read_bytes()
    at = 0
    while at < len(whole):
        kind, size = struct.unpack_from("<II", whole, at)
        if size < 12 or size % 4 or at + size > len(whole) or struct.unpack_from("<I", whole, at + size - 4) != (size,):
            raise ValueError(f"{path}: no whole block at {at}")
        if kind == ENHANCED_PACKET:
            _, high, low, kept, length = struct.unpack_from("<5I", whole, at + 8)
            code, _, flags = struct.unpack_from("<HHI", whole, at + 28 + (kept + 3) // 4 * 4)
            if code != EPB_FLAGS:
                raise ValueError(f"{path}: no flags in the block at {at}")
            yield Record(flags & 3, high << 32 | low, length, whole[at + 28:at + 28 + kept], at + 28)
        at += size


def table(opcodes, names):
    """How many packets of each opcode there were, as lines of text."""
    rows = [f"{code:#04x}  {opcodes[(OUT, code)]:>8}  {opcodes[(IN, code)]:>8}  {names.get(code, '(unknown to tshark)')}"
            for code in sorted({code for _, code in opcodes})]
    return ["BTH       sent  received", *rows]
