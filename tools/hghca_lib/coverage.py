# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca coverage`: which lines of the device core and of the driver the tests reach.

The unit tests measure the core. Every suite that runs under the debug kernel
measures the driver; the counts of all guests are added up.
"""

import contextlib
import dataclasses
import json
import os
import tempfile
from pathlib import Path

from . import buildroot, cache, gcov, host, repo, suites, tiers, unit
from .errors import ToolError, UsageError

CURE = "remove the folder `unit-tree` of the cache and run the same command again"
# The folder in which module.py builds the driver.
MODULE = "/mnt/module"
DRIVER_SUITES = ["kunit", "debug"]


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of the project: the folder of its sources, and the goal, a percentage of its lines.

    measure(root, work, options): the names of the traces that it creates in the folder `work`.
    """
    folder: str
    goal_percent: float
    measure: object


def add_options(command):
    command.add_argument("parts", nargs="*", metavar="PART", help="core, driver (default: both)")
    command.add_argument("--counts", metavar="DIR",
                         help=f"for the driver: use the counts in this folder, which guests left by ${gcov.VARIABLE}, "
                              "instead of running the suites")
    command.add_argument("--html", metavar="DIR", help="write an HTML page, index.html, into this folder")


def main(options):
    names = options.parts or list(PARTS)
    for name in names:
        if name not in PARTS:
            raise UsageError(f"there is no part {name}", f"choose from: {' '.join(PARTS)}")
    if options.counts and not Path(options.counts).is_dir():
        raise UsageError(f"there is no folder {options.counts} with counts",
                         f"run guests with {gcov.VARIABLE} set to it")
    host.require_root()
    host.require_platform()
    host.install()
    root = buildroot.make()
    with tempfile.TemporaryDirectory(dir=cache.root(), prefix="coverage-") as place:
        work = Path(place)
        cache.log_path("coverage").unlink(missing_ok=True)
        traces = [trace for name in names for trace in PARTS[name].measure(root, work, options)]
        files = report(root, work, traces, options.html)
    text, good = summary(files, names)
    print(text, end="")
    if options.html:
        Path(options.html, "summary.txt").write_text(text)
    return 0 if good else 1


def measure_core(root, work, _):
    """The trace of one run of the core's unit tests."""
    build = unit.COVERAGE
    tree = build.tree(root)
    with cache.lock("unit-tree"):
        program, said = unit.make(root, build)
        if not program:
            raise ToolError(f"the unit tests do not compile:\n{said}", "correct the error that is named")
        for old in tree.rglob("*.gcda"):
            old.unlink()
        done = root.output([program], {"job": tree})
        if done.returncode:
            raise ToolError(f"the unit tests fail, see `tools/hghca test unit`:\n{done.stdout[-2000:]}")
        run(root, ["gcovr", "--root", "source", "--filter", "source/qemu-device/core/", "--json", "/mnt/work/core.json",
                   "build/CMakeFiles/hghca-core.dir", f"build/CMakeFiles/{build.target}.dir"],
            {"job": tree, "work": work}, unit.MOUNT)
    return ["core.json"]


def measure_driver(root, work, options):
    """The traces of all guests in which the suites run."""
    if options.counts:
        return traces_of_guests(root, work, Path(options.counts))
    counts = work / "counts"
    counts.mkdir()
    with environment(gcov.VARIABLE, str(counts)):
        for name in DRIVER_SUITES:
            if name not in suites.available():
                raise ToolError(f"there is no test suite {name} to measure the driver with")
            suites.run_suite(name, tiers.ALL)
    return traces_of_guests(root, work, counts)


def traces_of_guests(root, work, counts):
    """A trace for each archive in the folder `counts`; at least one."""
    traces = []
    sources = work / "module"
    cache.sync_tree(repo.ROOT, [repo.path(name) for name in ("Kbuild", "kernel", "include")], sources)
    for number, archive in enumerate(sorted(counts.glob("*.tar.gz"))):
        place = work / f"guest{number}"
        if not gcov.unpack(archive, place):
            continue
        trace = f"driver{number}.json"
        # The kernel's headers are not found, and are not needed.
        run(root, ["gcovr", "--root", MODULE, "--filter", f"{MODULE}/kernel/",
                   "--gcov-ignore-errors=source_not_found", "--json", f"/mnt/work/{trace}",
                   f"/mnt/work/{place.name}"], {"module": sources, "work": work}, MODULE)
        traces.append(trace)
    if not traces:
        raise ToolError("no guest has left coverage of the driver", "search for `coverage of a guest is lost` above")
    return traces


def report(root, work, traces, html):
    """Add the traces up; {file: (lines, covered)}, and the HTML page in the folder `html`."""
    argv = ["gcovr", "--root", "/mnt/source", "--json-summary", "/mnt/work/summary.json"]
    for trace in traces:
        argv += ["--add-tracefile", f"/mnt/work/{trace}"]
    binds = {"source": repo.ROOT, "work": work}
    if html:
        Path(html).mkdir(parents=True, exist_ok=True)
        binds["html"] = Path(html).resolve()
        argv += ["--html-details", "/mnt/html/index.html", "--html-title", "JingZhao HCA for Linux"]
    run(root, argv, binds, "/mnt/source")
    found = json.loads((work / "summary.json").read_text())["files"]
    return {file["filename"]: (file["line_total"], file["line_covered"]) for file in found}


def summary(files, names):
    """The table as text, and whether every part reaches its goal."""
    width = max(map(len, files))
    line = f"{{:{width}}}  {{:>6}}  {{:>7}}  {{:>5}}"
    table = [line.format("file", "lines", "covered", "%"), line.format("-" * width, "-" * 6, "-" * 7, "-" * 5)]
    totals, good = [], True
    for name in names:
        part = PARTS[name]
        rows = {file: count for file, count in sorted(files.items()) if file.startswith(f"{part.folder}/")}
        table += [line.format(file, lines, covered, percent(lines, covered))
                  for file, (lines, covered) in rows.items()]
        lines, covered = (sum(column) for column in zip(*rows.values())) if rows else (0, 0)
        reached = lines and 100 * covered >= part.goal_percent * lines
        good = good and reached
        totals.append(f"{line.format(name, lines, covered, percent(lines, covered))}  "
                      f"{'at least' if reached else 'BELOW'} {part.goal_percent}")
    return "\n".join([*table, "", *totals, ""]), bool(good)


def percent(lines, covered):
    return f"{100 * covered / lines:.1f}" if lines else "-"


def run(root, argv, binds, cwd):
    root.run(argv, cache.log_path("coverage"), "coverage", CURE, binds, cwd)


@contextlib.contextmanager
def environment(name, value):
    """Set a variable of the environment for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


PARTS = {
    "core": Part("qemu-device/core", 90, measure_core),
    "driver": Part("kernel", 80, measure_driver),
}
