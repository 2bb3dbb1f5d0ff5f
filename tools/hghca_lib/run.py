# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca exec` and `tools/hghca shell`."""

import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile
import termios
import threading
import time
import tty
from pathlib import Path

from . import accel, cache, cli, debug_kernel, guest, kernel, lines, setup
from .errors import ToolError, UsageError

STATUS_TOOL_FAILED = 125
# The name of a line of Linux, or of one of its versions.
LINE = re.compile(r"\d+\.\d+(\.\d+)?")


@contextlib.contextmanager
def booted(config):
    """Set up, check the configuration, boot; yields the guests."""
    check(config)
    made = setup.make(kernel=config.kernel, modules=config.modules, userland=config.userland)
    config.accel = accel.choose(made)
    with modules_disk(config.modules) as config.modules, guest.boot(made, config) as guests:
        yield guests


@contextlib.contextmanager
def modules_disk(folder):
    """A disk with the contents of a folder of kernel modules, without its links to the sources; None for None."""
    if not folder:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="hghca-modules-", dir=cache.root()) as name:
        copy = Path(name) / "modules"
        shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns("build", "source"))
        disk = Path(name) / "modules.ext4"
        kernel.make_disk(copy, disk, cache.log_path("modules"), "disk of the modules")
        yield str(disk)


def check(config):
    """Check the configuration before anything is built or booted."""
    check_kernel(config)
    if config.share:
        if not Path(config.share).is_dir():
            raise UsageError(f"there is no folder {config.share} to share", "make it first")
        config.share = str(Path(config.share).resolve())
    if config.serial:
        config.serial = str(Path(config.serial).absolute())
        try:
            Path(config.serial).write_bytes(b"")
        except OSError as error:
            raise UsageError(f"cannot write the kernel log {config.serial}: {error.strerror}",
                             "give --dmesg a file in a folder that can be written") from error


def check_kernel(config):
    """Check that there is such a kernel, and modules only for one that has them from the user."""
    named = [*debug_kernel.RECIPES, *lines.choices()]
    if config.kernel and config.kernel not in named and not Path(config.kernel).is_file():
        what = "kernel of the line" if LINE.fullmatch(config.kernel) else "kernel image"
        raise UsageError(f"there is no {what} {config.kernel}",
                         f"give --kernel stock, {', '.join(debug_kernel.RECIPES)}, one of Debian's lines "
                         f"({', '.join(lines.names())}), {lines.NEWEST}, or the path of a bzImage")
    if config.modules and not config.kernel:
        raise UsageError("--modules without --kernel", "give the kernel that the modules are of")
    if config.modules and config.kernel in named:
        raise UsageError(f"the {config.kernel} kernel needs no modules", "leave --modules out")
    if config.modules and not (Path(config.modules) / "modules.dep").is_file():
        raise UsageError(f"{config.modules} is no folder of kernel modules: it has no modules.dep",
                         "give the folder lib/modules/<release> that `make modules_install` makes")


class Output:
    """Passes a command's output on; with a label, whole lines that carry it."""

    def __init__(self, label=None):
        self.label = label
        self.rest = {1: b"", 2: b""}
        self.streams = {1: sys.stdout.buffer, 2: sys.stderr.buffer}

    def __call__(self, fd, data):
        if self.label is not None:
            *lines, self.rest[fd] = (self.rest[fd] + data).split(b"\n")
            data = b"".join(self.label + line + b"\n" for line in lines)
        self._write(fd, data)

    def finish(self):
        """Write the rest, which has no newline at its end."""
        for fd, rest in self.rest.items():
            if rest:
                self._write(fd, self.label + rest + b"\n")

    def _write(self, fd, data):
        """A closed output does not stop the command."""
        with contextlib.suppress(BrokenPipeError):
            self.streams[fd].write(data)
            self.streams[fd].flush()


def execute(options):
    """Boot and run each group's command at the same time; the first status that is not 0."""
    config = cli.guest_config(options)
    groups = options.groups
    if not groups or not all(command for _, command in groups):
        raise UsageError("exec needs a command", "write it after --: `tools/hghca exec -- ibv_devinfo`")
    for number, _ in groups:
        if number > config.guests:
            raise UsageError(f"--on {number}: there is no such guest", f"give --vms {number} or more")
    with booted(config) as guests:
        return run_groups(guests, groups, options.timeout)


def run_groups(guests, groups, timeout_s):
    deadline = time.monotonic() + timeout_s
    running = []
    for number, command in groups:
        output = Output(f"{number}: ".encode() if len(groups) > 1 else None)
        command = command[0] if len(command) == 1 else command
        started = guests[number - 1].start(command, on_output=output)
        started.send(b"")
        running.append((started, output))
    statuses = []
    for started, output in running:
        result = started.wait(max(0, deadline - time.monotonic()))
        output.finish()
        statuses.append(result.status)
        if result.timed_out:
            print(f"hghca: the time limit of {timeout_s:g} s passed; raise it with --timeout", file=sys.stderr)
    return next((status for status in statuses if status), 0)


def shell(options):
    """An interactive shell on the terminal."""
    if not sys.stdin.isatty():
        raise UsageError("shell needs a terminal", "use `tools/hghca exec -- CMD...` in scripts")
    config = cli.guest_config(options)
    if not 1 <= options.on <= config.guests:
        raise UsageError(f"--on {options.on}: there is no such guest", f"give --vms {options.on} or more")
    with booted(config) as guests:
        return interact(guests[options.on - 1])


def interact(machine):
    """Join this terminal to a login shell in the guest until the shell ends."""
    def write(_, data):
        os.write(1, data)

    env = {"TERM": os.environ.get("TERM", "vt100"), "PS1": "guest# "}
    started = machine.start(["bash", "-l"], tty=True, on_output=write, env=env)

    def resize(*_):
        columns, rows = shutil.get_terminal_size()
        started.resize(rows, columns)

    resize()
    signal.signal(signal.SIGWINCH, resize)
    settings = termios.tcgetattr(0)
    try:
        tty.setraw(0)
        threading.Thread(target=pass_keys, args=(started,), daemon=True).start()
        while started.running():
            if not machine.alive():
                raise ToolError("the guest is gone")
            with contextlib.suppress(KeyboardInterrupt):
                machine.wait_for_state(lambda: not started.running(), 1)
        return started.status
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, settings)


def pass_keys(started):
    with contextlib.suppress(ToolError):
        while started.running():
            data = os.read(0, 4096)
            if not data:
                return
            started.send(data)
