# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine without a guest: QEMU's qtest protocol reads and writes its ports, registers and memory."""

import contextlib
import json
import os
import select
import socket
import subprocess
import tempfile
import time

EMULATOR = []    # the words that start QEMU
# A QEMU that is silent for so long hangs: it answers within milliseconds.
SILENCE_S = 20
RAM_BYTES = 128 << 20
# Of commands that are sent without waiting: neither they nor their answers fill a pipe.
BATCH = 512
# Where the function of a device and a register is found in memory (PCI Express, 7.2.2).
ECAM = 0xb0000000
PCIEXBAR = 0x60


class Hung(AssertionError):
    pass


def letter(width):
    """What the protocol calls an access of 1, 2, 4 or 8 bytes."""
    return "bwlq"[width.bit_length() - 1]


class Machine:
    """A q35 machine; devices are words of QEMU's command line. `traces` are the events in its log."""

    def __init__(self, *devices, accelerator="qtest", traces=("hghca_signal",)):
        self.log = tempfile.NamedTemporaryFile(mode="r")
        self.control, far = socket.socketpair()
        argv = [*EMULATOR, "-M", "q35", "-m", str(RAM_BYTES >> 20), "-nodefaults", "-display", "none", "-accel", accelerator,
                "-qtest", "stdio", "-qtest-log", "/dev/null", "-D", self.log.name,
                *(word for trace in traces for word in ("-trace", trace)),
                "-chardev", f"socket,id=qmp,fd={far.fileno()}", "-mon", "chardev=qmp,mode=control", *devices]
        with far:
            self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            pass_fds=[far.fileno()])
        self.control.settimeout(SILENCE_S)
        self.control_file = None
        self.received = b""
        # The inputs of the device that intercept() names which are asserted now.
        self.asserted = set()
        # Functions are configured as memory from here on.
        self.ask(f"outl 0xcf8 {0x80000000 | PCIEXBAR:#x}")
        self.ask(f"outl 0xcfc {ECAM | 1:#x}")

    def close(self):
        self.process.kill()
        self.process.communicate()
        self.log.close()
        self.control.close()

    def traced(self, beginning):
        """The number of traced events that begin so."""
        return sum(beginning in line for line in self.trace())

    def trace(self):
        """The events traced so far, a line each."""
        self.log.seek(0)
        return self.log.read().splitlines()

    def line(self):
        end = time.monotonic() + SILENCE_S
        while b"\n" not in self.received:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise Hung(f"QEMU has not answered for {SILENCE_S} s")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise AssertionError(f"QEMU has ended: {self.process.stderr.read().decode(errors='replace')[-2000:]}")
            self.received += data
        line, self.received = self.received.split(b"\n", 1)
        return line.decode()

    def ask(self, command):
        """Send a command; the words of the answer behind OK."""
        return self.ask_all([command])[0]

    def ask_all(self, commands):
        """Send commands without waiting for the answer of each; the words of each answer behind OK."""
        answers = []
        for start in range(0, len(commands), BATCH):
            batch = commands[start:start + BATCH]
            try:
                self.process.stdin.write("".join(f"{command}\n" for command in batch).encode())
                self.process.stdin.flush()
            except BrokenPipeError:
                pass    # line() finds out why
            answers += [self.answer(command) for command in batch]
        return answers

    def answer(self, command):
        words = self.line().split()
        while words[:1] == ["IRQ"]:
            (self.asserted.add if words[1] == "raise" else self.asserted.discard)(int(words[2]))
            words = self.line().split()
        if words[:1] != ["OK"]:
            raise AssertionError(f"qtest: {command[:80]}: {' '.join(words)}")
        return words[1:]

    def intercept(self, device):
        """From now on `asserted` has the interrupt inputs of the device, such as "ioapic". One device can be named."""
        self.ask(f"irq_intercept_in {device}")

    def qmp(self, command, **arguments):
        """Run a command of QEMU's monitor; what it returns."""
        if self.control_file is None:
            self.control_file = self.control.makefile("rw")
            self.control_file.readline()
            self.qmp("qmp_capabilities")
        self.control_file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.control_file.flush()
        while True:
            answer = json.loads(self.control_file.readline())
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise AssertionError(f"QMP {command}: {answer['error']['desc']}")

    def write32(self, address, value):
        self.ask(f"writel {address:#x} {value:#x}")

    def read32(self, address):
        return int(self.ask(f"readl {address:#x}")[0], 16)

    def read_number(self, address, width):
        """One access of 1, 2, 4 or 8 bytes."""
        return self.read_numbers([(address, width)])[0]

    def read_numbers(self, accesses):
        """Accesses (address, width), one after the other."""
        return [int(words[0], 16) for words in self.ask_all([f"read{letter(width)} {address:#x}"
                                                             for address, width in accesses])]

    def write_numbers(self, accesses):
        """Accesses (address, width, value), one after the other."""
        self.ask_all([f"write{letter(width)} {address:#x} {value:#x}" for address, width, value in accesses])

    def write(self, address, data):
        self.ask(f"write {address:#x} {len(data)} 0x{data.hex()}")

    def read(self, address, length):
        return bytes.fromhex(self.ask(f"read {address:#x} {length}")[0][2:])

    def step(self):
        """Let the timers of the virtual clock run that are due next, and what they leave to be done."""
        self.ask("clock_step")

    def advance(self, ns):
        """Let so much time pass on the virtual clock; the time then, in nanoseconds."""
        return int(self.ask(f"clock_step {ns}")[0])


@contextlib.contextmanager
def started(*devices, **options):
    """options: as Machine has them."""
    machine = Machine(*devices, **options)
    try:
        yield machine
    finally:
        machine.close()
