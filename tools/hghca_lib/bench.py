# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca bench`: our HCA, rxe and memcpy side by side, in one run in one guest.

Subjects:
  hghca       from the first HCA of the guest to the second, over the link
  hghca-self  the first HCA to itself
  rxe         the kernel's software RDMA on an interface with the same MTU, to
              itself: it knows no network namespaces in this kernel, and spares
              itself the interface that way, so this is its fastest path
  memcpy      this machine's memcpy at the same size, outside the guest

Every figure is the median over several rounds; in each round the subjects take
turns, in another order each time. perftest's two ends run on a CPU each.
"""

import json
import os
import platform
import re
import statistics
import subprocess
import time
from pathlib import Path

from . import accel, cache, guest, machine, pair, plot, repo, setup
from .errors import ToolError, UsageError

MIB = 1 << 20
BANDWIDTH_TESTS = ["ib_write_bw", "ib_read_bw", "ib_send_bw"]
LATENCY_TESTS = ["ib_write_lat", "ib_read_lat", "ib_send_lat"]
BANDWIDTH_SIZES = [64 << shift for shift in range(0, 17, 2)]
LATENCY_SIZES = [8, 4096]
SUBJECTS = ["hghca", "hghca-self", "rxe", "memcpy"]
ROUNDS = 3
RUN_TIMEOUT_S = 60
TRIES = 3
LATENCY_COUNT = 1000
# How much a bandwidth run moves: enough to measure, little enough to be done in time.
RUN_BYTES = {"hghca": 256 * MIB, "hghca-self": 256 * MIB, "rxe": 8 * MIB}
COUNT_LEAST, COUNT_MOST = {"hghca": 50, "hghca-self": 50, "rxe": 5}, {"hghca": 10000, "hghca-self": 10000, "rxe": 2000}
RXE_ADDRESS = "10.99.0.1"
RXE_SETUP = f"""
set -e
modprobe rdma_rxe
ip link add rxe-net type dummy
ip link set rxe-net mtu 4200 up
ip address add {RXE_ADDRESS}/24 dev rxe-net
rdma link add rxe0 type rxe netdev rxe-net
"""
# What is to be reached: (what, test, bytes, how hghca's figure over rxe's must be).
GOALS = [("bandwidth at 64 KiB, hghca over rxe", "ib_write_bw", 65536, lambda ratio: ratio >= 20, "at least 20"),
         ("write latency at 8 B, hghca over rxe", "ib_write_lat", 8, lambda ratio: ratio <= 0.5, "at most 0.5")]


class RunFailed(Exception):
    """One run of a perftest program did not give a figure."""


def add_options(parser):
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    parser.add_argument("--png", metavar="FILE", help="draw them there")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N",
                        help=f"runs of everything, at least 3 (default {ROUNDS})")


def main(options):
    if options.rounds < 3:
        raise UsageError("medians need at least 3 rounds")
    for name in (options.json, options.png):
        if name and not Path(name).absolute().parent.is_dir():
            raise UsageError(f"there is no folder for {name}", "make it first")
    made = setup.make()
    config = machine.Config(accel=accel.choose(made))
    copier = make_copier(made.buildroot)
    with guest.boot(made, config) as guests:
        bench = Bench(guests[0], copier)
        environment = describe(made, config, guests[0])
        bench.run(options.rounds)
    results = bench.results()
    print_tables(results)
    report = {"results": results, "environment": environment, "rounds": options.rounds, "failed_runs": bench.failures}
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    if options.png:
        plot.draw(made.buildroot, results, options.png)
    return 0


def make_copier(buildroot):
    """The path of the program that measures memcpy; static, to run outside the build root."""
    source = repo.path("tools/bench/memcpy.c")
    key = cache.key(buildroot.key, source)

    def build(folder):
        log = cache.log_path("bench")
        buildroot.run(["gcc", "-O2", "-static", "-o", "/mnt/out/memcpy", "/mnt/bench/memcpy.c"], log, "memcpy program",
                      "the error is in tools/bench of this checkout; correct it there",
                      {"out": folder, "bench": source.parent})

    return cache.make("bench", key, build, 16 * MIB, "memcpy program") / "memcpy"


def describe(made, config, machine_):
    """The facts that the figures depend on."""
    def host(path, pattern):
        match = re.search(pattern, Path(path).read_text(), re.MULTILINE)
        return match.group(1) if match else "unknown"

    def inside(command):
        return machine_.run(command).stdout.strip()

    commit = subprocess.run(["git", "-C", str(repo.ROOT), "describe", "--always", "--dirty"], capture_output=True,
                            text=True)
    return {
        "host_cpu": host("/proc/cpuinfo", r"^model name\s*: (.*)$"),
        "host_cpus": os.cpu_count(),
        "host_memory_mib": int(host("/proc/meminfo", r"^MemTotal:\s*(\d+)")) // 1024,
        "host_kernel": platform.release(),
        "host_load_at_start": os.getloadavg()[0],
        "accelerator": config.accel,
        "guest_cpus": int(inside("nproc")),
        "guest_memory": config.memory,
        "guest_kernel": inside("uname -r"),
        "perftest": inside("dpkg-query -W -f '${Version}' perftest"),
        "rdma_core": inside("dpkg-query -W -f '${Version}' rdma-core"),
        "emulator": made.qemu.key,
        "commit": commit.stdout.strip() or "unknown",
    }


class Bench:
    """Runs and collects: samples[(test, bytes, subject)] is a list of figures."""

    def __init__(self, machine_, copier):
        self.guest = machine_
        self.copier = copier
        self.samples = {}
        self.failures = []
        self.port = 20000
        result = self.guest.run(RXE_SETUP)
        if result.status:
            raise ToolError(f"rxe cannot be set up in the guest: {result.output.strip()}")
        client = ("hghca0", pair.client_gid(self.guest), None, pair.CLIENT_ADDRESS)
        server = ("hghca1", pair.server_gid(self.guest), pair.SERVER_SPACE, pair.SERVER_ADDRESS)
        rxe = ("rxe0", pair.gid_index(self.guest, "rxe0", address=RXE_ADDRESS), None, RXE_ADDRESS)
        self.ends = {"hghca": (server, client), "hghca-self": (client, client), "rxe": (rxe, rxe)}

    def run(self, rounds):
        """All rounds, with a progress line for each test; the first, unmeasured runs warm everything up."""
        start = time.monotonic()
        for subject in self.ends:
            self.measure("ib_write_bw", 65536, subject)
        for number in range(rounds):
            order = [*self.ends][number % 3:] + [*self.ends][:number % 3]
            for test, sizes in (*((test, BANDWIDTH_SIZES) for test in BANDWIDTH_TESTS),
                                *((test, LATENCY_SIZES) for test in LATENCY_TESTS)):
                for size in sizes:
                    for subject in order:
                        self.take(test, size, subject, self.measure(test, size, subject))
                print(f"round {number + 1}/{rounds}: {test} ... {time.monotonic() - start:.0f} s", flush=True)
            self.copy_memory()

    def take(self, test, size, subject, value):
        self.samples.setdefault((test, size, subject), []).append(value)

    def measure(self, test, size, subject):
        """One figure, tried again when a run fails; every failed run is told and kept."""
        for attempt in range(TRIES):
            try:
                return self.perftest(test, size, subject)
            except RunFailed as error:
                self.failures.append({"test": test, "bytes": size, "subject": subject, "why": str(error)})
                print(f"failed run: {test}, {size} bytes, {subject}: {error}", flush=True)
        raise ToolError(f"{test} with {size} bytes on {subject} failed {TRIES} times")

    def perftest(self, test, size, subject):
        """Run both ends; MiB/s on average, or the typical latency in us."""
        bandwidth = test in BANDWIDTH_TESTS
        count = LATENCY_COUNT
        if bandwidth:
            count = max(COUNT_LEAST[subject], min(COUNT_MOST[subject], RUN_BYTES[subject] // size))
        self.port += 1
        (device, gid, space, address), (own_device, own_gid, own_space, _) = self.ends[subject]
        options = f"-F -s {size} -n {count} -p {self.port}"
        server = self.guest.start(f"exec taskset 2 {test} -d {device} -x {gid} {options}", netns=space)
        self.guest.run(["sh", "-c", LISTENING, "sh", str(self.port)], netns=space, timeout=10)
        client = self.guest.run(f"exec taskset 1 {test} -d {own_device} -x {own_gid} {options} {address}",
                                netns=own_space, timeout=RUN_TIMEOUT_S)
        if client.status:
            server.kill()
        said = server.wait(10)
        rows = pair.perftest_rows(client.stdout)
        if client.status or said.status or len(rows) != 1:
            raise RunFailed(f"status {client.status} and {said.status}: {last_words(client)} / {last_words(said)}")
        return rows[0][3] if bandwidth else rows[0][4]

    def copy_memory(self):
        """The host's memcpy at all sizes; it has no verbs, so it stands beside each of them."""
        sizes = sorted({*BANDWIDTH_SIZES, *LATENCY_SIZES})
        said = subprocess.run([self.copier, *map(str, sizes)], capture_output=True, text=True, check=True).stdout
        for line in said.splitlines():
            size, rate, span = line.split()
            for tests, wanted, value in ((BANDWIDTH_TESTS, BANDWIDTH_SIZES, rate), (LATENCY_TESTS, LATENCY_SIZES, span)):
                if int(size) in wanted:
                    for test in tests:
                        self.take(test, int(size), "memcpy", float(value))

    def results(self):
        """The list for the JSON file, in the order of tests, sizes and subjects."""
        return [{"test": test, "bytes": size, "subject": subject, "value": statistics.median(values),
                 "unit": "MiB/s" if test in BANDWIDTH_TESTS else "us", "min": min(values), "max": max(values),
                 "runs": len(values)}
                for (test, size, subject), values in sorted(self.samples.items(), key=lambda item: place(*item[0]))]


# Wait until something listens on the port; the caller bounds the time.
LISTENING = "hex=$(printf ':%04X .*:0000 0A' $1); until grep -q \"$hex\" /proc/net/tcp; do sleep 0.01; done"


def last_words(result):
    lines = [line for line in result.output.splitlines() if line.strip(" -")]
    return " ".join(lines[-2:])[-200:] if lines else "no output"


def place(test, size, subject):
    return (BANDWIDTH_TESTS + LATENCY_TESTS).index(test), size, SUBJECTS.index(subject)


def print_tables(results):
    """A table a test: a row a size, a column a subject, and the ratios that matter."""
    value = {(row["test"], row["bytes"], row["subject"]): row for row in results}
    for test in BANDWIDTH_TESTS + LATENCY_TESTS:
        sizes = BANDWIDTH_SIZES if test in BANDWIDTH_TESTS else LATENCY_SIZES
        unit = value[test, sizes[0], "hghca"]["unit"]
        print(f"\n{test}, {unit}: median (least to most)")
        print(f"{'bytes':>9}" + "".join(f"{subject:>30}" for subject in SUBJECTS) +
              f"{'hghca/rxe':>11}{'hghca/memcpy':>14}")
        for size in sizes:
            row = [value[test, size, subject] for subject in SUBJECTS]
            ratios = (row[0]["value"] / row[2]["value"], row[0]["value"] / row[3]["value"])
            print(f"{size:>9}" + "".join(f"{cell(one):>30}" for one in row) + f"{ratios[0]:>11.3g}{ratios[1]:>14.3g}")
    print()
    for what, test, size, reached, wanted in GOALS:
        ratio = value[test, size, "hghca"]["value"] / value[test, size, "rxe"]["value"]
        print(f"{what}: {ratio:.3g} (goal: {wanted}) {'reached' if reached(ratio) else 'MISSED'}")


def cell(row):
    return f"{figure(row['value'])} ({figure(row['min'])} to {figure(row['max'])})"


def figure(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
