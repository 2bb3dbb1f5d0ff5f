# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca bench peers`: each kind of device with an HCA as its peer, and rxe with itself, in one guest and one run.

The device of the kind is the client. The figures are medians as those of bench.py, and each has its ratio to rxe's.
"""

import json
import statistics
from pathlib import Path

from . import accel, bench, guest, machine, pair, peers, setup
from .errors import UsageError
from .figures import LATENCY_COUNT, RXE_ADDRESS, Figure, perftest

# A SEND fits into the receive slot of an ERNIC, and so many are posted.
SEND_BYTES, RECEIVES = peers.SLOT_BYTES, 32
COUNT = {peers.RXE: 200}
COUNT_OTHERS = 1000


def bandwidth(bench_, figure, size, subject):
    receives = f"-r {RECEIVES}" if figure.name == "ib_send_bw" else ""
    return perftest(bench_, figure.name, f"-s {size} -n {COUNT.get(subject, COUNT_OTHERS)} {receives}", subject)[3]


def latency(bench_, figure, size, subject):
    return perftest(bench_, figure.name, f"-s {size} -n {LATENCY_COUNT}", subject)[4]


ALL = tuple(peers.KINDS)
# The programs for WRITEs open the memory of both ends.
OPEN = tuple(kind for kind in ALL if peers.WRITE in peers.KINDS[kind].serves)
FIGURES = [
    Figure("ib_write_bw", "MiB/s", bandwidth, (65536,), OPEN),
    Figure("ib_send_bw", "MiB/s", bandwidth, (SEND_BYTES,), ALL),
    Figure("ib_write_lat", "us", latency, (8,), OPEN),
    Figure("ib_send_lat", "us", latency, (8,), ALL),
]


class Bench(bench.Bench):
    """Measures with a guest in which the first HCA is the peer of one device of each kind."""

    def __init__(self, machine_):
        super().__init__(machine_, None, None)
        kinds = ["hghca", *machine.DEVICES]
        peer = self.ends["hghca"][1]
        for number, (kind, device) in enumerate(zip(kinds, machine.device_names(kinds)), 1):
            if number > 1:
                space, address = pair.SPACES[number - 1], f"10.10.0.{number}"
                self.ends[kind] = (peer, bench.find_end(self.guest, device, address, space))


def main(options):
    if options.png:
        raise UsageError("bench peers draws nothing", "leave out --png")
    made = setup.make()
    config = machine.Config(devices=["hghca", *machine.DEVICES], accel=accel.choose(made))
    with guest.boot(made, config) as guests:
        measured = Bench(guests[0])
        environment = bench.describe(made, config, guests[0])
        measured.run([(figure, figure.sizes) for figure in FIGURES], options.rounds)
    print_table(measured.samples)
    if options.json:
        rows = [{"test": figure.name, "bytes": size, "subject": subject, "values": values, "unit": figure.unit}
                for (figure, size, subject), values in measured.samples.items()]
        report = {"results": rows, "environment": environment, "failed_runs": measured.failures}
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    return 0


def cell(samples, figure, kind):
    """The median (the least to the greatest), and the ratio to rxe's; "" if the kind has none."""
    values, others = (samples.get((figure, figure.sizes[0], subject)) for subject in (kind, peers.RXE))
    if not values:
        return ""
    median, least, most = (bench.rounded(value) for value in (statistics.median(values), min(values), max(values)))
    return f"{median} ({least} to {most}), {statistics.median(values) / statistics.median(others):.3g}"


def print_table(samples):
    head = ["device", *(f"{figure.name} {figure.sizes[0]} B, {figure.unit}" for figure in FIGURES)]
    rows = [head, *([kind, *(cell(samples, figure, kind) for figure in FIGURES)] for kind in peers.KINDS)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    print("\nmedian (least to greatest), ratio to rxe")
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
