# SPDX-License-Identifier: GPL-2.0-or-later
"""The common part of the tests of RDMA users: proof that RDMA carried the data, and unloading of modules."""

import contextlib

from framework import SETTLE_S, Failure, expect, tail


def grown(testbed, side, names, before):
    """The increase of counters of the device."""
    return [testbed.counter(side, name) - start for name, start in zip(names, before)]


@contextlib.contextmanager
def carried(testbed, side, sent=0, received=0):
    """The block transfers at least this payload by RDMA over the side's device. The counters count whole packets.

    A software device of the kernel has no such counters.
    """
    if not side.counters:
        yield
        return
    names = ("tx_bytes", "rx_bytes")
    before = [testbed.counter(side, name) for name in names]
    yield
    found = grown(testbed, side, names, before)
    testbed.note(f"{side.device}: {found[0]} bytes sent and {found[1]} received by RDMA")
    expect(found[0] >= sent and found[1] >= received,
           f"{side.device} sent {found[0]} bytes and received {found[1]}, less than the payload, {sent} and {received}")


@contextlib.contextmanager
def heard(commands):
    """If the block fails, add the output of other commands to the failure. commands: name -> Command."""
    try:
        yield
    except Failure as error:
        said = "".join(f"\n{name}, {'which runs' if command.running() else f'status {command.status}'}, said: "
                       f"{tail(command.output, 2000)}" for name, command in commands.items())
        raise Failure(f"{error}{said}") from error


REGISTRATIONS = ("regions_registered", "keys_invalidated")


def fast(testbed, host):
    """The numbers of the host's memory registrations and of invalidated keys, by the host or the target.

    An empty value if the host's device does not count them.
    """
    if not host.counters:
        return []

    def numbers():
        return [testbed.counter(host, name) for name in REGISTRATIONS]

    def at_rest():
        """The kernel reads a new disk, and the counters are read one after the other: both must be of the same time."""
        found = numbers()
        return found if found == numbers() else None

    return testbed.wait_until(at_rest, "two equal readings of the counters of registrations")


def check_fast(testbed, host, before, least):
    """Check that work requests registered the host's memory, and that each key was invalidated; before: from fast()."""
    if not before:
        return
    numbers = []

    def settled():
        numbers[:] = grown(testbed, host, REGISTRATIONS, before)
        return numbers[1] >= numbers[0]

    # A response may be under way.
    try:
        testbed.wait_until(settled, "the invalidation of each key", timeout=SETTLE_S)
    finally:
        testbed.note(f"{numbers[0]} regions registered, {numbers[1]} keys invalidated")
    expect(numbers[0] >= least, f"{numbers[0]} regions were registered, expected at least {least}")


UNLOAD = """
for i in $(seq 100); do
    modprobe -r {modules} 2>/dev/null && exit
    sleep 0.1
done
echo "still loaded after 10 s:"
lsmod | grep -E '^({pattern}) '
modprobe -r {modules}
"""


def unload(side, modules):
    """Unload modules, which their last users may hold for a short time; the Result."""
    pattern = "|".join(modules.replace("-", "_").split())
    return side.guest.run(UNLOAD.format(modules=modules, pattern=pattern), timeout=60)


@contextlib.contextmanager
def leaving_nothing(side, script, modules, what):
    """Run the block, then, even if it failed, a script that undoes its effects, and unload modules.

    The script continues after a command that fails. Its output, or modprobe's, fails the test unless the block did.
    """
    try:
        yield
    finally:
        said = side.guest.run(script, timeout=60)
        gone = unload(side, modules)
    expect(not said.output.strip(), f"{what} could not be taken down: {said.output}")
    expect(not gone.status, f"{what}: modules stay: {gone.output}")
