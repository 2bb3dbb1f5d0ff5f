# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca bench`: the HCA, rxe and the limits of this machine side by side, in one run.

All subjects share one guest, except hghca-vms, which has two more. These are idle while others are measured. figures.py
lists the figures and their subjects. Every figure is the median over several rounds. In each round the subjects take
turns, in a different order each time.
"""

import contextlib
import dataclasses
import json
import os
import platform
import re
import statistics
import subprocess
import time
from pathlib import Path

from . import accel, bench_compare, bench_core, buildroot, cache, goals, guest, machine, pair, plot, repo, setup
from .errors import ToolError, UsageError
from .figures import FIGURES, LOOP, RXE_ADDRESS, UNVERIFIED, VMS, End, RunFailed

ROUNDS = 3
TRIES = 3
RXE_SETUP = f"""
set -e
modprobe rdma_rxe
ip link add rxe-net type dummy
ip link set rxe-net mtu 4200 up
ip address add {RXE_ADDRESS}/24 dev rxe-net
rdma link add rxe0 type rxe netdev rxe-net
"""


def add_options(parser):
    parser.add_argument("figures", nargs="*", metavar="FIGURE",
                        help=f"measure only these, FIGURE:BYTES at one size only (default: all); "
                             f"{', '.join(figure.name for figure in FIGURES)}; or `peers`: each kind of device beside rxe; or "
                             f"`core`: the device core alone")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    parser.add_argument("--png", metavar="FILE", help="draw them there")
    parser.add_argument("--compare", metavar="FILE", help="compare with the figures of an earlier run's --json")
    parser.add_argument("--from", dest="earlier", metavar="FILE",
                        help="do not measure: the figures of an earlier run's --json")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N",
                        help=f"runs of everything, at least 3 (default {ROUNDS})")
    parser.add_argument("--unverified", action="store_true",
                        help="also measure bandwidths and latencies with verify=remote: the peer verifies no ICRC; "
                             f"without {VMS}")


def chosen(names):
    """The figures of the names, all if no name is given, as [(Figure, its sizes)] in the order of FIGURES."""
    wanted = {}
    for name in names or [figure.name for figure in FIGURES]:
        name, _, size = name.partition(":")
        figure = next((figure for figure in FIGURES if figure.name == name), None)
        if figure is None:
            raise UsageError(f"there is no figure {name}", f"one of {', '.join(figure.name for figure in FIGURES)}")
        sizes = [one for one in figure.sizes if not size or str(one) == size]
        if not sizes:
            raise UsageError(f"{name} is not measured at {size} bytes",
                             f"at one of {', '.join(map(str, figure.sizes))}")
        wanted[name] = sorted({*wanted.get(name, ()), *sizes})
    return [(figure, wanted[figure.name]) for figure in FIGURES if figure.name in wanted]


def main(options):
    if options.rounds < 3:
        raise UsageError("medians need at least 3 rounds")
    for name in (options.json, options.png):
        if name and not Path(name).absolute().parent.is_dir():
            raise UsageError(f"there is no folder for {name}", "make it first")
    if options.figures in (["peers"], ["core"]) and (options.compare or options.earlier):
        raise UsageError(f"bench {options.figures[0]} compares no runs", "leave out --compare and --from")
    if options.figures == ["peers"]:
        from . import bench_peers
        return bench_peers.main(options)
    if options.figures == ["core"]:
        from . import bench_core
        return bench_core.main(options)
    old = bench_compare.read(options.compare) if options.compare else None
    if options.earlier:
        if options.figures:
            raise UsageError("--from has its figures in the file", "leave out the names of figures")
        report = bench_compare.read(options.earlier)
    else:
        report = measure(chosen(options.figures), options.rounds, extra=UNVERIFIED if options.unverified else VMS)
    results = report["results"]
    print_tables(results)
    if old:
        bench_compare.print_table(old["results"], results)
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    if options.png:
        plot.draw(buildroot.make(), results, options.png)
    return 0


def measure(wanted, rounds, kernel=None, extra=None):
    """Measure what chosen() has found; the report, as --json has it.

    kernel: as setup.make() takes it. extra: a further subject, UNVERIFIED or VMS.
    """
    made = setup.make(kernel=kernel)
    programs, core = make_programs(made.buildroot), bench_core.Program()
    config = machine.Config(share=str(programs), accel=accel.choose(made))
    with guest.boot(made, config) as guests, boot_vms(made, config, wanted, extra) as vms:
        bench = Bench(guests[0], programs / "memcpy", core, vms)
        if extra == UNVERIFIED:
            bench.ends[UNVERIFIED] = bench.ends["hghca"]
        environment = describe(made, config, guests[0])
        bench.run(wanted, rounds)
    return {"results": bench.results(), "environment": environment, "rounds": rounds, "failed_runs": bench.failures}


def boot_vms(made, config, wanted, extra):
    """Boot the two guests of VMS, if that is the extra subject and one of the figures has it; yields the list of them."""
    if extra != VMS or not any(VMS in figure.subjects for figure, _ in wanted):
        return contextlib.nullcontext([])
    return guest.boot(made, dataclasses.replace(config, guests=2, link=machine.SHARED, share=None))


BUILD = """
set -e
gcc -O2 -Wall -Wextra -Werror -static -o /mnt/out/memcpy memcpy.c
gcc -O2 -Wall -Wextra -Werror -o /mnt/out/objects objects.c -libverbs
gcc -O2 -Wall -Wextra -Werror -pthread -o /mnt/out/contend contend.c -libverbs
cp nvme.sh /mnt/out
"""


def make_programs(buildroot):
    """The folder with the measuring programs: `memcpy`, static, for the host, and others for the guest's /share."""
    source = repo.path("tools/bench")
    key = cache.key(buildroot.key, BUILD, cache.tree_key(repo.ROOT, source))

    def build(folder):
        log = cache.log_path("bench")
        log.unlink(missing_ok=True)
        buildroot.run(["sh", "-c", BUILD], log, "measuring programs",
                      "the error is in tools/bench of this checkout; correct it there",
                      {"out": folder, "bench": source}, "/mnt/bench")

    return cache.make("bench", key, build, 16 * cache.MIB, "measuring programs")


def describe(made, config, machine_):
    """The properties of the system that the figures depend on."""
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
    """Runs and collects: samples[(figure, bytes, subject)] is a list of values.

    vms:  the two guests of the subject VMS, or none.
    ends: of each subject, the Ends of the server and of the client.
    exported: whether the guest's disk is there for NVMe hosts.
    """

    def __init__(self, machine_, copier, core, vms=()):
        self.guest = machine_
        self.copier = copier
        self.core = core
        self.samples = {}
        self.failures = []
        self.exported = False
        self.port = 20000
        result = self.guest.run(RXE_SETUP)
        if result.status:
            raise ToolError(f"rxe cannot be set up in the guest: {result.output.strip()}")
        client = find_end(self.guest, pair.CLIENT_DEVICE, pair.CLIENT_ADDRESS)
        server = find_end(self.guest, pair.SERVER_DEVICE, pair.SERVER_ADDRESS, pair.SERVER_SPACE)
        rxe = find_end(self.guest, "rxe0", RXE_ADDRESS)
        loop = End(self.guest, None, None, None, LOOP)
        self.ends = {"hghca": (server, client), "hghca-self": (client, client), "rxe": (rxe, rxe), LOOP: (loop, loop)}
        if vms:
            self.ends[VMS] = (find_end(vms[1], "hghca0", pair.SERVER_ADDRESS), find_end(vms[0], "hghca0", pair.CLIENT_ADDRESS))

    def run(self, wanted, rounds):
        """All rounds of chosen(), one progress line for each figure; the first runs are an unmeasured warm-up."""
        start = time.monotonic()
        for figure, sizes in wanted[:1]:
            for subject in self.in_guest(figure):
                self.measure(figure, sizes[-1], subject)
        for number in range(rounds):
            for figure, sizes in wanted:
                subjects = self.in_guest(figure)
                order = subjects[number % len(subjects):] + subjects[:number % len(subjects)]
                for size in sizes:
                    for subject in order:
                        self.take(figure, size, subject, self.measure(figure, size, subject))
                print(f"round {number + 1}/{rounds}: {figure.name} ... {time.monotonic() - start:.0f} s", flush=True)
            self.copy_memory([(figure, sizes) for figure, sizes in wanted if "memcpy" in figure.subjects])
            self.copy_with_crc([(figure, sizes) for figure, sizes in wanted if "copy-crc" in figure.subjects])

    def in_guest(self, figure):
        return [subject for subject in figure.subjects if subject in self.ends]

    def take(self, figure, size, subject, value):
        self.samples.setdefault((figure, size, subject), []).append(value)

    def measure(self, figure, size, subject):
        """One value; a failed run is repeated, and every failed run is reported and kept."""
        self.verify("remote" if subject == UNVERIFIED else "all")
        for _ in range(TRIES):
            try:
                return figure.take(self, figure, size, subject)
            except RunFailed as error:
                self.failures.append({"test": figure.name, "bytes": size, "subject": subject, "why": str(error)})
                print(f"failed run: {figure.name}, {size} bytes, {subject}: {error}", flush=True)
        raise ToolError(f"{figure.name} with {size} bytes on {subject} failed {TRIES} times")

    def verify(self, value):
        """Set the property of both HCAs, if any subject needs it."""
        if UNVERIFIED in self.ends:
            for number in (1, 2):
                self.guest.qmp("qom-set", path=f"/machine/peripheral/hca{number}", property="verify", value=value)

    def next_port(self):
        """An unused TCP port."""
        self.port += 1
        return self.port

    def copy_memory(self, wanted):
        """The host's memcpy at all sizes; it has no verbs, so it is listed beside each of them."""
        sizes = sorted({size for _, sizes in wanted for size in sizes})
        if not sizes:
            return
        said = subprocess.run([self.copier, *map(str, sizes)], capture_output=True, text=True, check=True).stdout
        for line in said.splitlines():
            size, rate, span = line.split()
            for figure, own_sizes in wanted:
                if int(size) in own_sizes:
                    self.take(figure, int(size), "memcpy", float(span if figure.unit == "us" else rate))

    def copy_with_crc(self, wanted):
        """The host's copies with an ICRC, beside the bandwidths."""
        sizes = sorted({size for _, sizes in wanted for size in sizes})
        if not sizes:
            return
        rows = self.core.run(f"^copy_crc/({'|'.join(map(str, sizes))})$", shortest_s=0.05)
        for figure, own_sizes in wanted:
            for size in own_sizes:
                self.take(figure, size, "copy-crc", rows[f"copy_crc/{size}"][0]["bytes_per_second"] / (1 << 20))

    def results(self):
        """The list for the JSON file, in the order of figures, sizes and subjects."""
        return [{"test": figure.name, "bytes": size, "subject": subject, "value": statistics.median(values),
                 "unit": figure.unit, "min": min(values), "max": max(values), "runs": len(values)}
                for (figure, size, subject), values in sorted(self.samples.items(), key=lambda item: place(*item[0]))]


def find_end(machine_, device, address, space=None):
    return End(machine_, device, pair.gid_index(machine_, device, space, address), space, address)


def place(figure, size, subject):
    return FIGURES.index(figure), size, figure.subjects.index(subject)


def print_tables(results):
    """One table for each figure, with a row for each size, a column for each subject, and the ratios to the others. Then the goals."""
    value = {(row["test"], row["bytes"], row["subject"]): row for row in results}
    for test in dict.fromkeys(row["test"] for row in results):
        rows = [row for row in results if row["test"] == test]
        subjects = list(dict.fromkeys(row["subject"] for row in rows))
        ours, others = subjects[0], [subject for subject in ("rxe", LOOP, "memcpy", "copy-crc") if subject in subjects]
        print(f"\n{test}, {rows[0]['unit']}: median (least to most)")
        print(f"{'bytes':>9}" + "".join(f"{subject:>30}" for subject in subjects) +
              "".join(f"{f'{ours}/{other}':>16}" for other in others))
        for size in dict.fromkeys(row["bytes"] for row in rows):
            print(f"{size or '-':>9}" + "".join(f"{cell(value[test, size, subject]):>30}" for subject in subjects) +
                  "".join(f"{ratio(value, test, size, ours, other):>16.3g}" for other in others))
    print("\n" + "\n".join(goals.lines(results)))


def ratio(value, test, size, ours, other):
    return value[test, size, ours]["value"] / value[test, size, other]["value"]


def cell(row):
    return f"{rounded(row['value'])} ({rounded(row['min'])} to {rounded(row['max'])})"


def rounded(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
