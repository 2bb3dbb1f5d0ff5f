# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults at every place in turn: each command of the device, each allocation of the kernel.

Every case must end in a clean error, leave nothing behind, and work when it is
tried again. The programs' side of it is programs/faults.c.
"""

import time

from hghca_lib import tiers
from hghca_lib.tiers import GATE

from data import run_program, to_itself
from framework import FAULTS, expect, gate_if, test
from pingpong import pingpong

OURS = {"subjects": ("hghca",)}
# What the driver may say of a command that failed; a splat never begins so.
LOGGED = (r"^hghca \S+: ", r"^hghca \S+ hghca\d: ", r"^hghca\d: ", r"^infiniband hghca\d: ",
        r"^__ib_cache_gid_add: unable to add gid \S+ error=-5$")
HCA = "/machine/peripheral/hca1"
# Each command and each allocation fails in turn; where not all tests run, each STRIDE-th command, and few allocations.
WHOLE = tiers.current() == tiers.ALL
STRIDE = 1 if WHOLE else 3
# More of the commands of an action tell of their fault: of the 39 of a probe, 23 do.
LEAST_TOLD = 20
# MAP_ICM and UNMAP_ICM: numbers of QPs go on from one action to the next, and one of them may be the first of its block.
OF_A_BLOCK = 2


def device(testbed, name):
    return testbed.guest.qmp("qom-get", path=HCA, property=name)


def fail_command(testbed, nth):
    """Let the nth command from now on fail; 0: none."""
    testbed.guest.qmp("qom-set", path=HCA, property="fail-command", value=nth)


def settle(testbed):
    """Wait until no more commands come by themselves, as those for the GIDs of a new device do."""
    def stands_still():
        before = device(testbed, "commands")
        time.sleep(0.1)
        return before == device(testbed, "commands")

    testbed.wait_until(stands_still, "an idle command interface")


def each_command(testbed, action, undo=lambda: None):
    """Repeat an action, its first command failing, then its second, and so on; how often it told of the fault.

    action() returns whether it failed, and undo() takes back one that did not.
    """
    before = device(testbed, "commands")
    expect(not action(), "it failed without a fault")
    count = device(testbed, "commands") - before
    undo()
    told = 0
    try:
        tried = range(1, count + 1, STRIDE)
        for nth in tried:
            fail_command(testbed, nth)
            failed = action()
            left = device(testbed, "fail-command")
            expect(not left or (not failed and nth > count - OF_A_BLOCK), f"command {nth} of {count} did not come")
            fail_command(testbed, 0)
            told += failed
            if not failed:
                undo()
    finally:
        fail_command(testbed, 0)
    testbed.note(f"{count} commands, {len(tried)} failed in turn: {told} faults told, {len(tried) - told} without effect")
    return told


# Memory that is registered again is pinned a second time before it is unpinned.
@test("faults: each command of a program's life", limit_s=150, expected_log=LOGGED, aliases=True, **OURS)
def program(testbed):
    def life():
        return "# fault told by: " in testbed.run(f"/share/faults once {to_itself(testbed)}")

    expect(each_command(testbed, life) * STRIDE > LEAST_TOLD, "hardly a fault was told")
    expect(not life(), "a fault is left over")


def driver_file(testbed, name):
    """Write the address of the client's device; whether that failed."""
    return testbed.try_run(f"echo {testbed.client.pci} > /sys/bus/pci/drivers/hghca/{name}").status != 0


def bind(testbed):
    failed = driver_file(testbed, "bind")
    there = testbed.try_run(f"test -e /sys/bus/pci/drivers/hghca/{testbed.client.pci}").status == 0
    expect(failed != there, "a probe that failed is bound" if failed else "a probe that passed is not bound")
    settle(testbed)
    return failed


def unbind(testbed):
    expect(not driver_file(testbed, "unbind"), "the device was not unbound")
    settle(testbed)
    return False


def works_again(testbed):
    expect(not bind(testbed), "the device cannot be probed any more")
    testbed.configure(testbed.client)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 50)


@test("faults: each command of a probe", limit_s=150, expected_log=LOGGED, **OURS)
def probe(testbed):
    unbind(testbed)
    told = each_command(testbed, lambda: bind(testbed), lambda: unbind(testbed))
    expect(told * STRIDE > LEAST_TOLD, "hardly a fault was told")
    works_again(testbed)


@test("faults: each command of a removal", limit_s=150, expected_log=LOGGED, **OURS)
def removal(testbed):
    """A removal cannot fail: whatever the device says, it ends, and the next probe works."""
    # The first removal has addresses to forget that the others have not.
    unbind(testbed)
    expect(not bind(testbed), "the device cannot be probed any more")
    each_command(testbed, lambda: unbind(testbed), lambda: expect(not bind(testbed), "the next probe failed"))
    unbind(testbed)
    works_again(testbed)


# Allocations that may wait fail too, and single pages; the number of the one to fail is each thread's own. Those of
# the debugging of DMA do not fail, or it would switch itself off, nor those of the leak checker, one for each of
# others', and of the debugging of objects: both have reserves, so that nothing would come of it.
EVERY_ALLOCATION = """
set -e
cd /sys/kernel/slab
for cache in *; do echo 1 > $cache/failslab; done
for cache in kmemleak_object kmemleak_scan_area debug_objects_cache; do echo 0 > $cache/failslab; done
cd /sys/kernel/debug
echo Y > failslab/cache-filter
for kind in failslab fail_page_alloc; do
    echo N > $kind/ignore-gfp-wait
    echo 0 > $kind/verbose
    awk '$3 == "add_dma_entry" { print "0x" $1 }' /proc/kallsyms > $kind/reject-start
    awk 'begun { print "0x" $1; exit } $3 == "add_dma_entry" { begun = 1 }' /proc/kallsyms > $kind/reject-end
done
echo N > fail_page_alloc/ignore-gfp-highmem
echo 0 > fail_page_alloc/min-order
"""


# What the kernel's own parts say when they get no memory.
LOGGED_BY_OTHERS = (r"^(?!.*(WARNING:|BUG:|KASAN|UBSAN|ODEBUG|DMA-API|INFO: |refcount_t|corruption|Oops|hghca))",
                  r"driver_sysfs_add failed$", r"^dyndbg: error adding module: hghca$",
                  r"^(Failed to create system directory |No memory to create event subsystem |"
                  r"Could not (create tracefs '|initialize trace (point )?events/|create directory for event ))hghca",
                  r"^kobject: kobject_add_internal failed for \w+ \(error: -12 ",
                  r"^bus_add_driver: .*hghca",
                  # Where it was: a line of a backtrace. A splat does not begin with one.
                  r"^ (\? )?[\w.]+\+0x[0-9a-f]+/0x[0-9a-f]+( \[hghca\])?$")
# There are some 2000, of a second or two each: in so many tests.
PROBE_SHARES = 8


def allocations(name, **options):
    """Enter a test of fail-nth, which the stock kernel does not have."""
    return test(f"faults: allocations of {name}", machine=FAULTS, kernels=("debug",),
                expected_log=LOGGED + LOGGED_BY_OTHERS, aliases=True, **OURS, **options)


def each_allocation(testbed, arguments):
    testbed.run(EVERY_ALLOCATION)
    testbed.note(run_program(testbed, "faults", arguments, timeout=600))


@allocations("a program's life", limit_s=100, debug_tier=GATE)
def program_allocations(testbed):
    each_allocation(testbed, f"nth {to_itself(testbed)}")


def probe_allocations(share):
    """Enter a test of each PROBE_SHARES-th allocation of a probe and of a removal; few of them unless all tests run."""
    @allocations(f"a probe and a removal, {share} of {PROBE_SHARES}", limit_s=150, debug_tier=gate_if(share == 1))
    def run(testbed):
        unbind(testbed)
        each_allocation(testbed, f"bind {testbed.client.pci} {share}/{PROBE_SHARES if WHOLE else 320}")
        works_again(testbed)


for number in range(1, PROBE_SHARES + 1):
    probe_allocations(number)


@allocations("loading and unloading", limit_s=100, debug_tier=GATE)
def load_allocations(testbed):
    """With no probe in it, which has tests of its own."""
    testbed.run("echo 0 > /sys/bus/pci/drivers_autoprobe; rmmod hghca")
    try:
        each_allocation(testbed, f"insmod /opt/hghca/hghca.ko {'1/1' if WHOLE else '1/64'}")
    finally:
        testbed.run("echo 1 > /sys/bus/pci/drivers_autoprobe")
    testbed.run("insmod /opt/hghca/hghca.ko")
    for side in testbed.sides:
        testbed.configure(side)
