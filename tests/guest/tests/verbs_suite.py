# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests, module by module, on one HCA that talks to itself.

expected.json, expected_base.json for a device without extensions and
expected_ernic.json for an ERNIC name for each module of each rdma-core the tests that must pass,
those that are skipped with the reason the suite gives, and those that must fail
because of what the device or the kernel lacks, with that. A test with another verdict, or that
is missing or in no list, fails the module, so that the lists stay true. Where
they differ on an older kernel, "on" names its line, with lists that precede.
`record(testbed)` makes the file from what really happens.
"""

import json
import re
from pathlib import Path

from hghca_lib import userland
from hghca_lib.tiers import ALL

import framework
from framework import BASE, ERNIC, expect, gate_if, quick_if, tail, test
from interop import turned
from recorder import EVERY, NONE

FOLDER = Path(__file__).resolve().parent
MODULES = ["addr", "atomic", "cq", "cq_events", "cqex", "device", "pd", "qp", "srq", "rdmacm", "mr", "parent_domain",
           "qpex", "shared_pd", "relaxed_ordering", "fork", "flow", "rss_traffic", "odp", "tag_matching"]
# What only the newest rdma-core has.
NEWER = ["buf", "dmah", "phc_timestamp"]
# Those that send something, or address somebody, at a GID that is given: they are run with an IPv6 one too.
BY_GID = ["addr", "atomic", "cq", "cq_events", "cqex", "mr", "srq", "parent_domain", "qpex", "shared_pd",
          "relaxed_ordering"]
# Their frames are their own, with UDP checksums that are no matter to them.
MAKES_FRAMES = ["flow", "rss_traffic"]
# Those of which an ERNIC passes a test. It has no extended QPs and CQs, SRQs, UD, XRC, atomics and paging on demand, which
# the other ones need; programs/ernic.c has the errno of each.
OF_ERNIC = ["cq", "cq_events", "cqex", "device", "fork", "mr", "pd", "qp", "rdmacm", "relaxed_ordering"]
HUGE_PAGES = 8           # of 2 MiB, for test_huge_page_traffic
LIMIT_S = 240
# A test may have a docstring, which is told too, and lines of its own, or of Python's garbage collector, may stand before
# its verdict.
RESULT = re.compile(r"^(test_\w+) \(([\w.]+)\)(?:\n[^\n]*?)?? \.\.\. (?:(?!test_)[^\n]*\n)*?"
                    r"(ok|FAIL|ERROR|skipped .*)$", re.MULTILINE)


def expected_file(testbed):
    return FOLDER / {BASE: "expected_base.json", ERNIC: "expected_ernic.json"}.get(testbed.machine, "expected.json")


def modules(name):
    """Those that a rdma-core has, but for the ones of other adapters."""
    return [*MODULES, *(NEWER if name == userland.NEWEST else [])]


def run_module(testbed, module, kind="ipv4"):
    """Run a module with a GID of a kind; ({test: "ok" | "FAIL" | "ERROR" | "skipped ..."}, whole output, status)."""
    side = testbed.client
    testbed.run(f"echo {HUGE_PAGES} > /proc/sys/vm/nr_hugepages")
    try:
        answer = testbed.agent(side, "modules.py").ask(f"run {module} {side.device} {side.gid(kind)} {LIMIT_S}",
                                                       testbed.left())
    finally:
        testbed.run("echo 0 > /proc/sys/vm/nr_hugepages")
    found = {}
    for name, where, verdict in RESULT.findall(answer["output"]):
        owner = where.removeprefix("tests.").removesuffix(f".{name}").split(".", 1)[-1]
        found[f"{owner}.{name}"] = verdict
    return found, answer["output"], answer["status"]


def reason_of(verdict):
    """Why a test was skipped, in the words of the suite."""
    return verdict.removeprefix("skipped ").strip("'\"")


def expected_of(testbed, module):
    """The lists of a module: of the kernel's line, and else of the newest one."""
    lists = json.loads(expected_file(testbed).read_text())[testbed.userland][f"test_{module}"]
    own = lists.get("on", {}).get(framework.line_of(testbed.kernel_name), {})
    moved = {name for names in own.values() for name in names}
    expected = {"ok": [name for name in lists["ok"] if name not in moved] + own.get("ok", [])}
    for kind in ("skipped", "fails"):
        kept = {name: why for name, why in lists.get(kind, {}).items() if name not in moved}
        expected[kind] = {**kept, **own.get(kind, {})}
    return expected


def run_and_compare(testbed, module, kind="ipv4"):
    expected = expected_of(testbed, module)
    found, output, status = run_module(testbed, module, kind)
    wrong = []
    for name in expected["ok"]:
        if found.get(name) != "ok":
            wrong.append(f"{name}: {found.get(name, 'did not run')}")
    wrong += [f"{name}: did not run" for name in (*expected["skipped"], *expected["fails"]) if name not in found]
    for name, verdict in found.items():
        if name in expected["ok"] or (name in expected["fails"] and verdict in ("FAIL", "ERROR")):
            continue
        if not verdict.startswith("skipped"):
            wrong.append(f"{name}: {verdict}")
        elif reason_of(verdict) != expected["skipped"].get(name):
            wrong.append(f"{name}: {verdict}, which {expected_file(testbed).name} does not allow")
    passed = sum(verdict == "ok" for verdict in found.values())
    testbed.note(f"{passed} ok, {len(found) - passed} others")
    expect(not wrong, "\n".join([*wrong, tail(output, 3000)]))
    expect(status == bool(expected["fails"]), f"the suite ended with status {status}: {tail(output)}")
    expect(passed or not expected["ok"], "not one test passed")
    expect(found, "the module has no tests")


def record(testbed):
    """Write the file from a run; to be looked at before it is kept."""
    expected = {}
    for module in modules(testbed.userland):
        found, _, status = run_module(testbed, module)
        expected[f"test_{module}"] = {
            "ok": sorted(name for name, verdict in found.items() if verdict == "ok"),
            "skipped": {name: reason_of(verdict)
                        for name, verdict in sorted(found.items()) if verdict.startswith("skipped")},
        }
        bad = [f"{name}: {verdict}" for name, verdict in found.items() if verdict in ("FAIL", "ERROR")]
        print(f"# test_{module}: status {status}, {len(found)} tests, bad: {bad}")
    kept = {**json.loads(expected_file(testbed).read_text()), testbed.userland: expected}
    expected_file(testbed).write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def checked_of(module):
    return NONE if module in MAKES_FRAMES else EVERY


for suite_module in MODULES:
    test(f"verbs suite: test_{suite_module}", lambda testbed, module=suite_module: run_and_compare(testbed, module),
         limit_s=300, subjects=("hghca",), checked=checked_of(suite_module),
         # The group of paging on demand has the same operations.
         tier=ALL if suite_module == "odp" else quick_if(suite_module == "mr"))
for suite_module in BY_GID:
    test(f"verbs suite, IPv6: test_{suite_module}",
         lambda testbed, module=suite_module: run_and_compare(testbed, module, "link-local"), limit_s=300,
         subjects=("hghca",), checked=checked_of(suite_module),
         tier=ALL)
for suite_module in NEWER:
    test(f"verbs suite: test_{suite_module}", lambda testbed, module=suite_module: run_and_compare(testbed, module), limit_s=300,
         subjects=("hghca",), userlands=(userland.NEWEST,), tier=ALL)
for suite_module in MODULES:
    test(f"verbs suite, base: test_{suite_module}",
         lambda testbed, module=suite_module: run_and_compare(testbed, module), machine=BASE, limit_s=300,
         subjects=("hghca",), userlands=(userland.STOCK,), checked=checked_of(suite_module), tier=ALL)


def on_ernic(testbed, module):
    with turned(testbed):
        run_and_compare(testbed, module)


for suite_module in OF_ERNIC:
    test(f"verbs suite, ERNIC: test_{suite_module}", lambda testbed, module=suite_module: on_ernic(testbed, module),
         machine=ERNIC, limit_s=300, subjects=("hghca",), userlands=(userland.STOCK,), tier=gate_if(suite_module == "cq_events"))
