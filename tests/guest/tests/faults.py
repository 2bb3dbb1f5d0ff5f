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
TOLD = (r"^hghca \S+: ", r"^hghca \S+ hghca\d: ", r"^hghca\d: ", r"^infiniband hghca\d: ",
        r"^__ib_cache_gid_add: unable to add gid \S+ error=-5$")
HCA = "/machine/peripheral/hca1"
# Each command and each allocation fails in turn; where not all tests run, each STRIDE-th command, and few allocations.
WHOLE = tiers.current() == tiers.ALL
STRIDE = 1 if WHOLE else 3


def device(rig, name):
    return rig.guest.qmp("qom-get", path=HCA, property=name)


def fail_command(rig, nth):
    """Let the nth command from now on fail; 0: none."""
    rig.guest.qmp("qom-set", path=HCA, property="fail-command", value=nth)


def settle(rig):
    """Wait until no more commands come by themselves, as those for the GIDs of a new device do."""
    def stands_still():
        before = device(rig, "commands")
        time.sleep(0.1)
        return before == device(rig, "commands")

    rig.wait_until(stands_still, "an idle command interface")


def each_command(rig, action, undo=lambda: None):
    """Repeat an action, its first command failing, then its second, and so on; how often it told of the fault.

    action() returns whether it failed, and undo() takes back one that did not.
    """
    before = device(rig, "commands")
    expect(not action(), "it failed without a fault")
    count = device(rig, "commands") - before
    undo()
    told = 0
    try:
        for nth in range(1, count + 1, STRIDE):
            fail_command(rig, nth)
            failed = action()
            expect(device(rig, "fail-command") == 0, f"command {nth} of {count} did not come")
            told += failed
            if not failed:
                undo()
    finally:
        fail_command(rig, 0)
    rig.note(f"{count} commands, {told} faults told, {count - told} without effect")
    return told


# Memory that is registered anew is pinned a second time before it is let go of.
@test("faults: each command of a program's life", limit_s=150, expected_log=TOLD, aliases=True, **OURS)
def program(rig):
    def life():
        return "# fault told by: " in rig.run(f"/share/faults once {to_itself(rig)}")

    expect(each_command(rig, life) > 20 // STRIDE, "hardly a fault was told")
    expect(not life(), "a fault is left over")


def driver_file(rig, name):
    """Write the address of the client's device; whether that failed."""
    return rig.try_run(f"echo {rig.client.pci} > /sys/bus/pci/drivers/hghca/{name}").status != 0


def bind(rig):
    failed = driver_file(rig, "bind")
    there = rig.try_run(f"test -e /sys/bus/pci/drivers/hghca/{rig.client.pci}").status == 0
    expect(failed != there, "a probe that failed is bound" if failed else "a probe that passed is not bound")
    settle(rig)
    return failed


def unbind(rig):
    expect(not driver_file(rig, "unbind"), "the device was not unbound")
    settle(rig)
    return False


def works_again(rig):
    expect(not bind(rig), "the device cannot be probed any more")
    rig.configure(rig.client)
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 50)


@test("faults: each command of a probe", limit_s=150, expected_log=TOLD, **OURS)
def probe(rig):
    unbind(rig)
    told = each_command(rig, lambda: bind(rig), lambda: unbind(rig))
    expect(told > 20 // STRIDE, "hardly a fault was told")
    works_again(rig)


@test("faults: each command of a removal", limit_s=150, expected_log=TOLD, **OURS)
def removal(rig):
    """A removal cannot fail: whatever the device says, it ends, and the next probe works."""
    # The first removal has addresses to forget that the others have not.
    unbind(rig)
    expect(not bind(rig), "the device cannot be probed any more")
    each_command(rig, lambda: unbind(rig), lambda: expect(not bind(rig), "the next probe failed"))
    unbind(rig)
    works_again(rig)


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
TOLD_BY_OTHERS = (r"^(?!.*(WARNING:|BUG:|KASAN|UBSAN|ODEBUG|DMA-API|INFO: |refcount_t|corruption|Oops|hghca))",
                  r"driver_sysfs_add failed$", r"^dyndbg: error adding module: hghca$",
                  r"^(Failed to create system directory |No memory to create event subsystem |"
                  r"Could not (create tracefs '|initialize trace (point )?events/|create directory for event ))hghca",
                  r"^kobject: kobject_add_internal failed for \w+ \(error: -12 ",
                  r"^bus_add_driver: .*hghca",
                  # Where it was: a line of a backtrace. What a splat begins with is none.
                  r"^ (\? )?[\w.]+\+0x[0-9a-f]+/0x[0-9a-f]+( \[hghca\])?$")
# There are some 2000, of a second or two each: in so many tests.
PROBE_SHARES = 8


def allocations(name, **options):
    """Enter a test of fail-nth, which the stock kernel does not have."""
    return test(f"faults: allocations of {name}", machine=FAULTS, kernels=("debug",),
                expected_log=TOLD + TOLD_BY_OTHERS, aliases=True, **OURS, **options)


def each_allocation(rig, arguments):
    rig.run(EVERY_ALLOCATION)
    rig.note(run_program(rig, "faults", arguments, timeout=600))


@allocations("a program's life", limit_s=100, debug_tier=GATE)
def program_allocations(rig):
    each_allocation(rig, f"nth {to_itself(rig)}")


def probe_allocations(share):
    """Enter a test of each PROBE_SHARES-th allocation of a probe and of a removal; few of them unless all tests run."""
    @allocations(f"a probe and a removal, {share} of {PROBE_SHARES}", limit_s=150, debug_tier=gate_if(share == 1))
    def run(rig):
        unbind(rig)
        each_allocation(rig, f"bind {rig.client.pci} {share}/{PROBE_SHARES if WHOLE else 80}")
        works_again(rig)


for number in range(1, PROBE_SHARES + 1):
    probe_allocations(number)


@allocations("loading and unloading", limit_s=100, debug_tier=GATE)
def load_allocations(rig):
    """With no probe in it, which has tests of its own."""
    rig.run("echo 0 > /sys/bus/pci/drivers_autoprobe; rmmod hghca")
    try:
        each_allocation(rig, f"insmod /opt/hghca/hghca.ko {'1/1' if WHOLE else '1/16'}")
    finally:
        rig.run("echo 1 > /sys/bus/pci/drivers_autoprobe")
    rig.run("insmod /opt/hghca/hghca.ko")
    for side in rig.sides:
        rig.configure(side)
