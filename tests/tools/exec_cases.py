# SPDX-License-Identifier: GPL-2.0-or-later
"""Running commands in guests: statuses, output, time limits, and guests that die."""

import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tool import TOOL, fails, hghca, holds, same, tier

from hghca_lib import accel, guest, machine, repo, setup
from hghca_lib.guest import GuestDied, GuestError
from hghca_lib.tiers import ALL


def test_status_and_output():
    """exec passes status, standard output and standard error apart"""
    ended = hghca("exec", "--", "echo out; echo err >&2; exit 7")
    same((ended.status, ended.stdout, ended.stderr), (7, "out\n", "err\n"))


def test_time_out():
    """A command over its time limit is killed: status 124"""
    ended = hghca("exec", "--hcas", 0, "--timeout", 1, "--", "echo begun; sleep 1000")
    same((ended.status, ended.stdout), (124, "begun\n"))
    holds(ended.stderr, "--timeout")
    assert ended.seconds < 60, f"{ended.seconds:.0f} s"


def test_share_log_memory():
    """--share, --dmesg and --memory do what they say, and several arguments reach the command as they are"""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "in").write_text("from the host")
        (Path(folder) / "share").mkdir()
        (Path(folder) / "share/in").write_text("from the host\n")
        ended = hghca("exec", "--hcas", 0, "--memory", "1G", "--share", f"{folder}/share", "--dmesg", f"{folder}/log",
                      "--", "sh", "-c", 'cat /share/in; echo from the guest > /share/out; grep MemTotal /proc/meminfo; '
                      'printf "%s|" "$@"', "sh", "a b", "$HOME", "*")
        same(ended.status, 0, "status")
        holds(ended.stdout, "from the host\n", "\na b|$HOME|*|")
        kib = int(re.search(r"MemTotal: +(\d+)", ended.stdout).group(1))
        assert 900_000 < kib < 1_048_576, f"{kib} KiB"
        same((Path(folder) / "share/out").read_text(), "from the guest\n", "file written by the guest")
        holds((Path(folder) / "log").read_text(errors="replace"), "Linux version", "EXT4-fs (vda)")


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


def test_panic():
    """A kernel panic is noticed at once: status 125 and the end of the kernel log"""
    ended = hghca("exec", "--hcas", 0, "--", "echo c > /proc/sysrq-trigger; sleep 100")
    fails(ended, 125, "Kernel panic", "sysrq")
    assert ended.seconds < 60, f"{ended.seconds:.0f} s"


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
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "whole", Path(folder) / "cut"]
        settings = [f"device.hca1.pcap={files[0]}", f"device.hca2.pcap={files[1]}", "device.hca2.pcap-snaplen=64"]
        ended = hghca("exec", *(f"--qemu-arg={word}" for setting in settings for word in ("-set", setting)),
                      "--", "ping -c 2 -i 0.1 -s 1000 10.10.0.2")
        same(ended.status, 0, "status")
        same(frames.decode(files[0]).wrong, [], "what the checkers say")
        whole, cut = ([record for record in pcapng.records(file) if record.length == 1042] for file in files)
    same([len(record.data) for record in whole], [1042] * 4, "bytes of whole frames")
    same([record.data for record in cut], [record.data[:64] for record in whole], "frames cut short")
    same([record.way for record in whole], [pcapng.OUT, pcapng.IN] * 2, "ways at one end")
    same([record.way for record in cut], [pcapng.IN, pcapng.OUT] * 2, "ways at the other")
    for record in whole:
        assert abs(record.time_ns / 1e9 - time.time()) < ended.seconds + 60, f"a frame of {record.time_ns} ns"


def test_interrupted():
    """When the tool is killed, its QEMU ends too"""
    tool = subprocess.Popen([TOOL, "exec", "--hcas", "0", "--", "echo begun; sleep 1000"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    same(tool.stdout.readline(), b"begun\n", "output")
    children = Path(f"/proc/{tool.pid}/task").glob("*/children")
    emulators = [int(pid) for file in children for pid in file.read_text().split()]
    same(len(emulators), 1, "QEMU processes")
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    tool.stdout.close()
    for _ in range(100):
        if not Path(f"/proc/{emulators[0]}").exists():
            return
        time.sleep(0.05)
    os.kill(emulators[0], signal.SIGKILL)
    raise AssertionError("QEMU outlived the tool")


def booted(**config):
    made = setup.make()
    return guest.boot(made, machine.Config(accel=accel.choose(made), **config))


def test_guest_class():
    """One guest runs many commands, one after another and at once, and passes their output whatever its bytes"""
    with booted(hcas=0) as guests:
        g = guests[0]
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


def test_guest_dies():
    """A guest that dies ends every wait at once"""
    with booted(hcas=0) as guests:
        waiting = guests[0].start("sleep 1000")
        guests[0].start("echo c > /proc/sysrq-trigger")
        start = time.monotonic()
        try:
            waiting.wait(60)
            raise AssertionError("the death was not noticed")
        except GuestDied as error:
            holds(str(error), "Kernel panic")
        assert time.monotonic() - start < 20
        assert not guests[0].alive()
