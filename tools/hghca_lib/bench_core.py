# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca bench core`: the device core alone (tests/bench/core.cc), without a guest and without QEMU.

A figure is NAME/SIZE, or NAME/QPS/CACHED: so many QPs in turn, and so many contexts that the device keeps; 0: all.
copy_crc is the limit: what a CPU can copy that makes ICRCs as well.
"""

import json
import os
import re
import statistics
from pathlib import Path

from . import buildroot, cache, unit
from .errors import ToolError, UsageError

SHORTEST_S = 0.2


class Program:
    """The benchmark, compiled in the build root."""

    def __init__(self):
        self.root = buildroot.make()
        with cache.lock("unit-tree"):
            self.path, said = unit.make(self.root, unit.BENCHMARK)
        if not self.path:
            raise ToolError("the benchmark of the core does not compile",
                            f"the error is in tests/bench or qemu-device/core of this checkout:\n{said}")

    def run(self, pattern=".", rounds=1, shortest_s=SHORTEST_S):
        """Run what the pattern finds: figure -> its rows, one a round, with items_per_second and bytes_per_second."""
        argv = [self.path, f"--benchmark_filter={pattern}", f"--benchmark_repetitions={rounds}",
                f"--benchmark_min_time={shortest_s}s", "--benchmark_enable_random_interleaving=true",
                "--benchmark_format=json"]
        done = self.root.output(argv, {"job": unit.BENCHMARK.tree(self.root)})
        if done.returncode or not done.stdout.startswith("{"):
            raise ToolError(f"the benchmark of the core has failed: {(done.stdout + done.stderr)[-500:].strip()}")
        rows = {}
        # The rounds of all figures are mixed; here they are in the order of the source.
        for row in sorted(json.loads(done.stdout)["benchmarks"],
                          key=lambda row: (row["family_index"], row["per_family_instance_index"])):
            if row.get("error_occurred"):
                raise ToolError(f"{row['name']}: {row['error_message']}")
            if row["run_type"] == "iteration":
                rows.setdefault(row["run_name"], []).append(row)
        return rows


def main(options):
    if options.png:
        raise UsageError("bench core draws nothing", "leave out --png")
    program = Program()
    print(f"{options.rounds} rounds of all figures, some ten seconds each", flush=True)
    results = [result(name, rows) for name, rows in program.run(rounds=options.rounds).items()]
    print_table(results)
    if options.json:
        cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        environment = {"host_cpu": cpu.group(1) if cpu else "unknown", "host_cpus": os.cpu_count()}
        Path(options.json).write_text(json.dumps({"results": results, "environment": environment}, indent=1) + "\n")
    return 0


def result(name, rows):
    rates = [row["items_per_second"] for row in rows]
    return {"test": name, "unit": "messages a second", "value": statistics.median(rates), "min": min(rates),
            "max": max(rates), "runs": len(rates),
            "bytes_per_second": statistics.median(row["bytes_per_second"] for row in rows)}


def print_table(results):
    """A row for each figure, with its share of copy_crc at its size where both have one."""
    limits = {row["test"].partition("/")[2]: row["bytes_per_second"] for row in results
              if row["test"].startswith("copy_crc/")}
    print(f"\n{'figure':<24}{'thousand a second: median (least to most)':>44}{'GB/s':>8}{'of copy_crc':>13}")
    for row in results:
        figure, _, size = row["test"].partition("/")
        share = f"{row['bytes_per_second'] / limits[size]:.0%}" if figure != "copy_crc" and size in limits else ""
        median, least, most = (f"{value / 1000:,.0f}" for value in (row["value"], row["min"], row["max"]))
        print(f"{row['test']:<24}{f'{median} ({least} to {most})':>44}{row['bytes_per_second'] / 1e9:>8.2f}{share:>13}")
