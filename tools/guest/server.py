# SPDX-License-Identifier: GPL-2.0-or-later
"""Process 1 of the guest: runs commands for the host, over one virtio-serial port.

Both directions carry one JSON object a line; bytes travel as base64.

Host to guest:
  {"op": "start", "id": N, "argv": [..], "tty": bool, "env": {..}}
  {"op": "input", "id": N, "data": B}      an empty B closes standard input
  {"op": "kill", "id": N, "signal": S}     to the command's whole session group
  {"op": "size", "id": N, "rows": R, "columns": C}
  {"op": "kmsg", "id": N}                  what the kernel has logged since the last time
Guest to host:
  {"ev": "ready", "failed": text}          once; what init could not do
  {"ev": "out", "id": N, "fd": 1 or 2, "data": B}
  {"ev": "exit", "id": N, "status": S}     128 + signal for a killed command
  {"ev": "kmsg", "id": N, "records": [[level, usec, text, caller], ..]}

When the host goes away, the guest powers itself off.
"""

import base64
import errno
import fcntl
import json
import os
import selectors
import signal
import struct
import subprocess
import termios

PORT_NAME = "org.hghca.commands"
READ_BYTES = 65536
POWER_OFF = 0x4321FEDC
LOST = 3            # level of the record that tells of others: an error


class HostGone(Exception):
    """The other end of the port is closed."""


class Port:
    """The virtio-serial port: JSON lines in and out."""

    def __init__(self):
        self.fd = os.open(f"/dev/{self._find()}", os.O_RDWR)
        self.pending = b""

    @staticmethod
    def _find():
        base = "/sys/class/virtio-ports"
        for port in os.listdir(base):
            with open(f"{base}/{port}/name") as file:
                if file.read().strip() == PORT_NAME:
                    return port
        raise FileNotFoundError(PORT_NAME)

    def send(self, message):
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self.fd, data):]

    def receive(self):
        """The messages that have arrived whole; called when the port is readable."""
        data = os.read(self.fd, READ_BYTES)
        if not data:
            raise HostGone
        *lines, self.pending = (self.pending + data).split(b"\n")
        return [json.loads(line) for line in lines]


class Command:
    """One running command, its output pipes, and its input still to be written."""

    def __init__(self, number, argv, env, tty):
        self.number = number
        self.outputs = {}
        environment = {**os.environ, **env}
        if tty:
            self._start_on_terminal(argv, environment)
        else:
            self._start_on_pipes(argv, environment)

    def _start_on_pipes(self, argv, environment):
        self.process = subprocess.Popen(argv, env=environment, start_new_session=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        self.input_fd = self.process.stdin.fileno()
        self.outputs = {self.process.stdout.fileno(): 1, self.process.stderr.fileno(): 2}
        os.set_blocking(self.input_fd, False)

    def _start_on_terminal(self, argv, environment):
        master, slave = os.openpty()
        self.process = subprocess.Popen(argv, env=environment, start_new_session=True,
                                        stdin=slave, stdout=slave, stderr=slave,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.input_fd = master
        self.outputs = {master: 1}

    def status(self):
        code = self.process.returncode
        return 128 - code if code < 0 else code


class Server:
    def __init__(self):
        self.port = Port()
        self.commands = {}
        self.inputs = {}
        self.kmsg_fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        self.kmsg_next = 0      # number of the record to come
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.port.fd, selectors.EVENT_READ, self._on_port)
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self.selector.register(reader, selectors.EVENT_READ, self._on_child)

    def serve(self):
        self.port.send({"ev": "ready", "failed": self._failures()})
        while True:
            for key, _ in self.selector.select():
                key.data(key.fileobj)

    @staticmethod
    def _failures():
        try:
            with open("/run/hghca-failed") as file:
                return file.read().strip()
        except FileNotFoundError:
            return ""

    # What the host asks for.

    def _on_port(self, _):
        for message in self.port.receive():
            getattr(self, f"_do_{message.pop('op')}")(**message)

    def _do_start(self, id, argv, tty=False, env=None):
        try:
            command = Command(id, argv, env or {}, tty)
        except OSError as error:
            text = f"{argv[0]}: {error.strerror}\n".encode()
            self._send_output(id, 2, text)
            self.port.send({"ev": "exit", "id": id, "status": 127 if error.errno == errno.ENOENT else 126})
            return
        self.commands[id] = command
        for fd in command.outputs:
            self.selector.register(fd, selectors.EVENT_READ, lambda fd, c=command: self._on_output(c, fd))

    def _do_input(self, id, data):
        command = self.commands.get(id)
        if command is None or command.input_fd is None:
            return
        self.inputs.setdefault(id, []).append(base64.b64decode(data))
        self._write_input(command)

    def _do_kill(self, id, signal):
        command = self.commands.get(id)
        if command is None:
            return
        try:
            os.killpg(command.process.pid, signal)
        except ProcessLookupError:
            pass

    def _do_size(self, id, rows, columns):
        command = self.commands.get(id)
        if command is not None:
            fcntl.ioctl(command.input_fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _do_kmsg(self, id):
        records = []
        while True:
            try:
                prefix, _, text = os.read(self.kmsg_fd, 8192).decode(errors="replace").partition(";")
            except BrokenPipeError:
                continue        # some were lost; the next one's number tells how many
            except BlockingIOError:
                break
            priority, number, usec, *more = prefix.split(",")
            lost, self.kmsg_next = int(number) - self.kmsg_next, int(number) + 1
            if lost:
                records.append([LOST, int(usec), f"{lost} records of the kernel log were lost", ""])
            caller = next((field for field in more if field.startswith("caller=")), "")
            records.append([int(priority) & 7, int(usec), text.split("\n")[0], caller])
        self.port.send({"ev": "kmsg", "id": id, "records": records})

    # What the commands do.

    def _send_output(self, number, fd, data):
        self.port.send({"ev": "out", "id": number, "fd": fd, "data": base64.b64encode(data).decode()})

    def _on_output(self, command, fd):
        if fd not in command.outputs:
            return
        try:
            data = os.read(fd, READ_BYTES)
        except OSError:
            data = b""
        if data:
            self._send_output(command.number, command.outputs[fd], data)
        else:
            self._drop_output(command, fd)

    def _drop_output(self, command, fd):
        self.selector.unregister(fd)
        del command.outputs[fd]
        if fd != command.input_fd:
            for file in (command.process.stdout, command.process.stderr):
                if file is not None and not file.closed and file.fileno() == fd:
                    file.close()

    def _write_input(self, command):
        """Write what the pipe takes; come back when it takes more."""
        queue = self.inputs.get(command.number, [])
        while queue:
            if not queue[0]:
                self._close_input(command)
                return
            try:
                written = os.write(command.input_fd, queue[0])
            except BlockingIOError:
                self._watch_input(command)
                return
            except OSError:
                self._close_input(command)
                return
            queue[0] = queue[0][written:]
            if not queue[0]:
                queue.pop(0)

    def _watch_input(self, command):
        if command.input_fd not in self.selector.get_map():
            self.selector.register(command.input_fd, selectors.EVENT_WRITE,
                                   lambda fd, c=command: self._on_input(c, fd))

    def _on_input(self, command, fd):
        if command.input_fd != fd:
            return
        self.selector.unregister(fd)
        self._write_input(command)

    def _close_input(self, command):
        self.inputs.pop(command.number, None)
        if command.process.stdin is None or command.input_fd is None:
            return
        if command.input_fd in self.selector.get_map():
            self.selector.unregister(command.input_fd)
        command.process.stdin.close()
        command.input_fd = None

    def _on_child(self, wakeup):
        os.read(wakeup, 4096)
        owners = {command.process.pid: command for command in self.commands.values()}
        while True:
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if info is None:
                return
            if info.si_pid in owners:
                self._finish(owners[info.si_pid])
            else:
                os.waitpid(info.si_pid, 0)

    def _finish(self, command):
        """Report an ended command after all output it has left; its children may hold the pipes on."""
        command.process.wait()
        for fd in list(command.outputs):
            os.set_blocking(fd, False)
            self._drain(command, fd)
        self._close_input(command)
        if command.process.stdin is None and command.input_fd is not None:
            for fd in list(command.outputs):
                self._drop_output(command, fd)
            os.close(command.input_fd)
        del self.commands[command.number]
        self.port.send({"ev": "exit", "id": command.number, "status": command.status()})

    def _drain(self, command, fd):
        while fd in command.outputs:
            try:
                data = os.read(fd, READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._drop_output(command, fd)
                return
            self._send_output(command.number, command.outputs[fd], data)


def link_streams():
    """The links in /dev that udev would make."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"/dev/{name}")
    os.symlink("/proc/self/fd", "/dev/fd")


def power_off():
    import ctypes
    ctypes.CDLL(None).reboot(POWER_OFF)


link_streams()
try:
    Server().serve()
except HostGone:
    power_off()
