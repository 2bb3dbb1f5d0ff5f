# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca ci` without a kernel: reading of results and of kernel logs, comparison, reports, and what it refuses."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

from tool import fails, hghca, holds, same

from hghca_lib import buildroot, debug_kernel, guest, junit, repo
from hghca_lib.ci import blktests, ccache, command, kselftests, page, plan, results, tree

WHAT = {"plan": "smoke", "subject": "hghca", "checkers": False}
OUTPUT = """\
ok 1 - pingpong: rc
# 1.5 s
# 12 packets
not ok 2 - rdmacm: rping # 3
# status 1
# 2.0 s
ok 3 - odp: all
1..3
"""
# As Linux prints them; the addresses and sizes are made up.
WARNED = """\
[    1.000000] hghca: init begins
[    2.500000][  T101] ------------[ cut here ]------------
[    2.500001][  T101] WARNING: CPU: 1 PID: 101 at drivers/infiniband/core/device.c:42 ib_query_port+0x1f/0x90 [ib_core]
[    2.500002][  T101] Modules linked in: ib_core
[    2.500003][  T101] RIP: 0010:ib_query_port+0x1f/0x90 [ib_core]
[    2.500004][  T101] Call Trace:
[    2.500005][  T101] ---[ end trace 0000000000000000 ]---
[    2.600000] all is quiet
[    3.000000] ==================================================================
[    3.000001] BUG: KASAN: slab-use-after-free in rdma_resolve_addr+0x33/0x120 [rdma_cm]
[    3.000002] Read of size 8 at addr ffff888100000000 by task rping/200
[    3.000003] Call Trace:
[    3.000004]  dump_stack_lvl+0x5d/0x80
[    3.000005] ==================================================================
[    4.000000] the end
"""


def run_of(*verdicts, what=None):
    """A Run with results of these (name, passed)."""
    return results.Run(what or WHAT, {"tree": "linux", "release": "6.12.0"}, [results.Result(*one) for one in verdicts])


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@contextlib.contextmanager
def small_tree(*more):
    """A folder with the files by which a kernel's tree is known, and further ones."""
    with folder() as place:
        for file in (*tree.TREE_FILES, tree.CORE, *more):
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_text("")
        yield place


def test_reads_results():
    """ci: results, their times and notes are read from the tests' output."""
    reader = results.Reader()
    said = [reader.take(line) for line in OUTPUT.splitlines()]
    same([one.name for one in said if one], ["pingpong: rc", "rdmacm: rping # 3", "odp: all"])
    same([(one.passed, one.seconds, one.notes) for one in reader.results],
         [(True, 1.5, ["12 packets"]), (False, 2.0, ["status 1"]), (True, 0, [])])


def test_cuts_out_splats():
    """ci: the reports of a kernel log are cut out and named by their functions."""
    with folder() as place:
        (place / "kernel.log").write_text(WARNED)
        found = results.splats(place / "kernel.log")
        (place / "quiet.log").write_text("[    1.000000] hghca: init begins\n")
        same(results.splats(place / "quiet.log"), [])
    same([one.function for one in found], ["ib_query_port", "rdma_resolve_addr"])
    holds(found[0].title, "WARNING: CPU: 1")
    holds(found[1].title, "slab-use-after-free")
    for one in found:
        assert "quiet" not in one.text and "the end" not in one.text, one.text


def test_compares_with_baseline():
    """ci: a comparison tells what is new, fixed, still failing, gone and flaky."""
    before = run_of(("good", True), ("worse", True), ("better", False), ("bad", False), ("away", True), ("shaky", True))
    now = run_of(("good", True), ("worse", False), ("better", True), ("bad", False), ("fresh", False), ("shaky", True),
                 ("shaky", False))
    change = results.compare(now, before)
    same(vars(change), {"new": ["worse", "fresh", "shaky"], "fixed": ["better"], "still": ["bad"], "gone": ["away"],
                        "flaky": ["shaky"]})
    same(results.compare(before).new, ["better", "bad"], "failures without a baseline")


def reported(*arguments):
    """The exit status of a report, whose lines are no results of this suite."""
    with contextlib.redirect_stdout(io.StringIO()):
        return command.report(*arguments)


def test_exit_status():
    """ci: without a baseline each failure counts, with one only a new failure does."""
    bad = run_of(("one", True), ("two", False))
    with folder() as place:
        same(reported(bad, None, place), 1)
        same(reported(bad, run_of(("one", True), ("two", False)), place), 0)
        same(reported(bad, run_of(("one", True), ("two", True)), place), 1)
        same(reported(run_of(("one", True)), None, place), 0)
        same(reported(run_of(), None, place), 1, "status without results")


def test_reports():
    """ci: JSON is read back as it was, KTAP has a plan and no directives, JUnit and HTML have each result."""
    run = run_of(("rdmacm: rping # skip <b>", False), ("pingpong: rc", True))
    run.results[0].notes = ["status 1 & more"]
    run.splats = [results.Splat("ib_query_port", "WARNING: x", "kernel.log", "the text of the report")]
    run.figures = [{"test": "ib_write_bw", "bytes": 65536, "subject": "hghca", "value": 900.0, "unit": "MiB/s"},
                   {"test": "ib_write_bw", "bytes": 65536, "subject": "rxe", "value": 30.0, "unit": "MiB/s"}]
    with folder() as place:
        logs = place / "logs/1"
        logs.mkdir(parents=True)
        (logs / "kernel-01-link.log").write_text("the kernel said this")
        reported(run, None, place)
        same(results.read(place / "results.json", WHAT), run)
        ktap = (place / "results.ktap").read_text().splitlines()
        same(ktap, ["KTAP version 1", "1..2", "not ok 1 rdmacm: rping  skip <b>", "# status 1 & more", "ok 2 pingpong: rc"])
        suite = ElementTree.parse(place / "results.xml").getroot()[0]
        same((suite.get("tests"), suite.get("failures"), len(suite)), ("2", "1", 2))
        shown = (place / "index.html").read_text()
        holds(shown, "1 passed, 1 failed", "rping # skip &lt;b&gt;", "status 1 &amp; more", "ib_query_port",
              "the text of the report", "the kernel said this", "<svg", "900 MiB/s")
        assert "<script" not in shown and "http" not in shown, "the page needs something else"
        same(len(list((place / "tests").iterdir())), 2, "logs of tests")


def test_page_has_baseline_of_figures():
    """ci: beside a figure its part of the baseline's."""
    row = {"test": "ib_write_bw", "bytes": 65536, "subject": "hghca", "value": 900.0, "unit": "MiB/s"}
    run, before = run_of(), run_of()
    run.figures, before.figures = [row, {**row, "subject": "rxe", "value": 45}], [{**row, "value": 1000.0}]
    holds(page.figures(run.figures, before), "90% of the baseline")


def test_refuses_what_is_no_tree():
    """ci: what is no tree, has no RDMA core or has been built in place is refused, and nothing is built."""
    with folder() as place:
        fails(hghca("ci", place / "absent"), 125, "there is no folder", "cure:")
        fails(hghca("ci", place), 125, "is no tree of Linux", "init/main.c", "cure:")
    with small_tree(".config") as place:
        fails(hghca("ci", place), 125, "built in place", ".config", "mrproper")
        (place / ".config").unlink()
        (place / tree.CORE).unlink()
        fails(hghca("ci", place), 125, "no RDMA core", tree.CORE)
        assert not tree.folder_of(place, False).exists(), "a folder was made for a tree that is refused"


def test_names_missing_options():
    """ci: a tree without the options that a guest needs is refused, and each of them is named."""
    text = tree.lacking(["CONFIG_INFINIBAND=m", "CONFIG_VIRTIO_BLK=y", "CONFIG_SMC=m"],
                        {"CONFIG_VIRTIO_BLK": "CONFIG_VIRTIO_BLK=m"})
    same(text, ["CONFIG_INFINIBAND=m", "CONFIG_VIRTIO_BLK=y", "CONFIG_SMC=m"])
    same(tree.lacking(["# CONFIG_KASAN is not set"], {}), [])
    same(tree.needed(text), text[:2], "what no guest can do without")


def test_fragments_have_what_is_needed():
    """ci: the fragments of a tree's configuration set each option that a guest needs"""
    asked = {}
    for name in (*tree.FRAGMENTS, tree.PLAIN):
        asked.update(debug_kernel.options(repo.path(f"tools/kernel/{name}")))
    same([name for name in tree.REQUIRED if not re.search("=[ym]$", asked.get(f"CONFIG_{name}", ""))], [])


def test_refuses_plans_and_baselines():
    """ci: an unknown plan, a file without results as the baseline, and a baseline of another plan are refused."""
    with small_tree() as place:
        fails(hghca("ci", place, "--plan", "smokes"), 2, "there is no plan smokes", *plan.PLANS)
        fails(hghca("ci", place, "--baseline", place / "none.json"), 2, "cannot read the baseline")
        (place / "bad.json").write_text("[]")
        fails(hghca("ci", place, "--baseline", place / "bad.json"), 1, "no results of `tools/hghca ci`")
        results.write(run_of(("one", True), what={**WHAT, "plan": "verbs"}), place / "other.json")
        fails(hghca("ci", place, "--baseline", place / "other.json"), 1, "plan is verbs, not smoke")
        fails(hghca("ci", place, "--repeat", "0"), 2, "--repeat")


def test_refuses_ranges():
    """ci: a range outside of a tree of git, of no commit, and of too many commits."""
    with folder() as place:
        fails(hghca("ci", "HEAD~2..HEAD", wrap=("sh", "-c", f'cd {place} && exec "$0" "$@"')), 2, "git rev-parse", "cure:")
        subprocess.run(["git", "-C", place, "init", "-q"], check=True)
        subprocess.run(["git", "-C", place, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q",
                        "--allow-empty", "-m", "one"], check=True)
        fails(hghca("ci", "HEAD..HEAD", wrap=("sh", "-c", f'cd {place} && exec "$0" "$@"')), 2, "has 0 commits")


def test_finds_first_error():
    """ci: of a build that fails the first error is told, not the last line."""
    said = ["  CC      init/main.o", "drivers/infiniband/core/cm.c:10:2: error: unknown type name 'intt'",
            "make[3]: *** [scripts/Makefile.build:229: drivers/infiniband/core/cm.o] Error 1", "make: *** [Makefile:224] Error 2"]
    same(tree.first_error(said), said[1])
    same(tree.first_error(["nothing wrong"]), "make failed")


def test_junit_takes_a_run():
    """ci: the JUnit file of a run has each failure with its notes."""
    run = run_of(("a", False), ("b", True), ("c", False))
    run.results[2].notes = ["why"]
    with folder() as place:
        junit.write(place / "out.xml", [command.Counted(run)])
        cases = ElementTree.parse(place / "out.xml").getroot()[0]
    same([case.find("failure") is not None for case in cases], [True, False, True])
    same(cases[2].find("failure").text, "why")


def test_page_names_plans():
    """ci: the page on it has each plan and each option, and no other plan"""
    text = repo.path("docs/howto/kernel-ci.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    same(rows, [*plan.PLANS], "plans")
    shown = hghca("ci", "--help").stdout
    options = set(re.findall(r"--[a-z]+", shown)) - {"--help", "--plan"}
    same({option for option in options if f"`{option}" not in text}, set(), "options without a word")


BLKTESTS = """\
nvme/003 (tr=rdma) (test if we're sending keep-alives)
nvme/003 (tr=rdma) (test if we're sending keep-alives)       [passed]
    runtime    ...  11.5s
nvme/004 (tr=rdma) (test nvme and nvmet UUID NS descriptors) [failed]
    runtime    ...  1.5s
    --- tests/nvme/004.out
    +++ /share/results/nodev/nvme/004.out.bad
rnbd/001 (Start Stop RNBD)                                   [not run]
    driver rnbd_server is not available
"""


def test_reads_blktests():
    """ci: blktests: verdicts, times, what is told of a failure, and why a test does not run"""
    with folder() as place:
        (place / "nodev").mkdir()
        found = blktests.read("nvme", BLKTESTS, place)
    same([(one.name.split(" (")[0], one.passed, one.seconds) for one in found],
         [("blktests: nvme/003", True, 11.5), ("blktests: nvme/004", False, 1.5), ("blktests: nvme: tests have run", True, 0)])
    holds("\n".join(found[1].notes), "004.out.bad")
    same(found[2].notes, ["rnbd/001: not run, driver rnbd_server is not available"])
    assert not blktests.read("nvme", "nothing", Path("absent"))[-1].passed, "no test has run, and that is no failure"


def compiler(program):
    """(what stands for the compiler in a build with this program as the host's ccache, what `gcc --version` prints there)."""
    root = buildroot.make()
    with folder() as place, mock.patch.dict(os.environ, PATH=f"{place}:{os.environ['PATH']}"):
        (place / "ccache").symlink_to(program)
        with mock.patch.object(ccache, "said_store", lambda program: str(place)):
            binds, env = ccache.settings(root, place / "programs")
        return binds and (place / "programs/gcc").read_text(), root.output(["gcc", "--version"], binds, env=env).stdout


def test_compiles_with_a_ccache_of_the_host():
    """ci: a ccache of the host stands before the compiler; one that does not run in the build root does not"""
    # As ccache does, env starts the program that its arguments name.
    script, said = compiler(shutil.which("env"))
    holds(script, "/env /usr/bin/gcc")
    holds(said, "gcc (Debian")
    script, said = compiler(repo.path("tools/hghca"))
    same(script, {})
    holds(said, "gcc (Debian")


def test_does_without_a_ccache():
    """ci: without a ccache, or with one that does not tell where its results are, there is no stand-in for the compiler"""
    with folder() as place, mock.patch.dict(os.environ, PATH=str(place)):
        same(ccache.settings(None, place / "programs"), ({}, {}))
    same(ccache.said_store("/bin/true"), None)
    same(ccache.said_store("/bin/false"), None)


def test_chooses_groups_of_blktests():
    """ci: blktests: a group that adds rxe itself does not run on siw"""
    same([blktests.groups(subject) for subject in ("hghca", "rxe", "siw")],
         [["nvme", "rnbd", "srp"], ["nvme", "rnbd", "srp"], ["nvme", "srp"]])


def test_refuses_what_is_not_blktests():
    """ci: --blktests with another folder is refused before anything is built"""
    with small_tree() as place:
        fails(hghca("ci", place, "--blktests", place), 1, "no checkout of blktests", "common/rc")


# As kselftest prints them.
KSELFTESTS = """\
# timeout set to 45
# selftests: rdma: rxe_one.sh
ok 1 selftests: rdma: rxe_one.sh
# timeout set to 45
# selftests: rdma: rxe_two.sh
# Error: UDP port 4791 is NOT listening
not ok 2 selftests: rdma: rxe_two.sh # exit=1
# timeout set to 45
# selftests: rdma: rxe_three.sh
# SKIP: Kernel module 'tun' not found.
ok 3 selftests: rdma: rxe_three.sh # SKIP
"""


def test_reads_kselftests():
    """ci: kselftests: verdicts, what is told of a failure, why a test does not run, and one that has no verdict"""
    found = kselftests.read(KSELFTESTS, 3)
    same([(one.name, one.passed) for one in found],
         [("kselftests: rdma: rxe_one.sh", True), ("kselftests: rdma: rxe_two.sh", False), ("kselftests: tests have run", True)])
    holds("\n".join(found[1].notes), "UDP port 4791 is NOT listening", "exit=1")
    same(found[2].notes, ["rdma: rxe_three.sh: not run, SKIP: Kernel module 'tun' not found."])
    assert not kselftests.read(KSELFTESTS, 4)[-1].passed, "a test without a verdict is no failure"
    assert not kselftests.read("nothing", 0)[-1].passed, "no test has run, and that is no failure"


def test_keeps_results_if_a_guest_dies():
    """ci: a kernel that dies in blktests or kselftests is a failure beside the results so far, with its splats"""
    def dies(logs):
        (logs / "kernel-blktests.log").write_text(WARNED)
        raise guest.GuestDied("guest 1 ended")

    run = run_of(("pingpong: rc", True))
    with folder() as place:
        (place / "blktests").mkdir()
        command.run_others(run, place / "blktests", dies)
    same([(one.name, one.passed, one.notes) for one in run.results[1:]],
         [("blktests: the guest lives until the end", False, ["guest 1 ended"])])
    same([one.function for one in run.splats], ["ib_query_port", "rdma_resolve_addr"])


def test_refuses_a_tree_without_kselftests():
    """ci: --kselftests with a tree that has none for RDMA is refused before anything is built"""
    with small_tree() as place:
        fails(hghca("ci", place, "--kselftests"), 125, "no kselftests of RDMA", "cure:")
