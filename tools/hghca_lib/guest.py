# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests: boot them, run commands in them, read their kernel log, send QMP commands to their QEMU.

    with guest.boot(setup.make()) as guests:
        g = guests[0]
        g.run("ibv_devinfo", timeout=20)                   # -> Result(status, stdout, stderr)
        server = g.start("ib_write_bw -d hghca1", netns="b")
        client = g.run("ib_write_bw -d hghca0 10.10.0.2", timeout=60)
        server.wait(10)
        [r.text for r in g.kmsg() if r.level <= 4]         # warnings and worse
        g.qmp("query-pci")

A command is a string for the shell or a list of arguments. A guest that dies
(panic, QEMU gone) ends every wait at once with GuestDied, which carries the
end of the kernel log. All waits have a time limit; all methods may be called from
several threads.
"""

import base64
import collections
import concurrent.futures
import contextlib
import ctypes
import dataclasses
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from . import cache, gcov, host, machine
from .errors import ToolError

BOOT_TIMEOUT_S = 180
BOOT_PERIODS = 4
TIMED_OUT = 124
# The folder of guests that run, and in it the QMP socket of each.
FOLDER = "hghca-"
MONITOR = "monitor{}"
# Where the processes of guests meet whose HCAs share memory.
MEMORY = "link"
PR_SET_PDEATHSIG = 1
WARNING = 4
# The guest's init writes this before it loads a module: earlier messages concern the emulated machine.
INIT_BEGINS = "hghca: init begins"
USUAL_WARNINGS = (
    "hghca: loading out-of-tree module taints kernel.",
    "hghca: module verification failed: signature and/or required key missing - tainting kernel",
    "rdma_loopback: loading out-of-tree module taints kernel.",
    "rdma_loopback: module verification failed: signature and/or required key missing - tainting kernel",
    "hrtimer: interrupt took",
)
# ib_core of Linux 6.1 says the first of an adapter that has no speed, such as a virtual one, when it is asked for that of
# the port; the PCI core of Linux 7.3 says the others of each function that a driver resets.
USUAL_PATTERN = re.compile(r"\w+ speed is unknown, defaulting to \d+$|\w+ [\da-f:.]+: reset(ting| done)$")


def is_usual(text):
    """Whether a warning of the kernel says nothing of the drivers."""
    return text.startswith(USUAL_WARNINGS) or bool(USUAL_PATTERN.match(text))


# caller: the thread or, in an interrupt, the CPU of the message, if the kernel logs it (CONFIG_PRINTK_CALLER).
Record = collections.namedtuple("Record", "level usec text caller", defaults=("",))

# QEMU must end with the tool. Linux binds this to the thread that starts QEMU,
# so one thread that lives as long as the process starts all of them.
_starter = concurrent.futures.ThreadPoolExecutor(max_workers=1)
_libc = ctypes.CDLL(None)


class GuestError(ToolError):
    """A guest did not boot, or refused a request."""


class GuestHung(GuestError):
    """A guest did not boot in time; addresses: where its CPUs are, as far as QEMU tells."""

    def __init__(self, what, addresses, **more):
        super().__init__(what, **more)
        self.addresses = addresses


class GuestDied(GuestError):
    """The guest is gone: kernel panic, reset, or QEMU ended."""


@dataclasses.dataclass
class Result:
    """How a command ended: status (124 when timed_out), and its output as text."""
    status: int
    stdout: str
    stderr: str
    timed_out: bool = False

    @property
    def output(self):
        return self.stdout + self.stderr


class Command:
    """A command that runs in the guest; made by Guest.start."""

    def __init__(self, guest, number, on_output):
        self.guest = guest
        self.number = number
        self.status = None
        self.chunks = {1: [], 2: []}
        self.on_output = on_output

    def text(self, fd):
        return b"".join(self.chunks[fd]).decode(errors="replace")

    @property
    def output(self):
        """The output so far, stdout before stderr."""
        return self.text(1) + self.text(2)

    def forget(self):
        """Drop the output so far, for a command that prints continuously."""
        self.chunks[1].clear()
        self.chunks[2].clear()

    def running(self):
        return self.status is None

    def wait(self, timeout=60):
        """Wait for the end; after `timeout` seconds kill it. Returns a Result."""
        timed_out = not self.guest.wait_for_state(lambda: self.status is not None, timeout)
        if timed_out:
            self.kill()
            self.guest.wait_for_state(lambda: self.status is not None, 10)
        return Result(TIMED_OUT if timed_out else self.status, self.text(1), self.text(2), timed_out)

    def wait_for(self, pattern, timeout=20):
        """Wait until the output matches the regular expression; the match, or None if the command ended without one."""
        found = []

        def seen():
            found[:] = [match for match in [re.search(pattern, self.output)] if match]
            return found or self.status is not None

        if not self.guest.wait_for_state(seen, timeout):
            raise GuestError(f"no output matching {pattern!r} within {timeout} s, but: {self.output[-500:]!r}")
        return found[0] if found else None

    def send(self, data):
        """Bytes or text for its standard input; empty bytes close it."""
        data = data.encode() if isinstance(data, str) else data
        for start in range(0, max(len(data), 1), 32768):
            self.guest._send({"op": "input", "id": self.number,
                              "data": base64.b64encode(data[start:start + 32768]).decode()})

    def kill(self, signal_number=signal.SIGKILL):
        """Send a signal to the command and all its children in the same session."""
        self.guest._send({"op": "kill", "id": self.number, "signal": int(signal_number)})

    def resize(self, rows, columns):
        """Set the size of the terminal of a command (tty=True)."""
        self.guest._send({"op": "size", "id": self.number, "rows": rows, "columns": columns})


class Guest:
    """One booted machine. `number` counts from 1; `serial` is the file of its serial console."""

    def __init__(self, number, argv, inherited, port, qmp, serial, temporary_serial):
        self.number = number
        self.serial = Path(serial)
        self._temporary_serial = temporary_serial
        self.failed = None
        self.boot_s = None
        self._port = port
        self._qmp_socket = qmp
        self._qmp_file = None
        self._changed = threading.Condition()
        self._send_lock = threading.Lock()
        self._qmp_lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._commands = {}
        self._answers = {}
        self._log = []
        self._dead = False
        self._errors = tempfile.TemporaryFile()
        self._start = time.monotonic()
        self._process = _starter.submit(self._spawn, argv, inherited).result()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _spawn(self, argv, inherited):
        return subprocess.Popen([*host.in_a_group(), *argv], stdin=subprocess.DEVNULL, stdout=self._errors,
                                stderr=self._errors, pass_fds=[s.fileno() for s in inherited], start_new_session=True,
                                preexec_fn=lambda: _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))

    # Running commands.

    def start(self, command, netns=None, on_output=None, tty=False, env=None):
        """Start a command and return its Command at once.

        netns:     network namespace to run in ("b" is that of the second HCA).
        on_output: called with (fd, bytes) from the reader thread as output comes.
        tty:       on a separate terminal.
        """
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        if netns:
            argv = ["ip", "netns", "exec", netns, *argv]
        started = Command(self, next(self._numbers), on_output)
        self._commands[started.number] = started
        self._send({"op": "start", "id": started.number, "argv": argv, "tty": tty, "env": env or {}})
        return started

    def run(self, command, timeout=60, netns=None, input=None, env=None):
        """Run a command to its end; a Result. Standard input is `input`, or empty."""
        started = self.start(command, netns=netns, env=env)
        if input:
            started.send(input)
        started.send(b"")
        return started.wait(timeout)

    def kmsg(self, timeout=20):
        """The kernel log since boot as a list of Record; level 4 is a warning, lower is worse.

        It is longer than the kernel's buffer: each call fetches the new records. Lost records are an error.
        """
        number = next(self._numbers)
        self._send({"op": "kmsg", "id": number})
        if not self.wait_for_state(lambda: number in self._answers, timeout):
            raise GuestError(f"the guest did not give its kernel log within {timeout} s")
        self._log += [Record(*record) for record in self._answers.pop(number)]
        return self._log

    def warnings(self):
        """The kernel's warnings and more severe records since init started, without those of an unsigned driver."""
        records = self.kmsg()
        begin = next((number for number, record in enumerate(records) if record.text == INIT_BEGINS), 0)
        return [record for record in records[begin:]
                if record.level <= WARNING and not is_usual(record.text)]

    # QEMU.

    def qmp(self, command, timeout=20, **arguments):
        """Run a QMP command; its return value. A QMP error is a GuestError."""
        with self._qmp_lock:
            self._qmp_socket.settimeout(timeout)
            try:
                if self._qmp_file is None:
                    self._qmp_file = self._qmp_socket.makefile("rw")
                    self._qmp_file.readline()
                    self._qmp_command("qmp_capabilities", {})
                return self._qmp_command(command, arguments)
            except (OSError, ValueError) as error:
                raise GuestError(f"QMP {command}: {error}") from error

    def _qmp_command(self, command, arguments):
        self._qmp_file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._qmp_file.flush()
        while True:
            answer = json.loads(self._qmp_file.readline())
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise GuestError(f"QMP {command}: {answer['error']['desc']}")

    def alive(self):
        return not self._dead

    def close(self):
        """End the machine immediately; its disk loses all changes."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join(10)
        for file in (self._port, self._qmp_socket, self._errors):
            file.close()

    # The port to the command server.

    def wait_ready(self, timeout=BOOT_TIMEOUT_S):
        """Wait for the end of the boot; GuestError if the driver or its devices did not start.

        timeout: seconds in which the console says something new. A guest that hangs is silent; on a loaded host, a
        kernel with sanitizers may only be slow, and has BOOT_PERIODS times as long.
        """
        said = 0
        for period in range(1, BOOT_PERIODS + 1):
            if self.wait_for_state(lambda: self.failed is not None, timeout):
                break
            before, said = said, self.serial.stat().st_size if self.serial.exists() else 0
            if said == before or period == BOOT_PERIODS:
                raise GuestHung(f"guest {self.number} did not boot within {period * timeout} s; "
                                f"the end of its kernel log:\n{self.log_tail()}", self.addresses(),
                                log=self._kept_serial())
        if self.failed:
            raise GuestError(f"guest {self.number} booted, but: {'; '.join(self.failed.splitlines())}; "
                             f"the end of its kernel log:\n{self.log_tail()}", log=self._kept_serial())

    def addresses(self):
        """The instruction pointer of each CPU."""
        with contextlib.suppress(GuestError):
            said = self.qmp("human-monitor-command", **{"command-line": "info registers -a"})
            return [int(found, 16) for found in re.findall(r"RIP=([0-9a-f]+)", said)]
        return []

    def log_tail(self, lines=25):
        """The last lines of the serial console, indented."""
        try:
            text = self.serial.read_text(errors="replace")
        except OSError:
            return "  (none)"
        return "\n".join(f"  {line}" for line in text.splitlines()[-lines:]) or "  (empty)"

    def _kept_serial(self):
        """A copy of the kernel log that stays after this run: the requested file, else one in the cache."""
        if not self.serial.exists():
            return None
        if not self._temporary_serial:
            return self.serial
        return shutil.copy(self.serial, cache.log_path(f"guest{self.number}"))

    def _send(self, message):
        data = json.dumps(message).encode() + b"\n"
        try:
            with self._send_lock:
                self._port.sendall(data)
        except OSError:
            self._reader.join(5)
            raise self._death() from None

    def _read(self):
        pending = b""
        while True:
            try:
                data = self._port.recv(1 << 20)
            except OSError:
                data = b""
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                self._take(json.loads(line))
        with self._changed:
            self._dead = True
            self._changed.notify_all()

    def _take(self, message):
        """Record one message of the command server."""
        event, number = message["ev"], message.get("id")
        command = self._commands.get(number)
        if event == "out" and command is not None:
            data = base64.b64decode(message["data"])
            if command.on_output:
                command.on_output(message["fd"], data)
        with self._changed:
            if event == "ready":
                self.failed = message["failed"]
                self.boot_s = time.monotonic() - self._start
            elif event == "out" and command is not None:
                command.chunks[message["fd"]].append(data)
            elif event == "exit" and command is not None:
                command.status = message["status"]
            elif event == "kmsg":
                self._answers[number] = message["records"]
            self._changed.notify_all()

    def wait_for_state(self, condition, timeout):
        """Wait for the condition; False after the time limit, GuestDied if the guest has ended."""
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._dead, timeout)
            if condition():
                return True
            if self._dead:
                raise self._death()
            return False

    def _death(self):
        try:
            status = self._process.wait(5)
        except subprocess.TimeoutExpired:
            status = None
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()
        text = self.serial.read_text(errors="replace") if self.serial.exists() else ""
        panic = re.search(r"Kernel panic - not syncing: .*", text)
        if panic:
            why = f"guest {self.number} died: {panic.group(0)}"
        elif status and said:
            return GuestDied(f"QEMU refused to start or failed (status {status}): {said[-1500:]}",
                             "correct the arguments given with --qemu-arg; "
                             "`--qemu-arg -device --qemu-arg hghca,help` lists the device's properties")
        else:
            why = f"guest {self.number} ended (QEMU status {status}){': ' + said[-500:] if said else ''}"
        return GuestDied(f"{why}; the end of its kernel log:\n{self.log_tail()}", log=self._kept_serial())


@contextlib.contextmanager
def boot(setup, config=None, timeout=BOOT_TIMEOUT_S, check=True):
    """Boot the guests of the configuration; yields the list of them, ready for commands.

    setup: what setup.make returned. check: fail if the driver did not start.
    """
    config = config or machine.Config()
    folder = Path(tempfile.mkdtemp(prefix=FOLDER))
    guests = []
    try:
        _start_all(setup, config, folder, guests, timeout, check)
        yield guests
    finally:
        _close_all(guests)
        shutil.rmtree(folder, ignore_errors=True)


def _start_all(setup, config, folder, guests, timeout, check):
    """Start all machines, put them into the list `guests`, and wait until they are ready."""
    for number, sockets in enumerate(machine.link_guests(config.guests), 1):
        guests.append(_boot_one(setup, config, number, sockets, folder))
    for guest in guests:
        try:
            guest.wait_ready(timeout)
        except GuestDied:
            raise
        except GuestError:
            if check or guest.failed is None:
                raise


def _close_all(guests):
    while guests:
        guest = guests.pop()
        gcov.collect(guest)
        guest.close()


def _boot_one(setup, config, number, sockets, folder):
    serial = folder / f"serial{number}.log"
    if config.serial:
        serial = Path(config.serial if number == 1 else f"{config.serial}.{number}")
    port, port_far = socket.socketpair()
    qmp, qmp_far = socket.socketpair()
    inherited = [*sockets, port_far, qmp_far]
    argv = machine.arguments(config, number, setup, sockets, port_far, qmp_far, serial,
                             folder / MONITOR.format(number), folder / MEMORY)
    try:
        return Guest(number, argv, inherited, port, qmp, serial, temporary_serial=not config.serial)
    finally:
        for end in inherited:
            end.close()
