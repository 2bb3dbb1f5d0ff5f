# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's checkers are on, and what they say fails a test.

A module commits one fault after another, tests/debug/provoke; each must be
told in the kernel log by its checker, and the framework must take it for a
failure.
"""

import re

from hghca_lib import buildroot, cache, debug_kernel, repo
from hghca_lib.tiers import GATE

from framework import FAULTS, complaints, expect, test

SOURCE = "tests/debug/provoke"
FILE = "/sys/kernel/debug/hghca-provoke"
LEAKS = 100  # PROVOKE_LEAKS
# Checkers that have their say at once: (the fault, the checker's words).
PROVOKED = [
    ("warning", r"WARNING: (CPU: \d+ PID: \d+ at )?.*hghca_provoke"),
    ("past-end", r"BUG: KASAN: slab-out-of-bounds in "),
    ("after-free", r"BUG: KASAN: slab-use-after-free in "),
    ("past-vmalloc", r"BUG: KASAN: vmalloc-out-of-bounds in "),
    ("past-stack", r"BUG: KASAN: stack-out-of-bounds in "),
    ("shift", r"UBSAN: shift-out-of-bounds in "),
    ("index", r"UBSAN: array-index-out-of-bounds in "),
    ("list", r"list_add corruption"),
    ("refcount", r"refcount_t: addition on 0; use-after-free"),
    ("timer", r"ODEBUG: free active .* object type: timer_list"),
    ("work", r"ODEBUG: free active .* object type: work_struct"),
    ("dma", r"DMA-API: hghca .* tries to free DMA memory it has not allocated"),
    ("sleep", r"BUG: sleeping function called from invalid context"),
]


def checker(name, kernel="debug", **options):
    return test(f"checkers: {name}", subjects=("hghca",), kernels=(kernel,), debug_tier=GATE, **options)


def module(kernel):
    """The module of faults, built for the kernel of that name."""
    root = buildroot.make()
    tree = debug_kernel.make(root, kernel).tree
    source = repo.path(SOURCE)
    key = cache.key(str(tree), cache.tree_key(repo.ROOT, source))

    def build(folder):
        log = cache.log_path("provoke")
        log.unlink(missing_ok=True)
        cache.sync_tree(source, [source], folder)
        root.run(["make", "-C", "/mnt/kernel", "M=/mnt/module", "modules"], log, "module of faults",
                 f"the error is in {SOURCE} of this checkout; correct it there", {"kernel": tree, "module": folder})

    return cache.make("provoke", key, build, 16 * cache.MIB, "module of faults") / "hghca_provoke.ko"


def provoke(testbed, fault):
    """Commit a fault."""
    if testbed.try_run(f"test -e {FILE}").status:
        sent = testbed.guest.run("cat > /run/hghca_provoke.ko && insmod /run/hghca_provoke.ko",
                                 input=module(testbed.kernel_name).read_bytes())
        expect(sent.status == 0, f"the module of faults cannot be loaded: {sent.output}")
    testbed.run(f"echo {fault} > {FILE}")


def told(testbed, words):
    """The first line with the words that the kernel log has gained and that fails a test, or None."""
    found = next((line for line in complaints(testbed.new_log()) if re.search(words, line)), None)
    if found:
        testbed.note(found)
    return found


# The first report of KASAN ends lockdep.
@checker("KASAN, UBSAN, debugging of lists, references, objects, DMA and sleep: each tells its fault",
         ends_lockdep=True, without_lockdep=True)
def at_once(testbed):
    silent = []
    for fault, words in PROVOKED:
        provoke(testbed, fault)
        if not told(testbed, words):
            silent.append(f"{fault}: no line in the kernel log that would fail a test has {words}")
    expect(not silent, "\n".join(silent))


@checker("DETECT_HUNG_TASK")
def hung_task(testbed):
    setting = "/proc/sys/kernel/hung_task_timeout_secs"
    usual = testbed.run(f"cat {setting}")
    testbed.run(f"echo 2 > {setting}")
    provoke(testbed, "hang")
    lines = []

    def last(words):
        """Where the last line with the words stands in what the kernel log has gained and fails a test; -1: nowhere."""
        lines.extend(complaints(testbed.new_log()))
        return max((number for number, line in enumerate(lines) if re.search(words, line)), default=-1)

    hung = r"INFO: task hghca-hanging:\d+ blocked for more than \d+ seconds"
    try:
        testbed.wait_until(lambda: last(hung) >= 0, "a hung task told", timeout=10)
    finally:
        testbed.run(f"echo {usual.strip()} > {setting}")
    testbed.note(lines[last(hung)])
    # Each report goes on with all locks that are held, down to a double line.
    testbed.wait_until(lambda: last(r"> =+") > last(hung), "the end of the report", timeout=10)


@checker("KMEMLEAK", without_lockdep=True)
def leak(testbed):
    """The last of its guest: what it finds besides is what all tests before have lost."""
    provoke(testbed, "leak")
    found = testbed.leaks()
    testbed.run("echo clear > /sys/kernel/debug/kmemleak")
    head, *blocks = re.split(r"^(?=unreferenced object)", found, flags=re.MULTILINE)
    ours = [one for one in blocks if "provoke_leak+" in one]
    others = [one for one in blocks if "provoke_leak+" not in one]
    testbed.scanned = head + "".join(others)
    # The first of them lie where others were just before, and words left of those are taken for pointers to them.
    testbed.note(f"of {LEAKS} leaks {len(ours)} are told")
    expect(len(ours) >= LEAKS / 2, f"of {LEAKS} leaks {len(ours)} are told: {found}")
    expect(not others, f"lost before: {others}")


# In the other guest of these tests: lockdep ends with its first report, and it has been ended in the guest of the rest.
@checker("PROVE_LOCKING", machine=FAULTS, ends_lockdep=True)
def lockdep(testbed):
    provoke(testbed, "locks")
    words = "WARNING: possible circular locking dependency detected"
    expect(told(testbed, words), f"no line in the kernel log that would fail a test has {words}")


@checker("KCSAN", "kcsan")
def race(testbed):
    provoke(testbed, "race")
    testbed.wait_until(lambda: told(testbed, r"BUG: KCSAN: data-race in provoke_racing"), "a data race told",
                       timeout=20)
