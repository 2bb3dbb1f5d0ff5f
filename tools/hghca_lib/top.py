# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca top`: rates of the devices of a running QEMU, and of their busy QPs, read by QMP.

QEMU serves one QMP client at each socket: a second `top` of the same guest waits for the first.
"""

import json
import socket
import sys
import tempfile
import time
from pathlib import Path

from . import guest
from .errors import ToolError, UsageError

PLACES = ("/machine/peripheral", "/machine/peripheral-anon")
ANSWER_S = 10
PSN_MASK = (1 << 24) - 1
HOME, CLEAR_BELOW = "\033[H", "\033[J"
# The columns of a device: (name, counters whose rates are added).
DEVICE = [("tx packets", ["tx_packets"]), ("rx packets", ["rx_packets"]), ("tx bytes", ["tx_bytes"]), ("rx bytes", ["rx_bytes"]),
          ("messages", ["rx_send_requests", "rx_write_requests", "rx_read_requests", "rx_atomic_requests"]),
          ("sent again", ["retransmitted"]), ("misses", ["context_misses"]), ("interrupts", ["interrupts"]),
          ("commands", ["commands"])]
QP = ["QPN", "service", "state", "peer", "sent", "received", "outstanding"]


def add_options(parser):
    parser.add_argument("socket", nargs="?", metavar="SOCKET", help="where QEMU listens for a QMP client")
    parser.add_argument("--interval", type=float, default=1.0, metavar="S", help="seconds between two readings (default 1)")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="end after N tables (default: never)")
    parser.add_argument("--qps", type=int, default=16, metavar="N", help="busy QPs of each device (default 16)")


class Qmp:
    """A client of QMP."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(ANSWER_S)
        try:
            self.socket.connect(str(path))
            self.file = self.socket.makefile("rw")
            self._read()
        except OSError as error:
            raise ToolError(f"no QEMU answers at {path}: {error}",
                            "is the guest still there, and no other client at the socket?") from error
        self.ask("qmp_capabilities")

    def close(self):
        self.socket.close()

    def _read(self):
        line = self.file.readline()
        if not line:
            raise OSError("QEMU has ended")
        return json.loads(line)

    def ask(self, command, **arguments):
        """The answer, or None if QEMU refuses: the device has gone, or has no such property."""
        try:
            self.file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
            self.file.flush()
            while True:
                answer = self._read()
                if "return" in answer or "error" in answer:
                    return answer.get("return")
        except OSError as error:
            raise ToolError(f"QEMU at {self.path}: {error}") from error


def running():
    """The socket of the one guest of the tool that runs now."""
    found = sorted(path for path in Path(tempfile.gettempdir()).glob(f"{guest.FOLDER}*/{guest.MONITOR.format('*')}")
                   if path.is_socket())
    if len(found) != 1:
        what = "no guest runs" if not found else "several guests run: " + ", ".join(map(str, found))
        raise UsageError(what, "start one with `tools/hghca shell`" if not found else "name the socket of one of them")
    return found[0]


def devices(qmp):
    """name -> path of each device that has counters."""
    found = {}
    for place in PLACES:
        for child in qmp.ask("qom-list", path=place) or []:
            path = f"{place}/{child['name']}"
            if child["type"].startswith("child<") and qmp.ask("qom-get", path=path, property="stats") is not None:
                found[child["name"]] = path
    return found


def look(qmp):
    """name -> (time, counters, QPs) of each device; QPs by number."""
    seen = {}
    for name, path in devices(qmp).items():
        counters = dict(qmp.ask("qom-get", path=path, property="stats") or {})
        for more in ("interrupts", "commands"):
            value = qmp.ask("qom-get", path=path, property=more)
            if value is not None:
                counters[more] = value
        qps = {qp["qpn"]: qp for qp in qmp.ask("qom-get", path=path, property="qps") or []}
        seen[name] = time.monotonic(), counters, qps
    return seen


def short(value):
    """A rate in at most five characters and a unit of thousands."""
    for unit in ("", "k", "M", "G"):
        if value < 9999.5 or unit == "G":
            return f"{value:.0f}{unit}"
        value /= 1000
    return ""


def device_row(before, after):
    """The rates of a device, in the order of DEVICE; - for a counter that it lacks."""
    seconds = after[0] - before[0]
    row = []
    for _, names in DEVICE:
        known = [name for name in names if name in after[1] and name in before[1]]
        # A reset of the device sets its counters to 0.
        changes = [after[1][name] - before[1][name] for name in known]
        row.append("-" if not known else "reset" if min(changes) < 0 else short(sum(changes) / seconds))
    return row


def qp_rows(before, after, most):
    """Those of the QPs that have sent or received since, the busiest first, in the order of QP."""
    seconds = after[0] - before[0]
    rows = []
    for qpn, qp in after[2].items():
        old = before[2].get(qpn, qp)
        sent, received = (((qp[key] - old[key]) & PSN_MASK) / seconds for key in ("sent", "received"))
        if sent or received or qp["outstanding"]:
            rows.append((sent + received, [str(qpn), qp["service"], qp["state"], str(qp["peer"] or "-"), short(sent),
                                           short(received), str(qp["outstanding"])]))
    rows.sort(key=lambda row: (-row[0], int(row[1][0])))
    return [row for _, row in rows[:most]]


def table(head, rows):
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    return ["  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip()
            for row in [head, *rows]]


def text(before, after, most):
    """What is shown: rates a second between two readings."""
    common = [name for name in after if name in before]
    lines = table(["device, a second", *(name for name, _ in DEVICE)],
                  [[name, *device_row(before[name], after[name])] for name in common])
    for name in common:
        rows = qp_rows(before[name], after[name], most)
        if rows:
            lines += ["", f"QPs of {name}, requests a second", *table(QP, rows)]
    return lines


def main(options):
    if options.interval < 0.1 or options.count < 0 or options.qps < 0:
        raise UsageError("--interval is 0.1 at least, --count and --qps are 0 at least")
    qmp = Qmp(options.socket or running())
    try:
        return show(qmp, options)
    except KeyboardInterrupt:
        return 0
    finally:
        qmp.close()


def show(qmp, options):
    before = look(qmp)
    if not before:
        raise ToolError("this QEMU has no RDMA device", "give it one: -device hghca")
    shown = 0
    screen = sys.stdout.isatty()
    while not options.count or shown < options.count:
        time.sleep(options.interval)
        after = look(qmp)
        lines = text(before, after, options.qps)
        if screen:
            print(HOME + "".join(f"{line}\033[K\n" for line in lines) + CLEAR_BELOW, end="", flush=True)
        else:
            print("\n".join(lines), flush=True)
        before = after
        shown += 1
    return 0
