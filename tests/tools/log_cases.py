# SPDX-License-Identifier: GPL-2.0-or-later
"""What the framework of the guest's tests takes for trouble in a kernel log, line by line."""

import itertools
import sys

from tool import same

from hghca_lib import repo
from hghca_lib.guest import Record

sys.path[:0] = [str(repo.path(f"tests/guest/{folder}")) for folder in ("lib", "tests")]
import framework  # noqa: E402
import perftest  # noqa: E402

# In the kernel's words, whatever the level; the checkers that can be provoked are tests of the guest suite.
TROUBLE = [
    (3, "BUG: KASAN: slab-use-after-free in hghca_poll_cq+0x1a0/0x5c0 [hghca]"),
    (3, "UBSAN: shift-out-of-bounds in kernel/hw/mpt.c:100:12"),
    (4, "WARNING: possible circular locking dependency detected"),
    (4, "WARNING: possible recursive locking detected"),
    (4, "WARNING: inconsistent lock state"),
    (4, "WARNING: suspicious RCU usage"),
    (3, "BUG: sleeping function called from invalid context at mm/slab.h:321"),
    (3, "BUG: scheduling while atomic: ib_write_bw/812/0x00000002"),
    (4, "ODEBUG: free active (active state 0) object: ff11000008d6fa80 object type: timer_list hint: hghca_eq_poll"),
    (3, "DMA-API: hghca 0000:00:04.0: device driver has pending DMA allocations while released from device [count=1]"),
    (3, "list_del corruption. prev->next should be ff1100000a, but was ff1100000b. (prev=ff1100000c)"),
    (4, "refcount_t: underflow; use-after-free."),
    (3, "INFO: task rmmod:812 blocked for more than 60 seconds."),
    (0, "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [ib_write_bw:812]"),
    (3, "rcu: INFO: rcu_sched self-detected stall on CPU"),
    (0, "unregister_netdevice: waiting for eth0 to become free. Usage count = 2"),
    (3, "BUG: unable to handle page fault for address: ffffc90000a00000"),
    (4, "Oops: general protection fault, probably for non-canonical address 0xdead000000000122: 0000 [#1] SMP KASAN"),
    (4, "BUG: KCSAN: data-race in hghca_poll_cq / hghca_cq_switch"),
    (4, "kmemleak: Cannot allocate a kmemleak_object structure"),
    (6, "hghca 0000:00:04.0: command 0x1a timed out"),
]
QUIET = [
    (6, "hghca 0000:00:04.0 ibp0: link up"),
    (4, "hrtimer: interrupt took 12345678 ns"),
    (4, "hghca_cmd_exec: 4 callbacks suppressed"),
    (5, "8021q: adding VLAN 0 to HW filter on device eth0"),
]


def records(lines):
    return [Record(level, 0, text) for level, text in lines]


def test_trouble():
    """Every kind of trouble fails a test, and nothing else"""
    same([record.text for record in records(TROUBLE) if not framework.complaints([record])], [], "trouble not seen")
    same([record.text for record in records(QUIET) if framework.complaints([record])], [], "trouble seen in")


def test_expected():
    """What a test expects does not fail it, and the rest does"""
    said = framework.complaints(records(TROUBLE), expected=(r"^WARNING: ", r"^BUG: "))
    same(len(said), sum(not text.startswith(("WARNING: ", "BUG: ")) for _, text in TROUBLE), "complaints")


def splat(what, caller):
    return [(4, "------------[ cut here ]------------"), (4, what),
            (4, "WARNING: CPU: 0 PID: 239 at kernel/dma/debug.c:601 add_dma_entry+0x39b/0x3e0"), (4, "Call Trace:"),
            (4, " <TASK>"), (4, " dma_map_sgtable+0x7b/0xc0"), (4, f" {caller}+0x543/0x5f0"), (4, " </TASK>"),
            (4, "---[ end trace 0000000000000000 ]---")]


ORIGIN = [(4, "DMA-API: Mapped at:"), (4, " debug_dma_map_sg+0x1b6/0x620"), (4, " dma_map_sgtable+0x7b/0xc0")]
OVERLAP = "DMA-API: hghca 0000:00:04.0: cacheline tracking EEXIST, overlapping mappings aren't supported"
EXCEEDED = "DMA-API: exceeded 7 overlapping mappings of cacheline 0x0000000000483940"
NOT_OURS = "DMA-API: hghca 0000:00:04.0: device driver tries to free DMA memory it has not allocated"


def count(*parts):
    return len(framework.complaints(records([line for part in parts for line in part])))


def test_overlaps():
    """User memory that is registered twice is no trouble; every other complaint about DMA is"""
    for mapping in ("ib_umem_get", "ib_umem_odp_map_dma_and_lock"):
        same(count(splat(OVERLAP, mapping), ORIGIN, splat(EXCEEDED, mapping)), 0, "complaints")
    whole = len(splat("", ""))
    same(count(splat(OVERLAP, "hghca_queue_alloc"), ORIGIN), whole + len(ORIGIN), "complaints")
    same(count(splat(NOT_OURS, "ib_umem_get")), whole, "complaints")
    same(count(splat(OVERLAP, "ib_umem_get"), splat(NOT_OURS, "ib_umem_get"), ORIGIN), whole + len(ORIGIN),
         "complaints")
    same(count(splat(OVERLAP, "ib_umem_get"), ORIGIN, TROUBLE[:1]), 1, "complaints")
    same(count(splat(OVERLAP, "ib_umem_get")[:-1]), whole - 1, "complaints of a splat without its end")


KNOWN = [
    (4, "======================================================"),
    (4, "WARNING: possible circular locking dependency detected"),
    (4, "ff11 (&mm->mmap_lock){++++}-{3:3}, at: uverbs_user_mmap_disassociate+0x210/0x440"),
    (4, " </TASK>"),
    (4, ""),
    (4, "------------[ cut here ]------------"),
    (4, "DMA-API: hghca 0000:00:04.0: cacheline tracking EEXIST, overlapping mappings aren't supported"),
    (4, " ib_umem_get+0x543/0x5f0"),
    (4, "---[ end trace 0000000000000000 ]---"),
    (4, "DMA-API: Mapped at:"),
    (4, " debug_dma_map_sg+0x1b6/0x620"),
]


def test_known():
    """A complaint about the kernel's own RDMA core is let pass, the same about the driver is not"""
    same(framework.complaints(records(KNOWN)), [], "complaints")
    ours = [(level, text.replace("uverbs_user_mmap_disassociate", "hghca_mmap").replace("ib_umem_get", "hghca_map"))
            for level, text in KNOWN]
    same(len(framework.complaints(records(ours))), len(KNOWN) - 1, "complaints")
    same(len(framework.complaints(records(KNOWN[:3]))), 3, "complaints of a splat that has no end")


def test_either_order():
    """Inversions of the locks of the core and of the NVMe target are known from either end, and from no other place"""
    def circle(at, behind):
        return [(4, "======================================================"),
                (4, "WARNING: possible circular locking dependency detected"),
                (4, f"ff11 (&file->disassociation_lock){{+.+.}}-{{3:3}}, at: {at}+0xc2/0x210"),
                (4, "-> #1 (&mm->mmap_lock){++++}-{3:3}:"), (4, f"       {behind}+0x210/0x440"), (4, " </TASK>")]

    same(count(circle("rdma_umap_open", "uverbs_user_mmap_disassociate")), 0, "complaints")
    same(count(circle("rdma_umap_open", "hghca_mmap")), 6, "complaints")
    same(count(circle("hghca_mmap", "uverbs_user_mmap_disassociate")), 6, "complaints")
    target = ["nvmet_rdma_disable_port", "nvmet_execute_io_connect"]
    same([count(circle(" " + at, " " + behind)) for at, behind in itertools.permutations(target)], [0, 0], "complaints")
    same([count(circle(" hghca_remove", " " + behind)) for behind in target], [6, 6], "complaints")


def test_mixed():
    """Complaints of two threads at the same time are told apart by who says each line"""
    overlap, other = splat(OVERLAP, "ib_umem_get") + ORIGIN, splat(NOT_OURS, "ib_umem_get")
    lines = [Record(line[0], 0, line[1], caller) for pair in itertools.zip_longest(overlap, other)
             for line, caller in zip(pair, ("caller=T7", "caller=T8")) if line]
    said = framework.complaints(lines)
    same(said, framework.complaints(records(other)), "complaints of the thread that is in the wrong")
    same(framework.complaints([line for line in lines if line.caller == "caller=T7"]), [], "complaints of the other")


LEAKS = """unreferenced object 0xffff8880094f5f40 (size 7816):
  backtrace (crc cc84cb1d):
    copy_process+0x3f0/0x5230
unreferenced object 0xffff888000748dc0 (size 576):
  backtrace (crc eedf23a9):
    radix_tree_insert+0x190/0x540
    uapi_merge_def+0x83a/0x1710
unreferenced object 0xffff8880094f0000 (size 64):
  backtrace (crc cc84cb1e):
    hghca_alloc_ucontext+0x3f0/0x5230
    uapi_merge_def+0x83a/0x1710
"""


def test_leaked_tasks():
    """What the kernel's own RDMA core loses is no leak of the driver's, and hides none"""
    same(framework.leaks_of_ours(LEAKS), LEAKS[LEAKS.rindex("unreferenced"):], "leaks")
    same(framework.leaks_of_ours("the guest died"), "the guest died", "what is no report")


# What a row of perftest's looks like when it has a clock, and when it has none.
ROWS = """
 2       100              0.41               0.00               0.000000
 4       100              0.00               0.00               0.000000
 8       100              -nan               0.00               0.000000
 16      100              9.97               7.16               0.469123
"""
LATENCY_ROWS = """
 2       1000          2.91           14.10        3.08   	       3.20     	0.42   		3.90    		14.10
 4       1000          inf            inf          inf    	       inf      	-nan   		inf     		inf
"""


SLOW_ROWS = """
 2       20               0.02               0.00               0.001274
 4096    20               0.02               0.00               0.001274
 2       20               0.02               0.00               0.000000
"""


def test_rounded():
    """A bandwidth of 0.00 MiB/s is a figure only where the rate of messages says that it was rounded"""
    found = perftest.rows(SLOW_ROWS)
    same(perftest.without_figures(found, 3, ""), found[1:], "rows without a figure")


def test_clock():
    """A figure of perftest's may be missing only where perftest said that it had no clock for it"""
    said = f"{perftest.CLOCK_UNKNOWN}0.431 < 0.9\n"
    found = perftest.rows(ROWS)
    same([row[0] for row in found], [2, 4, 8, 16], "sizes")
    for lines, missing in ((0, 3), (1, 3), (2, 3), (3, 0), (4, 0)):
        same(len(perftest.without_figures(found, 3, said * lines)), missing, f"rows without a figure, {lines} words")
    same(perftest.without_figures(found[3:], 3, ""), [], "rows without a figure")
    found = perftest.rows(LATENCY_ROWS)
    same([row[0] for row in found], [2, 4], "sizes")
    same(perftest.without_figures(found, 4, "another word\n"), found[1:], "rows without a figure")
    same(perftest.without_figures(found, 4, said), [], "rows without a figure")
