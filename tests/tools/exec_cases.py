# SPDX-License-Identifier: GPL-2.0-or-later
"""Running commands in guests: statuses, output, time limits, and guests that die."""

import atexit
import concurrent.futures
import contextlib
import functools
import hashlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from tool import TOOL, fails, hghca, holds, same, tier

from hghca_lib import accel, cli, demo, guest, machine, repo, run, setup
from hghca_lib.guest import GuestDied, GuestError
from hghca_lib.tiers import ALL


@functools.cache
def whole_run():
    """One run of exec that several tests look at: (how it ended, when, the folder of its files)."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    (folder / "share").mkdir()
    (folder / "share/in").write_text("from the host\n")
    settings = [f"device.hca1.pcap={folder}/whole", f"device.hca2.pcap={folder}/cut", "device.hca2.pcap-snaplen=64"]
    ended = hghca("exec", "--memory", "1G", "--share", folder / "share", "--dmesg", folder / "log",
                  *(f"--qemu-arg={word}" for setting in settings for word in ("-set", setting)), "--", "sh", "-c",
                  'echo out; echo err >&2; cat /share/in; printf "%s|" "$@"; echo from the guest > /share/out; '
                  'grep MemTotal /proc/meminfo > /share/memory; '
                  'ping -c 2 -i 0.1 -s 1000 10.10.0.2 > /share/ping || exit; exit 7', "sh", "a b", "$HOME", "*")
    return ended, time.time(), folder


def test_status_and_output():
    """exec passes status, standard output and standard error apart"""
    ended, _, _ = whole_run()
    same((ended.status, ended.stdout, ended.stderr), (7, "out\nfrom the host\na b|$HOME|*|", "err\n"))


def exec_in(guests, *arguments):
    """What exec does in guests that have booted: (status, standard output, standard error)."""
    streams = [io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2)]
    with (contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]),
          mock.patch.object(run, "booted", lambda config: contextlib.nullcontext(guests))):
        status = cli.main(["exec", *map(str, arguments)])
    return status, *(stream.buffer.getvalue().decode() for stream in streams)


@tier(ALL)   # test_guest_class has it too
def test_time_out():
    """A command over its time limit is killed: status 124"""
    guests = one_guest()
    start = time.monotonic()
    status, output, errors = exec_in(guests, "--timeout", 1, "--", "echo begun; sleep 1000")
    same((status, output), (124, "begun\n"))
    holds(errors, "--timeout")
    assert time.monotonic() - start < 20, f"{time.monotonic() - start:.0f} s"


def test_share_log_memory():
    """--share, --dmesg and --memory do what they say, and several arguments reach the command as they are"""
    ended, _, folder = whole_run()
    holds(ended.stdout, "from the host\n", "\na b|$HOME|*|")
    kib = int(re.search(r"MemTotal: +(\d+)", (folder / "share/memory").read_text()).group(1))
    assert 900_000 < kib < 1_048_576, f"{kib} KiB"
    same((folder / "share/out").read_text(), "from the guest\n", "file written by the guest")
    holds((folder / "log").read_text(errors="replace"), "Linux version", "EXT4-fs (vda)")


def test_wrong_property():
    """A wrong property of the device is QEMU's error, told at once: status 125"""
    ended = hghca("exec", "--hcas", 0, "--qemu-arg=-device", "--qemu-arg=hghca,nonsense=1", "--", "true")
    fails(ended, 125, "nonsense", "cure:", "--qemu-arg")
    assert ended.seconds < 30, f"{ended.seconds:.0f} s"


def test_wrong_property_values():
    """Values out of range and missing links of the device are refused with a reason"""
    for properties in ["netdev=nowhere", "mac=zz", "pcap=/nowhere/file"]:
        ended = hghca("exec", "--hcas", 0, "--qemu-arg=-device", f"--qemu-arg=hghca,{properties}", "--", "true")
        fails(ended, 125, properties.split("=")[0])


@tier(ALL)   # the group `two machines` of the guest tests does it too
def test_two_machines():
    """Two guests reach each other over the HCAs' Ethernet; statuses and lines are told apart"""
    ended = hghca("exec", "--vms", 2, "--on", 1, "--", "ping -c 3 -i 0.2 10.10.0.2",
                  "--on", 2, "--", "hostname; exit 5")
    same(ended.status, 5, "status")
    holds(ended.stdout, "2: guest2\n", "1: 3 packets transmitted, 3 received")


def test_captures():
    """Frames are captured from the first on, and the files are whole and sound though QEMU was killed"""
    sys.path.insert(0, str(repo.path("tests/wire")))
    import frames
    import pcapng
    ended, end, folder = whole_run()
    same(ended.status, 7, "status")
    files = [folder / "whole", folder / "cut"]
    same(frames.decode(files[0]).wrong, [], "what the checkers say")
    whole, cut = ([record for record in pcapng.records(file) if record.length == 1042] for file in files)
    same([len(record.data) for record in whole], [1042] * 4, "bytes of whole frames")
    same([record.data for record in cut], [record.data[:64] for record in whole], "frames cut short")
    same([record.way for record in whole], [pcapng.OUT, pcapng.IN] * 2, "ways at one end")
    same([record.way for record in cut], [pcapng.IN, pcapng.OUT] * 2, "ways at the other")
    for record in whole:
        assert abs(record.time_ns / 1e9 - end) < ended.seconds + 60, f"a frame of {record.time_ns} ns"


def test_interrupted():
    """When the tool is killed, its QEMU ends too"""
    tool = subprocess.Popen([TOOL, "exec", "--hcas", "0", "--", "true"], stdin=subprocess.DEVNULL)

    def emulators():
        """The children of the tool that are QEMU by now: one that has been forked only, may not know yet how to end."""
        found = []
        # A child may end meanwhile.
        with contextlib.suppress(FileNotFoundError):
            for file in Path(f"/proc/{tool.pid}/task").glob("*/children"):
                found += [int(pid) for pid in file.read_text().split()
                          if b"\0-kernel\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        return found

    while not (found := emulators()):
        assert tool.poll() is None, f"the tool ended with status {tool.returncode}"
        time.sleep(0.02)
    same(len(found), 1, "QEMU processes")
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    for _ in range(100):
        if not Path(f"/proc/{found[0]}").exists():
            return
        time.sleep(0.05)
    os.kill(found[0], signal.SIGKILL)
    raise AssertionError("QEMU outlived the tool")


def booted(**config):
    made = setup.make()
    return guest.boot(made, machine.Config(accel=accel.choose(made), **config))


GUESTS = contextlib.ExitStack()
atexit.register(GUESTS.close)


@functools.cache
def one_guest():
    """A guest that several tests run commands in, in a list; it dies in the last of them, panic()."""
    return GUESTS.enter_context(booted(hcas=0))


def test_guest_class():
    """One guest runs many commands, one after another and at once, and passes their output whatever its bytes"""
    g = one_guest()[0]
    same(g.run("exit 3").status, 3, "status")
    missing = g.run(["nonexistent", "argument"])
    same(missing.status, 127, "status of a command that does not exist")
    holds(missing.stderr, "nonexistent")
    same(g.run(["cat"], input="x" * 1_000_000).stdout, "x" * 1_000_000, "echoed input")
    running = [g.start(f"sleep 0.3; echo {number}; exit {number}") for number in range(20)]
    same([one.wait(30).status for one in running], list(range(20)), "statuses")
    same([one.output for one in running], [f"{number}\n" for number in range(20)], "outputs")
    same(g.run("kill -9 $$").status, 137, "status of a killed command")
    same(g.run("(sleep 1000 &) ; echo done", timeout=10).stdout, "done\n", "output before a daemon's end")
    late = g.run("sleep 1000", timeout=0.5)
    same((late.status, late.timed_out), (124, True))
    server = g.start("sleep 0.2; echo listening on 5; read line; echo got $line")
    same(server.wait_for(r"on (\d)").group(1), "5", "matched output")
    server.send("hello\n")
    same(server.wait(10).stdout, "listening on 5\ngot hello\n", "output")
    same(g.qmp("query-status")["status"], "running", "QEMU's status")
    try:
        g.qmp("no-such-command")
        raise AssertionError("a QMP error was lost")
    except GuestError as error:
        holds(str(error), "no-such-command")
    g.run("echo '<3>an error of ours' > /dev/kmsg")
    holds(str([record.text for record in g.warnings()]), "an error of ours")
    check_binary_output(g)


def check_binary_output(g):
    data = bytes(range(256)) * 8192
    chunks = []
    started = g.start("cat", on_output=lambda _, chunk: chunks.append(chunk))
    started.send(data)
    started.send(b"")
    same(started.wait(60).status, 0, "status")
    same(hashlib.sha256(b"".join(chunks)).hexdigest(), hashlib.sha256(data).hexdigest(), "checksum")


@tier(ALL)   # a minute
def test_long_log():
    """The kernel log is known beyond what the kernel keeps of it, and what was lost is told"""
    def flood(guest, letter, lines):
        """Write `lines` records of 700 letters, and a warning. A write(2) is a record: dd's blocks are lines."""
        said = guest.run(f"echo on > /proc/sys/kernel/printk_devkmsg; yes '<6>{letter * 700}' | "
                         f"dd of=/dev/kmsg bs=704 count={lines} iflag=fullblock status=none; "
                         f"echo '<4>after {lines}' > /dev/kmsg")
        same((said.status, said.stderr), (0, ""), "the flood's end")

    with booted(hcas=0) as guests:
        g = guests[0]
        begin = len(g.kmsg())
        # Some 3 MB of the 4 that the kernel keeps, twice; then more than it keeps.
        for lines in (4000, 4001):
            flood(g, "a", lines)
            g.kmsg()
        texts = [record.text for record in g.kmsg()[begin:]]
        same((texts.count("a" * 700), texts[-1]), (8001, "after 4001"), "records")
        same([text for text in texts if "lost" in text], [], "lost records")
        flood(g, "b", 12000)
        texts = [record.text for record in g.warnings()]
        same((texts[-1], len([text for text in texts if text.endswith("records of the kernel log were lost")])),
             ("after 12000", 1), "warnings")


NETWORK = """
for device in /sys/class/infiniband/*; do echo ${device##*/} first; done
for space in $(ip netns list | cut -d" " -f1 | sort); do
    ip netns exec $space rdma dev | sed -n "s/^[0-9]*: \\([a-z]*[0-9]\\):.*/\\1 $space/p"
    ip -n $space -4 -o address show scope global | sed "s/.* inet \\([^ ]*\\) .*/$space \\1/"
done
ip -4 -o address show scope global | sed "s/.* inet \\([^ ]*\\) .*/first \\1/"
"""


@tier(ALL)   # a minute
def test_each_device():
    """A device of each kind: numbers, addresses and namespaces as they stand in line, and the demo's table of them"""
    with booted(devices=["hghca", *machine.KINDS]) as guests, contextlib.redirect_stdout(io.StringIO()):
        said = guests[0].run(NETWORK).stdout.split("\n")
        rows = demo.kinds(guests[0])
    same(sorted(filter(None, said)), ["b 10.10.0.2/24", "c 10.10.0.3/24", "d 10.10.0.4/24", "e 10.10.0.5/24", "ernic0 e",
                                      "ernic1 f", "f 10.10.0.6/24", "first 10.10.0.1/24", "hghca0 first", "hghca1 b",
                                      "hghca2 c", "hghca3 d"], "devices, namespaces and addresses")
    same([(name, passed) for name, _, passed in rows],
         [("hghca", True), ("hghca-base", True), ("rsnic", True), ("ernic", True), ("etrnic", True), ("loopback", True),
          ("kernel log", True)], "the table")
    for _, result, _ in rows[:5]:
        assert re.fullmatch(r"\d+ MB/s with hghca, data checked", result), result
    assert re.fullmatch(r"a DMA engine, dma\dchan0", rows[5][1]), rows[5][1]
    same(rows[6][1], "0 warnings", "the kernel log")


@functools.cache
def panic():
    """A panic under exec, and beside it a wait for another command: (status, errors, seconds, what ended the wait)."""
    guests = one_guest()
    waiting = guests[0].start("sleep 1000")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        start = time.monotonic()
        wait = pool.submit(waiting.wait, 60)
        status, _, errors = exec_in(guests, "--", "echo c > /proc/sysrq-trigger; sleep 100")
        return status, errors, time.monotonic() - start, wait.exception()


def test_panic():
    """A kernel panic is noticed at once: status 125 and the end of the kernel log"""
    status, errors, seconds, _ = panic()
    same(status, 125, "status")
    holds(errors, "Kernel panic", "sysrq")
    assert "Traceback" not in errors, errors[-1500:]
    assert seconds < 20, f"{seconds:.0f} s"


def test_guest_dies():
    """A guest that dies ends every wait at once"""
    _, _, seconds, error = panic()
    assert isinstance(error, GuestDied), f"the death was not noticed: {error!r}"
    holds(str(error), "Kernel panic")
    assert seconds < 20, f"{seconds:.0f} s"
    assert not one_guest()[0].alive()
