# SPDX-License-Identifier: GPL-2.0-or-later
"""Captured frames before their judges: tshark decodes every one, tshark and scapy recompute every checksum.

    findings = decode(path)
    findings.wrong                      # what the judges say against the frames, a line each
    findings.opcodes[(OUT, 0x04)]       # how many packets of an opcode went that way (pcapng.IN, pcapng.OUT)

The judges are in a root of their own (hghca_lib.buildroot.JUDGES), made when it is first asked for.
"""

import collections
import dataclasses
import json
import re
import tempfile
from pathlib import Path

from hghca_lib import buildroot
from hghca_lib.errors import ToolError

import extended
from pcapng import IN, OUT

HERE = Path(__file__).resolve().parent
WARNING = 0x600000  # of severities in tshark; errors are higher
AGGREGATOR = "\x01"
FIELDS = ["frame.number", "frame.packet_flags_direction", "frame.protocols", "udp.dstport", "infiniband.bth.opcode",
          "infiniband.invariant.crc", "infiniband.aeth.syndrome", "infiniband.mad.mgmtclass",
          "infiniband.mad.attributeid", "_ws.malformed", "_ws.expert.severity", "_ws.expert.message"]
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
# Of what tshark decodes the BTH alone.
CNP = 0x81
CNP_REASON = "tshark looks for the CNP at opcode 0x80, where A17.9.3 has it at 0x81"
XRC_REASON = "tshark knows XRC by its opcodes alone; the packet is decoded again as the one of RC that it extends"


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
    explained: why something is not counted as wrong -> how often.
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
        return [line.split("\t") for line in self.run(*argv).split("\n") if line]

    def icrcs(self, name):
        return json.loads(self.run("python3", "/mnt/wire/icrc.py", f"/mnt/captures/{name}"))


def decode(path):
    """The Findings of a capture that the device made."""
    path = Path(path).resolve()
    judges = Judges(path.parent)
    findings = Findings()
    for row in judges.tshark(path.name):
        take(findings, dict(zip(FIELDS, row, strict=True)))
    if XRC_REASON in findings.explained:
        again = decode_xrc(path)
        findings.wrong += [f"XRC: {line}" for line in again.wrong]
        if again.frames != findings.explained[XRC_REASON]:
            findings.wrong.append(f"XRC: {findings.explained[XRC_REASON]} packets, {again.frames} of them as RC")
    icrcs = judges.icrcs(path.name)
    findings.wrong += [f"frame {number}: {why}" for number, why in icrcs["wrong"]]
    # Each reads the file by itself.
    for what, mine in (("frames", findings.frames), ("rdma", findings.rdma)):
        if icrcs[what] != mine:
            findings.wrong.append(f"{what}: {mine} by tshark, {icrcs[what]} by scapy")
    return findings


def decode_xrc(path):
    """The Findings of the XRC packets of a capture, taken for those of RC."""
    findings = Findings()
    with tempfile.TemporaryDirectory() as folder:
        numbers = extended.extract(path, Path(folder) / "xrc.pcapng")
        for row in Judges(folder).tshark("xrc.pcapng"):
            fields = dict(zip(FIELDS, row, strict=True))
            take(findings, {**fields, "frame.number": numbers[int(fields["frame.number"]) - 1]})
    return findings


def take(findings, fields):
    """Book one frame as tshark sees it."""
    findings.frames += 1
    findings.protocols.update(set(fields["frame.protocols"].split(":")))
    if fields["infiniband.aeth.syndrome"]:
        findings.syndromes[int(fields["infiniband.aeth.syndrome"], 0)] += 1
    if int(fields["infiniband.mad.mgmtclass"] or "0", 0) == CM_CLASS:
        findings.cm[int(fields["infiniband.mad.attributeid"] or "0", 0)] += 1
    where = f"frame {fields['frame.number']} ({fields['frame.protocols']})"
    if fields["_ws.malformed"]:
        findings.wrong.append(f"{where}: malformed")
    take_warnings(findings, fields, where)
    if RDMA.match(fields["frame.protocols"]) and fields["udp.dstport"] == ROCE_PORT:
        take_packet(findings, fields, where)


def take_warnings(findings, fields, where):
    """Book what tshark's experts say of a frame."""
    severities = [int(word, 0) for word in fields["_ws.expert.severity"].split(AGGREGATOR) if word]
    messages = fields["_ws.expert.message"].split(AGGREGATOR) if severities else []
    for severity, message in zip(severities, messages, strict=True):
        if severity < WARNING:
            continue
        line = f"{fields['frame.protocols']}: {message}"
        reason = next((reason for words, reason in EXPLAINED if re.search(words, line)), None)
        if reason:
            findings.explained[reason] += 1
        else:
            findings.wrong.append(f"{where}: {message}")


def take_packet(findings, fields, where):
    """Book a frame of RoCE v2."""
    findings.rdma += 1
    if not fields["infiniband.bth.opcode"] or not DECODED.search(fields["frame.protocols"]):
        findings.wrong.append(f"{where}: for the port of RoCE v2, and not decoded as such")
        return
    opcode = int(fields["infiniband.bth.opcode"], 0)
    findings.opcodes[(int(fields["frame.packet_flags_direction"] or "0", 0), opcode)] += 1
    if opcode == CNP:
        findings.explained[CNP_REASON] += 1
    elif extended.is_xrc(opcode):
        findings.explained[XRC_REASON] += 1
    elif not fields["infiniband.invariant.crc"]:
        findings.wrong.append(f"{where}: opcode {opcode:#04x}, not decoded up to its ICRC")


def table(opcodes, names):
    """How many packets of each opcode there were, as lines of text."""
    rows = []
    for code in sorted({code for _, code in opcodes}):
        every = sum(opcodes[(way, code)] for way in (0, IN, OUT))
        rows.append(f"{code:#04x}  {opcodes[(OUT, code)]:>8}  {opcodes[(IN, code)]:>8}  {every:>8}  "
                    f"{names.get(code, '(unknown to tshark)')}")
    return ["BTH       sent  received       all", *rows]
