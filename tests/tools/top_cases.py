# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca top`: rates from two readings, what QEMU says by QMP, and what it says when there is nothing to show."""

import contextlib
import json
import socket
import tempfile
import threading
from pathlib import Path

from tool import fails, hghca, holds, same

from hghca_lib import top


def qp(qpn, sent, received, outstanding=0, service="RC", peer=9):
    return {"qpn": qpn, "service": service, "state": "RTS", "peer": peer, "sent": sent, "received": received,
            "outstanding": outstanding}


def reading(at, counters, *qps):
    return at, counters, {one["qpn"]: one for one in qps}


def test_top_device():
    """Rates are a second; a counter that a device lacks and a device that was reset are told"""
    before = reading(10, {"tx_packets": 100, "rx_packets": 7, "rx_send_requests": 1, "rx_write_requests": 2, "retransmitted": 9})
    after = reading(12, {"tx_packets": 30_100, "rx_packets": 8, "rx_send_requests": 3, "rx_write_requests": 6, "retransmitted": 8})
    row = dict(zip((name for name, _ in top.DEVICE), top.device_row(before, after)))
    same(row, {"tx packets": "15k", "rx packets": "0", "tx bytes": "-", "rx bytes": "-", "messages": "3",
               "sent again": "reset", "misses": "-", "interrupts": "-", "commands": "-"}, "rates")


def test_top_qps():
    """The busiest QPs come first; PSNs wrap; one that is at rest is not shown, one that waits for an answer is"""
    before = reading(0, {}, qp(8, 10, 5), qp(9, 0xfffffe, 0), qp(10, 1, 1), qp(11, 5, 5, 3), qp(12, 0, 0))
    after = reading(2, {}, qp(8, 10, 25), qp(9, 98, 0), qp(10, 1, 1), qp(11, 5, 5, 3, "UD", 0), qp(13, 50, 50))
    same(top.qp_rows(before, after, 16), [["9", "RC", "RTS", "9", "50", "0", "0"], ["8", "RC", "RTS", "9", "0", "10", "0"],
                                          ["11", "UD", "RTS", "-", "0", "0", "3"]], "rows")
    same([row[0] for row in top.qp_rows(before, after, 1)], ["9"], "the busiest")


def test_top_short():
    """A rate has four digits at most, and thousands have letters"""
    same([top.short(value) for value in (0, 0.4, 1, 9999, 10_000, 123_456, 9_999_000, 10_000_000, 5e9, 2e13)],
         ["0", "0", "1", "9999", "10k", "123k", "9999k", "10M", "5000M", "20000G"], "rates")


@contextlib.contextmanager
def emulator(answers):
    """A QMP server at the socket that is given; `answers` is called with the command and the arguments."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path = Path(folder) / "qmp"
        server.bind(str(path))
        server.listen(1)

        def serve():
            client, _ = server.accept()
            with client, client.makefile("rw") as file:
                file.write('{"QMP": {}}\n')
                file.flush()
                for line in file:
                    request = json.loads(line)
                    file.write('{"event": "RTC_CHANGE"}\n' + json.dumps(answers(request["execute"], request["arguments"])) + "\n")
                    file.flush()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield path
        thread.join(10)


def devices(command, arguments, sent=[0]):
    """Of a QEMU with an HCA, whose PSN increases, and a device without counters."""
    refused = {"error": {"class": "GenericError", "desc": "no"}}
    if command == "qmp_capabilities":
        return {"return": {}}
    if command == "qom-list":
        here = arguments["path"] == "/machine/peripheral"
        return {"return": [{"name": "hca1", "type": "child<hghca>"}, {"name": "disk", "type": "child<virtio-blk>"},
                           {"name": "type", "type": "string"}] if here else []}
    if command == "qom-get" and arguments["path"].endswith("hca1"):
        sent[0] += 1
        values = {"stats": {"tx_packets": sent[0] * 1000, "context_misses": 4}, "commands": 12,
                  "qps": [qp(77, sent[0] * 1000, 0, 5)]}
        if arguments["property"] in values:
            return {"return": values[arguments["property"]]}
    return refused


def test_top_shows():
    """Devices with counters are shown with their QPs, as often as was asked for; others are not"""
    with emulator(devices) as path:
        ended = hghca("top", path, "--interval", "0.2", "--count", 2)
    same(ended.status, 0, "status")
    lines = ended.stdout.splitlines()
    same(sum(line.startswith("hca1 ") for line in lines), 2, "rows of the HCA")
    same(sum(line.startswith("77 ") for line in lines), 2, "rows of the QP")
    holds(ended.stdout, "QPs of hca1")
    same("disk" in ended.stdout, False, "the other device")


def test_top_without():
    """Without a guest, without a device, and at a socket where nobody answers, top says what to do"""
    fails(hghca("top", "--interval", "0"), 2, "--interval is 0.1 at least")
    fails(hghca("top", "/nowhere/qmp"), 1, "no QEMU answers at /nowhere/qmp", "is the guest still there")
    with tempfile.TemporaryDirectory() as folder:
        fails(hghca("top", env={"TMPDIR": folder}), 2, "no guest runs", "tools/hghca shell")
    with emulator(lambda command, _: {"return": [] if command == "qom-list" else {}}) as path:
        fails(hghca("top", path), 1, "no RDMA device", "-device hghca")
