# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of programs and kernel modules that use RDMA share: proof that RDMA did it, and modules that go."""

import contextlib

from framework import Failure, expect, tail


def grown(rig, side, names, before):
    """By how much counters of the device rose."""
    return [rig.counter(side, name) - start for name, start in zip(names, before)]


@contextlib.contextmanager
def carried(rig, side, sent=0, received=0):
    """The block moves at least so many bytes of payload, by RDMA, over the side's device; counted are whole packets."""
    names = ("tx_bytes", "rx_bytes")
    before = [rig.counter(side, name) for name in names]
    yield
    found = grown(rig, side, names, before)
    rig.note(f"{side.device}: {found[0]} bytes sent and {found[1]} received by RDMA")
    expect(found[0] >= sent and found[1] >= received,
           f"{side.device} sent {found[0]} bytes and received {found[1]}, less than the payload, {sent} and {received}")


@contextlib.contextmanager
def heard(commands):
    """When the block fails, what commands beside it have said fails with it. commands: name -> Command."""
    try:
        yield
    except Failure as error:
        said = "".join(f"\n{name}, {'which runs' if command.running() else f'status {command.status}'}, said: "
                       f"{tail(command.output, 2000)}" for name, command in commands.items())
        raise Failure(f"{error}{said}") from error


REGISTRATIONS = ("regions_registered", "keys_invalidated")


def fast(rig, host):
    """How often the host registered memory, and how often a key was invalidated, by it or by the target.

    Nothing where the host's device does not count it.
    """
    return host.counters and [rig.counter(host, name) for name in REGISTRATIONS]


def check_fast(rig, host, before, least):
    """The host's memory was registered by work requests, and each key was made invalid; before: as fast() had it."""
    if not before:
        return
    registered, invalidated = grown(rig, host, REGISTRATIONS, before)
    rig.note(f"{registered} regions registered, {invalidated} keys invalidated")
    expect(registered >= least, f"{registered} regions were registered, expected at least {least}")
    expect(invalidated >= registered, f"{registered} regions were registered, and {invalidated} keys invalidated")


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
    """Take modules out, which what used them may hold for some moments yet; the Result."""
    pattern = "|".join(modules.replace("-", "_").split())
    return side.guest.run(UNLOAD.format(modules=modules, pattern=pattern), timeout=60)


@contextlib.contextmanager
def leaving_nothing(side, script, modules, what):
    """The block, and then, whatever failed in it, a script that takes down what it made, and modules that are to go.

    The script goes on after a command that fails. What it or modprobe say fails the test when the block did not.
    """
    try:
        yield
    finally:
        said = side.guest.run(script, timeout=60)
        gone = unload(side, modules)
    expect(not said.output.strip(), f"{what} could not be taken down: {said.output}")
    expect(not gone.status, f"{what}: modules stay: {gone.output}")
