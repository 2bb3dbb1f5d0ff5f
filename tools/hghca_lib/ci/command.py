# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca ci`: a plan under the kernel of a tree, or of each commit of a range, and the reports on it."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime
from pathlib import Path

from .. import accel, cache, debug_kernel, guest, junit, machine, pair, progress, repo, setup
from ..errors import ToolError, UsageError
from . import blktests, commits, kselftests, page, plan, results, tree
from .results import STATUS_FAILED, STATUS_UNTESTABLE

RANGE = re.compile(r"\S+\.\.\S*$")
LIMIT_S = 4 * 3600
REPORTS = "results.json, results.ktap, results.xml, index.html"
BOOT_S = 60


def add_options(command):
    command.add_argument("tree", metavar="TREE|RANGE",
                         help="the folder of a Linux tree, or a range of commits, such as v6.12..HEAD, of the tree in the "
                              "current folder")
    command.add_argument("--plan", default="smoke", metavar="PLAN",
                         help=f"one of {', '.join(plan.PLANS)} (default smoke)")
    command.add_argument("--debug", action="store_true", help="with KASAN, lockdep, kmemleak and the debugging of DMA")
    command.add_argument("--subject", choices=plan.SUBJECTS, default=plan.HGHCA,
                         help="rxe, siw: run the tests on this device of the kernel: what fails there too is no fault of ours")
    command.add_argument("--output", metavar="DIR", help="where the reports go (default: beside the build, in the cache)")
    command.add_argument("--baseline", metavar="FILE", help="results.json of an earlier run: only new failures count")
    command.add_argument("--repeat", type=int, default=1, metavar="N", help="run the plan N times, and name what is flaky")
    command.add_argument("--blktests", metavar="DIR",
                         help="a checkout of blktests: its tests of nvme, rnbd and srp run too, over RDMA")
    command.add_argument("--kselftests", action="store_true",
                         help="the tree's own kselftests of RDMA run too; they make software devices of their own")
    command.add_argument("--minutes", type=float, default=60, metavar="M", help="how long the plan soak goes on (default 60)")


def main(options):
    chosen = plan.find(options.plan)
    if options.repeat < 1:
        raise UsageError("--repeat takes a number from 1 on")
    what = {"plan": chosen.name, "subject": options.subject, "checkers": options.debug}
    if options.blktests:
        blktests.check(options.blktests)
    baseline = results.read(options.baseline, what) if options.baseline else None

    def test(path, baseline, output):
        return test_tree(options, path, chosen, what, baseline, output)

    if not Path(options.tree).is_dir() and RANGE.match(options.tree):
        return commits.main(options.tree, options.output, baseline, test)
    try:
        _, status = test(options.tree, baseline, options.output)
    except UsageError:
        raise
    except ToolError as error:
        print(f"hghca: {error}", file=sys.stderr)
        return STATUS_UNTESTABLE
    return status


def output_folder(output, beside, chosen):
    """The folder of the reports, made if it is missing; reports of an earlier run there are replaced."""
    folder = Path(output or beside / f"reports-{chosen.name}").absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror}", "give another one with --output") from error
    return folder


def test_tree(options, path, chosen, what, baseline, output):
    """Build and test a tree, write the reports; (the results.Run, the exit status)."""
    start = time.monotonic()
    if options.kselftests:
        kselftests.check(path)
    steps = progress.Progress(3)
    built = tree.make(path, options.debug, steps)
    folder = output_folder(output, built.folder, chosen)
    made = setup.make(kernel=str(built.image))
    ready_s = time.monotonic() - start
    about = {"tree": str(path), "commit": tree.commit(built.source), "release": built.release,
             "date": datetime.now().astimezone().isoformat(timespec="seconds"), "built in": f"{ready_s:.0f} s"}
    run = results.Run(what, about)
    run.results.append(boots(made, built, run, log_folder(folder, "boot")))
    if run.results[0].passed and chosen.bench:
        run.figures = measure(built, chosen)
        run.results.append(results.Result("figures measured", bool(run.figures)))
    elif run.results[0].passed:
        run_tests(options, built, chosen, run, folder)
    if run.results[0].passed and options.blktests:
        run_blktests(options, made, built, run, folder)
    if run.results[0].passed and options.kselftests:
        run_others(run, log_folder(folder, "kselftests"), lambda logs: kselftests.run(made, built, logs))
    about["took"] = f"{time.monotonic() - start:.0f} s"
    return run, report(run, baseline, folder)


def boots(made, built, run, folder):
    """The Result of a boot with two HCAs and a pingpong between them; how long it took, and splats, go into the Run."""
    start = time.monotonic()
    log = folder / "kernel-boot.log"
    name = "boot, first pingpong"
    try:
        config = machine.Config(accel=accel.choose(made), serial=str(log))
        with guest.boot(made, config, BOOT_S * debug_kernel.SLOWNESS["debug" if built.checkers else "stock"]) as guests:
            run.about["boot"] = f"{guests[0].boot_s:.1f} s"
            rate, *_, (_, done) = pair.pingpong(guests[0], count=1)
            seconds = time.monotonic() - start
            run.about["first pingpong"] = f"{seconds:.1f} s"
            return results.Result(name, bool(rate), seconds, [] if rate else done.output.splitlines())
    except guest.GuestHung as error:
        where = ", ".join(tree.symbol(built, address) for address in error.addresses)
        return failed_boot(name, start, [f"the CPUs are at {where}", *str(error).splitlines()])
    except guest.GuestError as error:
        return failed_boot(name, start, str(error).splitlines())
    finally:
        if log.exists():
            run.splats += results.splats(log)


def failed_boot(name, start, notes):
    """The Result of a boot that failed, which ends the run: why is said at once too."""
    print("\n".join(notes), file=sys.stderr)
    return results.Result(name, False, time.monotonic() - start, notes)


def log_folder(folder, name):
    """The folder of one kind of guest's logs, made and empty."""
    own = folder / "logs" / name
    own.mkdir(parents=True, exist_ok=True)
    for old in own.iterdir():
        old.unlink()
    return own


def measure(built, chosen):
    from .. import bench
    return bench.measure(bench.chosen(chosen.bench), bench.ROUNDS, str(built.image))["results"]


def run_tests(options, built, chosen, run, folder):
    """Run the plan as often as it is asked for; the results and splats go into the Run."""
    end = time.monotonic() + options.minutes * 60
    times = 0
    while times < options.repeat or chosen.again and time.monotonic() < end:
        times += 1
        own = log_folder(folder, f"{times}")
        reader = results.Reader()
        argv = [repo.path("tests/guest/run"), "--tree", built.image, "--output", own, *chosen.arguments(options.subject)]
        status = follow(argv, reader, folder / "run.log")
        run.results += reader.results
        if not reader.results or status and all(result.passed for result in reader.results):
            run.results.append(results.Result(f"the tests ran to their end: status {status}", False,
                                              notes=(folder / "run.log").read_text(errors="replace").splitlines()[-20:]))
        for log in sorted(own.glob("*.log*")):
            run.splats += results.splats(log)


def run_blktests(options, made, built, run, folder):
    """Run blktests; a guest for each group of its tests, so that one that kills the kernel costs no other group."""
    path = blktests.check(options.blktests)
    chosen = blktests.groups(options.subject)
    for number, group in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] blktests: {group} ...", file=sys.stderr)
        run_others(run, log_folder(folder, f"blktests-{group}"),
                   lambda logs, group=group: blktests.run(made, built, path, group, options.subject, logs))


def run_others(run, logs, tests):
    """Run tests of other projects in a guest of their own; results and splats go into the Run.

    A kernel that dies is what they look for: it is a failure beside the results so far. logs: the folder that tests() gets.
    """
    try:
        run.results += tests(logs)
    except guest.GuestError as error:
        run.results.append(results.Result(f"{logs.name}: the guest lives until the end", False, notes=str(error).splitlines()))
    for log in sorted(logs.glob("kernel-*.log")):
        run.splats += results.splats(log)


def follow(argv, reader, log):
    """Run the tests, print each result as it comes; the exit status. What is not read goes to the log."""
    count = 0
    with open(log, "w") as errors, subprocess.Popen([*map(str, argv)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                                    stderr=errors, text=True, errors="replace", start_new_session=True,
                                                    env={**os.environ, "HGHCA_CACHE": str(cache.root())}) as process:
        timer = threading.Timer(LIMIT_S, os.killpg, [process.pid, signal.SIGTERM])
        timer.start()
        try:
            for line in process.stdout:
                found = reader.take(line.rstrip("\n"))
                if found:
                    count += 1
                    print(f"{'ok' if found.passed else 'not ok'} {count} {found.name}", flush=True)
            return process.wait()
        finally:
            timer.cancel()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)


class Counted:
    """A Run as junit.write() takes it."""

    def __init__(self, run):
        self.suite = run.what["plan"]
        self.failures = [[f"not ok {result.name}", *result.notes] for result in run.failed()]
        self.failed = len(self.failures)
        numbers = iter(range(self.failed))
        self.results = [(result.name, result.seconds, None if result.passed else next(numbers)) for result in run.results]


def report(run, baseline, folder):
    """Write all reports and print the verdict; the exit status: whether something fails that the baseline has not."""
    change = results.compare(run, baseline)
    results.write(run, folder / "results.json")
    (folder / "results.ktap").write_text(results.ktap(run))
    junit.write(folder / "results.xml", [Counted(run)])
    results.logs(run, folder / "tests")
    logs = {f"{log.parent.name}/{log.name}": log.read_text(errors="replace") for log in sorted(folder.glob("logs/*/*.log*"))}
    (folder / "index.html").write_text(page.page(run, change, logs, baseline))
    for each in run.splats:
        print(f"kernel: {each.function}: {each.title} ({each.file})")
    for kind, text in page.CHANGES:
        for name in getattr(change, kind):
            if baseline or kind in ("new", "flaky"):
                print(f"{text if baseline or kind == 'flaky' else 'failed'}: {name}")
    failed = run.failed()
    print(f"{len(run.results) - len(failed)} passed, {len(failed)} failed; {REPORTS} are in {folder}")
    bad = change.new if baseline else failed
    return STATUS_FAILED if bad or not run.results else 0
