# SPDX-License-Identifier: GPL-2.0-or-later
"""The RDMA loopback controller: as a DMA engine, judged by the kernel's dmatest, and under a user program by vfio."""

import re

import framework
from hghca_lib import buildroot, debug_kernel, dmatest, lines

from data import run_program
from framework import ALL, GATE, IOMMU, LINK, expect

SUMMARY = re.compile(r"dmatest: (\w+)-copy\d+: summary (\d+) tests, (\d+) failures")
# In the order of subjects.py.
FULL, POLLED, BASE = "loop1", "loop2", "loop3"
REFUSED = r"rdma-loopback .*: the controller lacks extensions 0x\w+: it cannot be a DMA engine"


def test(name, **options):
    return framework.test(f"loopback: {name}", **{
        "machine": IOMMU, "subjects": ("hghca",), "kernels": ("stock", "debug"),
        "unable": {lines.NEWEST: "the sources of dmatest are fetched for the other lines alone"},
        "expected_log": (REFUSED, r"enabling unsafe|No interrupt remapping"), **options})


def address(testbed, controller):
    """The PCI address of a controller."""
    buses = testbed.guest.qmp("query-pci")
    slot = next(device["slot"] for device in buses[0]["devices"] if device["qdev_id"] == controller)
    return f"0000:00:{slot:02x}.0"


def load(testbed):
    """Load the driver, and make dmatest.ko available at /run."""
    testbed.run("lsmod | grep -q '^rdma_loopback ' || insmod /opt/hghca/rdma-loopback.ko")
    if testbed.kernel == "stock" and testbed.kernel_name not in lines.SUITES:
        testbed.run("cp /usr/lib/modules/$(uname -r)/extra/dmatest.ko /run/")
    elif testbed.try_run("test -e /run/dmatest.ko").status:
        module = dmatest.make(testbed.kernel_name) if testbed.kernel_name in lines.SUITES else \
            debug_kernel.make(buildroot.make(), testbed.kernel_name).tree / "dmatest.ko"
        sent = testbed.guest.run("cat > /run/dmatest.ko", input=module.read_bytes())
        expect(sent.status == 0, f"dmatest.ko cannot be copied: {sent.output}")


def channel(testbed, controller):
    """The name of a controller's channel."""
    return testbed.run(f"ls /sys/bus/pci/devices/{address(testbed, controller)}/dma").strip()


def judge(testbed, controller, iterations, size, threads=2, options="", timeout=50):
    """Run dmatest with buffers of this size on a controller: each thread has so many iterations, and none fails."""
    name = channel(testbed, controller)
    seen = len(testbed.guest.kmsg())
    # The channel takes the parameters before it. Whoever waits for dmatest itself is a hung task after a minute.
    testbed.run(f"insmod /run/dmatest.ko threads_per_chan={threads} iterations={iterations} test_buf_size={size} "
                f"timeout=20000 {options} channel={name} run=1")
    try:
        testbed.run("while grep -q Y /sys/module/dmatest/parameters/run; do sleep 0.2; done", timeout=timeout)
        said = [record.text for record in testbed.guest.kmsg()[seen:] if "dmatest" in record.text]
        found = [match for text in said if (match := SUMMARY.search(text))]
        expect(len(found) == threads, f"{len(found)} summaries: {said}")
        expect(all(int(match[3]) == 0 and match[1] == name for match in found), f"failures: {said}")
        for match in found:
            testbed.note(match.string)
        expect([int(match[2]) for match in found] == [iterations] * threads, f"not every test ran: {said}")
    finally:
        testbed.run("rmmod dmatest")


@test("dmatest, completions by interrupt")
def interrupts(testbed):
    load(testbed)
    before = testbed.guest.qmp("qom-get", path=f"/machine/peripheral/{FULL}", property="stats")
    # The checkers of the debug kernel look at every byte that is compared.
    small, large = (100, 20) if testbed.kernel == "stock" else (30, 1)
    judge(testbed, FULL, small, 16 << 10)
    judge(testbed, FULL, large, 1 << 20)
    after = testbed.guest.qmp("qom-get", path=f"/machine/peripheral/{FULL}", property="stats")
    expect(after["descriptors"] >= before["descriptors"] + 2 * (small + large), f"{before} {after}")
    expect(after["bytes"] > before["bytes"] and after["dma_errors"] == before["dma_errors"], f"{before} {after}")


# In the guest of most tests, and without an IOMMU: another guest with the debug kernel takes more than a minute.
@test("dmatest, beside two HCAs", machine=LINK, kernels=("debug",), debug_tier=GATE)
def beside_hcas(testbed):
    interrupts(testbed)
    testbed.run("rmmod rdma-loopback")


@test("dmatest, a controller without interrupts, timer and polling")
def polling(testbed):
    load(testbed)
    judge(testbed, POLLED, 100, 16 << 10)
    judge(testbed, POLLED, 20, 1 << 20, 1, "polled=1")


# Under the debug kernel, an iteration of 1 MiB takes a CPU about a second.
@test("dmatest, thousands of iterations", limit_s=1800, tier=ALL)
def thousands(testbed):
    load(testbed)
    iterations, size = (1000, 1 << 20) if testbed.kernel == "stock" else (500, 64 << 10)
    judge(testbed, FULL, iterations, 1 << 20, 4, timeout=1600)
    judge(testbed, POLLED, iterations, size, 4, timeout=800)
    # A thread of dmatest that polls terminates its channel after each copy, with those of other threads.
    judge(testbed, POLLED, iterations, size, 1, "polled=1", timeout=800)


@test("a controller without extensions is not taken as a DMA engine")
def refused(testbed):
    load(testbed)
    pci = address(testbed, BASE)
    expect(testbed.try_run(f"ls /sys/bus/pci/devices/{pci}/dma").status != 0, "it is one")
    expect(any(re.search(REFUSED, record.text) for record in testbed.guest.kmsg()), "the log does not say why")


# It reads what the IOMMU does not let it read, until it is stopped.
@test("the driver takes over a controller that runs", expected_log=(REFUSED, r"DMAR: "))
def taken_over(testbed):
    load(testbed)
    pci = address(testbed, FULL)
    before = testbed.guest.qmp("qom-get", path=f"/machine/peripheral/{FULL}", property="stats")
    testbed.run(f"echo {pci} > /sys/bus/pci/drivers/rdma-loopback/unbind; python3 /share/endless.py {pci}")
    testbed.run(f"echo {pci} > /sys/bus/pci/drivers/rdma-loopback/bind")
    after = testbed.guest.qmp("qom-get", path=f"/machine/peripheral/{FULL}", property="stats")
    expect(after["bad_sizes"] == before["bad_sizes"] + 1, f"it did not run: {before} {after}")
    judge(testbed, FULL, 20, 16 << 10)


@test("a user program written from the document, through vfio-pci", kernels=("stock",))
def user_program(testbed):
    load(testbed)
    pci = address(testbed, BASE)
    testbed.run(f"""
        modprobe vfio_iommu_type1 allow_unsafe_interrupts=1   # the emulated IOMMU does not remap interrupts
        modprobe vfio-pci
        cd /sys/bus/pci/devices/{pci}
        [ ! -e driver ] || echo {pci} > driver/unbind
        echo vfio-pci > driver_override
        echo {pci} > /sys/bus/pci/drivers_probe
    """)
    try:
        run_program(testbed, "loopback", pci)
    finally:
        testbed.run(f"echo {pci} > /sys/bus/pci/drivers/vfio-pci/unbind; echo > /sys/bus/pci/devices/{pci}/driver_override")


@test("the module comes and goes under copies")
def reloaded(testbed):
    load(testbed)
    name = channel(testbed, FULL)
    testbed.run(f"insmod /run/dmatest.ko threads_per_chan=2 iterations=0 timeout=3000 channel={name} run=1")
    testbed.run(f"sleep 1; echo 0 > /sys/module/dmatest/parameters/run; rmmod dmatest; rmmod rdma-loopback")
    load(testbed)
    judge(testbed, FULL, 20, 16 << 10)
